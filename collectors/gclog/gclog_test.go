package gclog

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
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

// TestForms are the forms of the format table that the corpus may not hold, and
// the cases of category GC log. want is "kind[!]:seconds …" with ! for nested.
func TestForms(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"verbose 1.4", "[GC 800K->200K(1600K), 0.0012345 secs]\n[Full GC 800K->200K(1600K), 0.1 secs]", "young:0.0012345 full:0.1"},
		{"cause with two blanks", "1.25: [GC (Allocation Failure)  800K->200K(1600K), 0.0012345 secs]", "young:0.0012345"},
		{"Full with a cause", "1.25: [Full GC (System.gc())  800K->200K(1600K), 0.5 secs]", "full:0.5"},
		{"CMS marks, gc only, 7u40", "1.3: [GC (CMS Initial Mark)  900K(1600K), 0.0003 secs]\n1.5: [GC (CMS Final Remark)  900K(1600K), 0.0004 secs]", "initial-mark:0.0003 remark:0.0004"},
		{"CMS marks, gc only, 6", "1.30: [GC 900K(1600K), 0.0003000 secs]", "initial-mark-or-remark:0.0003"},
		{"scavenge before remark, gc only", "1.5: [GC (CMS Final Remark) 1.5: [GC (CMS Final Remark)  900K->100K(1600K), 0.01 secs]\n 100K(1600K), 0.02 secs]", "young!:0.01 remark:0.02"},
		{"parallel overflow 6", "1.2: [GC-- [PSYoungGen: 80K->80K(90K)] 800K->900K(1600K), 0.7 secs]", "young:0.7"},
		{"parallel overflow 8", "1.2: [GC (Allocation Failure) --[PSYoungGen: 80K->80K(90K)] 800K->900K(1600K), 0.7 secs]", "young:0.7"},
		{"PSOldGen", "1.2: [Full GC (System) [PSYoungGen: 80K->0K(90K)] [PSOldGen: 9K->8K(9K)] 89K->8K(99K) [PSPermGen: 1K->1K(2K)], 0.1 secs] [Times: user=0.1 sys=0.0, real=0.1 secs]", "full:0.1"},
		{"GC with Tenured is full", "1.2: [GC 1.2: [DefNew: 9K->1K(9K), 0.2 secs]1.4: [Tenured: 3K->2K(9K), 0.3 secs] 9K->2K(18K), [Metaspace: 1K->1K(2K)], 0.6 secs]", "full:0.6"},
		{"promotion failed in one record", "1.2: [GC 1.2: [ParNew (promotion failed): 9K->9K(9K), 0.1 secs]1.3: [CMS1.4: [CMS-concurrent-sweep: 1/2 secs] [Times: user=1.0 sys=0.0, real=2.0 secs]\n (concurrent mode failure): 9K->4K(9K), 40.1 secs] 9K->4K(9K), [CMS Perm : 1K->1K(2K)], 41.0 secs] [Times: user=1.0 sys=0.0, real=41.0 secs]", "full:41"},
		{"failure on one line", "1.2: [Full GC 1.2: [CMS (concurrent mode failure): 9K->4K(9K), 40.1 secs] 9K->4K(9K), 41.0 secs]", "full:41"},
		{"promotion failure sizes", "1.2: [GC 1.2: [ParNew (0: promotion failure size = 131074)  (promotion failed): 9K->9K(9K), 0.1 secs] 9K->9K(9K), 0.2 secs]", "young:0.2"},
		{"iCMS", "1.2: [GC 1.2: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K) icms_dc=5 , 0.2 secs]", "young:0.2"},
		{"decimal comma", "1,250: [GC 1,250: [ParNew: 9K->1K(9K), 0,1000000 secs] 9K->1K(9K), 0,2000000 secs]", "young:0.2"},
		{"PrintGCID", "1.2: #12: [GC pause (young) 8M->3M(64M), 0.012 secs]", "young:0.012"},
		{"G1 three flags", "1.2: [GC pause (G1 Evacuation Pause) (young) (initial-mark) (to-space exhausted), 0.5 secs]", "young:0.5"},
		{"G1 mixed", "1.2: [GC pause (G1 Evacuation Pause) (mixed) 8M->3M(64M), 0.012 secs]", "mixed:0.012"},
		{"G1 partial of 6", "1.2: [GC pause (partial) 8M->3M(64M), 0.012 secs]", "mixed:0.012"},
		{"G1 split header", "1.2: [GC pause (G1 Evacuation Pause) (young)\nDesired survivor size 1 bytes, new threshold 15 (max 15)\n- age   1:  1 bytes, 1 total\n 1.2: [G1Ergonomics (CSet Construction) start choosing CSet, _pending_cards: 0, predicted base time: 1.2 ms]\n (to-space exhausted), 0.0120 secs]\n   [Parallel Time: 2.1 ms, GC Workers: 8]", "young:0.012"},
		{"G1 remark with parts", "1.2: [GC remark 1.2: [Finalize Marking, 0.001 secs] 1.2: [GC ref-proc, 0.002 secs] 1.2: [Unloading, 0.003 secs], 0.01 secs]\n1.3: [GC cleanup 10M->8M(64M), 0.001 secs]", "remark:0.01 cleanup:0.001"},
		{"G1 concurrent is none", "1.2: [GC concurrent-mark-start]\n1.3: [GC concurrent-mark-end, 1.23 secs]\n1.3: [GC concurrent-mark-abort]\n1.3: [GC concurrent-mark-reset-for-overflow]", ""},
		{"Shenandoah on 8", "1.2: [Pause Init Mark (process weakrefs), start]\n1.2: [Pause Init Mark (process weakrefs), 3.341 ms]\n1.3: [Concurrent cleanup 20M->10M(32M), 0.1 ms]\n1.4: [Pause Full 20M->10M(32M), 7.5 ms]", "init-mark:0.003341 full:0.0075"},
		{"heap tables in the record", "{Heap before GC invocations=1 (full 0):\n par new generation   total 9K, used 9K [0x01, 0x02, 0x03)\n1.2: [GC 1.2: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K)Heap after GC invocations=2 (full 0):\n eden space 9K, 0% used [0x01, 0x02, 0x03)\n}\n, 0.2 secs]", "young:0.2"},
		{"glued record", "x 1.250: [GC pause (young) 8M->3M(64M), 0.012 secs]", "young:0.012"},
		{"JDK 7 without blanks", "[GC2013-05-27T14:30:00.123+0200: 1.234: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.2 secs]\n2.2: [GC1.234: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.3 secs]\n2013-05-27T14:30:00.123+0200: 3.234: [Full GC2013-05-27T14:30:00.123+0200: 3.234: [CMS: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.4 secs]", "young:0.2 young:0.3 full:0.4"},
		{"JDK 7 sizes in the record", "1.2: [GCAdaptiveSizePolicy::compute_survivor_space_size_and_thresh:  survived: 1  promoted: 2  overflow: false\nAdaptiveSizeStart: 1.3 collection: 1 \nAdaptiveSizeStop: collection: 1 \n[PSYoungGen: 9K->1K(9K)] 9K->1K(9K), 0.2 secs]", "young:0.2"},
		{"G1 of 6", "1.2: [GC pause (young), 0.01 secs]\n   [Parallel Time:   1.2 ms]\n   [ 59M->42M(100M)]\n [Times: user=0.1 sys=0.0, real=0.1 secs]", "young:0.01"},
		{"torn record, then a newer Java", "1.2: [GC 1.2: [ParNew: 9K->1K(9K\n[0.1s][info][gc] Using G1\n[0.2s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 9M->2M(30M) 4.0ms", "young:0.004"},
		{"torn record, next one whole", "1.2: [GC 1.2: [ParNew: 9K->1K(9K\n2.2: [GC 2.2: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.2 secs]", "young:0.2"},
		{"glued behind other text", "1.1: Application time: 1.2345 secon1.2: [GC pause (young) 8M->3M(64M), 0.012 secs]", ""},
		{"two threads at once", "2023-05-01T10:00:00.000+0200: 985162.343: 2023-05-01T10:00:00.0Total time for which application threads were stopped: 0.05 seconds\n01+0200: 985162.344: [GC 9K->1K(9K), 0.2 secs]", "young:0.2"},
		{"stamp twice", "737.775737.775: : [GC pause (young) 8M->3M(64M), 0.012 secs]", "young:0.012"},
		{"NULs of a copytruncate", "\x00\x00\x00\x001.2: [GC 9K->1K(9K), 0.2 secs]", "young:0.2"},
		{"an application's brackets", "INFO [GC monitor] 3 secs]\n[GC monitor] took 0.1 secs]\n[app] GC(1) Pause Young 1M->1M(2M) 9.999ms now", ""},
		{"time limit", "1.2: [Full GC [PSYoungGen: 8K->0K(9K)] [ParOldGen: 9K->8K(9K)] 9K->8K(9K), 0.1 secs]\n      GC time would exceed GCTimeLimit of 98%", "full:0.1"},

		{"histogram in the record", "1.2: [Full GC (System.gc()) 1.2: [Class Histogram (before full gc): \n num     #instances         #bytes  class name\n----------------------------------------------\n   1:          1234        5678  [C\n   2:          1234        5678  [Ljava.lang.Object;\nTotal          2468       11356\n, 0.01 secs]\n1.3: [CMS: 9K->4K(9K), 0.1 secs] 9K->4K(9K), 0.2 secs]", "full:0.2"},
		{"histogram before the record", "1.2: [Class Histogram (before full gc): \n num     #instances         #bytes  class name\n   1:          1234        5678  [[C\nTotal          2468       11356\n, 0.01 secs]\n1.3: [Full GC 9K->4K(9K), 0.2 secs]", "full:0.2"},
		{"string deduplication", "1.2: [GC concurrent-string-deduplication, 123.0B->0.0B(123.0B), avg 78.9%, 0.0012 secs]\n   [Last Exec: 0.0012 secs, Idle: 0.1 secs, Blocked: 0/0.0 secs]\n      [Inspected:              12]\n", ""},

		{"unified start and end", "[1.0s][info][gc,start] GC(7) Pause Young (Normal) (G1 Evacuation Pause)\n[1.0s][info][gc      ] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms", "young:0.005123"},
		{"JDK 9 stamps in the line", "[1.0s][info][gc] GC(7) Pause Young (G1 Evacuation Pause) 23M->4M(64M) (0.231s, 0.234s) 3.0ms", "young:0.003"},
		{"JDK 9 G1 initial mark", "[1.0s][info][gc] GC(7) Pause Initial Mark (G1 Humongous Allocation) 23M->4M(64M) 3.0ms", "young:0.003"},
		{"JDK 9 CMS marks", "[1.0s][info][gc] GC(7) Pause Initial Mark 24M->24M(61M) 0.240ms\n[1.0s][info][gc] GC(7) Pause Remark 24M->24M(61M) 0.250ms", "initial-mark:0.00024 remark:0.00025"},
		{"pinned, 22", "[1.0s][info][gc] GC(7) Pause Young (Mixed) (G1 Evacuation Pause) (Evacuation Failure: Allocation / Pinned) 60M->50M(64M) 9ms", "mixed:0.009"},
		{"full inside young, with starts", "[1.0s][info][gc] Using Serial\n[1.0s][info][gc,start] GC(3) Pause Young (Allocation Failure)\n[1.0s][info][gc,start] GC(4) Pause Full (Allocation Failure)\n[1.0s][info][gc] GC(4) Pause Full (Allocation Failure) 9M->5M(9M) 30.0ms\n[1.0s][info][gc] GC(3) Pause Young (Allocation Failure) 9M->5M(9M) 40.0ms", "full!:0.03 young:0.04"},
		{"full inside young, gc only", "[1.0s][info][gc] Using Serial\n[1.0s][info][gc] GC(2) Pause Young (Allocation Failure) 9M->5M(9M) 4.0ms\n[1.0s][info][gc] GC(4) Pause Full (Allocation Failure) 9M->5M(9M) 30.0ms\n[1.0s][info][gc] GC(3) Pause Young (Allocation Failure) 9M->5M(9M) 40.0ms", "young:0.004 full!:0.03 young:0.04"},
		{"number missing, but no young round it", "[1.0s][info][gc] Using Serial\n[1.0s][info][gc] GC(2) Pause Young (Allocation Failure) 9M->5M(9M) 4.0ms\n[1.0s][info][gc] GC(4) Pause Full (Allocation Failure) 9M->5M(9M) 30.0ms\n[1.0s][info][gc] GC(5) Pause Young (Allocation Failure) 9M->5M(9M) 40.0ms", "young:0.004 full:0.03 young:0.04"},
		{"scavenge inside remark", "[1.0s][info][gc] Using Concurrent Mark Sweep\n[1.0s][info][gc,start] GC(3) Pause Remark\n[1.0s][info][gc,start] GC(9) Pause Young (CMS Final Remark)\n[1.0s][info][gc] GC(9) Pause Young (CMS Final Remark) 9M->5M(9M) 30.0ms\n[1.0s][info][gc] GC(3) Pause Remark 5M->5M(9M) 40.0ms", "young!:0.03 remark:0.04"},
		{"an end was dropped: not nested", "[1.0s][info][gc] Using Serial\n[1.0s][info][gc,start] GC(3) Pause Young (Allocation Failure)\n[1.0s][warning][   ]   9 messages dropped due to async logging\n[1.0s][info][gc] GC(4) Pause Full (Allocation Failure) 9M->5M(9M) 30.0ms", "full:0.03"},
		{"the world ran in between: not nested", "[1.0s][info][gc] Using Serial\n[1.0s][info][gc,start] GC(3) Pause Young (Allocation Failure)\n[1.0s][info][safepoint] Safepoint \"GenCollectForAllocation\", Total: 9 ns\n[1.0s][info][gc] GC(4) Pause Full (Allocation Failure) 9M->5M(9M) 30.0ms", "full:0.03"},
		{"cycle is no pause", "[1.0s][info][gc] GC(7) Concurrent Mark Cycle 103.2ms\n[1.0s][info][gc] GC(4) Minor Collection (Allocation Rate) 2126M(83%)->888M(35%) 0.199s\n[1.0s][info][gc] GC(7) Concurrent Mark (1.2s, 1.3s) 99ms", ""},
		{"phases are no pauses", "[1.0s][info][gc,phases] GC(7)   Evacuate Collection Set: 2.3ms\n[1.0s][debug][gc,phases] GC(7)     Evacuation Failure: 0.1ms", ""},
		{"ZGC generations", "[1.0s][info][gc,phases] GC(4) y: Pause Mark End 0.006ms\n[1.0s][info][gc,phases] GC(4) Y: Pause Mark Start (Major) 0.007ms\n[1.0s][info][gc,phases] GC(4) O: Pause Relocate Start 0.008ms", "mark-end:6e-06 mark-start:7e-06 relocate-start:8e-06"},
		{"statistics at exit", "[1.0s][info][gc,stats] Pause Init Mark (G)            =    0.019 s (a =      617 us)\nGC(1) Pause Init Mark 0.1ms\nPause Init Mark (G)  8027 us\n  Phase: Pause Mark End  0.020 / 0.029 ms", "init-mark:0.0001"},
		{"Shenandoah", "[1.0s][info][gc] GC(2) Pause Degenerated GC (Mark) 91M->16M(92M) 53.000ms\n[1.0s][info][gc] GC(3) Pause Final Roots 0.1ms\n[1.0s][info][gc] GC(4) Pause Init Mark (unload classes) 0.2 ms", "degenerated:0.053 final-roots:0.0001 init-mark:0.0002"},
		{"utctime, pid, tid", "[2026-11-30T12:27:43.616+0000][1234][1235][info][gc] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms", "young:0.004"},
		{"hostname alone", "[apphost01] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms", "young:0.004"},
		{"hostname with a domain", "[Web-01.example.com] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms\n[Web-01.example.com] CDS archive(s) mapped at: [0x1]", "young:0.004"},
		{"hostname like a tag", "[build] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms", "young:0.004"},
		{"level alone", "[info ] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms", "young:0.004"},
		{"none", "GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.000ms\r", "young:0.004"},
		{"half a line", "[1.0s][info][gc] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.0", ""},
		{"more behind the ms", "[1.0s][info][gc] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 4.0ms extra", ""},
		{"a cause of tomorrow", "[1.0s][info][gc] GC(0) Pause Young (Normal) (G1 Lunar Eclipse) 9M->2M(30M) 4.0ms", "young:0.004"},
		{"a pause of tomorrow", "[1.0s][info][gc] GC(0) Pause Fresh Air 4.0ms", "other:0.004"},

		{"case 26", "100.100: [GC 100.100: [ParNew: 136320K->17024K(153344K), 0.0198000 secs] 400000K->300000K(502912K), 0.0200000 secs] [Times: user=0.07 sys=0.00, real=0.02 secs] \nGC locker: Trying a full collection because scavenge failed\n120.500: [Full GC 120.500: [CMS120.911: [CMS-concurrent-mark: 1.120/1.300 secs] [Times: user=2.10 sys=0.05, real=1.30 secs] \n (concurrent mode failure): 340100K->120050K(349568K), 2.5000000 secs] 490000K->120050K(502912K), [CMS Perm : 21000K->20990K(40000K)], 2.5012000 secs] [Times: user=2.50 sys=0.00, real=2.50 secs] \n123.010: [GC [1 CMS-initial-mark: 120050K(349568K)] 125000K(502912K), 0.0031000 secs] [Times: user=0.00 sys=0.00, real=0.00 secs] \n", "young:0.02 full:2.5012 initial-mark:0.0031"},
		{"case 29 ZGC", "[0.057s][info][gc] Using The Z Garbage Collector\n[0.234s][info][gc] GC(0) Garbage Collection (Warmup) 72M(56%)->12M(9%)\n[0.319s][info][gc] Allocation Stall (main) 3.326ms\n[0.128s][info][gc] GC(0) Major Collection (Warmup)\n[0.136s][info][gc] GC(0) Major Collection (Warmup) 14M(11%)->22M(17%) 0.008s", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			incomplete := 0
			d := newDecoder(func(e *Event) {
				if e.Type == IncompleteEvent {
					incomplete++
				}
				if e.Type == PauseEvent {
					n := ""
					if e.Nested {
						n = "!"
					}
					got = append(got, fmt.Sprintf("%s%s:%v", e.Kind, n, e.Seconds))
				}
			})
			feed([]byte(tc.in), func(b []byte) bool { d.line(b); return false })
			d.idle()
			if g := strings.Join(got, " "); g != tc.want {
				t.Errorf("got %q, want %q", g, tc.want)
			}
			if torn := strings.Contains(tc.name, "torn") || strings.Contains(tc.name, "application"); torn != (incomplete > 0) {
				t.Errorf("%d incomplete records", incomplete)
			}
			if d.Depth != 0 && !strings.Contains(tc.name, "torn") {
				t.Errorf("%d brackets stayed open", d.Depth)
			}
		})
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

