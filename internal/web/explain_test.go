package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// explaining is a server with two sources that can be looked at closely.
func explaining() fake {
	st := &status.Status{Ready: true, Targets: []status.Server{{
		Up: true, Target: &target.Target{Name: "tomcat-8080", Kind: target.Tomcat},
		Sources: []status.Source{
			{Name: "accesslog", File: "access.log", Path: "/logs/access.log", Ledger: &status.Ledger{Written: 10, Read: 9, Lag: 1}, Explain: func(bool) status.Explained {
				return status.Explained{
					Entries:  []status.Entry{{Line: "a stranger's line", Made: []status.Fact{{Name: "code", Value: "2xx"}}}},
					Refused:  []status.Refused{{Reason: "mismatch", Line: "<img src=x onerror=alert(1)>"}},
					Patterns: []status.Pattern{{Text: "a stranger's pattern", Records: 3}},
					Settings: "accesslog:\n  codes: class\n",
				}
			}},
			{Name: "process"},
		},
	}}}
	return fake{st: st}
}

func TestExplain(t *testing.T) {
	var all struct {
		Lines   bool
		Sources []struct {
			Name, File, Settings string
			Ledger               *status.Ledger
			Entries              []status.Entry
			Refused              []status.Refused
			Patterns             []status.Pattern
		}
	}
	read := func(text string) {
		t.Helper()
		all.Sources = nil
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	read(body(t, get(t, explaining(), Options{}, "/explain.json?target=tomcat-8080")))
	if !all.Lines || len(all.Sources) != 2 {
		t.Fatalf("%+v", all)
	}
	s := all.Sources[0]
	if s.File != "access.log" || s.Ledger.Read != 9 || len(s.Entries) != 1 || s.Entries[0].Made[0].Value != "2xx" ||
		len(s.Refused) != 1 || len(s.Patterns) != 1 || !strings.Contains(s.Settings, "codes") {
		t.Errorf("%+v", s)
	}
	read(body(t, get(t, explaining(), Options{}, "/explain.json?target=tomcat-8080&source=process&file=")))
	if len(all.Sources) != 1 || all.Sources[0].Name != "process" {
		t.Errorf("one source: %+v", all.Sources)
	}
	if r := get(t, explaining(), Options{}, "/explain.json?target=nobody"); r.StatusCode != 404 {
		t.Errorf("unknown target: %d", r.StatusCode)
	}
	for _, query := range []string{"&source=nothing", "&file=other.log", "&source=process&file=access.log"} {
		r := get(t, explaining(), Options{}, "/explain.json?target=tomcat-8080"+query)
		if text := body(t, r); r.StatusCode != 404 || !strings.Contains(text, "has no source") {
			t.Errorf("unknown source %s: %d %s", query, r.StatusCode, text)
		}
	}
	if r := get(t, explaining(), Options{}, "/explain.json?target=tomcat-8080"); r.Header.Get("Cache-Control") != "no-store" {
		t.Error("lines of a log may be kept by a cache")
	}
}

// TestExplainKeepsLinesFromOthers: whoever is not on this machine and no user
// sees the account and the settings, and no word of a stranger.
func TestExplainKeepsLinesFromOthers(t *testing.T) {
	away := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:5000" }
	for _, path := range []string{"/explain.json?target=tomcat-8080", "/status.json", "/"} {
		got := body(t, get(t, explaining(), Options{}, path, away))
		for _, word := range []string{"a stranger", "onerror"} {
			if strings.Contains(got, word) {
				t.Errorf("%s from away: %q is shown", path, word)
			}
		}
		if path != "/" && !strings.Contains(got, `"read":9`) && !strings.Contains(got, `"read": 9`) {
			t.Errorf("%s from away: no ledger: %s", path, got)
		}
		if got := body(t, get(t, explaining(), Options{RawLines: yes}, path, away)); !strings.Contains(got, "onerror") {
			t.Errorf("%s to a user: the refused line is not there", path)
		}
	}
}

// TestStatusWithoutLines: whoever comes every few seconds need not have every
// source looked at closely.
func TestStatusWithoutLines(t *testing.T) {
	if got := body(t, get(t, explaining(), Options{}, "/status.json?lines=0")); strings.Contains(got, "onerror") || !strings.Contains(got, "access.log") {
		t.Errorf("?lines=0 gives %s", got)
	}
	if got := body(t, get(t, explaining(), Options{}, "/status.json")); !strings.Contains(got, "onerror") {
		t.Error("without it no refused line is there")
	}
}
