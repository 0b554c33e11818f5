package logdir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// run is a Poller with the Set it fills and a clock of its own.
type run struct {
	t   *testing.T
	set *metric.Set
	p   *Poller
	now time.Time
}

// newRun watches folders; each label is the folder's base name.
func newRun(t *testing.T, dirs ...string) *run {
	t.Helper()
	return newRunWith(t, Config{Patience: time.Minute}, dirs...)
}

func newRunWith(t *testing.T, cfg Config, dirs ...string) *run {
	t.Helper()
	if cfg.ScanBudget == 0 {
		// On a busy machine 50 ms may pass before a folder of fifty files is read:
		// what is tested here is what is counted, not how it is spread.
		cfg.ScanBudget = time.Minute
	}
	for _, d := range dirs {
		cfg.Dirs = append(cfg.Dirs, Dir{Name: filepath.Base(d), Path: d})
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	set := metric.ForTarget("t")
	return &run{t: t, set: set, p: New(set, cfg), now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// poll is one poll, the given time after the last.
func (r *run) poll(after time.Duration) error {
	r.t.Helper()
	r.now = r.now.Add(after)
	return r.p.Poll(r.t.Context(), r.now)
}

// figures are all present series, as name{label values}.
func (r *run) figures() map[string]float64 {
	r.set.Lock()
	defer r.set.Unlock()
	g := metric.NewGathering()
	g.Add(r.set)
	out := map[string]float64{}
	for _, f := range g.Snapshot(r.now).Families {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				if l.GetName() != "target" {
					values = append(values, l.GetValue())
				}
			}
			v := m.GetGauge().GetValue()
			if m.Counter != nil {
				v = m.Counter.GetValue()
			}
			out[f.GetName()+"{"+strings.Join(values, ",")+"}"] = v
		}
	}
	return out
}

func (r *run) want(name string, value float64) {
	r.t.Helper()
	got, ok := r.figures()[name]
	if !ok || got != value {
		r.t.Errorf("%s = %v (present %v), want %v", name, got, ok, value)
	}
}

func (r *run) wantAbsent(name string) {
	r.t.Helper()
	if got, ok := r.figures()[name]; ok {
		r.t.Errorf("%s = %v, want absent", name, got)
	}
}

// du is what the tool says that our users used until now.
func du(t *testing.T, dir string) float64 {
	t.Helper()
	out, err := exec.Command("du", "-sx", "--block-size=1", dir).Output()
	if err != nil {
		t.Skipf("no GNU du here to compare with: %v", err)
	}
	n, err := strconv.ParseFloat(strings.Fields(string(out))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(strings.Repeat("x", n))); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The tree of the case that made other tools wrong: a hard link, a hole, a link
// to its own folder.
func oddTree(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "logs")
	write(t, dir+"/a.log", 1<<20)
	must(t, os.Link(dir+"/a.log", dir+"/a.hard"), os.Symlink(".", dir+"/loop"))
	f, err := os.Create(dir + "/sparse.log")
	must(t, err, f.Truncate(1<<30))
	_, err = f.WriteAt(make([]byte, 4096), 1<<30-4096)
	must(t, err, f.Close())
	write(t, dir+"/small", 1)
	write(t, dir+"/deep/er/x.log", 70000)
	must(t, os.Link(dir+"/a.log", dir+"/deep/a.again"), os.Symlink("/etc", dir+"/deep/out"), os.MkdirAll(dir+"/empty", 0o755))
	return dir
}

func TestSizeIsThatOfDu(t *testing.T) {
	dir := oddTree(t)
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want("logdir_files{logs}", 8)
	r.want("logdir_written_bytes_total{logs}", 0) // all that is the past
	r.want("logdir_scan_age_seconds{logs}", 0)

	write(t, dir+"/a.log", 123456)
	write(t, dir+"/deep/new.log", 777)
	must(t, r.poll(time.Second))
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want("logdir_files{logs}", 9)
	r.want("logdir_written_bytes_total{logs}", 123456+777)
}

func TestManyFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	for i := range 200 {
		write(t, fmt.Sprintf("%s/d%d/e%d/f.log", dir, i%20, i), i*100)
	}
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want("logdir_files{logs}", 200)
}
