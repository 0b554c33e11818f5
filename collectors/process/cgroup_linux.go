package process

import (
	"path/filepath"
	"strings"
)

// cgroup finds and reads the control group of the process, version 2 or 1.
type cgroup struct {
	// limits are looked up the tree; a tree is some levels deep at most.
	memory, cpu string // version 1 folders
	unified     string // version 2 folder
	top         string
	asked       int
	// The limits, as last read.
	memoryLimit, cpuLimit float64
}

type cgroupFigures struct {
	memory, memoryLimit float64
	hasMemory           bool
	cpuLimit            float64 // cores, 0 for none
	periods, throttled  float64
	throttledSeconds    float64
	hasThrottling       bool
	oomKills            float64
	hasOOM              bool
	pressure            []pressure
}

// read finds the folders anew each minute of samples, since a process may be
// moved, and reads the figures.
func (c *cgroup) read(w *world, root string) (f cgroupFigures) {
	if c.asked%(6*limitsEvery) == 0 {
		c.find(w, root)
	}
	limits := c.asked%limitsEvery == 0
	if limits {
		c.memoryLimit, c.cpuLimit = 0, 0
	}
	c.asked++
	switch {
	case c.unified != "":
		if limits {
			c.limitsUnified(w)
		}
		c.readUnified(w, &f)
	case c.memory != "" || c.cpu != "":
		if limits {
			c.limitsV1(w)
		}
		c.readV1(w, &f)
	}
	f.memoryLimit, f.cpuLimit = c.memoryLimit, c.cpuLimit
	return f
}

// find reads /proc/PID/cgroup:
//
//	0::/system.slice/tomcat.service                  version 2
//	4:memory:/docker/ab12   3:cpu,cpuacct:/docker/ab12   version 1
//
// A path that climbs out (/../..) belongs to another cgroup namespace than
// ours, and is not followed.
func (c *cgroup) find(w *world, root string) {
	c.unified, c.memory, c.cpu, c.top = "", "", "", root
	b, err := w.file("cgroup")
	if err != nil {
		return
	}
	for _, l := range strings.Split(string(b), "\n") {
		parts := strings.SplitN(l, ":", 3)
		if len(parts) != 3 || strings.Contains(parts[2], "..") {
			continue
		}
		path := strings.TrimSuffix(parts[2], " (deleted)")
		if parts[1] == "" {
			for _, base := range []string{root, filepath.Join(root, "unified")} {
				dir := filepath.Join(base, path)
				if _, err := w.path(filepath.Join(dir, "cgroup.procs")); err == nil {
					c.unified, c.top = dir, base
					break
				}
			}
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name != "memory" && name != "cpu" {
				continue
			}
			for _, base := range []string{filepath.Join(root, name), filepath.Join(root, parts[1])} {
				dir := filepath.Join(base, path)
				if _, err := w.path(filepath.Join(dir, "cgroup.procs")); err != nil {
					continue
				}
				if name == "memory" {
					c.memory = dir
				} else {
					c.cpu = dir
				}
				break
			}
		}
	}
	// In the hybrid layout the controllers are in version 1.
	if c.memory != "" || c.cpu != "" {
		if c.unified != "" {
			if _, err := w.path(filepath.Join(c.unified, "memory.current")); err != nil {
				c.unified = ""
			}
		}
	}
	if c.unified == "" {
		c.top = root
	}
}

func (c *cgroup) readUnified(w *world, f *cgroupFigures) {
	if b, err := w.path(filepath.Join(c.unified, "memory.current")); err == nil {
		if v, ok := digitsAt(b); ok {
			f.memory, f.hasMemory = float64(v), true
		}
	}
	if b, err := w.path(filepath.Join(c.unified, "cpu.stat")); err == nil {
		f.throttling(b, "throttled_usec ", 1e6)
	}
	if b, err := w.path(filepath.Join(c.unified, "memory.events")); err == nil {
		if v, ok := number(b, "oom_kill "); ok {
			f.oomKills, f.hasOOM = float64(v), true
		}
	}
	for _, resource := range []string{"cpu", "memory", "io"} {
		if b, err := w.path(filepath.Join(c.unified, resource+".pressure")); err == nil {
			f.pressure = parsePressure(f.pressure, resource, b)
		}
	}
}

