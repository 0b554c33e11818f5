package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/engine"
)

// dumpAnnotation on an alert's rule asks for a thread dump of its target when it
// begins to fire: what the threads do is gone when somebody comes to look.
const dumpAnnotation = "thread_dump"

// alertDumps takes one dump for each firing alert that asks for it. They are
// kept by keep, which bounds their number and size.
type alertDumps struct {
	keep func(ctx context.Context, server, alert string, now time.Time) (string, error)
	log  *slog.Logger

	mu    sync.Mutex
	taken map[string]time.Time // by alert and target: since when it was active
	busy  bool
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
		}
		d.taken[key], d.busy = a.ActiveAt, true
		go d.take(server, name)
	}
}

func (d *alertDumps) take(server, alert string) {
	defer func() {
		d.mu.Lock()
		d.busy = false
		d.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	path, err := d.keep(ctx, server, alert, time.Now())
	if errors.Is(err, attach.TooSoon) { // the room's own dump was a moment ago
		time.Sleep(2 * attach.MinInterval)
		path, err = d.keep(ctx, server, alert, time.Now())
	}
	if err != nil {
		d.log.Warn("no thread dump for an alert that asks for one", "alert", alert, "target", server, "err", err)
		return
	}
	d.log.Info("thread dump kept", "alert", alert, "target", server, "file", path)
}
