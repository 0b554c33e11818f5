package collectors

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// The words behind the numbers: what a room has chosen of its lines goes to
// internal/ship here. Rooms don't know ship, and ship knows no room; each room
// says what it knows of a line to a listener of its own, and where nothing is
// shipped there is none.

const shipKey = "ship"

// configureShip starts, changes or ends the shipping. A shipper that can't be
// made (a certificate that can't be read) is no reason to see nothing.
func (m *Monitor) configureShip(cfg ship.Config) {
	if cfg.SpoolDir == "" {
		cfg.SpoolDir = m.options.Storage + "/ship"
	}
	switch {
	case !cfg.On() && m.ship != nil:
		m.ship.Stop(context.Background()) // bounded by its own settings
		m.saveShip()
		m.ship = nil
	case !cfg.On():
	case m.ship != nil:
		if err := m.ship.Configure(cfg); err != nil {
			m.log.Error("the new settings of loki are not in force", "err", err)
		}
	default:
		s, err := ship.New(cfg, m.log)
		if err != nil {
			m.log.Error("no lines are shipped", "err", err)
			return
		}
		if saved, ok := m.states[shipKey]; ok {
			if err := s.Load(saved.Observer); err != nil {
				m.log.Warn("the saved figures of ship are of no use, they start anew", "err", err)
			}
		}
		m.ship = s
	}
}

// stopShip hands over what is open and stops the shipper, within the bound of
// its settings.
func (m *Monitor) stopShip() {
	m.mu.Lock()
	s := m.ship
	for _, server := range m.servers {
		for _, st := range server.streams {
			st.hush()
		}
	}
	m.mu.Unlock()
	if s != nil {
		s.Stop(context.Background())
	}
}

// hush hands over a record that is being taken: it will not be whole any more.
func (s *stream) hush() {
	if o, ok := s.observer.(interface{ TellOpen() }); ok && s.tap != nil {
		s.set.Lock()
		defer s.set.Unlock()
		o.TellOpen()
		s.saved = follow.Saved{} // in which it may still be open: it would be told again
	}
}

// saveShip puts the shipper's figures into the checkpoint, and into the Set that
// is published after it.
//
// They are of one instant with the places in the logs. A line that was read after
// its log's place was saved, and chosen before the figures were, would be in the
// figures and be read again after kill -9: selected twice, and at Loki twice, since
// the times that were given out by then are saved here, too.
func (m *Monitor) saveShip() {
	m.shipped.Lock()
	defer m.shipped.Unlock()
	m.shipped.Begin()
	defer m.shipped.Sweep()
	if m.ship == nil {
		return
	}
	// Nobody else ever holds two of these locks, so their order does not matter.
	for _, server := range m.servers {
		for _, st := range server.streams {
			if st.tap == nil {
				continue
			}
			st.set.Lock()
			defer st.set.Unlock()
			if !st.moved() {
				continue
			}
			state, err := st.stateLocked()
			if err != nil {
				m.log.Error("BUG: a stream's state can't be saved", "stream", st.key, "err", err)
				continue
			}
			m.states[st.key] = state
		}
	}
	if state, err := m.ship.Save(m.shipped); err == nil {
		m.states[shipKey] = follow.Saved{Observer: state}
	}
}

// levelOf folds the words of all layouts to those that Loki's users know.
func levelOf(l applog.Level) string {
	switch {
	case l == applog.None:
		return ""
	case l <= applog.Finer:
		return "TRACE"
	case l <= applog.Conf:
		return "DEBUG"
	case l == applog.Info:
		return "INFO"
	case l <= applog.Warn:
		return "WARN"
	case l <= applog.Error:
		return "ERROR"
	}
	return "FATAL"
}

// hearApp ships what is chosen of an application log. A copy has nothing of its
// own to say.
func (m *Monitor) hearApp(st *stream, t *target.Target, o *applog.Observer) {
	if m.ship == nil || st.role == applog.Copy {
		return
	}
	choice := m.cfg.Loki.Choice("applog")
	tap := m.ship.Tap(t.Name, "applog", st.log.Name)
	st.tap = tap
	o.Listen(applog.Listener{
		Wanted: func(l applog.Level, event string) bool { return choice.Record(levelOf(l), event) },
		Match:  choice.Match,
		Gate: func(l applog.Level, pattern string) func() bool {
			return tap.Gate(levelOf(l), pattern).Pass
		},
		Record: func(r *applog.Told) {
			level := levelOf(r.Level)
			tap.Offer(tap.Gate(level, r.Pattern), &ship.Entry{
				Level: level, Event: r.Event, At: inZone(r.At, time.Now()), Line: r.Text,
				Pattern: r.Pattern, Logger: r.Logger, Thread: string(r.Thread), Trace: traceOf(r.Text),
			})
		},
	})
}

