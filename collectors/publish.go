package collectors

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// tick polls, saves, gathers and publishes, in this order: a snapshot is
// published only after a checkpoint with its counters and positions is
// written, so that no counter falls across a restart, kill -9 included. Where
// no checkpoint can be written (a full disk), it is published all the same and
// says so.
func (m *Monitor) tick(ctx context.Context, now time.Time, sync bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := time.Now()
	servers := m.sorted()
	watches := []*watch{m.host}
	for _, s := range servers {
		s.tellServed()
		s.tellDied()
		watches = append(watches, s.watches...)
	}
	pollAll(ctx, watches, now)

	g := m.gathering
	ready := m.scanned
	for _, s := range servers {
		s.pair.tick(now)
		dark := dark(s.streams)
		for _, st := range s.streams {
			state, caughtUp, err := st.publish(g, dark[st.room])
			if err != nil {
				m.log.Error("BUG: a stream's state can't be saved", "stream", st.key, "err", err)
				continue
			}
			m.states[st.key] = state
			ready = ready && caughtUp
		}
		m.keepWatches(s)
		for _, w := range s.watches {
			w.set.Lock()
			g.Add(w.set)
			w.set.Unlock()
		}
		m.judge(s, now)
		s.write()
		s.set.Lock()
		g.Add(s.set)
		s.set.Unlock()
	}
	m.host.set.Lock()
	g.Add(m.host.set)
	m.host.set.Unlock()
	m.saveShip()
	m.writeCheckpoint(now, sync)
	m.writeOwn(g, servers, began)
	m.status.Store(m.describe(servers, ready, now))
	for _, set := range m.options.Sets {
		set.Lock()
		g.Add(set)
		set.Unlock()
	}
	snap := g.Snapshot(now)
	m.snapshot.Store(snap)
	if m.options.Published != nil {
		m.options.Published(snap)
	}
}

// sorted are the servers in the order of their names.
func (m *Monitor) sorted() []*server {
	out := make([]*server, 0, len(m.servers))
	for _, s := range m.servers {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *server) int { return strings.Compare(a.name(), b.name()) })
	return out
}

func (m *Monitor) writeCheckpoint(now time.Time, sync bool) {
	self, _ := json.Marshal(savedSelf{FirstStart: m.first})
	m.states[selfKey] = follow.Saved{Observer: self}
	targets, err := m.registry.Save()
	if err == nil {
		m.states[targetsKey] = follow.Saved{Observer: targets}
		err = m.checkpoint.Write(m.states, now, sync)
	}
	switch {
	case err != nil && m.lost == "":
		m.log.Error("the checkpoint can't be written; figures go on, but after a restart counting would begin at 0", "err", err)
	case err == nil && m.lost != "":
		m.log.Info("the checkpoint can be written again")
	}
	if m.lost = ""; err != nil {
		m.lost = err.Error()
	}
}

// writeOwn adds what the sidecar says of itself.
func (m *Monitor) writeOwn(g *metric.Gathering, servers []*server, began time.Time) {
	refused := map[string]float64{}
	count := func(set *metric.Set) {
		set.Lock()
		set.Refused(func(f *metric.Family, n float64) { refused[f.Name] += n })
		set.Unlock()
	}
	for _, s := range servers {
		for _, st := range s.streams {
			count(st.set)
		}
		for _, w := range s.watches {
			count(w.set)
		}
	}
	o := m.own
	o.Lock()
	defer o.Unlock()
	o.Begin()
	o.Gauge(buildInfo, m.options.Version, runtime.Version()).Set(1)
	o.Gauge(stale).Set(truth(m.lost != ""))
	o.Gauge(reloadOK).Set(truth(m.reloadOK))
	o.Gauge(reloadAt).Set(float64(m.reloaded.UnixMilli()) / 1000)
	for _, b := range m.blind {
		o.Gauge(sourceBlind, b.Source, b.Reason).Set(1)
	}
	for name, n := range refused {
		o.Counter(seriesRefused, name).Set(n)
	}
	m.self.write(o)
	o.Gauge(tickSeconds).Set(time.Since(began).Seconds())
	o.Sweep()
	g.Add(o)
	m.shipped.Lock()
	g.Add(m.shipped)
	m.shipped.Unlock()
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
	if m.scanErr != "" {
		out.Problems = append(out.Problems, "The machine can't be looked at: "+m.scanErr)
	}
	for _, b := range m.blind {
		out.Problems = append(out.Problems, b.Detail+". What would help: "+b.Needs+".")
	}
	for _, s := range servers {
		v := status.Server{Target: s.target, Up: s.entry.Up, Findings: s.findings}
		if v.Target == nil {
			v.Target = &target.Target{Name: s.name(), Kind: s.entry.Kind}
		}
		for _, w := range s.watches {
			v.Sources = append(v.Sources, w.describe(m.inForce))
		}
		for _, st := range s.streams {
			v.Sources = append(v.Sources, st.describe(m.inForce))
		}
		out.Targets = append(out.Targets, v)
	}
	return out
}
