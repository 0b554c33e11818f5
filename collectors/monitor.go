package collectors

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

const (
	// tick is how often the world is polled and a snapshot is published.
	tick = time.Second
	// scanEvery is how often new and vanished servers are looked for.
	scanEvery = 5 * time.Second
)

// Options are what the command line decides, as against the settings file.
type Options struct {
	Procfs  string
	Storage string
	Version string
	Log     *slog.Logger
}

// A Monitor watches every server of the machine and publishes one snapshot a
// tick.
//
//	scan (5 s) ──> servers ──> pollers ─┐
//	                  └──> streams ─────┤ tick: save and gather under each lock,
//	                     (a goroutine   │       write the checkpoint,
//	                      a file)       └────>  publish the snapshot
type Monitor struct {
	options    Options
	log        *slog.Logger
	started    time.Time
	checkpoint *follow.Checkpoint
	budget     *follow.Budget
	self       *selfWatch
	own        *metric.Set

	mu      sync.Mutex // guards what follows; held by scan, tick and Reload
	cfg     Config
	scanner *target.Scanner
	tracker *target.Tracker
	servers map[string]*server // by target name
	lost    string             // why the checkpoint can't be written

	snapshot atomic.Pointer[metric.Snapshot]
	status   atomic.Pointer[status.Status]
}

// New prepares a Monitor. It opens nothing of any server; Run does.
func New(cfg Config, o Options) (*Monitor, error) {
	if err := os.MkdirAll(o.Storage, 0o750); err != nil {
		return nil, fmt.Errorf("storage.path: %w (say where state may go with --storage.path)", err)
	}
	m := &Monitor{
		options: o, log: o.Log, cfg: cfg, started: time.Now(),
		self: newSelfWatch(), own: metric.NewSet(), servers: map[string]*server{},
	}
	return m, nil
}

// Snapshot is the last published one, or nil before the first tick.
func (m *Monitor) Snapshot() *metric.Snapshot { return m.snapshot.Load() }

// Status says what is seen and what is not, as of the last tick.
func (m *Monitor) Status() *status.Status { return m.status.Load() }

// Run watches until the context ends, then saves everything.
func (m *Monitor) Run(ctx context.Context) error {
	return nil
}
