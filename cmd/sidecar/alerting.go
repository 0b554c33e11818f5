package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/notify"
	"github.com/jvm-sidecar/sidecar/rules"
)

// alerting is the engine and who is told. Both are nil with engine: off, when
// nothing of them was ever made, and where the engine finds no folder.
type alerting struct {
	engine *engine.Engine
	stop   context.CancelFunc
	ended  sync.WaitGroup
	log    *slog.Logger

	mu       sync.RWMutex // guards the notifier, which a reload makes anew
	notifier *notify.Notifier
	told     *metric.Set // the figures of all notifiers there were
	url      string

	dumps atomic.Pointer[alertDumps] // nil until there is a monitor
}

func (d *daemon) startAlerting(cfg *collectors.Config, log *slog.Logger) (*alerting, error) {
	a := &alerting{log: log, told: metric.NewSet()}
	if cfg.Engine.Off() {
		return a, nil
	}
	instance := d.instance()
	a.url = "http://" + instance
	var err error
	a.notifier, err = notify.New(cfg.Notify, a.url, a.told, log)
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	a.engine, err = engine.Open(cfg.Engine, engine.Options{
		Dir: filepath.Join(d.storage, "engine"), Job: "sidecar", Instance: instance, Pack: rules.Files,
		Start: time.Now(), ExternalURL: a.url, Notify: a.send, Log: log,
	})
	if errors.Is(err, engine.ErrNoFolder) {
		// Figures without alerts are better than neither.
		a.notifier.Close()
		log.Error("engine: there is no history, no alert and no query until a restart", "err", err)
		return &alerting{log: log, told: a.told}, nil
	}
	if err != nil {
		a.notifier.Close()
		return nil, fmt.Errorf("engine: %w", err)
	}
	// The engine's time is now that of the newest sample that an earlier run left.
	gone := time.Since(a.engine.Now()) > cfg.Engine.Outage
	if err := a.notifier.Remember(filepath.Join(d.storage, "told.json"), gone, time.Now()); err != nil {
		log.Warn("what was told before is not known: it may be told again", "err", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.ended.Add(1)
	go func() { defer a.ended.Done(); a.engine.Run(ctx) }()
	return a, nil
}

// instance is what a Prometheus that scrapes this sidecar would most likely
// call it: the host's name and the port.
func (d *daemon) instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	for _, address := range *d.web.WebListenAddresses {
		if h, port, err := net.SplitHostPort(address); err == nil {
			if ip := net.ParseIP(h); h != "" && (ip == nil || !ip.IsUnspecified()) {
				host = h
			}
			return net.JoinHostPort(host, port)
		}
	}
	return host
}

func (a *alerting) send(alerts []engine.Alert) {
	out := make([]notify.Alert, len(alerts))
	for i, one := range alerts {
		out[i] = notify.Alert(one)
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.notifier.Send(out)
	if d := a.dumps.Load(); d != nil {
		d.see(alerts)
	}
}

// sets are the figures that go into the snapshot with the others.
func (a *alerting) sets() []*metric.Set {
	if a.engine == nil {
		return nil
	}
	return []*metric.Set{a.engine.Set, a.told}
}

func (a *alerting) take(snap *metric.Snapshot) {
	if a.engine != nil {
		a.engine.Offer(snap)
	}
}

func (a *alerting) api() http.Handler {
	if a.engine == nil {
		return nil
	}
	return a.engine.Handler()
}

// reload puts other rules and receivers in force. Turning the engine on or off
// takes a restart, and so does what its store may keep.
func (a *alerting) reload(cfg *collectors.Config) error {
	if cfg.Engine.Off() != (a.engine == nil) {
		a.log.Warn("engine: on and off take effect at the next start")
	}
	if a.engine == nil {
		return nil
	}
	next, err := notify.New(cfg.Notify, a.url, a.told, a.log)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if err := a.engine.Reload(cfg.Engine); err != nil {
		next.Close()
		return fmt.Errorf("engine: %w", err)
	}
	a.mu.Lock()
	old := a.notifier
	next.Follow(old)
	a.notifier = next
	a.mu.Unlock()
	old.Close()
	return nil
}

func (a *alerting) close() {
	if a.engine == nil {
		return
	}
	a.stop()
	a.ended.Wait()
	if err := a.engine.Close(); err != nil {
		a.log.Error("the engine's samples may not all be kept", "err", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notifier.Close()
}