// TestBounded: what strangers choose does not make series.
func TestBounded(t *testing.T) {
	set := metric.ForTarget("t")
	o := New(set, DefaultConfig())
	for i := range 3000 {
		o.Observe(fmt.Appendf(nil, `[1.0s][info][safepoint] Safepoint "Op%d", Reaching safepoint: 1 ns, At safepoint: 1 ns, Total: 9 ns`, i))
		o.Observe(fmt.Appendf(nil, `[1.0s][info][gc] Allocation Stall (pool%dx) 1.0ms`, i))
		o.Observe(fmt.Appendf(nil, `[1.0s][info][gc] GC(1) Concurrent Thing%c%c 1.0ms`, 'a'+i%26, 'a'+i/26%26))
		o.Observe(fmt.Appendf(nil, `[1.0s][info][gc] GC(1) Pause Young (Cause %d) 1.0ms`, i))
	}
	if n := set.Len(); n > 120 {
		t.Errorf("%d series", n)
	}
	if _, n := figure(set, "gclog_stopped_seconds"); n != 3000 {
		t.Errorf("%v stops", n)
	}
	if len(o.stopped) > handleLimit || len(o.stalls) > handleLimit || len(o.concurrent) > handleLimit {
		t.Error("look-up tables grow")
	}
}

