package applog

import (
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestLineOfNothingButColours: programs that colour their console end with a
// line of just the reset. It is a blank line like any other.
func TestLineOfNothingButColours(t *testing.T) {
	for _, nothing := range []string{"\x1b[0m", "\x1b", "\x1b[", "\x1b]0;title\a", "\x1b[31m\x1b[0m", "\xef\xbb\xbf"} {
		want := New(metric.ForTarget("t"), Config{})
		got := New(metric.ForTarget("t"), Config{})
		for _, line := range []string{nothing, "30-Nov-2026 12:00:00.000 INFO [main] a.B.c one", nothing, "30-Nov-2026 12:00:01.000 INFO [main] a.B.c two", "\ta.b.C: d", nothing} {
			got.Observe([]byte(line))
			if line == nothing && nothing[0] == 0x1b {
				line = ""
			}
			want.Observe([]byte(line))
		}
		if n, _ := got.set.Counter(Records, "INFO").Value(); n != 2 {
			t.Errorf("%q: %v records, want 2", nothing, n)
		}
		g, _ := got.lines.Value()
		w, _ := want.lines.Value()
		if g != w {
			t.Errorf("%q: %v lines, want %v", nothing, g, w)
		}
	}
}
