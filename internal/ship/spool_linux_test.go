package ship

import (
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"golang.org/x/sys/unix"
)

// TestSpoolFullDisk: the spool's disk is full to the last byte. What is in the
// spool stays, memory holds what it can and the rest is counted, and when there
// is room again the spool is used again. At the end all arrive in order.
func TestSpoolFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no right to mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	filler := filepath.Join(dir, "filler")
	fill := func() {
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, size := range []int{64 << 10, 4 << 10, 1} {
			for piece := make([]byte, size); ; {
				if _, err := f.Write(piece); err != nil {
					break
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		var dead atomic.Bool
		dead.Store(true)
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
			if dead.Load() {
				return 503, nil, false, nil
			}
			return 204, nil, true, nil
		}
		s := newShipper(t, l, func(c *Config) {
			c.QueueBytes, c.BatchBytes, c.SpoolDir, c.SpoolBytes = 128<<10, 16<<10, filepath.Join(dir, "spool"), 1<<20
		})
		tap := s.Tap("t", "applog", "f")
		sent := 0
		offer := func(n int) {
			for range n {
				tap.Offer(nil, &Entry{Line: numbered(sent)})
				sent++
				if sent%20 == 0 {
					time.Sleep(time.Second)
				}
				balanced(t, s)
			}
		}
		offer(800)
		before := balanced(t, s)
		if before.Disk == 0 || before.Dropped != 0 {
			t.Fatalf("%+v", before)
		}
		fill()
		offer(200) // memory has room for them: the spool began at half of it, and a batch may be on its way
		full := balanced(t, s)
		if full.Dropped != 0 || full.Disk != before.Disk {
			t.Errorf("on a full disk: %+v, before %+v", full, before)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "spool", "*.part")); len(left) > 0 {
			t.Errorf("half written: %v", left)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		offer(300)
		if c := balanced(t, s); c.Disk <= before.Disk || c.Dropped != 0 {
			t.Errorf("with room again: %+v", c)
		}
		fill()
		offer(2000) // more than memory holds
		if c := balanced(t, s); c.Reasons[dropFull] == 0 || c.Dropped != c.Reasons[dropFull] {
			t.Errorf("memory and disk are full: %+v", c)
		}
		dead.Store(false)
		time.Sleep(5 * time.Minute)
		c := balanced(t, s)
		if c.Queued != 0 || c.Shipped+c.Reasons[dropFull] != float64(sent) {
			t.Errorf("%+v of %d", c, sent)
		}
		texts := l.texts()
		for i := 1; i < len(texts); i++ {
			if texts[i] <= texts[i-1] {
				t.Fatalf("%q after %q", texts[i], texts[i-1])
			}
		}
		stop(s)
	})
}

// TestStopOnFullDisk: a batch from the spool is on its way when the sidecar is
// stopped, and the disk is full: its file stays for the next run.
func TestStopOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no right to mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	spool := filepath.Join(dir, "spool")
	change := func(c *Config) { c.SpoolDir, c.BatchBytes = spool, 1<<20 }
	synctest.Test(t, func(t *testing.T) {
		dead := newLoki()
		dead.answer = func(int, []storedLine) (int, map[string]string, bool, error) { return 503, nil, false, nil }
		s := newShipper(t, dead, change)
		tap := s.Tap("t", "applog", "f")
		for i := range 100 {
			tap.Offer(nil, &Entry{Line: numbered(i)})
		}
		time.Sleep(5 * time.Second)
		stop(s) // spools
		saved, err := s.Save(metric.NewSet())
		if err != nil {
			t.Fatal(err)
		}

		// Half of the batch lands, then the server dies again, the disk gets full and
		// the sidecar is stopped.
		half := newLoki()
		half.answer = func(n int, lines []storedLine) (int, map[string]string, bool, error) {
			switch n {
			case 0:
				return 400, nil, false, nil
			case 1:
				return 204, nil, true, nil
			}
			return 503, nil, false, nil
		}
		s = newShipper(t, half, change)
		if err := s.Load(saved); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		f, err := os.Create(filepath.Join(dir, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(f, zeros{})
		f.Close()
		stop(s)
		if c := balanced(t, s); c.Shipped != 50 || c.Queued != 50 || c.Dropped != 0 {
			t.Errorf("%+v", c)
		}
		if saved, err = s.Save(metric.NewSet()); err != nil {
			t.Fatal(err)
		}

		alive := newLoki()
		s = newShipper(t, alive, change)
		if err := s.Load(saved); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		balanced(t, s)
		landed := map[storedLine]bool{}
		for _, x := range append(half.lines(), alive.lines()...) {
			landed[x] = true
		}
		if len(landed) != 100 {
			t.Errorf("%d different lines landed, want 100", len(landed))
		}
		stop(s)
	})
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
