package gclog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestTold: long pauses and failures are told, of the old form and the new.
func TestTold(t *testing.T) {
	lines := []string{
		`[2026-11-30T12:00:01.000+0000][1.000s][info][gc] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 200M->50M(400M) 12.300ms`,
		`[2026-11-30T12:00:02.000+0000][2.000s][info][gc] GC(2) Pause Young (Normal) (G1 Evacuation Pause) 200M->50M(400M) 812.300ms`,
		`[2026-11-30T12:00:03.000+0000][3.000s][info][gc] GC(3) To-space exhausted`,
		`[2026-11-30T12:00:04.000+0000][4.000s][info][gc] GC(3) Pause Full (G1 Compaction Pause) 400M->50M(400M) 1500.000ms`,
		`[5.000s][info][gc] GC(4) Pause Full (System.gc()) 400M->50M(400M) 2500.000ms`,
	}
	var have []string
	o := New(metric.NewSet(), DefaultConfig())
	o.Listen(Listener{Pause: .5, Failures: true, Started: 1000,
		Match: func(line []byte) string {
			if len(line) > 0 && line[len(line)-4] == '.' {
				return "never"
			}
			return ""
		},
		Told: func(t *Told) {
			have = append(have, fmt.Sprintf("%s|%s|%v|%d|%s", t.Event, t.Pattern, t.Failure, t.At/1e9, t.Line))
		}})
	for _, line := range lines {
		o.Observe([]byte(line))
	}
	o.Idle(time.Time{})
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Unix()
	want := []string{
		fmt.Sprintf("gc_pause|young G1 Evacuation Pause|false|%d|%s", at+2, lines[1]),
		fmt.Sprintf("gc_to_space_exhausted|gc_to_space_exhausted|true|%d|%s", at+3, lines[2]),
		fmt.Sprintf("gc_pause|full G1 Compaction Pause|false|%d|%s", at+4, lines[3]),
		fmt.Sprintf("gc_pause|full System.gc()|false|1005|%s", lines[4]),
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

// TestToldJDK8: the line is the one that ended the record.
func TestToldJDK8(t *testing.T) {
	var have []string
	o := New(metric.NewSet(), DefaultConfig())
	o.Listen(Listener{Pause: .5, Told: func(t *Told) { have = append(have, fmt.Sprintf("%s|%d|%s", t.Event, t.At, t.Line)) }})
	for _, line := range []string{
		`2026-11-30T12:00:01.000+0000: 1.000: [GC (Allocation Failure) [PSYoungGen: 65536K->10748K(76288K)] 65536K->14340K(251392K), 0.0113000 secs] [Times: user=0.02 sys=0.01, real=0.01 secs] `,
		`2026-11-30T12:00:02.000+0000: 2.000: [Full GC (Ergonomics) [PSYoungGen: 10748K->0K(76288K)] [ParOldGen: 3592K->13570K(175104K)] 14340K->13570K(251392K), [Metaspace: 20000K->20000K(1067008K)], 1.5000000 secs] [Times: user=2.00 sys=0.01, real=1.50 secs] `,
	} {
		o.Observe([]byte(line))
	}
	if len(have) != 1 || have[0][:9] != "gc_pause|" {
		t.Errorf("%q", have)
	}
}
