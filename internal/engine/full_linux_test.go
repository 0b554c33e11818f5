package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file system of 16 MB of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a file system of its own can't be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes all that is left, and returns what gives it back.
func fill(t *testing.T, dir string) func() {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for piece := make([]byte, size); ; {
			if _, err := f.Write(piece); err != nil {
				break
			}
		}
	}
	f.Close()
	return func() { os.Remove(path) }
}

// The disk fills while the engine runs on it: rules go on without a break, an
// alert that needs samples of both sides fires, and when there is room again
// samples go to disk and those of the meantime are still there.
func TestDiskFills(t *testing.T) {
	disk := smallDisk(t)
	w := newWorld(t, filepath.Join(disk, "engine"), nil)
	n := w.set.Counter(testCounter, "a")
	w.set.Gauge(testGauge).Set(7)
	w.ticks(5)
	empty := fill(t, disk)
	w.set.Gauge(testGauge).Set(700)
	for range 40 {
		n.Inc()
		w.ticks(1)
	}
	if ok, why := w.e.OnDisk(); ok || why == "" {
		t.Fatalf("on a full disk: on disk %v, %q", ok, why)
	}
	if v, _ := w.e.Set.Gauge(engineOnDisk).Value(); v != 0 {
		t.Errorf("engine_on_disk is %v", v)
	}
	if s := w.state("High"); s != "firing" {
		t.Errorf("High is %q", s)
	}
	w.want("count_over_time(test_level_bytes[44s])", 44)
	w.want("test_level_bytes offset 42s", 7)
	if got, _ := w.value("rate(test_events_total[20s])"); got < .99 || got > 1.01 {
		t.Errorf("rate is %v", got)
	}
	empty()
	w.ticks(int(diskAgain/time.Second) + 2)
	if ok, why := w.e.OnDisk(); !ok {
		t.Fatalf("with room again not on disk: %s", why)
	}
	if s := w.state("High"); s != "firing" {
		t.Errorf("High is %q after the return", s)
	}
	w.want("count_over_time(test_level_bytes[60s])", 60)
	for _, a := range w.sent {
		if a.Labels["alertname"] == "High" && !a.ResolvedAt.IsZero() {
			t.Errorf("told resolved: %v", a)
		}
	}
}

// The disk is full already when the sidecar starts.
func TestDiskFullAtStart(t *testing.T) {
	disk := smallDisk(t)
	fill(t, disk)
	w := newWorld(t, filepath.Join(disk, "engine"), nil)
	w.set.Gauge(testGauge).Set(700)
	w.ticks(11)
	if s := w.state("High"); s != "firing" {
		t.Errorf("High is %q", s)
	}
	if ok, _ := w.e.OnDisk(); ok {
		t.Error("on disk")
	}
}

// An hour without a disk: memory stays bounded, windows stay whole.
func TestLongWithoutDisk(t *testing.T) {
	w := newWorld(t, "", nil)
	w.set.Gauge(testGauge).Set(7)
	for range 360 {
		w.now = w.now.Add(9 * time.Second)
		w.ticks(1)
	}
	w.want("count_over_time(test_level_bytes[20m])", 120)
	if kept := w.now.Sub(time.UnixMilli(w.e.store.head.MinTime())); kept > 40*time.Minute {
		t.Errorf("%v are kept in memory", kept)
	}
}

// A process that may open no more files at its start loses none of the samples.
func TestNoDescriptors(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.set.Gauge(testGauge).Set(7)
	for range 120 {
		w.now = w.now.Add(9 * time.Second)
		w.ticks(1)
	}
	w.e.Close()
	files := func() (found []string) {
		for _, p := range []string{"wal/0*", "*/meta.json"} {
			some, _ := filepath.Glob(filepath.Join(dir, p))
			if len(some) == 0 {
				t.Fatalf("no %s", p)
			}
			found = append(found, some...)
		}
		return found
	}
	before := files()
	onDisk := false
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for more := range 30 {
		// One is the folder just read; each number more lets another file be opened.
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		low := was
		low.Cur = uint64(len(open) - 1 + more)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		e, err := Open(DefaultConfig(), Options{Dir: dir, Start: w.now, Log: slog.New(slog.DiscardHandler)})
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			onDisk, _ = e.OnDisk()
			e.Close()
		} else if !errors.Is(err, ErrNoFolder) {
			t.Errorf("%d more: %v", more, err)
		}
		if now := files(); !slices.Equal(now[len(now)-1:], before[len(before)-1:]) || now[0] != before[0] {
			t.Fatalf("%d more: %v were %v", more, now, before)
		}
	}
	if !onDisk {
		t.Error("with thirty descriptors not on disk")
	}
	w.open(dir, nil)
	w.want("count_over_time(test_level_bytes[20m])", 120)
}

// A WAL cut in the middle of a record, and one with a flipped byte: what comes
// before the fault is there.
func TestBrokenWAL(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)-13] },
		"flipped": func(b []byte) []byte { b[len(b)-40] ^= 0xff; return b },
		"garbage": func([]byte) []byte { return []byte("no WAL at all, but words") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, dir, nil)
			w.set.Gauge(testGauge).Set(7)
			w.ticks(30)
			w.e.Close()
			files, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v %v", files, err)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[0], harm(b), 0o600); err != nil {
				t.Fatal(err)
			}
			w.open(dir, nil)
			w.ticks(3)
			if ok, why := w.e.OnDisk(); !ok {
				t.Errorf("not on disk: %s", why)
			}
			got, _ := w.value("count_over_time(test_level_bytes[1m])")
			if name != "garbage" && got < 30 || got < 3 {
				t.Errorf("%v of 33 samples", got)
			}
		})
	}
}
