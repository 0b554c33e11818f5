package logdir

import (
	"strings"
	"testing"
)

func TestFindings(t *testing.T) {
	const gb = 1 << 30
	found := func(id, _ string) string { return id }
	split := func(s string) []string { return strings.Fields(s) }
	for _, c := range []struct{ name, got, want string }{
		{"catalina.out alone", found(FindCatalinaOut("/t/logs/catalina.out", split("catalina.out catalina.2026-11-30.log catalina.outer"), false)), FindingCatalinaOut},
		{"catalina.out rotated by number", found(FindCatalinaOut("/t/logs/catalina.out", split("catalina.out catalina.out.1"), false)), ""},
		{"catalina.out rotated by date", found(FindCatalinaOut("/t/logs/catalina.out", split("catalina.out-20261130.gz"), false)), ""},
		{"catalina.out named by logrotate", found(FindCatalinaOut("/t/logs/catalina.out", nil, true)), ""},
		{"stdout is a pipe", found(FindCatalinaOut("", nil, false)), ""},

		{"access log for ever", found(FindAccessLog("access.log", true, -1)), FindingAccessLog},
		{"access log for 90 days", found(FindAccessLog("access.log", true, 90)), ""},
		{"access log in one file", found(FindAccessLog("access.log", false, 0)), FindingAccessLog},

		{"system disk", found(FindSystemDisk("/t/logs", "/")), FindingSystemDisk},
		{"own disk", found(FindSystemDisk("/t/logs", "/t")), ""},

		{"dump too large", found(FindHeapDump("/d", true, 8*gb, 3*gb)), FindingHeapDump},
		{"dump fits", found(FindHeapDump("/d", true, 8*gb, 9*gb)), ""},
		{"no dump asked for", found(FindHeapDump("/d", false, 8*gb, 0)), ""},
		{"heap not known", found(FindHeapDump("/d", true, 0, 0)), ""},
		{"disk full already", found(FindHeapDump("/d", true, 8*gb, 0)), FindingHeapDump},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	if _, detail := FindHeapDump("/d", true, 8e9, 3e9); !strings.Contains(detail, "8.0 GB") || !strings.Contains(detail, "3.0 GB") {
		t.Errorf("detail without its figures: %s", detail)
	}
}
