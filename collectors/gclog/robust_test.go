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
