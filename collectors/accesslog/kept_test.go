package accesslog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestKeptLinesSayWhatWasMadeOfThem: of a storm only as many lines are kept as
// there is leave for, and each with what was read from it.
func TestKeptLinesSayWhatWasMadeOfThem(t *testing.T) {
	m := mustCompile(t, FormatTomcat, `%h %l %u %t "%r" %s %b %D %I`, Options{ServerVersion: "10.1"})
	cfg := DefaultConfig()
	cfg.Routes.Patterns = []string{"/orders/*"}
	o := New(metric.ForTarget("t"), m, cfg)
	line := `10.0.0.1 - - [28/Mar/2026:23:59:10 +0000] "GET /orders/7?x=1 HTTP/1.1" 503 96 1500 catalina-exec-3`
	o.Observe([]byte(line)) // without leave
	o.Keep(2)
	o.Observe([]byte(line))
	o.Observe([]byte("<script>alert(1)</script>"))
	o.Observe([]byte(line)) // beyond the leave
	kept := o.Kept()
	if len(kept) != 2 {
		t.Fatalf("%d lines kept", len(kept))
	}
	var said []string
	for _, f := range kept[0].Facts {
		said = append(said, f[0]+"="+f[1])
	}
	const want = "time=2026-03-28T23:59:10.000Z method=GET path=/orders/7 route=/orders/* code=5xx bytes=96 duration=0.0015 s pool=catalina-exec"
	if got := strings.Join(said, " "); got != want || kept[0].Line != line {
		t.Errorf("read:\n%s\nwant:\n%s", got, want)
	}
	if kept[1].Why == Accepted || kept[1].Facts != nil || !strings.HasPrefix(kept[1].Line, "<script>") {
		t.Errorf("the second is no request: %+v", kept[1])
	}
}

// TestKeptRingGoesRound: the newest stays, the oldest goes, and a line longer
// than what is kept is shown without facts that it may not have had.
func TestKeptRingGoesRound(t *testing.T) {
	m := mustCompile(t, FormatTomcat, `%h "%r" %s`, Options{ServerVersion: "10.1"})
	o := New(metric.ForTarget("t"), m, DefaultConfig())
	o.Keep(1000)
	for i := range 3 * keptLines {
		o.Observe(fmt.Appendf(nil, `h "GET /%d HTTP/1.1" 200`, i))
	}
	kept := o.Kept()
	if len(kept) != keptLines || !strings.Contains(kept[keptLines-1].Line, fmt.Sprintf("/%d ", 3*keptLines-1)) || !strings.Contains(kept[0].Line, fmt.Sprintf("/%d ", 2*keptLines)) {
		t.Errorf("%d kept, from %q to %q", len(kept), kept[0].Line, kept[len(kept)-1].Line)
	}
	o.Observe(fmt.Appendf(nil, `h "GET /%s HTTP/1.1" 200`, strings.Repeat("x", 2*keptBytes)))
	if last := o.Kept()[keptLines-1]; len(last.Line) != keptBytes || last.Facts != nil || last.Why != Accepted {
		t.Errorf("%d bytes, facts %v", len(last.Line), last.Facts)
	}
}

// TestKeepingAllocatesNothing once its slots are there, with leave and without.
func TestKeepingAllocatesNothing(t *testing.T) {
	m := mustCompile(t, FormatTomcat, loadPattern, Options{ServerVersion: "10.1"})
	o := New(metric.ForTarget("t"), m, DefaultConfig())
	lines := benchLines(64)
	all := func() {
		for _, l := range lines {
			o.Observe(l)
		}
	}
	for _, leave := range []int{1 << 30, 0} {
		o.Keep(leave)
		all()
		if n := testing.AllocsPerRun(20, all); n > 0 {
			t.Errorf("leave %d: %v allocations", leave, n)
		}
	}
}
