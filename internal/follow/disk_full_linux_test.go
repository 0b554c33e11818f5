package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A disk that is full in earnest: a file system of 1 MB of its own. The metrics
// go on, the stale checkpoint goes, nothing half-written is left, and when there
// is room again the next tick writes. Mounting needs a right that not everybody
// has; TestCheckpointFullDisk is the same without it.
func TestCheckpointNoSpace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no right to mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	state := filepath.Join(dir, "state")
	c, _, err := OpenCheckpoint(state)
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Spec{Path: "a.log", From: Start})
	now := time.Unix(1e9, 0)
	tick := func() error {
		s.append("a.log", "line\n")
		s.look()
		now = now.Add(time.Second)
		pos, err := s.f.Save()
		s.must(err)
		big, _ := json.Marshal(strings.Repeat("x", 64<<10))
		return c.Write(map[string]Saved{"a": {Position: pos, Observer: big}}, now, true)
	}
	s.must(tick())
	fill, err := os.Create(filepath.Join(dir, "fill"))
	s.must(err)
	for piece := 64 << 10; piece > 0; piece /= 2 {
		for err == nil {
			_, err = fill.Write(make([]byte, piece))
		}
		err = nil
	}
	if err := tick(); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("a full disk says %v", err)
	}
	entries, _ := os.ReadDir(state)
	if len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	// What the stale one took was given back: the next one may find room, or not;
	// either way the figures go on.
	for range 3 {
		if err := tick(); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	s.must(fill.Close())
	s.must(os.Remove(fill.Name()))
	s.must(tick())
	_, streams, err := OpenCheckpoint(state)
	if err != nil || !strings.Contains(string(streams["a"].Position), fmt.Sprintf(`"lines":%d`, s.f.Ledger().Lines)) {
		t.Errorf("%v: %s", err, streams["a"].Position)
	}
}
