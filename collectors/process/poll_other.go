//go:build !linux

package process

import (
	"context"
	"runtime"
	"time"

	gops "github.com/shirou/gopsutil/v3/process"
)

// world is what gopsutil needs on systems without /proc.
type world struct {
	proc *gops.Process
	last struct {
		at      time.Time
		seconds float64
	}
}

func (w *world) init(cfg *Config) { w.proc = &gops.Process{Pid: int32(cfg.PID)} }

func (w *world) close() error { return nil }

func (w *world) save(*folder, *saved) {}
func (w *world) load(*saved)          {}

// poll gives the figures that gopsutil has here. StartTicks is the creation
// time in milliseconds on these systems.
func (p *Poller) poll(ctx context.Context, now time.Time) error {
	w := &p.world
	// gopsutil keeps the creation time it has seen once, so a fresh look is taken
	// with a fresh Process.
	created, err := (&gops.Process{Pid: w.proc.Pid}).CreateTimeWithContext(ctx)
	if err != nil || (p.cfg.StartTicks != 0 && uint64(created) != p.cfg.StartTicks) {
		p.sweep()
		p.finish(nil, true)
		return nil
	}
	times, timesErr := w.proc.TimesWithContext(ctx)
	memory, memoryErr := w.proc.MemoryInfoWithContext(ctx)
	threads, threadsErr := w.proc.NumThreadsWithContext(ctx)
	fds, fdsErr := w.proc.NumFDsWithContext(ctx)
	io, ioErr := w.proc.IOCountersWithContext(ctx)

	p.set.Lock()
	p.set.Begin()
	p.set.Gauge(startTime).Set(float64(created) / 1000)
	if timesErr == nil {
		used := times.User + times.System
		p.set.Counter(cpuSeconds).Set(used)
		p.set.Counter(cpuMode, "user").Set(times.User)
		p.set.Counter(cpuMode, "system").Set(times.System)
		cores := float64(runtime.NumCPU())
		p.set.Gauge(cpuLimit).Set(cores)
		if dt := now.Sub(w.last.at).Seconds(); !w.last.at.IsZero() && dt > 0 && used >= w.last.seconds {
			p.set.Gauge(cpuUsage).Set((used - w.last.seconds) / dt / cores)
		}
		w.last.at, w.last.seconds = now, used
	}
	if memoryErr == nil {
		p.set.Gauge(residentMemory).Set(float64(memory.RSS))
		p.set.Gauge(virtualMemory).Set(float64(memory.VMS))
	}
	if threadsErr == nil {
		p.set.Gauge(processThreads).Set(float64(threads))
	}
	if fdsErr == nil {
		p.set.Gauge(openFDs).Set(float64(fds))
	}
	if ioErr == nil {
		p.set.Counter(diskBytes, "read").Set(float64(io.ReadBytes))
		p.set.Counter(diskBytes, "write").Set(float64(io.WriteBytes))
	}
	p.set.Sweep()
	p.set.Unlock()
	p.finish([]Blind{{Source: "process", Reason: BlindPlatform,
		Detail: "on " + runtime.GOOS + " there are no threads by pool, accept queues, unread requests and cgroup: these come from Linux's /proc and sock_diag"}}, false)
	return nil
}