// limitsUnified looks for the lowest limit up the tree, which is the one that
// holds.
func (c *cgroup) limitsUnified(w *world) {
	for dir := c.unified; strings.HasPrefix(dir, c.top) && len(dir) >= len(c.top); dir = filepath.Dir(dir) {
		if b, err := w.path(filepath.Join(dir, "memory.max")); err == nil {
			if v, ok := digitsAt(b); ok && (c.memoryLimit == 0 || float64(v) < c.memoryLimit) {
				c.memoryLimit = float64(v)
			}
		}
		if b, err := w.path(filepath.Join(dir, "cpu.max")); err == nil {
			// "max 100000" or "150000 100000"
			if q, rest, ok := firstNumber(b); ok {
				if period, ok := digitsAt(rest); ok && period > 0 {
					c.lowerCPU(float64(q) / float64(period))
				}
			}
		}
		if dir == c.top {
			break
		}
	}
}

func (c *cgroup) readV1(w *world, f *cgroupFigures) {
	if c.memory != "" {
		if b, err := w.path(filepath.Join(c.memory, "memory.usage_in_bytes")); err == nil {
			if v, ok := digitsAt(b); ok {
				f.memory, f.hasMemory = float64(v), true
			}
		}
		if b, err := w.path(filepath.Join(c.memory, "memory.oom_control")); err == nil {
			if v, ok := number(b, "oom_kill "); ok {
				f.oomKills, f.hasOOM = float64(v), true
			}
		}
	}
	if c.cpu != "" {
		if b, err := w.path(filepath.Join(c.cpu, "cpu.stat")); err == nil {
			f.throttling(b, "throttled_time ", 1e9)
		}
	}
}

func (c *cgroup) limitsV1(w *world) {
	if c.memory != "" {
		// hierarchical_memory_limit is the lowest up the tree already. "No limit" is the
		// largest number of pages the kernel can count.
		if b, err := w.path(filepath.Join(c.memory, "memory.stat")); err == nil {
			if v, ok := number(b, "hierarchical_memory_limit "); ok && v < 1<<62 {
				c.memoryLimit = float64(v)
			}
		}
	}
	if c.cpu == "" {
		return
	}
	if q, ok := w.figure(c.cpu, "cpu.cfs_quota_us"); ok {
		if period, ok := w.figure(c.cpu, "cpu.cfs_period_us"); ok && period > 0 {
			c.lowerCPU(q / period)
		}
	}
}

// figure reads a file with one number; -1 (no quota) is none.
func (w *world) figure(dir, name string) (float64, bool) {
	b, err := w.path(filepath.Join(dir, name))
	if err != nil {
		return 0, false
	}
	v, ok := digitsAt(b)
	return float64(v), ok
}

func (c *cgroup) lowerCPU(cores float64) {
	if cores > 0 && (c.cpuLimit == 0 || cores < c.cpuLimit) {
		c.cpuLimit = cores
	}
}

func (f *cgroupFigures) throttling(b []byte, key string, unit float64) {
	periods, ok1 := number(b, "nr_periods ")
	throttled, ok2 := number(b, "nr_throttled ")
	t, ok3 := number(b, key)
	if ok1 && ok2 && ok3 {
		f.periods, f.throttled, f.throttledSeconds = float64(periods), float64(throttled), float64(t)/unit
		f.hasThrottling = true
	}
}

func (f *cgroupFigures) write(count, gauge put) {
	gauge(cgroupMemory, f.hasMemory, f.memory)
	gauge(cgroupMemoryLimit, f.memoryLimit > 0, f.memoryLimit)
	gauge(cgroupCPULimit, f.cpuLimit > 0, f.cpuLimit)
	count(cgroupPeriods, f.hasThrottling, f.periods)
	count(cgroupThrottledPeriods, f.hasThrottling, f.throttled)
	count(cgroupThrottled, f.hasThrottling, f.throttledSeconds)
	count(oomKills, f.hasOOM, f.oomKills)
	for _, p := range f.pressure {
		count(cgroupPressure, true, p.seconds, p.resource, p.kind)
	}
}
