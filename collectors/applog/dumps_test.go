package applog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func TestDumps(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("hs_err_pid1.log")
	set := metric.NewSet()
	d := NewDumps(set, dir, nil)
	poll := func() (hs, heap float64) {
		t.Helper()
		if err := d.Poll(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		hs, _ = set.Counter(EventsTotal, "hs_err_file", "").Value()
		heap, _ = set.Counter(EventsTotal, "heap_dump_file", "").Value()
		return hs, heap
	}
	if hs, heap := poll(); hs != 0 || heap != 0 {
		t.Errorf("%v and %v of what was there before", hs, heap)
	}
	put("hs_err_pid2.log")
	put("java_pid3.hprof")
	put("java_pid3.hprof.1")
	put("my_hs_err_pid4.log")
	for range 2 {
		if hs, heap := poll(); hs != 1 || heap != 2 {
			t.Errorf("%v hs_err files and %v heap dumps, want 1 and 2", hs, heap)
		}
	}
	if err := NewDumps(metric.NewSet(), filepath.Join(dir, "gone"), nil).Poll(t.Context(), time.Time{}); err != nil {
		t.Errorf("a folder that went away: %v", err)
	}

	// The server is started anew, or the sidecar: what appeared in between counts,
	// what was counted does not.
	set.Lock()
	state, err := d.Save()
	set.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	put("hs_err_pid5.log")
	set = metric.NewSet()
	d = NewDumps(set, dir, nil)
	set.Lock()
	err = d.Load(state)
	set.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if hs, heap := poll(); hs != 2 || heap != 2 {
		t.Errorf("%v hs_err files and %v heap dumps after a restart, want 2 and 2", hs, heap)
	}
	// In another folder what is there is history, and no counter falls.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "hs_err_pid9.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set = metric.NewSet()
	d = NewDumps(set, other, nil)
	set.Lock()
	err = d.Load(state)
	set.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if hs, heap := poll(); hs != 1 || heap != 2 {
		t.Errorf("%v hs_err files and %v heap dumps in another folder, want 1 and 2 as before", hs, heap)
	}
}