// TestRestart: another JVM in the same stream, in both forms.
func TestRestart(t *testing.T) {
	set, _ := observe("[9.0s][info][gc] Using G1\n[9.0s][info][gc] GC(900) Pause Young (Normal) (G1 Evacuation Pause) 60M->50M(64M) 1ms\n[9.0s][info][gc,start] GC(901) Pause Young (Normal) (G1 Evacuation Pause)\n" +
		"[0.0s][info][gc] Using Serial\n[0.1s][info][gc] GC(0) Pause Young (Allocation Failure) 70M->2M(64M) 1ms\n[0.1s][info][gc] GC(1) Pause Full (Allocation Failure) 3M->2M(64M) 1ms\n")
	if _, n := figure(set, "gclog_pause_seconds"); n != 3 {
		t.Errorf("%v pauses", n)
	}
	if a, _ := figure(set, "gclog_allocated_bytes_total"); a != 1<<20 {
		t.Errorf("allocated %v across a restart", a)
	}
	set, _ = observe("5.000: [GC 900K->100K(990K), 0.2 secs]\n0.500: [GC 800K->1K(990K), 0.2 secs]\n1.500: [GC 11K->1K(990K), 0.2 secs]\n")
	if a, _ := figure(set, "gclog_allocated_bytes_total"); a != 10<<10 {
		t.Errorf("allocated %v across a restart of JDK 8", a)
	}
	r := NewReport()
	feed([]byte("5.0: [GC 9K->1K(9K), 0.2 secs]\n15.0: [GC 9K->1K(9K), 0.2 secs]\n1.0: [GC 9K->1K(9K), 0.2 secs]\n3.0: [GC 9K->1K(9K), 0.2 secs]\n"), r.Observe)
	s := r.JSON().(summary)
	if s.Restarts != 1 || math.Abs(*s.Elapsed-12.4) > 1e-6 || s.Pauses.Count != 4 {
		t.Errorf("restarts %d, elapsed %v, pauses %d", s.Restarts, *s.Elapsed, s.Pauses.Count)
	}
}

