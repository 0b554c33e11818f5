package collectors

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

const (
	// tick is how often the world is polled and a snapshot is published.
	tick = time.Second
	// tickPhase is how long after the full second a tick comes. A follower of a
	// quiet log looks at the full second: what it has just read is in the snapshot
	// of this second, and an alert on it is up to a second sooner.
	tickPhase = 150 * time.Millisecond
	// scanEvery is how often new and vanished servers are looked for.
	scanEvery = 5 * time.Second
)

// Options are what the command line decides, as against the settings file.
type Options struct {
	Procfs  string
	Storage string
	Version string
	// Sets belong to others in the program who have figures of their own to
	// publish: the engine, the notifier.
	Sets []*metric.Set
	// Published is handed each snapshot once it is out, by the tick itself: it
	// must not wait.
	Published func(*metric.Snapshot)
	Log       *slog.Logger
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
	boot       string
	checkpoint *follow.Checkpoint
	self       *selfWatch
	host       *watch // the machine, which belongs to no server
	own        *metric.Set
	attach     *attach.Client
	gathering  *metric.Gathering // the tick's
	ship       *ship.Shipper     // nil where no lines are shipped; guarded by mu
	shipped    *metric.Set       // what was saved of ship, which is what is published

	mu       sync.Mutex // guards what follows; held by scan, tick and Reload
	cfg      Config
	inForce  *Config // cfg, never changed
	pacer    *follow.Pacer
	scanner  *target.Scanner
	registry *target.Registry
	servers  map[string]*server // by target name
	states   map[string]follow.Saved
	first    time.Time // when a sidecar first ran with this storage path
	scanned  bool
	rescan   chan struct{}
	lost     string         // why the checkpoint can't be written
	blind    []target.Blind // what can't be seen of the machine as a whole
	scanErr  string
	reloadOK bool
	reloaded time.Time

	snapshot atomic.Pointer[metric.Snapshot]
	status   atomic.Pointer[status.Status]
}

// The keys of the checkpoint that are no stream's. A stream's has two slashes.
const (
	selfKey    = "sidecar"
	targetsKey = "targets"
)

// savedSelf is the sidecar's own entry in the checkpoint.
type savedSelf struct {
	// FirstStart is when a sidecar first ran with this storage path. A log that
	// was made after it is read from its start, an older one from its end.
	FirstStart time.Time `json:"first_start"`
}

// New prepares a Monitor: it reads the checkpoint, but opens nothing of any
// server yet.
func New(cfg Config, o Options) (*Monitor, error) {
	checkpoint, states, err := follow.OpenCheckpoint(o.Storage)
	if err != nil {
		// Never fatal: what can be seen is worth more than what was counted.
		o.Log.Warn("the saved state can't be used, counting starts anew", "err", err)
	}
	if states == nil {
		states = map[string]follow.Saved{}
	}
	now := time.Now()
	m := &Monitor{
		options: o, log: o.Log, started: now, checkpoint: checkpoint,
		self: newSelfWatch(), own: metric.NewSet(), shipped: metric.NewSet(), attach: attach.New(), gathering: metric.NewGathering(),
		servers: map[string]*server{}, states: states, registry: target.NewRegistry(),
		rescan: make(chan struct{}, 1), reloadOK: true, reloaded: now,
	}
	if id, err := os.ReadFile(o.Procfs + "/sys/kernel/random/boot_id"); err == nil {
		m.boot = strings.TrimSpace(string(id))
	}
	hostSet := metric.NewSet()
	m.host = &watch{room: "host", set: hostSet, poller: process.NewHost(hostSet, o.Procfs)}
	m.first = now
	var self savedSelf
	if json.Unmarshal(states[selfKey].Observer, &self) == nil && !self.FirstStart.IsZero() {
		m.first = self.FirstStart
	}
	if saved, ok := states[targetsKey]; ok {
		if err := m.registry.Load(saved.Observer); err != nil {
			o.Log.Warn("the saved targets can't be used", "err", err)
		}
	}
	m.configure(cfg)
	return m, nil
}

// configure puts settings in force that no server holds yet.
func (m *Monitor) configure(cfg Config) {
	m.cfg = cfg
	m.inForce = &cfg // of its own: the page reads it without the lock
	m.pacer = follow.NewPacer(cfg.Limits.CPU)
	if cfg.Limits.Memory > 0 {
		debug.SetMemoryLimit(cfg.Limits.Memory)
	}
	targets := cfg.Targets
	targets.Proc = m.options.Procfs
	m.scanner = target.New(targets)
	m.configureShip(cfg.Loki)
}

