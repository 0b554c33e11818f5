package engine

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Samples that don't compress, more of them than fit: what is on disk stays below
// the bound at each moment, blocks and WAL together, and what the rules look back
// at is there.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of samples")
	}
	const size = 16 << 20
	w := newWorld(t, t.TempDir(), func(c *Config) { c.Size = size; c.Retention = 10 * time.Hour })
	noise := &metric.Family{Name: "test_noise", Kind: metric.Gauge, Labels: []string{"n"}, Help: "h"}
	r := rand.New(rand.NewPCG(3, 4))
	var most int64
	for i := range 40 * 60 {
		for n := range 1200 {
			w.set.Gauge(noise, strconv.Itoa(n)).Set(r.Float64())
		}
		w.set.Gauge(testGauge).Set(7)
		w.ticks(1)
		w.e.store.busy.Wait()
		most = max(most, folderSize(w.e.store.dir))
		if i == 15*60 && len(w.e.store.blocks) == 0 {
			t.Error("no block after 15 minutes")
		}
	}
	t.Logf("%.1f MB at most, %d blocks and %.1f MB of WAL at the end", float64(most)/1e6, len(w.e.store.blocks), float64(folderSize(filepath.Join(w.e.store.dir, "wal")))/1e6)
	if most > size {
		t.Errorf("%d bytes on disk, %d allowed", most, size)
	}
	w.want("count_over_time(test_level_bytes[5m])", 300)
	// After a restart, too.
	w.e.Close()
	w.open(w.e.store.dir, func(c *Config) { c.Size = size; c.Retention = 10 * time.Hour })
	w.ticks(1)
	w.want("count_over_time(test_level_bytes[2m])", 120)
}

// Native histograms are there from a block, from the WAL of the head, and after a
// restart, as they were told.
func TestNativeHistogramsKept(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	for i := range 20 * 60 {
		w.set.Histogram(testHist).Observe(float64(i%100) / 100)
		w.ticks(1)
		w.e.store.busy.Wait()
	}
	if len(w.e.store.blocks) == 0 {
		t.Fatal("no block")
	}
	check := func(when string) {
		t.Helper()
		w.want("histogram_count(test_seconds)", 1200)
		w.want("histogram_count(test_seconds offset 15m)", 300)
		w.want("count_over_time(test_seconds[20m])", 1200)
		w.want("histogram_count(increase(test_seconds[19m])) > bool 1100", 1)
		if got, _ := w.value("histogram_quantile(0.5, rate(test_seconds[18m]))"); got < .45 || got > .55 {
			t.Errorf("%s: the median is %v", when, got)
		}
	}
	check("before")
	w.open(w.e.store.dir, nil) // not closed, as after kill -9
	check("after kill -9")
}

// What a reload can't change it names.
func TestReloadNames(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	var said bytes.Buffer
	w.e.log = slog.New(slog.NewTextHandler(&said, nil))
	cfg := w.e.cfg
	if err := w.e.Reload(cfg); err != nil || said.Len() > 0 {
		t.Errorf("the same again: %v %s", err, &said)
	}
	cfg.Retention = time.Hour
	if err := w.e.Reload(cfg); err != nil || strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "retention and size take effect at the next start") {
		t.Errorf("another retention: %v %s", err, &said)
	}
}