// named is a trace's id where a record names it: traceId=…, "trace.id":"…",
// [dd.trace_id: …], traceparent=00-…-01.
var named = regexp.MustCompile(`(?i)(?:trace[-_.]?id["']?\s*[=:]\s*["'\[]?|traceparent["']?\s*[=:]\s*["']?00-)([0-9a-f]{16,32}|[0-9]{15,20})\b`)

// traceOf is the trace's id in the first line of a record, or "". It is looked for
// in lines that are shipped, and in no others.
func traceOf(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	if m := named.FindSubmatch(text[:min(len(text), 4096)]); m != nil {
		return string(m[1])
	}
	return ""
}

// inZone turns a clock reading without a zone, given in milliseconds as if it
// were UTC, into Unix nanoseconds. The server's zone may be ours or UTC (a
// container); of the two instants the one nearer to now is taken, since lines
// are read as they are written.
func inZone(ms int64, now time.Time) int64 {
	if ms == 0 {
		return 0
	}
	utc := time.UnixMilli(ms).UTC()
	local := time.Date(utc.Year(), utc.Month(), utc.Day(), utc.Hour(), utc.Minute(), utc.Second(), utc.Nanosecond(), now.Location())
	if now.Sub(utc).Abs() < now.Sub(local).Abs() {
		return utc.UnixNano()
	}
	return local.UnixNano()
}

// hearAccess ships failed and slow requests.
func (m *Monitor) hearAccess(st *stream, t *target.Target, o *accesslog.Observer) {
	choice := m.cfg.Loki.Choice("accesslog")
	if m.ship == nil || !choice.Any() {
		return
	}
	tap := m.ship.Tap(t.Name, "accesslog", st.log.Name)
	st.tap = tap
	// The patterns of an access log are few: what happened, and the status.
	type kind struct {
		event  string
		status int
	}
	gates := map[kind]*ship.Gate{}
	o.Listen(accesslog.Listener{
		Status: choice.Status, Slow: choice.Slow.Seconds(), Match: choice.Match,
		Told: func(r *accesslog.Told) {
			k := kind{r.Event, r.Status}
			level := ""
			switch {
			case r.Event == accesslog.EventFailed && r.Status >= 500:
				level = "ERROR"
			case r.Event == accesslog.EventFailed || r.Event == accesslog.EventSlow:
				level = "WARN"
			}
			g := gates[k]
			if g == nil {
				g = tap.Gate(level, fmt.Sprintf("%s %d", r.Event, r.Status))
				if len(gates) < 1000 {
					gates[k] = g
				}
			}
			if g.Pass() {
				tap.Offer(g, &ship.Entry{Level: level, Event: r.Event, At: r.At * 1e6, Line: r.Line, Thread: string(r.Thread), Trace: string(r.Trace)})
			}
		},
	})
}

// hearGC ships long pauses and failures of the collector.
func (m *Monitor) hearGC(st *stream, t *target.Target, o *gclog.Observer) {
	choice := m.cfg.Loki.Choice("gclog")
	if m.ship == nil || !choice.Any() {
		return
	}
	tap := m.ship.Tap(t.Name, "gclog", st.log.Name)
	st.tap = tap
	o.Listen(gclog.Listener{
		Pause: choice.GCPause.Seconds(), Failures: choice.GCPause > 0,
		Started: float64(t.Process.Started.UnixMilli()) / 1000,
		Match:   choice.Match,
		Told: func(e *gclog.Told) {
			level := "WARN"
			if e.Failure {
				level = "ERROR"
			}
			g := tap.Gate(level, e.Pattern)
			if g.Pass() {
				tap.Offer(g, &ship.Entry{Level: level, Event: e.Event, At: e.At, Line: e.Line, Pattern: e.Pattern})
			}
		},
	})
}
