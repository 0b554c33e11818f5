package gclog

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// figure reads one figure of a set as the snapshot has it: a counter's or
// gauge's value, or the count or sum of a histogram over all its series.
func figure(set *metric.Set, name string, labels ...string) (sum, count float64) {
	g := metric.NewGathering()
	g.Add(set)
	f := g.Snapshot(time.Time{}).Family(name)
	if f == nil {
		return math.NaN(), math.NaN()
	}
next:
	for _, m := range f.Metric {
		for i := 0; i+1 < len(labels); i += 2 {
			found := false
			for _, l := range m.Label {
				found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			}
			if !found {
				continue next
			}
		}
		switch {
		case m.Counter != nil:
			sum += m.Counter.GetValue()
		case m.Gauge != nil:
			sum += m.Gauge.GetValue()
		case m.Histogram != nil:
			sum += m.Histogram.GetSampleSum()
			count += float64(m.Histogram.GetSampleCount())
		}
	}
	return sum, count
}

func observe(text string) (*metric.Set, *Observer) {
	set := metric.ForTarget("t")
	o := New(set, DefaultConfig())
	feed([]byte(text), o.Observe)
	o.Idle(time.Time{})
	return set, o
}

func TestCatalogue(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Error(err)
	}
	if err := (Config{MaxRecordLines: -1}).Check(); err == nil {
		t.Error("a negative limit was taken")
	}
}

// TestCase28: a stopped line measures the pause again; the two are never added,
// and 200 such lines before the first collection put nobody off the track.
func TestCase28(t *testing.T) {
	in := `2024-06-30T12:00:01.000+0000: 1.000: [GC (Allocation Failure) [PSYoungGen: 65536K->1024K(76288K)] 65536K->1100K(251392K), 0.1000000 secs] [Times: user=0.30 sys=0.00, real=0.10 secs] 
2024-06-30T12:00:01.100+0000: 1.100: Total time for which application threads were stopped: 0.1003000 seconds, Stopping threads took: 0.0000200 seconds
2024-06-30T12:00:02.000+0000: 2.000: [Full GC (Ergonomics) [PSYoungGen: 1024K->0K(76288K)] [ParOldGen: 76K->900K(175104K)] 1100K->900K(251392K), [Metaspace: 3000K->3000K(1056768K)], 0.2000000 secs] [Times: user=0.50 sys=0.01, real=0.20 secs] 
2024-06-30T12:00:02.200+0000: 2.200: Total time for which application threads were stopped: 0.2004000 seconds, Stopping threads took: 0.0000300 seconds
2024-06-30T12:00:03.000+0000: 3.000: Total time for which application threads were stopped: 0.0500000 seconds, Stopping threads took: 0.0490000 seconds
`
	set, _ := observe(in)
	check := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	sum, n := figure(set, "gclog_pause_seconds")
	check("pauses", n, 2)
	check("pause seconds", sum, .3)
	sum, n = figure(set, "gclog_stopped_seconds")
	check("stops", n, 3)
	check("stopped seconds", sum, .3507)
	sum, _ = figure(set, "gclog_safepoint_sync_seconds_total")
	check("time to safepoint", sum, .04905)
	sum, _ = figure(set, "gclog_unrecognised_lines_total")
	check("unrecognised", sum, 0)

	many := strings.Repeat("1.100: Total time for which application threads were stopped: 0.0001000 seconds\n", 200) + in
	set, _ = observe(many)
	_, n = figure(set, "gclog_pause_seconds", "collector", "parallel")
	check("pauses behind 200 stops", n, 2)
	if s := Sniff([]byte(many[:4096])); s < .8 {
		t.Errorf("sniffed as %.2f", s)
	}
}