// Snapshot is the last published one, or nil before the first tick.
func (m *Monitor) Snapshot() *metric.Snapshot { return m.snapshot.Load() }

// Status says what is seen and what is not, as of the last tick.
func (m *Monitor) Status() *status.Status { return m.status.Load() }

// Run watches until the context ends, then reads what is there, saves
// everything and lets go.
func (m *Monitor) Run(ctx context.Context) error {
	scans := make(chan struct{})
	go func() {
		defer close(scans)
		m.scanLoop(ctx)
	}()
	wait := time.NewTimer(untilTick(time.Now()))
	defer wait.Stop()
	select {
	case <-ctx.Done():
	case <-wait.C:
	}
	ticker := time.NewTicker(tick) // before the first tick, which may take long
	defer ticker.Stop()
	if ctx.Err() == nil {
		m.tick(ctx, time.Now(), false)
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-ticker.C:
			m.tick(ctx, now, false)
		}
	}
	<-scans
	return m.close()
}

// untilTick is how long it is from now to the next tick.
func untilTick(now time.Time) time.Duration {
	next := now.Truncate(tick).Add(tickPhase)
	if !next.After(now) {
		next = next.Add(tick)
	}
	return next.Sub(now)
}

// scanLoop looks for servers every five seconds, and at once after a reload.
func (m *Monitor) scanLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.rescan:
		case <-timer.C:
		}
		m.scan(ctx, time.Now())
		timer.Reset(scanEvery)
	}
}

// scan looks at the machine, and brings the servers in line with it. The look
// itself, which may be slow, is done without the lock.
func (m *Monitor) scan(ctx context.Context, now time.Time) {
	m.mu.Lock()
	scanner := m.scanner
	m.mu.Unlock()
	found, err := scanner.Scan(ctx, now)
	if ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if scanner != m.scanner {
		return // reloaded meanwhile: the next scan is on its way
	}
	m.scanErr = ""
	if err != nil {
		m.scanErr = err.Error()
		m.log.Error("the machine can't be looked at", "err", err)
		return
	}
	m.scanned = true
	m.blind = scanner.Blind()
	known := map[string]bool{}
	m.registry.Drop(scanner.LeftOut(), m.boot)
	m.registry.Expect(scanner.Missing())
	for _, e := range m.registry.Update(found, m.boot, now) {
		known[e.Name] = true
		s := m.servers[e.Name]
		if s == nil {
			s = newServer(e)
			m.servers[e.Name] = s
			m.log.Info("target", "name", e.Name, "up", e.Up, "pid", e.PID)
		}
		m.update(ctx, s)
	}
	for name, s := range m.servers {
		if !known[name] {
			m.forget(s)
			delete(m.servers, name)
		}
	}
}

// forget lets a server go that was away for too long, and its state with it.
func (m *Monitor) forget(s *server) {
	s.closeWatches()
	for _, st := range append([]*stream(nil), s.streams...) {
		m.endStream(s, st)
	}
	for key := range m.states {
		if strings.HasPrefix(key, s.entry.Name+"/") {
			delete(m.states, key)
		}
	}
	m.log.Info("target forgotten", "name", s.entry.Name)
}

// Reload puts new settings in force. Every source is made anew from what it
// has counted, so no counter falls.
func (m *Monitor) Reload(cfg Config) {
	m.mu.Lock()
	for name, s := range m.servers {
		m.keepWatches(s)
		s.closeWatches()
		for _, st := range append([]*stream(nil), s.streams...) {
			m.endStream(s, st)
		}
		delete(m.servers, name)
	}
	m.configure(cfg)
	m.mu.Unlock()
	select {
	case m.rescan <- struct{}{}:
	default:
	}
}

// Reloaded notes whether the settings could be read.
func (m *Monitor) Reloaded(good bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reloadOK = good
	if good {
		m.reloaded = time.Now()
	}
}

// close reads the logs to their end, within bounds, and saves.
func (m *Monitor) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	m.mu.Lock()
	for _, s := range m.servers {
		for _, st := range s.streams {
			st.halt()
			st.follower.Drain(ctx, time.Now())
		}
	}
	m.mu.Unlock()
	m.stopShip()
	last, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	m.tick(last, time.Now(), true)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.servers {
		s.closeWatches()
		for _, st := range s.streams {
			st.close()
		}
	}
	if m.lost != "" {
		return fmt.Errorf("stopped without a saved state: %s", m.lost)
	}
	return nil
}
