package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// Where neither the storage path nor the folder for temporary files can be
// written, samples are in memory by way of another; where none can, Open says so.
func TestNoFolder(t *testing.T) {
	// Not even root can make a folder below a file.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := spareFolders
	t.Cleanup(func() { spareFolders = before })

	spare := t.TempDir()
	spareFolders = []string{filepath.Join(file, "tmp"), spare}
	w := newWorld(t, filepath.Join(file, "engine"), nil)
	w.set.Gauge(testGauge).Set(700)
	w.ticks(12)
	if s := w.state("High"); s != "firing" {
		t.Errorf("High is %q", s)
	}
	if ok, _ := w.e.OnDisk(); ok {
		t.Error("on disk")
	}
	if left, err := os.ReadDir(spare); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	spareFolders = spareFolders[:1]
	e, err := Open(DefaultConfig(), Options{Dir: filepath.Join(file, "engine"), Start: begin, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrNoFolder) || e != nil {
		t.Errorf("without any folder: %v %v", e, err)
	}
}

// The disk is lost and there is no folder for a moment: the engine goes on, and
// is in memory as soon as there is one.
func TestNoFolderForAMoment(t *testing.T) {
	before := spareFolders
	t.Cleanup(func() { spareFolders = before })
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.ticks(3)
	memory := filepath.Join(dir, "memory")
	if err := os.RemoveAll(memory); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(memory, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spareFolders = []string{memory}
	w.e.store.leaveDisk(errors.New("lost"))
	w.ticks(3)
	if ok, _ := w.e.OnDisk(); !ok {
		t.Error("the disk was left for nothing")
	}
	spareFolders = before
	w.e.store.leaveDisk(errors.New("lost"))
	w.ticks(3)
	if ok, _ := w.e.OnDisk(); ok {
		t.Error("on disk")
	}
	w.want("count_over_time(up[1m])", 9)
}
