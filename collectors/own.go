package collectors

import (
	"runtime"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/client_golang/prometheus"
	procs "github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// What the sidecar says of itself. Its process figures carry the prefix
// sidecar_, because a bare process_* on this endpoint is the JVM's.
var (
	buildInfo     = &metric.Family{Name: "sidecar_build_info", Kind: metric.Gauge, Labels: []string{"version", "goversion"}, Help: "The sidecar's version; the value is always 1.", Source: "build"}
	sourceUp      = &metric.Family{Name: "sidecar_source_up", Kind: metric.Gauge, Labels: []string{"source"}, Help: "1 when the last look at this source of the target worked, 0 when it did not.", Source: "sidecar"}
	sourceBlind   = &metric.Family{Name: "sidecar_source_blind", Kind: metric.Gauge, Labels: []string{"source", "reason"}, Help: "1 for each lasting reason why a source can't be seen: a right is missing, or the fact is not there.", Source: "sidecar"}
	sourceErrors  = &metric.Family{Name: "sidecar_source_errors_total", Kind: metric.Counter, Labels: []string{"source", "reason"}, Help: "Looks at a source that failed, by reason.", Source: "sidecar"}
	seriesRefused = &metric.Family{Name: "sidecar_series_refused_total", Kind: metric.Counter, Labels: []string{"metric"}, Help: "Look-ups of a series that ended in the label value other, because the metric has as many series as it may.", Source: "sidecar"}
	stale         = &metric.Family{Name: "sidecar_checkpoint_stale", Kind: metric.Gauge, Help: "1 while the checkpoint can't be written: after a restart, counting would go on from the last one that was.", Source: "sidecar"}
	reloadOK      = &metric.Family{Name: "sidecar_config_reload_successful", Kind: metric.Gauge, Help: "1 when the last reload of the settings worked, 0 when the old settings stayed in force.", Source: "sidecar"}
	reloadAt      = &metric.Family{Name: "sidecar_config_reload_timestamp_seconds", Kind: metric.Gauge, Help: "When the settings in force were loaded, in Unix time.", Source: "sidecar"}
	tickSeconds   = &metric.Family{Name: "sidecar_tick_seconds", Kind: metric.Gauge, Help: "How long the last tick took: polling, checkpoint and snapshot.", Source: "sidecar"}

	ownCPU       = &metric.Family{Name: "sidecar_process_cpu_seconds_total", Kind: metric.Counter, Help: "CPU time of the sidecar itself. Of this process: 0 after a restart.", Source: "/proc/self"}
	ownRSS       = &metric.Family{Name: "sidecar_process_resident_memory_bytes", Kind: metric.Gauge, Help: "Resident memory of the sidecar itself.", Source: "/proc/self"}
	ownVirtual   = &metric.Family{Name: "sidecar_process_virtual_memory_bytes", Kind: metric.Gauge, Help: "Virtual memory of the sidecar itself.", Source: "/proc/self"}
	ownFDs       = &metric.Family{Name: "sidecar_process_open_fds", Kind: metric.Gauge, Help: "Open file descriptors of the sidecar itself.", Source: "/proc/self"}
	ownMaxFDs    = &metric.Family{Name: "sidecar_process_max_fds", Kind: metric.Gauge, Help: "The limit of the sidecar's own file descriptors.", Source: "/proc/self"}
	ownStarted   = &metric.Family{Name: "sidecar_process_start_time_seconds", Kind: metric.Gauge, Help: "When the sidecar started, in Unix time.", Source: "/proc/self"}
	ownGoroutine = &metric.Family{Name: "sidecar_goroutines", Kind: metric.Gauge, Help: "Goroutines of the sidecar: one a followed file, and some.", Source: "Go runtime"}

	ownMetrics = []*metric.Family{
		buildInfo, sourceUp, sourceBlind, sourceErrors, seriesRefused, stale, reloadOK, reloadAt, tickSeconds,
		ownCPU, ownRSS, ownVirtual, ownFDs, ownMaxFDs, ownStarted, ownGoroutine,
	}
)

// selfWatch reads the sidecar's own process with client_golang's collector.
type selfWatch struct {
	registry *prometheus.Registry
	byName   map[string]*metric.Family
	ticks    int
	families []*dto.MetricFamily // as last read
}

// ownEvery is after how many ticks the sidecar reads itself anew: the collector
// reads all that Linux tells of a process, its network statistics too, and would
// be a tenth of what a sidecar at rest costs.
const ownEvery = 5

func newSelfWatch() *selfWatch {
	s := &selfWatch{registry: prometheus.NewRegistry(), byName: map[string]*metric.Family{}}
	s.registry.MustRegister(procs.NewProcessCollector(procs.ProcessCollectorOpts{Namespace: "sidecar"}))
	for _, f := range ownMetrics {
		s.byName[f.Name] = f
	}
	return s
}

// write puts the process' figures into the Set. What the platform can't tell
// is absent.
func (s *selfWatch) write(set *metric.Set) {
	if s.ticks%ownEvery == 0 {
		s.families, _ = s.registry.Gather() // what could be had is in it, error or not
	}
	s.ticks++
	for _, mf := range s.families {
		f := s.byName[mf.GetName()]
		switch {
		case f == nil || len(mf.Metric) != 1:
		case f.Kind == metric.Counter:
			set.Counter(f).Set(mf.Metric[0].GetCounter().GetValue())
		case f.Kind == metric.Gauge:
			set.Gauge(f).Set(mf.Metric[0].GetGauge().GetValue())
		}
	}
	set.Gauge(ownGoroutine).Set(float64(runtime.NumGoroutine()))
}
