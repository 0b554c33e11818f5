package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/engine"
)

// dumpAnnotation on an alert's rule asks for a thread dump of its target when it
// begins to fire: what the threads do is gone when somebody comes to look.
const dumpAnnotation = "thread_dump"

// dumpPause is the least time between two dumps of one server for alerts. What
// goes wrong makes several alerts fire within seconds, and an alert that comes
// and goes would ask each time: one dump stands for all of them, since the JVM
// stands still for each.
const dumpPause = time.Minute

// alertDumps takes a dump for a firing alert that asks for it. They are kept by
// keep, which bounds their number and size.
type alertDumps struct {
	keep func(ctx context.Context, server, alert string, now time.Time) (string, error)
	log  *slog.Logger

	mu    sync.Mutex
	taken map[string]time.Time // by alert and target: since when it was active
	last  map[string]time.Time // by target: when its last dump was kept
	busy  bool
	off   bool // it was said that none is taken
}

func newAlertDumps(m *collectors.Monitor, log *slog.Logger) *alertDumps {
	return &alertDumps{keep: m.KeepDump, log: log, taken: map[string]time.Time{}, last: map[string]time.Time{}}
}

// see takes what the engine says of alerts, which it repeats while they fire.
func (d *alertDumps) see(alerts []engine.Alert) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range alerts {
		server, name := a.Labels["target"], a.Labels["alertname"]
		key := name + "\x00" + server
		switch {
		case a.Annotations[dumpAnnotation] != "on" || server == "" || !a.ResolvedAt.IsZero():
			continue
		case d.taken[key].Equal(a.ActiveAt) && !a.ActiveAt.IsZero(), d.busy:
			continue // taken; or another is being taken, and the engine will say it again
		}
		if len(d.taken) > 1000 {
			clear(d.taken)
			clear(d.last)
		}
		d.taken[key] = a.ActiveAt
		if last, ok := d.last[server]; ok && time.Since(last) < dumpPause {
			d.log.Info("the thread dump of a moment ago stands for this alert too", "alert", name, "target", server)
			continue
		}
		d.busy = true
		go d.take(server, name)
	}
}

func (d *alertDumps) take(server, alert string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	path, err := d.keep(ctx, server, alert, time.Now())
	if errors.Is(err, attach.TooSoon) { // the room's own dump was a moment ago
		time.Sleep(2 * attach.MinInterval)
		path, err = d.keep(ctx, server, alert, time.Now())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = false
	switch {
	case errors.Is(err, collectors.ErrAttachOff):
		// The usual case: shipped alerts ask, and nobody allowed it. Said once.
		if !d.off {
			d.log.Info("alerts that ask for a thread dump get none, since jvm.attach is off", "alert", alert, "target", server)
		}
		d.off = true
		return
	case err != nil:
		d.log.Warn("no thread dump for an alert that asks for one", "alert", alert, "target", server, "err", err)
		return
	}
	d.last[server], d.off = time.Now(), false
	d.log.Info("thread dump kept", "alert", alert, "target", server, "file", path)
}
