package gclog

import (
	"fmt"
	"strings"
	"testing"
)

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
