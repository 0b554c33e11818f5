package ship

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestStopSpools: what can't be sent within the bound is on disk, and the next
// run sends it, with figures that go on.
func TestStopSpools(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		dead := newLoki()
		dead.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
			time.Sleep(8 * time.Second) // a server that hangs
			return 503, nil, false, nil
		}
		s := newShipper(t, dead, func(c *Config) { c.SpoolDir = dir; c.BatchBytes = 4 << 10 })
		tap := s.Tap("tomcat", "applog", "catalina.out")
		for i := range 300 {
			tap.Offer(nil, &Entry{Line: numbered(i), Thread: "http-nio-8080-exec-1"})
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		stop(s)
		if d := time.Since(began); d > 9*time.Second {
			t.Errorf("stopping took %v", d)
		}
		if c := balanced(t, s); c.Queued != 300 || c.Disk == 0 {
			t.Fatalf("%+v", c)
		}
		saved, err := s.Save(metric.NewSet())
		if err != nil {
			t.Fatal(err)
		}

		alive := newLoki()
		s = newShipper(t, alive, func(c *Config) { c.SpoolDir = dir })
		balanced(t, s)
		if err := s.Load(saved); err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		s.Tap("tomcat", "applog", "catalina.out").Offer(nil, &Entry{Line: numbered(300)})
		time.Sleep(10 * time.Second)
		c := balanced(t, s)
		if c.Shipped != 301 || c.Selected != 301 || c.Queued != 0 {
			t.Errorf("%+v", c)
		}
		for i, text := range alive.texts() {
			if text != string(numbered(i)) {
				t.Fatalf("%d: %q", i, text)
			}
		}
		if m := alive.meta[alive.lines()[0]]; m["thread"] != "http-nio-8080-exec-1" || m["file"] != "catalina.out" {
			t.Errorf("metadata %v", m)
		}
		stop(s)
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("the spool still has %v", left)
	}
}

// TestKilled: what was in memory at the last checkpoint and not in the spool is
// lost, and counted.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) { return 500, nil, false, nil }
		s := newShipper(t, l, nil)
		for i := range 7 {
			s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: numbered(i)})
		}
		saved, _ := s.Save(metric.NewSet())
		stop(s)
		if c := balanced(t, s); c.Reasons[dropStopped] != 7 {
			t.Errorf("without a spool: %+v", c)
		}
		s = newShipper(t, newLoki(), nil)
		if err := s.Load(saved); err != nil {
			t.Fatal(err)
		}
		if c := balanced(t, s); c.Reasons[dropRestart] != 7 || c.Selected != 7 {
			t.Errorf("%+v", c)
		}
		stop(s)
	})
}

// TestKilledWhileSpooling: half a segment, left by a kill, is no segment and does
// not stay; what is not the spool's does.
func TestKilledWhileSpooling(t *testing.T) {
	dir := t.TempDir()
	half, theirs := filepath.Join(dir, "000000000007-3.lines.part"), filepath.Join(dir, "notes.part")
	for _, path := range []string{half, theirs} {
		if err := os.WriteFile(path, []byte(`{"s":"{a=\"b\"}","t":1,"l":"x","w":1}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newShipper(t, newLoki(), func(c *Config) { c.SpoolDir = dir })
		if c := balanced(t, s); c.Selected != 0 {
			t.Errorf("%+v", c)
		}
		stop(s)
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 || left[0] != theirs {
		t.Errorf("the spool has %v", left)
	}
}

// TestSpoolBounds: the disk is bounded as the memory is, and the oldest go.
func TestSpoolBounds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) { return 503, nil, false, nil }
		s := newShipper(t, l, func(c *Config) {
			c.QueueBytes, c.BatchBytes, c.SpoolDir, c.SpoolBytes = 64<<10, 16<<10, dir, 100<<10
		})
		tap := s.Tap("t", "applog", "f")
		for i := range 5000 {
			tap.Offer(nil, &Entry{Line: numbered(i)})
			if i%20 == 0 {
				time.Sleep(time.Second)
			}
			if c := balanced(t, s); c.Disk > 100<<10 || c.Memory > 80<<10 {
				t.Fatalf("%+v", c)
			}
		}
		if c := balanced(t, s); c.Reasons[dropSpoolFull] == 0 || c.Reasons[dropFull] != 0 {
			t.Errorf("%+v", c)
		}
		stop(s)
		balanced(t, s)
	})
}
