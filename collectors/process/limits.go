package process

import "github.com/jvm-sidecar/sidecar/internal/metric"

// Limits are what the JVM may take at most, as of the last poll: memory of its
// cgroup in bytes, and cores. 0 is no limit, or one that can't be seen. The Set
// is locked by the caller.
func (p *Poller) Limits() (memory uint64, cores float64) {
	gauge := func(f *metric.Family) (v float64) {
		p.set.Each(f, func(_ []string, x float64) { v = x })
		return v
	}
	return uint64(gauge(cgroupMemoryLimit)), gauge(cpuLimit)
}