// TestHalfLines: no prefix of a line gives a figure that the whole does not.
func TestHalfLines(t *testing.T) {
	dir := shared(t, "corpus/gclog")
	for _, name := range []string{"jdk8-parallel-rotated-current.log", "jdk8-cms-scavenge-before-remark-references.log", "jdk8-g1-tenuring-stopped-apptime.log", "own/jdk25-g1-time-uptime-level-tags.log", "own/jdk17-zgc-single-stalls.log", "own/jdk17-shenandoah.log"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		data = data[:min(len(data), 60000)]
		type figures struct {
			pauses, stops, stalls int
			seconds               float64
		}
		var now figures
		d := newDecoder(func(e *Event) {
			switch e.Type {
			case PauseEvent:
				now.pauses++
			case StoppedEvent:
				now.stops++
			case StallEvent:
				now.stalls++
			default:
				return
			}
			now.seconds += e.Seconds
		})
		feed(data, func(line []byte) bool {
			before := d.open
			now = figures{}
			d.line(line)
			whole, after := now, d.open
			for cut := range line {
				d.open, now = before, figures{}
				d.line(line[:cut])
				if now.pauses > whole.pauses || now.stops > whole.stops || now.stalls > whole.stalls || now.seconds > whole.seconds {
					t.Fatalf("%s: %q gives %+v, the whole line %+v", name, line[:cut], now, whole)
				}
			}
			d.open = after
			return false
		})
	}
}

