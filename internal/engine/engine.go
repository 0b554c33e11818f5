// Package engine keeps the last hours of every sample and evaluates the rules
// over them, inside the sidecar: one binary alone alerts during a stress test.
//
// It is put together from Prometheus' own packages (tsdb, promql, rules;
// v0.304.2, that is Prometheus 3.4), so a rule means here what it means there.
// Each tick brings the snapshot that /metrics serves; it is appended with job
// and instance as a scrape would add them, and the groups that are due are
// evaluated at that same instant, in the same goroutine. Nothing here asks the
// clock: time is the snapshot's.
//
//	snapshot ──> appender ──> head (+ WAL) ──10 min──> blocks
//	                            │                        │
//	                            └── querier over both <──┘
//	                                  │         │
//	                                rules    HTTP API
//
// What is ours and not Prometheus':
//
//   - The head is driven directly and not by tsdb.DB. DB writes head chunks to
//     disk from a goroutine of its own and panics there when the disk is full
//     (tsdb/head_append.go, handleChunkWriteError). The disk that the sidecar
//     runs on may be just the one that a log storm fills. Here head chunks stay
//     in memory until they become a block, which at blocks of ten minutes is a
//     few megabytes; when the WAL can't be written the engine goes on without.
//   - Groups are evaluated by the tick and not by the rule manager's timers: a
//     condition is seen in the second in which its sample came.
package engine

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Options are what the command line and the build decide, as against Config.
type Options struct {
	// Dir is the folder that is the engine's alone. Without one, or where it
	// can't be written, everything is kept in memory.
	Dir string
	// Job and Instance are the labels that a scrape would add.
	Job, Instance string
	// Pack holds the rule files that come with the binary, load/*.yml and
	// steady/*.yml.
	Pack fs.FS
	// Start is the time at which the engine is opened.
	Start time.Time
	// ExternalURL is where a receiver of an alert finds the sidecar.
	ExternalURL string
	// Notify takes the alerts that are to be sent: those that fire, again after
	// each ResendDelay, and those that are resolved. It must not block.
	Notify func([]Alert)
	Log    *slog.Logger
}

// ResendDelay is how long after sending it a firing alert is sent again, as in
// Prometheus.
const ResendDelay = time.Minute

const (
	// maxSamples bounds what one query may hold in memory: 16 bytes each.
	maxSamples = 2_000_000
	// maxQueries is how many queries of clients are evaluated at once; others
	// wait. Rules never do.
	maxQueries = 4
	// queryTimeout ends a query, and the wait for one.
	queryTimeout = 10 * time.Second
)

// Engine is the store, the rules and the queries over it.
type Engine struct {
	options Options
	log     *slog.Logger
	store   *store
	queries *promql.Engine
	turns   chan struct{} // of the clients' queries
	// Set carries the engine's own figures for the next snapshot.
	Set *metric.Set

	feed   chan *metric.Snapshot
	missed atomic.Int64 // snapshots that came while one was being taken

	series  *series // what the last snapshot held; of Append alone
	changes int     // the head that its references are of; of Append alone

	mu     sync.RWMutex // guards what follows
	cfg    Config
	groups []*group
	snap   *metric.Snapshot
	last   time.Time // the engine's time of the last snapshot
	seen   time.Time // its wall clock, with the monotonic reading
}

// Open starts an engine with what an earlier one left in Dir. A folder that
// can't be written is no error: the engine then lives in memory and says so.
// Where no folder at all can be, it is ErrNoFolder. A rule file that can't be
// read is an error.
func Open(cfg Config, o Options) (*Engine, error) {
	e := &Engine{options: o, log: o.Log, cfg: cfg, Set: metric.NewSet(), feed: make(chan *metric.Snapshot, 1), turns: make(chan struct{}, maxQueries), series: newSeries(o.Job, o.Instance)}
	e.queries = promql.NewEngine(promql.EngineOpts{
		Logger: quiet(o.Log), MaxSamples: maxSamples, Timeout: queryTimeout,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 {
			e.mu.RLock()
			defer e.mu.RUnlock()
			return e.cfg.Evaluation.Milliseconds()
		},
	})
	var err error
	if e.store, err = openStore(o.Dir, cfg, o.Start, o.Log); err != nil {
		return nil, err
	}
	e.last = e.store.newest()
	groups, err := e.loadRules(cfg)
	if err != nil {
		e.store.close()
		return nil, err
	}
	e.groups = groups
	return e, nil
}

// Append takes one snapshot, evaluates the groups that are due at its instant,
// and returns when both are done. It is called by one goroutine.
func (e *Engine) Append(snap *metric.Snapshot) {
	at := e.advance(snap.At)
	ctx := context.Background()
	if c := e.store.changed(); c != e.changes {
		e.series.forget()
		e.changes = c
	}
	if err := e.series.append(ctx, e.store, at.UnixMilli(), snap); err != nil {
		// The samples of this tick are appended again, now to memory.
		e.store.leaveDisk(err)
		e.series.forget()
		e.changes = e.store.changed()
		if err := e.series.append(ctx, e.store, at.UnixMilli(), snap); err != nil {
			e.log.Error("BUG: a snapshot can't be kept in memory", "err", err)
		}
	}
	e.evaluate(ctx, at)
	e.store.maintain(at)
	e.write(at, snap)
}

// Run takes the snapshots that Offer brings, until the context ends.
func (e *Engine) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case snap := <-e.feed:
			e.Append(snap)
		}
	}
}

// Offer hands a snapshot to Run and does not wait: where one tick's rules take
// longer than a tick, a snapshot is left out and counted.
func (e *Engine) Offer(snap *metric.Snapshot) {
	select {
	case e.feed <- snap:
	default:
		e.missed.Add(1)
	}
}

// advance is the engine's time for a snapshot. Samples in a series go forward
// only, so when the wall clock is set back the engine's goes on by the
// monotonic clock, ahead of the wall's, until the wall's has caught up: a
// window of ten seconds stays ten seconds, and no counter seems to fall.
func (e *Engine) advance(wall time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Milliseconds are all that the store keeps.
	at := time.UnixMilli(wall.UnixMilli()).UTC()
	if !at.After(e.last) {
		elapsed := wall.Sub(e.seen)
		if elapsed <= 0 || elapsed > 5*time.Second || e.seen.IsZero() {
			elapsed = time.Second // no monotonic reading to tell
		}
		at = e.last.Add(elapsed.Truncate(time.Millisecond))
	}
	e.seen, e.last = wall, at
	return at
}

// Now is the engine's time: that of the last snapshot.
func (e *Engine) Now() time.Time {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.last
}

// Query evaluates an expression at one instant.
func (e *Engine) Query(ctx context.Context, expr string, at time.Time) (*promql.Result, error) {
	q, err := e.queries.NewInstantQuery(ctx, e.store, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, fmt.Errorf("%s: %w", expr, r.Err)
	}
	return r, nil
}

// Queryable is the store, for whoever has a PromQL engine of its own.
func (e *Engine) Queryable() storage.Queryable { return e.store }

// Close writes what is in memory to disk and lets go of it.
func (e *Engine) Close() error {
	e.store.close()
	return e.queries.Close()
}
