//go:build unix

package gclog

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// userSeconds is the processor time this process has used: on a machine that
// others use too, the wall clock says nothing.
func userSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()) / 1e9
}

// BenchmarkObserve feeds logs of the corpus to an observer. allocs/op is per
// pass over the whole file, so it must be 0.
func BenchmarkObserve(b *testing.B) {
	dir := shared(b, "corpus/gclog")
	for _, name := range []string{
		"jdk6-cms-details-concurrent-mode-failure.log", "jdk8-g1-evacuation-failure-references.log", "jdk8-parallel-rotated-current.log", "jdk8-g1-tenuring-stopped-apptime.log", "jdk6-parallel-heapatgc-comma.log",
		"jdk9-g1-gc-only.log", "jdk9-parallel-debug.log", "own/jdk17-g1-default-decorations.log", "own/jdk25-g1-gcdebug.log", "own/jdk25-zgc-generational-stalls.log", "jdk25-zgc-generational-spring.log", "own/jdk25-shenandoah-generational.log", "own/jdk17-g1-all-decorations.log", "own/jdk17-g1-no-decorations.log", "own/jdk25-g1-trace-foldmultilines.log",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(name), func(b *testing.B) {
			o := New(metric.ForTarget("t"), DefaultConfig())
			feed(data, o.Observe) // makes the series
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			began := userSeconds()
			for b.Loop() {
				feed(data, o.Observe)
			}
			b.ReportMetric((userSeconds()-began)/float64(b.N)/float64(len(data))*1e9, "user-s/GB")
		})
	}
}

// BenchmarkReport is the same for replay, which reads the stamps as well.
func BenchmarkReport(b *testing.B) {
	dir := shared(b, "corpus/gclog")
	for _, name := range []string{"jdk8-g1-evacuation-failure-references.log", "own/jdk17-g1-default-decorations.log", "own/jdk25-g1-gcdebug.log"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(name), func(b *testing.B) {
			r := NewReport()
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			began := userSeconds()
			for b.Loop() {
				feed(data, r.Observe)
			}
			b.ReportMetric((userSeconds()-began)/float64(b.N)/float64(len(data))*1e9, "user-s/GB")
		})
	}
}

// TestNoAllocations: a line costs none once its series exist.
func TestNoAllocations(t *testing.T) {
	o := New(metric.ForTarget("t"), DefaultConfig())
	for _, text := range []string{
		"1.2: [GC 1.2: [ParNew: 9K->1K(9K), 0.1 secs] 9K->1K(9K), 0.2 secs] [Times: user=0.1 sys=0.0, real=0.1 secs]",
		"2016-10-09T01:02:52.167+0800: 165.745: [CMS-concurrent-sweep: 1.769/1.772 secs] [Times: user=3.56 sys=0.04, real=1.78 secs]",
		"   [Eden: 8.0M(9.0M)->0.0B(9.0M) Survivors: 0.0B->0.0B Heap: 8.0M(64.0M)->3.0M(64.0M)]",
		"1.3: Total time for which application threads were stopped: 0.05 seconds, Stopping threads took: 0.0001 seconds",
		"[1.0s][info][gc      ] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms",
		"[1.0s][debug][gc,phases] GC(7)     Evacuation Failure: 0.1ms",
		"[1.0s][info][gc] GC(7) Concurrent Mark Cycle 103.2ms",
		"[1.0s][info][gc] Allocation Stall (http-nio-8080-exec-1) 12.165ms",
		`[1.0s][info][safepoint] Safepoint "ZMarkStart", Time since last: 9 ns, Reaching safepoint: 9 ns, At safepoint: 9 ns, Total: 99 ns`,
		"what is this",
	} {
		line := []byte(text)
		o.Observe(line)
		if n := testing.AllocsPerRun(100, func() { o.Observe(line) }); n != 0 {
			t.Errorf("%v allocations for %s", n, fmt.Sprintf("%.60s", text))
		}
	}
}