// TestCase29: the same three events four ways.
func TestCase29(t *testing.T) {
	for _, deco := range []string{"[0.128s][info][gc] ", "[2024-06-30T12:00:00.128+0000][0.128s] ", "[gc          ] ", ""} {
		in := ""
		for _, m := range []string{"GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->1M(64M) 0.700ms", "GC(1) Pause Young (Concurrent Start) (Metadata GC Threshold) 18M->1M(64M) 1.050ms", "GC(2) Pause Full (System.gc()) 38M->2M(64M) 4.250ms"} {
			in += deco + m + "\n"
		}
		set, _ := observe(in)
		sum, n := figure(set, "gclog_pause_seconds", "collector", "g1")
		_, full := figure(set, "gclog_pause_seconds", "kind", "full", "cause", "System.gc()")
		heap, _ := figure(set, "gclog_heap_after_bytes", "generation", "heap")
		if n != 3 || full != 1 || math.Abs(sum-.006) > 1e-12 || heap != 2<<20 {
			t.Errorf("%q: %v pauses, %v full, %v s, heap %v", deco, n, full, sum, heap)
		}
		// 17M were allocated before the second, 37M before the third.
		if a, _ := figure(set, "gclog_allocated_bytes_total"); a != 54<<20 {
			t.Errorf("%q: allocated %v", deco, a)
		}
		if s := Sniff([]byte(in)); s < .8 {
			t.Errorf("%q: sniffed as %.2f", deco, s)
		}
	}
}

func TestFailuresAndStalls(t *testing.T) {
	set, _ := observe(`[1.0s][info][gc] GC(1) To-space exhausted
[1.0s][info][gc] GC(2) Pause Young (Mixed) (G1 Evacuation Pause) (Evacuation Failure: Pinned) 60M->50M(64M) 9ms
[1.0s][info][gc] GC(2) Pause Degenerated GC (Mark) 91M->16M(92M) 53ms
[1.0s][info][gc] GC(3) Degenerated GC upgrading to Full GC
[1.0s][debug][gc] GC(3) Concurrent mode failure
[1.0s][debug][gc] GC(3) Concurrent mode interrupted
[1.0s][info][gc,promotion] GC(3) Promotion failed
[1.0s][debug][gc] GC(3) GC Overhead Limit: GC Time 99.1 Free Space Young 0.1 Old 0.1 Counter 0
[1.0s][debug][gc] GC(4) GC Overhead Limit: GC Time 99.1 Free Space Young 0.1 Old 0.1 Counter 1
[1.0s][info][gc] Allocation Stall (http-nio-8080-exec-1) 12.165ms
[1.0s][info][gc] Allocation Stall (http-nio-8080-exec-27) 2.000ms
[1.0s][info][gc] Allocation Stall (qtp1589683045-15) 1.000ms
[1.0s][info][gc] Relocation Stall (main) 1.000ms
[1.0s][info][gc,alloc] GC(4) y: Allocation Stalls:          0                0                0                0
`)
	for f := Failure(0); f < failureCount; f++ {
		if n, _ := figure(set, "gclog_failures_total", "kind", f.String()); n != 1 {
			t.Errorf("%s: %v, want 1", f, n)
		}
	}
	if s, n := figure(set, "gclog_allocation_stall_seconds", "pool", "http-nio-8080-exec"); n != 2 || math.Abs(s-.014165) > 1e-12 {
		t.Errorf("stalls of the pool: %v, %v s", n, s)
	}
	if _, n := figure(set, "gclog_allocation_stall_seconds"); n != 3 {
		t.Errorf("stalls: %v", n)
	}
}

