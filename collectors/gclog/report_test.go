package gclog

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
