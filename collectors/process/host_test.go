package process

import (
	"testing"

	"github.com/shirou/gopsutil/v3/cpu"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestHostShares: a share of each second, in whole ticks, also where the
// kernel's idle time steps back.
func TestHostShares(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then cpu.TimesStat
		busy, steal float64
	}{
		{"idle", cpu.TimesStat{User: 10.1, Idle: 2962.1}, cpu.TimesStat{User: 10.1, Idle: 2964.1}, 0, 0},
		{"busy", cpu.TimesStat{User: 10.1, Idle: 2962.1}, cpu.TimesStat{User: 12.1, Idle: 2962.1}, 1, 0},
		{"half, and a quarter stolen", cpu.TimesStat{User: 10, Idle: 20}, cpu.TimesStat{User: 10.5, Idle: 21, Steal: .5}, .5, .25},
		{"iowait steps back", cpu.TimesStat{User: 10, Iowait: 5.01}, cpu.TimesStat{User: 12, Iowait: 5}, 1, 0},
	} {
		h := NewHost(metric.NewSet(), "")
		h.writeCPU(c.first)
		if _, ok := h.set.Gauge(hostBusy).Value(); ok {
			t.Errorf("%s: one sample tells a share", c.name)
		}
		h.writeCPU(c.then)
		busy, ok := h.set.Gauge(hostBusy).Value()
		steal, _ := h.set.Gauge(hostSteal).Value()
		if !ok || busy != c.busy || steal != c.steal {
			t.Errorf("%s: busy %v steal %v (there: %v), want %v %v", c.name, busy, steal, ok, c.busy, c.steal)
		}
	}
}