func TestPromotionAndHeap(t *testing.T) {
	set, _ := observe("1.0: [GC (Allocation Failure) [PSYoungGen: 80K->10K(90K)] 100K->40K(200K), 0.1 secs]\n2.0: [GC (Allocation Failure) [PSYoungGen: 90K->10K(90K)] 120K->60K(200K), 0.1 secs]\n")
	for name, want := range map[string]float64{"gclog_promoted_bytes_total": 30 << 10, "gclog_allocated_bytes_total": 80 << 10} {
		if v, _ := figure(set, name); v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
	for g, want := range map[string]float64{"heap": 60 << 10, "young": 10 << 10, "old": 50 << 10} {
		if v, _ := figure(set, "gclog_heap_after_bytes", "generation", g); v != want {
			t.Errorf("%s after = %v, want %v", g, v, want)
		}
	}
	set, _ = observe("[1s][info][gc,init] Heap Region Size: 1M\n[1.0s][info][gc,start] GC(0) Pause Young (Normal) (G1 Evacuation Pause)\n[1.0s][info][gc,heap] GC(0) Eden regions: 6->0(5)\n[1.0s][info][gc,heap] GC(0) Survivor regions: 0->1(1)\n[1.0s][info][gc,heap] GC(0) Old regions: 2->5\n[1.0s][info][gc,heap] GC(0) Humongous regions: 1->1\n[1.0s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 9M->7M(64M) 4.197ms")
	if v, _ := figure(set, "gclog_promoted_bytes_total"); v != 3<<20 {
		t.Errorf("G1 promoted %v", v)
	}
	if v, _ := figure(set, "gclog_heap_after_bytes", "generation", "old"); v != 6<<20 {
		t.Errorf("G1 old %v", v)
	}
}

// TestNested: a scavenge inside a remark is counted and adds no time.
func TestNested(t *testing.T) {
	set, _ := observe("1.5: [GC (CMS Final Remark) [YG occupancy: 4 K (9 K)]1.5: [GC (CMS Final Remark) 1.5: [ParNew: 9K->1K(9K), 0.01 secs] 9K->2K(16K), 0.01 secs] [Times: user=0.0 sys=0.0, real=0.0 secs]\n1.6: [Rescan (parallel) , 0.01 secs] [1 CMS-remark: 1K(7K)] 2K(16K), 0.03 secs]\n")
	if n, _ := figure(set, "gclog_collections_total"); n != 2 {
		t.Errorf("%v collections, want 2", n)
	}
	if s, n := figure(set, "gclog_pause_seconds"); n != 1 || s != .03 {
		t.Errorf("%v pauses of %v s, want 1 of 0.03", n, s)
	}
	if n, _ := figure(set, "gclog_collections_total", "kind", "young", "cause", "CMS Final Remark"); n != 1 {
		t.Errorf("%v young collections, want 1", n)
	}
}

// TestUnrecognised: every line that is no form of a GC log is counted, whatever
// it looks like, and none that is.
func TestUnrecognised(t *testing.T) {
	for line, want := range map[string]float64{
		"INFO request 0 took 12.345ms": 1, "[main] INFO started": 1, "[] empty": 1, "WARN [gc] GC(9999) Pause Young (Normal) 1M->1M(2M) 9.999ms": 1,
		"30-Nov-2026 11:56:15.195 WARNING [main] org.apache.Foo.bar something": 1, "\tat org.apache.Foo.bar(Foo.java:12)": 1, "cation threads were stopped: 0,0002170 seconds": 1,
		"[1.0s][info][gc] GC(1) Pause Fresh Air 4.0ms":         1,
		"[class,load] java.lang.Object source: jrt:/java.base": 0, "[1.0s][info][class,load] java.lang.Object source: jrt:/java.base": 0, "[1.0s][trace][gc,task] anything": 0,
		"      [Some Phase of Tomorrow (ms): 0.1]": 0, "  eden space 9K, 25% used [0x1, 0x2, 0x3)": 0, "": 0, "   ": 0,
	} {
		set, _ := observe(line + "\n")
		if got, _ := figure(set, "gclog_unrecognised_lines_total"); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	// An application's line in the middle of a record leaves it open.
	set, _ := observe("1.2: [GC 1.2: [ParNew\n[main] INFO started\n: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.2 secs]\n")
	if _, n := figure(set, "gclog_pause_seconds"); n != 1 {
		t.Errorf("%v pauses around an application's line", n)
	}
}
