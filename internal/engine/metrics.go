package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// What the engine says of itself.
var (
	engineSeries  = &metric.Family{Name: "engine_series", Kind: metric.Gauge, Help: "Series in the newest part of the engine's store, the rules' own included.", Source: "engine"}
	engineSamples = &metric.Family{Name: "engine_samples_total", Kind: metric.Counter, Help: "Samples that the engine took from the snapshots. Of this process: 0 after a restart.", Source: "engine"}
	engineRefused = &metric.Family{Name: "engine_samples_refused_total", Kind: metric.Counter, Help: "Samples that the engine's store would not take, because they are older than the last of their series. Of this process: 0 after a restart.", Source: "engine"}
	engineMissed  = &metric.Family{Name: "engine_snapshots_missed_total", Kind: metric.Counter, Help: "Snapshots that the engine left out because the rules of the one before were still being evaluated. Of this process: 0 after a restart.", Source: "engine"}
	engineOnDisk  = &metric.Family{Name: "engine_on_disk", Kind: metric.Gauge, Help: "1 while samples and the state of alerts are written to disk, 0 while the engine lives in memory alone: a restart would then forget them.", Source: "engine"}
	engineBytes   = &metric.Family{Name: "engine_disk_bytes", Kind: metric.Gauge, Help: "Bytes that the engine's samples take on disk.", Source: "engine"}
	engineAhead   = &metric.Family{Name: "engine_clock_ahead_seconds", Kind: metric.Gauge, Help: "How far the engine's time is ahead of the wall clock, because that was set back.", Source: "engine"}
	engineEval    = &metric.Family{Name: "engine_evaluation_seconds", Kind: metric.Gauge, Help: "How long the last evaluation of all rules took, each group's counted once.", Source: "engine"}
	engineFailing = &metric.Family{Name: "engine_rules_failing", Kind: metric.Gauge, Help: "Rules whose last evaluation failed.", Source: "engine"}
	engineAlerts  = &metric.Family{Name: "engine_alerts", Kind: metric.Gauge, Labels: []string{"state"}, Help: "Alerts that are pending or firing.", Source: "engine"}

	// Metrics are the engine's own.
	Metrics = []*metric.Family{
		engineSeries, engineSamples, engineRefused, engineMissed, engineOnDisk, engineBytes, engineAhead, engineEval, engineFailing, engineAlerts,
	}
)

// write puts the engine's own figures down for the next snapshot.
func (e *Engine) write(at time.Time, snap *metric.Snapshot) {
	e.mu.Lock()
	e.snap = snap
	e.mu.Unlock()
	var took time.Duration
	failing, pending, firing := 0, 0, 0
	for _, g := range e.current() {
		for _, r := range g.Group.Rules() {
			took += r.GetEvaluationDuration()
			if r.LastError() != nil {
				failing++
			}
		}
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				switch {
				case !a.ResolvedAt.IsZero():
				case a.FiredAt.IsZero():
					pending++
				default:
					firing++
				}
			}
		}
	}
	bytes := e.store.bytes()
	e.store.mu.RLock()
	series, onDisk := e.store.head.NumSeries(), e.store.wal != nil
	e.store.mu.RUnlock()
	s := e.Set
	s.Lock()
	defer s.Unlock()
	s.Gauge(engineSeries).Set(float64(series))
	s.Counter(engineSamples).Set(e.series.samples)
	s.Counter(engineRefused).Set(e.series.refused)
	s.Counter(engineMissed).Set(float64(e.missed.Load()))
	s.Gauge(engineOnDisk).Set(map[bool]float64{true: 1}[onDisk])
	s.Gauge(engineBytes).Set(float64(bytes))
	s.Gauge(engineAhead).Set(max(0, at.Sub(snap.At).Truncate(time.Millisecond).Seconds()))
	s.Gauge(engineEval).Set(took.Seconds())
	s.Gauge(engineFailing).Set(float64(failing))
	s.Gauge(engineAlerts, "pending").Set(float64(pending))
	s.Gauge(engineAlerts, "firing").Set(float64(firing))
}

// OnDisk says whether samples are written to disk, and if not, why.
func (e *Engine) OnDisk() (ok bool, why string) {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	return e.store.wal != nil, e.store.lost
}

// quiet hands on what Prometheus' packages have to warn of. What they say of
// their daily work (blocks written, WAL replayed) is said at level info each ten
// minutes, and is nothing to a reader of the sidecar's log.
func quiet(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(warnings{log.Handler()})
}

type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
func (w warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(a)} }
func (w warnings) WithGroup(n string) slog.Handler      { return warnings{w.Handler.WithGroup(n)} }
