package collectors

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// saved is the whole checkpoint.
type saved struct {
	// FirstStart is when a sidecar first ran with this storage path. A log that
	// was made after it is read from its start, an older one from its end.
	FirstStart time.Time                  `json:"first_start"`
	Targets    json.RawMessage            `json:"targets,omitempty"`
	Streams    map[string]savedStream     `json:"streams"`
	Pollers    map[string]json.RawMessage `json:"pollers,omitempty"`
}

// forgetAfter is how long the state of a stream is kept whose target is gone.
const forgetAfter = 24 * time.Hour

// tick polls, saves, gathers and publishes, in this order: a snapshot is
// published only after a checkpoint with its counters and positions is
// written, so that no counter falls across a restart, kill -9 included. Where
// no checkpoint can be written (a full disk), it is published all the same and
// says so.
func (m *Monitor) tick(ctx context.Context, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := time.Now()
	servers := m.sorted()
	var watches []*watch
	for _, s := range servers {
		watches = append(watches, s.watches...)
	}
	pollAll(ctx, watches, now)

	g := metric.NewGathering()
	ready := m.scanned
	for _, s := range servers {
		for _, st := range s.streams {
			state, err := st.save(g, now)
			if err != nil {
				m.log.Error("BUG: a stream's state can't be saved", "stream", st.key, "err", err)
				continue
			}
			m.states.Streams[st.key] = state
			st.set.Lock()
			ready = ready && st.follower.CaughtUp()
			st.set.Unlock()
		}
		for _, w := range s.watches {
			w.set.Lock()
			g.Add(w.set)
			if state, err := w.save(); err != nil {
				m.log.Error("BUG: a poller's state can't be saved", "target", s.target.Name, "room", w.room, "err", err)
			} else if state != nil {
				m.states.Pollers[s.target.Name+"/"+w.room] = state
			}
			w.set.Unlock()
		}
	}
	m.writeCheckpoint(now)
	m.writeOwn(g, servers, began, now)
	snap := g.Snapshot(now)
	m.addGrowthShare(snap)
	m.status.Store(m.describe(servers, ready, now))
	m.snapshot.Store(snap)
}

// sorted are the servers in the order of their names.
func (m *Monitor) sorted() []*server {
	out := make([]*server, 0, len(m.servers))
	for _, s := range m.servers {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *server) int { return strings.Compare(a.target.Name, b.target.Name) })
	return out
}

func (m *Monitor) writeCheckpoint(now time.Time) {
	for key, s := range m.states.Streams {
		if now.Sub(s.At) > forgetAfter {
			delete(m.states.Streams, key)
		}
	}
	m.tracker.Lock()
	targets, err := m.tracker.Save()
	m.tracker.Unlock()
	if err == nil {
		m.states.Targets = targets
		err = m.checkpoint.Write(m.states, now)
	}
	switch {
	case err != nil && m.lost == "":
		m.lost = err.Error()
		m.log.Error("the checkpoint can't be written; figures go on, but a restart would count from the last one", "err", err)
	case err == nil && m.lost != "":
		m.lost = ""
		m.log.Info("the checkpoint can be written again")
	}
}

// writeOwn adds what the sidecar says of itself and of its view.
func (m *Monitor) writeOwn(g *metric.Gathering, servers []*server, began, now time.Time) {
	o := m.own
	o.Lock()
	defer o.Unlock()
	o.Begin()
	o.Gauge(buildInfo, m.options.Version, goVersion).Set(1)
	o.Gauge(stale).Set(truth(m.lost != ""))
	o.Gauge(reloadGood).Set(truth(m.reloadGood))
	o.Gauge(reloadAt).Set(float64(m.reloadedAt.UnixMilli()) / 1000)
	refused := map[string]float64{}
	count := func(f *metric.Family, n float64) { refused[f.Name] += n }
	for _, s := range servers {
		for source, up := range s.sourcesUp() {
			o.Gauge(sourceUp, s.target.Name, source).Set(truth(up))
		}
		for _, b := range s.blind() {
			o.Gauge(sourceBlind, s.target.Name, b.Source, b.Reason).Set(1)
		}
		for _, st := range s.streams {
			st.set.Lock()
			st.set.Refused(count)
			st.set.Unlock()
		}
		for _, w := range s.watches {
			if errs := w.errors.Load(); errs != nil {
				for reason, n := range *errs {
					o.Counter(sourceErrors, s.target.Name, w.room, reason).Set(n)
				}
			}
			w.set.Lock()
			w.set.Refused(count)
			w.set.Unlock()
		}
	}
	for name, n := range refused {
		o.Counter(seriesRefused, name).Set(n)
	}
	m.self.write(o)
	o.Gauge(tickSeconds).Set(time.Since(began).Seconds())
	o.Sweep()
	g.Add(o)
	m.tracker.Lock()
	m.tracker.Write(now)
	g.AddTargets(m.tracker)
	m.tracker.Unlock()
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// describe is the status that goes with the snapshot.
func (m *Monitor) describe(servers []*server, ready bool, now time.Time) *status.Status {
	out := &status.Status{At: now, Started: m.started, Version: m.options.Version, Ready: ready}
	if m.lost != "" {
		out.Problems = append(out.Problems, "The checkpoint can't be written: "+m.lost)
	}
	for _, s := range servers {
		v := status.Server{Target: s.target, Up: s.up}
		for _, w := range s.watches {
			v.Sources = append(v.Sources, w.state())
		}
		for _, st := range s.streams {
			v.Sources = append(v.Sources, st.state())
		}
		out.Targets = append(out.Targets, v)
	}
	return out
}
