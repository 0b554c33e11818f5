package main

import (
	"fmt"
	"math"

	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

const name = "tomcat-8080"

// world is a sidecar that watches one server which is not there, with all that the
// page asks for and some more.
type world struct {
	set, host *metric.Set
	families  map[string]*metric.Family
	series    int

	snap atomic.Pointer[metric.Snapshot]
	st   atomic.Pointer[status.Status]
}

func newWorld() *world {
	w := &world{set: metric.ForTarget(name), host: metric.NewSet(), families: map[string]*metric.Family{}}
	for _, f := range collectors.Catalogue() {
		w.families[f.Name] = f
	}
	return w
}

// Snapshot and Status make it a web.Monitor.
func (w *world) Snapshot() *metric.Snapshot { return w.snap.Load() }
func (w *world) Status() *status.Status     { return w.st.Load() }

func (w *world) snapshot(i int, at time.Time) *metric.Snapshot {
	s := w.set
	s.Lock()
	gauge := func(name string, v float64, labels ...string) { s.Gauge(w.families[name], labels...).Set(v) }
	count := func(name string, by float64, labels ...string) { s.Counter(w.families[name], labels...).Add(by) }
	wave := func(of float64) float64 { return of * (1 + 0.5*math.Sin(float64(i)/40)) }
	gauge("target_up", 1)
	for _, code := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		for m, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "other"} {
			count("accesslog_requests_total", map[bool]float64{true: wave(100), false: 0}[code == "2xx" && m < 4], method, code, "")
		}
	}
	for _, code := range []string{"2xx", "4xx", "5xx"} {
		for k := range 20 {
			s.Histogram(w.families["accesslog_request_duration_seconds"], code, "").Observe(wave(0.002) * float64(1+k*k))
		}
	}
	for e := range 30 {
		count("applog_events_total", 0, fmt.Sprintf("event_%d", e), "")
	}
	count("applog_events_total", wave(20), "executor_rejected", "8080")
	for e := range 100 {
		count("applog_exceptions_total", float64(e%3), fmt.Sprintf("com.example.Problem%d", e), "root")
		count("applog_logger_records_total", float64(e%7), fmt.Sprintf("com.example.Logger%d", e), "INFO")
	}
	for p := range 40 {
		pool := fmt.Sprintf("pool-%d", p)
		gauge("jvm_threadpool_threads", wave(10), pool)
		count("jvm_threadpool_cpu_seconds_total", 0.01, pool)
		for _, state := range []string{"running", "sleeping", "disk", "other"} {
			gauge("jvm_threadpool_thread_states", wave(3), pool, state)
		}
	}
	gauge("jvm_threadpool_threads", wave(120), "catalina-exec")
	gauge("jvm_threadpool_max_threads", 200, "catalina-exec")
	gauge("connector_requests_waiting", wave(30), "8080")
	gauge("tcp_listen_queue", wave(5), "8080")
	gauge("tcp_listen_limit", 100, "8080")
	gauge("process_cpu_usage_ratio", wave(0.5))
	gauge("jvm_memory_used_bytes", wave(1e9), "heap")
	gauge("jvm_memory_max_bytes", 2e9, "heap")
	gauge("gclog_heap_after_bytes", wave(5e8), "heap")
	sums := s.Summary(w.families["jvm_gc_collection_seconds"], "G1 Young Generation")
	sums.Count, sums.Sum = uint64(i), sums.Sum+wave(0.02)
	count("logdir_written_bytes_total", wave(50_000), "/srv/tomcat/logs")
	for _, f := range []string{"access.log", "catalina.out", "gc.log"} {
		gauge("logfile_lag_seconds", 0, f)
		count("logfile_read_bytes_total", wave(1000), f)
	}
	for _, src := range []string{"process", "jvm", "accesslog", "applog", "gclog", "logdir"} {
		gauge("sidecar_source_up", 1, src)
	}
	s.Unlock()
	w.host.Lock()
	w.host.Gauge(w.families["host_cpu_busy_ratio"]).Set(wave(0.6))
	w.host.Gauge(w.families["host_cpu_steal_ratio"]).Set(0)
	w.host.Unlock()
	g := metric.NewGathering()
	g.Add(s)
	g.Add(w.host)
	snap := g.Snapshot(at)
	w.snap.Store(snap)
	w.st.Store(&status.Status{At: at, Ready: true, Targets: []status.Server{{
		Up: true, Target: &target.Target{Name: name, Kind: target.Tomcat},
		Sources: []status.Source{{Name: "accesslog", File: "access.log", Ledger: &status.Ledger{}}, {Name: "applog", File: "catalina.out", Ledger: &status.Ledger{}}, {Name: "process"}},
	}}})
	if w.series == 0 {
		w.series = samples(snap)
	}
	return snap
}

// samples counts the series of a snapshot as Prometheus would.
func samples(snap *metric.Snapshot) (n int) {
	for _, f := range snap.Families {
		for _, m := range f.Metric {
			switch {
			case m.Histogram != nil:
				n += len(m.Histogram.Bucket) + 3
			case m.Summary != nil:
				n += 2
			default:
				n++
			}
		}
	}
	return n
}