// TestCheckpoint saves at every line of the last 64 KB and goes on from there
// in a fresh observer: the figures are those of one that never stopped.
func TestCheckpoint(t *testing.T) {
	dir := shared(t, "corpus/gclog")
	for _, name := range []string{"jdk6-cms-details-concurrent-mode-failure.log", "jdk8-cms-print-fls-statistics.log", "jdk8-cms-print-tlab.log", "jdk8-g1-tenuring-stopped-apptime.log", "jdk6-cms-tenuring-mode-interrupted.log", "jdk9-cms-trace-age.log", "own/jdk25-g1-async-trace.log", "own/jdk25-zgc-generational-stalls.log", "own/jdk17-serial-gc-only-default.log"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		data = data[max(0, len(data)-64<<10):]
		var lines [][]byte
		feed(data, func(b []byte) bool { lines = append(lines, b); return false })
		whole := metric.ForTarget("t")
		o := New(whole, DefaultConfig())
		for _, l := range lines {
			o.Observe(l)
		}
		o.Idle(time.Time{})
		want := snapshot(whole)
		// One observer that is saved and loaded before every line.
		set := metric.ForTarget("t")
		o = New(set, DefaultConfig())
		for _, l := range lines {
			data, err := o.Save()
			if err != nil {
				t.Fatal(err)
			}
			set = metric.ForTarget("t")
			o = New(set, DefaultConfig())
			if err := o.Load(data); err != nil {
				t.Fatal(err)
			}
			o.Observe(l)
		}
		o.Idle(time.Time{})
		if got := snapshot(set); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestDamagedCheckpoint: a state that can't be ours is no reason to fall.
func TestDamagedCheckpoint(t *testing.T) {
	for _, open := range []string{`{"depth":99}`, `{"depth":-1}`, `{"depth":1,"nrec":1}`, `{"nrec":3,"depth":3}`, `{"collector":77}`, `{"depth":1,"nrec":1,"frames":[1],"records":[{"kind":99}]}`, `{"held":{"set":true,"cause":200}}`} {
		o := New(metric.ForTarget("t"), DefaultConfig())
		if err := o.Load([]byte(`{"set":{},"open":` + open + `}`)); err != nil {
			t.Fatal(err)
		}
		o.Observe([]byte("1.2: ] 9K->1K(9K), 0.2 secs] [GC 9K->1K(9K), 0.2 secs]"))
		o.Idle(time.Time{})
		o.Gap()
	}
	if err := New(metric.ForTarget("t"), DefaultConfig()).Load([]byte("{")); err == nil {
		t.Error("half a checkpoint was taken")
	}
}

func snapshot(set *metric.Set) string {
	g := metric.NewGathering()
	g.Add(set)
	var b strings.Builder
	for _, f := range g.Snapshot(time.Time{}).Families {
		fmt.Fprintln(&b, f.String())
	}
	return b.String()
}

// TestPieces: the bytes come in pieces of any size and the figures stay.
func TestPieces(t *testing.T) {
	dir := shared(t, "corpus/gclog")
	for _, name := range []string{"jdk8-cms-print-fls-statistics.log", "own/jdk25-g1-killed.log"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := observe(string(data))
		for _, size := range []int{1, 7, 4096} {
			set := metric.ForTarget("t")
			o := New(set, DefaultConfig())
			var line []byte
			for at := 0; at < len(data); at += size {
				for _, c := range data[at:min(at+size, len(data))] {
					if c == '\n' {
						o.Observe(line)
						// The line was ours only until Observe returned.
						for i := range line {
							line[i] = '#'
						}
						line = line[:0]
						continue
					}
					line = append(line, c)
				}
			}
			if len(line) > 0 {
				o.Observe(line)
			}
			o.Idle(time.Time{})
			if snapshot(set) != snapshot(want) {
				t.Errorf("%s in pieces of %d: other figures", name, size)
			}
		}
	}
}

func TestDate(t *testing.T) {
	for _, s := range []string{"1970-01-01T00:00:00.000+0000", "2000-02-29T23:59:59.999+0100", "2024-03-01T00:00:00.001-0930", "2026-12-31T12:00:00.500+0530", "1999-12-31T00:00:00.000+0000", "2100-03-01T00:00:00.000+0000"} {
		want, err := time.Parse("2006-01-02T15:04:05.000-0700", s)
		if err != nil {
			t.Fatal(err)
		}
		got, _, n := date([]byte(s))
		if n != len(s) || got != float64(want.UnixMilli())/1000 {
			t.Errorf("%s: %v, want %v", s, got, float64(want.UnixMilli())/1000)
		}
		st := Stamp{}
		st.Wall, st.Zone, _ = date([]byte(s))
		st.HasWall = true
		if st.date() != s {
			t.Errorf("%s is shown as %v", s, st.date())
		}
	}
	for _, s := range []string{"2024-13-01T00:00:00.001-0930", "2024-01-01 00:00:00.001-0930", "2024-01-01T00:00:0x.001", ""} {
		if _, _, n := date([]byte(s)); n != 0 {
			t.Errorf("%q was taken for a date", s)
		}
	}
}

func TestOrder(t *testing.T) {
	head := func(name, first, last string) Head {
		return Head{Name: name, Head: []byte(first + "\n"), Tail: []byte("torn tail\n" + last + "\n")}
	}
	for _, tc := range []struct {
		name  string
		files []Head
		want  string
	}{
		{"dates", []Head{head("gc.log", "[2026-11-30T12:28:30.600+0000][5.577s] x", "[2026-11-30T12:28:30.684+0000][5.661s] x"), head("gc.log.0", "[2026-11-30T12:28:29.416+0000][4.3s] x", "[2026-11-30T12:28:29.7+0000][4.7s] x")}, "[1 0]"},
		{"uptimes", []Head{head("gc.log", "[5.577s] x", "[5.661s] x"), head("gc.log.2", "[4.716s] x", "[5.577s] x"), head("gc.log.0", "[1.0s] x", "[4.716s] x")}, "[2 1 0]"},
		{"two runs, numbers go round", []Head{head("gc.log", "[0.01s] x", "[3.0s] x"), head("gc.log.0", "[7.0s] x", "[9.0s] x"), head("gc.log.1", "[0.02s] x", "[7.0s] x")}, "[2 1 0]"},
		{"JDK 8", []Head{head("gc.log.1.current", "25199.848: [GC", "35432.472: [GC"), head("gc.log.0", "17478.141: [GC", "25171.568: [GC")}, "[1 0]"},
		{"nothing in them", []Head{{Name: "gc.log"}, {Name: "gc.log.0"}, {Name: "gc.log.1"}}, "[1 2 0]"},
	} {
		if got := fmt.Sprint(Order(tc.files)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestSniff(t *testing.T) {
	if dir := shared(t, "corpus/gclog"); true {
		for _, pattern := range []string{"*.log", "*.log.*", "own/*.log", "own/*.log.*"} {
			files, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if s := Sniff(data[:min(len(data), 64<<10)]); s < .5 && len(data) > 200 {
					t.Errorf("%s: %.2f", filepath.Base(f), s)
				}
			}
		}
	}
	for _, no := range []string{
		"", "127.0.0.1 - - [30/Nov/2026:12:28:30 +0000] \"GET / HTTP/1.1\" 200 12 3\n",
		"30-Nov-2026 11:56:15.195 WARNING [main] org.apache.Foo.bar GC(1) is no collection\n\tat x\n",
		"[2026-11-30 12:00:00] INFO started in 12 ms\n", "2026-11-30 12:11:44.763:WARN:oejs.HttpChannel:qtp-16: /slow\n",
		"Using a random port\nHeap is fine\n",
	} {
		if s := Sniff([]byte(no)); s > .3 {
			t.Errorf("%q: %.2f", no, s)
		}
	}
}

// TestReport holds the text of one small log against what it must say.
func TestReport(t *testing.T) {
	r := NewReport()
	r.Begin("gc.log.0")
	feed([]byte("1.0: [GC (Allocation Failure) [PSYoungGen: 80M->10M(90M)] 100M->40M(200M), 0.1 secs]\n3.0: [Full GC (System.gc()) [PSYoungGen: 10M->0M(90M)] [ParOldGen: 30M->30M(110M)] 40M->30M(200M), [Metaspace: 1K->1K(2K)], 2.5 secs]\n"), r.Observe)
	r.Begin("gc.log.1")
	feed([]byte("41.0: [GC (Allocation Failure) [PSYoungGen: 80M->10M(90M)] 110M->40M(200M), 0.2 secs]\nwhat is \x1b[31mthis\n"), r.Observe)
	var b strings.Builder
	if err := r.WriteText(&b, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Parallel", "2 files", "gc.log.0", "Covers 40.2 s", "throughput 93.03 %", "full", "2.50 s", "Allocated 80.0 MiB: 2.0 MiB a second", "System.gc() 1 time", "1 lines are of no known form", "what is ·[31mthis"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	all, ok := r.JSON().([]summary)
	if !ok || len(all) != 2 || all[0].Full != 1 || all[1].Unrecognised != 1 || all[1].First != 41.0 {
		t.Errorf("got %+v", r.JSON())
	}
	empty := NewReport()
	if err := empty.WriteText(&b, 0); err != nil {
		t.Error(err)
	}
}

// TestReportBounded: a log without end does not grow the report.
func TestReportBounded(t *testing.T) {
	r := NewReport()
	for i := range 50000 {
		r.Observe(fmt.Appendf(nil, "[%d.0s][info][gc] GC(%d) Pause Young (Normal) (G1 Evacuation Pause) 60M->50M(64M) %d.5ms", i, i, i%100))
		r.Observe(fmt.Appendf(nil, `[%d.0s][info][safepoint] Safepoint "Op%d", Reaching safepoint: 1 ns, At safepoint: 1 ns, Total: 9 ns`, i, i))
	}
	f := r.files[0]
	if len(f.byKind[KindYoung].exact) >= maxExact || len(f.operations) > maxLabelled+1 || len(f.longest) > maxLongest {
		t.Errorf("%d exact, %d operations", len(f.byKind[KindYoung].exact), len(f.operations))
	}
	if q := f.byKind[KindYoung].quantile(.5); math.Abs(q-.05) > .003 {
		t.Errorf("median %v", q)
	}
}

// TestLongLines: time is linear in the length of a line, whatever is in it,
// because a line is taken up anew only so often.
func TestLongLines(t *testing.T) {
	for _, part := range []string{
		"x1.250: [GC 9K->1K(9K), 0.2 secs]", "1.2: [GC 9K->1K(9K), 0.2 secs]", "[Eden: ", "[Eden: 1M(1M)->1M(1M)", "secs]", "CMS: abort preclean [", "[GC ", "[GC (", "(", "((0", "->", "0->", "9K->1K(",
		"[", "]", "[]", "[0x", "1.2: ", "T", "0T0", "JRE (", "[GC concurrent-", "[GC concurrent-a, 0.1 secs]", "[1s][gc] GC(1) Pause Full (", "GC(1) Pause Full (", "GC(1) ", "[a]", "[Pause , ", ": [GC", "1.1: [GC",
	} {
		for _, head := range []string{"", "1.0: [GC ", "1.0: [GC pause (young)", "GC(1) Pause Full ", "[1.0s][info][gc] GC(1) Concurrent ", "[1.0s][info][gc] "} {
			pauses := 0
			d := newDecoder(func(e *Event) {
				if e.Type == PauseEvent {
					pauses++
				}
			})
			line := []byte(head + strings.Repeat(part, (1<<20)/len(part)))
			d.line(line)
			d.line(line)
			if head == "" && strings.HasPrefix(part, "x") && pauses > 100 {
				t.Errorf("%d records were found behind text on two lines", pauses)
			}
		}
	}
}
