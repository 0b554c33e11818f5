//go:build unix

package logdir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// manyFiles makes a folder of n empty files, as access logs of years are.
func manyFiles(b *testing.B, n int) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		f, err := os.Create(fmt.Sprintf("%s/localhost_access_log.%06d.txt", dir, i))
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	return dir
}

// BenchmarkScan reads 100,000 files as a whole, and says how much CPU that takes
// for each second of du's: at most 1.5 is the bar.
func BenchmarkScan(b *testing.B) {
	dir := manyFiles(b, 100_000)
	f := &folder{dir: Dir{Path: dir}, tracker: newTracker(20000)}
	cfg := Config{}.withDefaults()
	sys := newFS(cfg)
	l := limits{time.Now, time.Hour, make([]byte, listBuffer)}
	var theirs, ours time.Duration
	rounds := 0
	b.ReportAllocs()
	for b.Loop() {
		begin := cpu(b)
		f.have = false
		root, err := sys.open("/", dir)
		f.look(root, err, &cfg, time.Unix(0, 0), l)
		ours += cpu(b) - begin

		b.StopTimer()
		du := exec.Command("du", "-sx", dir)
		if du.Run() == nil {
			theirs += du.ProcessState.UserTime() + du.ProcessState.SystemTime()
		}
		rounds++
		b.StartTimer()
	}
	if f.files != 100_000 {
		b.Fatal(f.files)
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(rounds), "cpu-ms/op")
	if theirs > 0 {
		b.ReportMetric(float64(ours)/float64(theirs), "x-du")
	}
}

// BenchmarkAtRest is one poll of ten folders of some twenty files in which
// nothing changes: a thousandth of a core is 1 ms a second.
func BenchmarkAtRest(b *testing.B) {
	var cfg Config
	for i := range 10 {
		cfg.Dirs = append(cfg.Dirs, Dir{Name: fmt.Sprint(i), Path: manyFiles(b, 20)})
	}
	set := metric.ForTarget("t")
	p := New(set, cfg)
	now := time.Unix(0, 0)
	begin, polls := cpu(b), 0
	b.ReportAllocs()
	for b.Loop() {
		polls++
		now = now.Add(time.Second)
		if err := p.Poll(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu(b)-begin).Microseconds())/float64(polls)/1e6*100, "%core")
}
