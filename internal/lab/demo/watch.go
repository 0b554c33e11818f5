package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// A watcher draws what the sidecar and Prometheus say, twice a second, and
// remembers the peaks for the closing table.
type watcher struct {
	p      *parts
	s      *screen
	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once

	began    time.Time
	recent   []reading // of the last seconds, for the rates
	first    time.Time // the first rejection was seen
	fired    time.Time // ExecutorRejectionStorm fired
	peak     reading   // the highest of each figure
	maxSlope float64   // most bytes a second into the logs
}

// A reading is one look. A figure that the sidecar does not give is absent, not
// 0.
type reading struct {
	at                                          time.Time
	threads, limit, waiting, rejected, requests figure
	logs, written, cpu                          figure
	storm, runaway                              string
}

type figure struct {
	v  float64
	ok bool
}

func (f figure) text(write func(float64) string) string {
	if !f.ok {
		return "-"
	}
	return write(f.v)
}

// rateSpan is how long the rates on the screen look back.
const rateSpan = 3 * time.Second

func watch(ctx context.Context, p *parts, s *screen) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{p: p, s: s, cancel: cancel, done: make(chan struct{}), began: time.Now()}
	go func() {
		defer close(w.done)
		for pause(ctx, 500*time.Millisecond) == nil {
			w.look()
		}
	}()
	return w
}

func (w *watcher) stop() {
	w.once.Do(func() {
		w.cancel()
		<-w.done
	})
}

// read takes one reading from the sidecar's /metrics and Prometheus' alerts.
func (p *parts) read() (r reading, err error) {
	m, err := lab.ReadMetrics(p.addr)
	if err != nil {
		return r, err
	}
	r.at = time.Now()
	get := func(name string, labels ...string) (f figure) {
		f.v, f.ok = m.Sum(name, append(labels, "target", p.target)...)
		return f
	}
	r.threads = get("jvm_threadpool_threads", "pool", "catalina-exec")
	r.limit = get("jvm_threadpool_max_threads", "pool", "catalina-exec")
	r.waiting = get("connector_requests_waiting", "port", strconv.Itoa(p.server.Port))
	r.rejected = get("applog_events_total", "event", "executor_rejected")
	r.requests = get("accesslog_requests_total")
	r.logs = get("logdir_size_bytes", "dir", p.server.LogDir)
	r.written = get("logdir_written_bytes_total", "dir", p.server.LogDir)
	r.cpu.v, r.cpu.ok = m.Sum("sidecar_process_cpu_seconds_total")
	r.storm, r.runaway = p.alert("ExecutorRejectionStorm"), p.alert("LogGrowthRunaway")
	return r, nil
}

func (w *watcher) look() {
	r, err := w.p.read()
	if err != nil {
		w.s.frame([]string{"the sidecar does not answer: " + err.Error()}, err.Error())
		return
	}
	if r.rejected.v > 0 && w.first.IsZero() {
		w.first = r.at
	}
	if r.storm == "firing" && w.fired.IsZero() {
		w.fired = r.at
	}
	// The sidecar's figures change once a second, so a rate spans a few looks.
	w.recent = append(w.recent, r)
	for len(w.recent) > 2 && r.at.Sub(w.recent[1].at) >= rateSpan {
		w.recent = w.recent[1:]
	}
	old := w.recent[0]
	rate := func(now, before figure) figure {
		dt := r.at.Sub(old.at).Seconds()
		return figure{(now.v - before.v) / dt, now.ok && before.ok && dt >= 1}
	}
	rejections, growth, answers := rate(r.rejected, old.rejected), rate(r.written, old.written), rate(r.requests, old.requests)
	for _, f := range []struct{ peak, now *figure }{{&w.peak.threads, &r.threads}, {&w.peak.waiting, &r.waiting}, {&w.peak.logs, &r.logs}} {
		if f.now.ok && (!f.peak.ok || f.now.v > f.peak.v) {
			*f.peak = *f.now
		}
	}
	if growth.ok {
		w.maxSlope = max(w.maxSlope, growth.v)
	}

	block := []string{
		fmt.Sprintf("%-22s %4.0f s", "time", time.Since(w.began).Seconds()),
		fmt.Sprintf("%-22s %s  %s of %s threads", "pool catalina-exec", bar(r.threads.v, r.limit.v), r.threads.text(count), r.limit.text(count)),
		fmt.Sprintf("%-22s %s  %s", "requests waiting", bar(r.waiting.v, float64(pool.MaxQueueSize)), r.waiting.text(count)),
		fmt.Sprintf("%-22s %12s   %s a second", "answered (access log)", r.requests.text(count), answers.text(count)),
		fmt.Sprintf("%-22s %12s   %s a second", "rejected", r.rejected.text(count), rejections.text(count)),
		fmt.Sprintf("%-22s %12s   %s a second", "log folder", r.logs.text(size), growth.text(size)),
		fmt.Sprintf("%-22s %s", "alerts", w.alerts(r)),
	}
	w.s.frame(block, fmt.Sprintf("%3.0f s  threads %s/%s  waiting %s  answered %s  rejected %s (%s/s)  logs %s (%s/s)  %s",
		time.Since(w.began).Seconds(), r.threads.text(count), r.limit.text(count), r.waiting.text(count), r.requests.text(count),
		r.rejected.text(count), rejections.text(count), r.logs.text(size), growth.text(size), w.alerts(r)))
}

// alerts is the line about what Prometheus fires.
func (w *watcher) alerts(r reading) string {
	text := ""
	switch r.storm {
	case "firing":
		text = w.s.strong("ExecutorRejectionStorm FIRING") + w.delay()
	case "pending":
		text = "ExecutorRejectionStorm pending"
	}
	switch r.runaway {
	case "firing":
		text += "  " + w.s.strong("LogGrowthRunaway FIRING")
	case "pending":
		text += "  LogGrowthRunaway pending"
	}
	if text == "" {
		return "none"
	}
	return text
}

// delay says how long after the first rejection the alert fired.
func (w *watcher) delay() string {
	if w.fired.IsZero() || w.first.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%.1f s after the first rejection)", w.fired.Sub(w.first).Seconds())
}
