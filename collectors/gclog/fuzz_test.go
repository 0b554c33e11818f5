package gclog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The seeds are the small logs in testdata, and lines chosen because they once
// went wrong or look as if they could. The rest of the corpus lies in
// testdata/fuzz.
func seeds(f *testing.F, pattern string, more ...string) {
	files, _ := filepath.Glob(filepath.Join("testdata", pattern))
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4096)])
	}
	for _, s := range more {
		f.Add([]byte(s))
	}
}

func FuzzLegacy(f *testing.F) {
	seeds(f, "jdk8*.log",
		"1.2: [GC 1.2: [ParNew (promotion failed): 9K->9K(9K), 0.1 secs]1.3: [CMS1.4: [CMS-concurrent-sweep: 1/2 secs] [Times: user=1.0 sys=0.0, real=2.0 secs]\n (concurrent mode failure): 9K->4K(9K), 40.1 secs] 9K->4K(9K), 41.0 secs]\n",
		"[GC[GC[GC[GC[GC[GC[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]\n",
		"1,2: [GC pause (young)\n, 0,0120 secs]\n   [Eden: 8.0M(9.0M)->0.0B(9.0M) Survivors: 0.0B->0.0B Heap: 8.0M(64.0M)->3.0M(64.0M)]\n",
		"2014-06-16T0,959: Application time: 0,0004470 seconds\n", "[GC (((((((( ->(->)", "[Eden: ", "[Pause , ms]", "secs]", "99999999999999999999999.9: [GC 9K->1K(9K), 99999999999999999999.1 secs]")
	f.Fuzz(survive)
}

func FuzzUnified(f *testing.F) {
	seeds(f, "jdk[12]*.log",
		"[1.0s][info][gc] GC(7) Pause Young (G1 Evacuation Pause) 23M->4M(64M) (0.231s, 0.234s) 3.0ms\n",
		"[1.0s][info][gc,heap] GC(4) y:  Capacity:  40M (42%)  44M (46%)  -  52M (54%)\n",
		`[1s][safepoint] Safepoint "", Total: 9 ns`, "GC(99999999999999999999999) Pause Full 1ms", "[][][][][][][][][][][][][][][][][][][]", "[1s][gc] GC(1) Pause Full ((((((", "[1s][gc] Allocation Stall () 1ms", "[1s][gc,init] Heap Region Size: 0M\n[1s][gc,heap] GC(1) Eden regions: 1->2(3)")
	f.Fuzz(survive)
}

// survive feeds any bytes and holds the decoder to what must always be true.
func survive(t *testing.T, data []byte) {
	set := metric.ForTarget("t")
	o := New(set, Config{MaxRecordLines: 100})
	r := NewReport()
	seconds := 0.0
	d := newDecoder(func(e *Event) {
		if e.Seconds < 0 || e.Seconds != e.Seconds || e.Sync < 0 || e.Heap.Before < 0 || e.Heap.After < 0 || e.Heap.Committed < 0 || e.Promoted < 0 {
			t.Fatalf("event %+v", e)
		}
		seconds += e.Seconds
	})
	feed(data, func(line []byte) bool {
		kept := string(line)
		d.line(line)
		if string(line) != kept {
			t.Fatal("the line was changed")
		}
		if d.Depth < 0 || d.Depth > maxDepth || d.Nrec < 0 || d.Nrec > d.Depth {
			t.Fatalf("depth %d, records %d", d.Depth, d.Nrec)
		}
		r.Observe(line)
		return o.Observe(line)
	})
	state, err := o.Save()
	if err != nil {
		t.Fatal(err)
	}
	if err := New(metric.ForTarget("t"), DefaultConfig()).Load(state); err != nil {
		t.Fatal(err)
	}
	o.Gap()
	o.Idle(time.Time{})
	if o.dec.Depth != 0 || o.dec.Nrec != 0 {
		t.Fatal("a gap left something open")
	}
	r.JSON()
	Sniff(data)
	Order([]Head{{Name: "a", Head: data, Tail: data}, {Name: "b.1", Head: data, Tail: data}})
}
