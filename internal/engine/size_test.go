package engine

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
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
