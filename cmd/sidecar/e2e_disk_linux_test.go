package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// TestEndToEndFullDisk is how the 253 GB came to be, in small: a real storm of
// rejections logs into a file system of its own until that is full. The sidecar
// says when that will be, Prometheus warns, and the sidecar survives, although
// its own state lies on the same disk.
func TestEndToEndFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	const size = 20 << 20
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=20m", "sidecar-test", disk).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", disk).Run() })
	lab.Exclusive(t)
	s, err := lab.StartTomcatIn(filepath.Join(disk, "base"), lab.Tomcat{Executor: &limits, AcceptCount: 100})
	lab.Need(t, err)
	t.Cleanup(s.Stop)
	b := startBesideWith(t, s, "tomcat", filepath.Join(disk, "state"))

	// About 0.3 MB a second: each burst of 160 has some 140 rejections of 1 KB,
	// and each is logged twice.
	type said struct {
		at   time.Time
		left map[string]float64 // by window
	}
	var samples []said
	var full time.Time
	began := time.Now()
	for full.IsZero() && time.Since(began) < 3*time.Minute {
		step := time.Now()
		lab.Burst(s.Addr, "/slow?ms=20", 160, 5*time.Second)
		m, err := lab.ReadMetrics(b.addr)
		if err != nil {
			t.Fatal(err)
		}
		now := said{time.Now(), map[string]float64{}}
		for _, w := range []string{"10s", "60s", "10m"} {
			if v, ok := m.Sum("logfs_full_seconds", "target", b.target, "mountpoint", disk, "window", w); ok {
				now.left[w] = v
			}
		}
		samples = append(samples, now)
		if avail, ok := m.Sum("logfs_avail_bytes", "target", b.target, "mountpoint", disk); ok && avail < 64<<10 {
			full = time.Now()
		}
		time.Sleep(time.Until(step.Add(time.Second)))
	}
	if full.IsZero() {
		t.Fatalf("the disk of %d bytes was not filled in time", size)
	}
	t.Logf("full after %.0f s", full.Sub(began).Seconds())
	good, bad := 0, 0
	for _, x := range samples {
		truth := full.Sub(x.at).Seconds()
		if truth < 10 || truth > 120 {
			continue // the end is told in whole seconds
		}
		for w, v := range x.left {
			// A window that still holds some of the quiet time tells a later end.
			if length, _ := time.ParseDuration(w); x.at.Sub(began) < length+5*time.Second {
				continue
			}
			// Ten seconds of ten bursts follow each hiccup of the load client; the
			// minute is what a person plans by.
			within := map[string]float64{"10s": 0.35, "60s": 0.2, "10m": 0.2}[w]
			if math.Abs(v-truth) <= within*truth+1 {
				good++
			} else {
				bad++
				t.Logf("%.0f s before the end the window %s says %.0f s", truth, w, v)
			}
		}
	}
	t.Logf("%d forecasts near the truth, %d not", good, bad)
	if good < 6 || bad*10 > good {
		t.Errorf("only %d of %d forecasts were near the truth", good, good+bad)
	}
	b.firesSoon("LogDiskLow")

	// Full, its own state lost: it goes on and says so.
	b.until(15*time.Second, "sidecar_checkpoint_stale 1 on the full disk", func(m lab.Scrape) bool {
		stale, ok := m.Sum("sidecar_checkpoint_stale")
		return ok && stale == 1
	})
	if up, ok := b.figure("target_up"); !ok || up != 1 {
		t.Errorf("target_up %v (%v) on a full disk", up, ok)
	}
	// An operator makes room: it is followed, and the state is saved again.
	before, _ := b.figure("logfile_truncations_total", "file", "catalina.out")
	for _, f := range []string{"catalina.out"} {
		if err := os.Truncate(filepath.Join(s.LogDir, f), 0); err != nil {
			t.Fatal(err)
		}
	}
	b.until(15*time.Second, "the truncation is counted and the state saved", func(m lab.Scrape) bool {
		stale, _ := m.Sum("sidecar_checkpoint_stale")
		cut, _ := m.Sum("logfile_truncations_total", "target", b.target, "file", "catalina.out")
		return stale == 0 && cut == before+1
	})
}
