package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/procfs"
)

// Host reads the machine, so that one can tell whether it and not the server
// was the limit. It is a collectors.Poller, and its Set has no target.
type Host struct {
	set   *metric.Set
	root  string
	buf   []byte
	polls int
	cores int // 0 where it can't be told
	last  cpu.TimesStat
	some  bool // last is there
}

// coresEvery is after how many polls the machine's processors are counted anew.
// The kernel asks each processor for its clock to write /proc/cpuinfo, which made
// this the dearest figure of all.
const coresEvery = 60

// NewHost makes the poller of the machine. root is where procfs is mounted;
// empty means /proc.
func NewHost(set *metric.Set, root string) *Host {
	if root == "" {
		root = "/proc"
	}
	return &Host{set: set, root: root}
}

// Poll reads the machine's CPU, memory and pressure.
func (h *Host) Poll(ctx context.Context, _ time.Time) error {
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: h.root})
	var errs []error
	times, err := cpu.TimesWithContext(ctx, false)
	if err != nil {
		errs = append(errs, fmt.Errorf("read CPU times of the machine: %w", err))
	}
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		errs = append(errs, fmt.Errorf("read memory of the machine: %w", err))
	}
	if h.polls%coresEvery == 0 {
		if h.cores, err = cpu.CountsWithContext(ctx, true); err != nil {
			h.cores = 0
		}
	}
	h.polls++
	var waits []pressure
	for _, resource := range []string{"cpu", "memory", "io"} {
		if b := h.read("pressure", resource); b != nil {
			waits = parsePressure(waits, resource, b)
		}
	}
	runnable, hasRunnable := number(h.read("stat"), "procs_running ")

	h.set.Lock()
	defer h.set.Unlock()
	h.set.Begin()
	defer h.set.Sweep()
	if len(times) == 1 {
		h.writeCPU(times[0])
	}
	if h.cores > 0 {
		h.set.Gauge(hostCores).Set(float64(h.cores))
	}
	if memory != nil && memory.Total > 0 {
		h.set.Gauge(hostMemory).Set(float64(memory.Total))
		h.set.Gauge(hostMemoryAvailable).Set(float64(memory.Available))
	}
	if hasRunnable {
		h.set.Gauge(hostRunnable).Set(float64(runnable))
	}
	for _, p := range waits {
		h.set.Counter(hostPressure, p.resource, p.kind).Set(p.seconds)
	}
	return errors.Join(errs...)
}

// read reads a file of procfs, which is valid until the next call; nil where it
// can't be read.
func (h *Host) read(name ...string) (b []byte) {
	b, h.buf, _ = procfs.Read(filepath.Join(append([]string{h.root}, name...)...), h.buf)
	return b
}

// writeCPU puts down the time by mode, and the shares since the last sample. The kernel
// counts a guest's time in user and nice too, so guest is left out.
func (h *Host) writeCPU(t cpu.TimesStat) {
	for _, m := range []struct {
		mode    string
		seconds float64
	}{
		{"user", t.User}, {"nice", t.Nice}, {"system", t.System}, {"idle", t.Idle}, {"iowait", t.Iowait},
		{"irq", t.Irq}, {"softirq", t.Softirq}, {"steal", t.Steal},
	} {
		h.set.Counter(hostCPU, m.mode).Set(m.seconds)
	}
	// In whole ticks, or rounding would make a busy machine 99.99 % busy, and an
	// idle one more idle than there was time.
	ticks := func(seconds float64) float64 { return math.Round(seconds * 100) }
	total := func(t cpu.TimesStat) float64 {
		return ticks(t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal)
	}
	// Idle and iowait may step back by a tick on some kernels.
	all := total(t) - total(h.last)
	idle := min(max(ticks(t.Idle+t.Iowait)-ticks(h.last.Idle+h.last.Iowait), 0), all)
	steal := min(max(ticks(t.Steal)-ticks(h.last.Steal), 0), all)
	if h.some && all > 0 {
		h.set.Gauge(hostBusy).Set((all - idle) / all)
		h.set.Gauge(hostSteal).Set(steal / all)
	}
	h.last, h.some = t, true
}
