package gclog

import (
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestKeptLinesSayWhatWasMadeOfThem: each kept line stands with what it was
// counted as, and those of no known form are kept apart as well.
func TestKeptLinesSayWhatWasMadeOfThem(t *testing.T) {
	o := New(metric.ForTarget("t"), DefaultConfig())
	o.Keep(4)
	for _, l := range []string{
		"[1.0s][info][gc      ] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms",
		"[1.1s][info][gc,phases] GC(7)   Pre Evacuate Collection Set: 0.1ms",
		"<img src=x onerror=alert(1)>",
		"[1.2s][info][gc      ] GC(8) Concurrent Mark Cycle 12.5ms",
		"[1.3s][info][gc      ] GC(9) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms",
	} {
		if strings.Contains(l, "GC(9)") {
			o.kept.leave = 0
		}
		o.Observe([]byte(l))
	}
	lines, refused := o.Kept()
	if len(lines) != 4 || len(refused) != 1 {
		t.Fatalf("%d lines, %d refused", len(lines), len(refused))
	}
	if got := strings.Join(lines[0].Made, "; "); !strings.Contains(got, "pause") || !strings.Contains(got, "young 0.005123 s, cause G1 Evacuation Pause") || !strings.Contains(got, "heap 24117248 to 4194304 bytes") {
		t.Errorf("the pause was made into %q", got)
	}
	if len(lines[1].Made) != 0 || lines[1].Unrecognised {
		t.Errorf("a phase counts as nothing: %+v", lines[1])
	}
	if !lines[2].Unrecognised || !refused[0].Unrecognised || refused[0].Line != "<img src=x onerror=alert(1)>" {
		t.Errorf("the markup: %+v, %+v", lines[2], refused)
	}
	if got := strings.Join(lines[3].Made, "; "); !strings.Contains(got, "concurrent") {
		t.Errorf("the cycle was made into %q", got)
	}
}

// TestNoLeaveNothingKept, and nothing allocated by it.
func TestNoLeaveNothingKept(t *testing.T) {
	o := New(metric.ForTarget("t"), DefaultConfig())
	line := []byte("[1.0s][info][gc      ] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms")
	o.Observe(line)
	if lines, refused := o.Kept(); len(lines)+len(refused) != 0 {
		t.Errorf("kept %v, %v", lines, refused)
	}
	o.Keep(1)
	for range linesOfCollection {
		o.Observe(line)
	}
	if n := testing.AllocsPerRun(20, func() { o.Observe(line) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
