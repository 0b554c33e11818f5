package collectors

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// A server is one target with its sources at work. Pollers belong to the
// process and end with it; streams belong to the pathnames and outlive a
// restart, because a log goes on where the process did not.
type server struct {
	target  *target.Target
	up      bool
	watches []*watch
	streams []*stream
	// broken are sources that could not be set up, for the page.
	broken []target.Blind
}

// process is the identity of the process the pollers look at.
func (s *server) process() (int, uint64) { return s.target.Process.PID, s.target.Process.StartTicks }

// blind is all that can't be seen of this server.
func (s *server) blind() []target.Blind {
	out := append([]target.Blind(nil), s.target.Blind...)
	out = append(out, s.broken...)
	for _, w := range s.watches {
		if w.blind != nil {
			out = append(out, w.blind()...)
		}
	}
	return out
}

// sourcesUp says for each room whether its last look worked. With several
// streams of one room, each has to.
func (s *server) sourcesUp() map[string]bool {
	out := map[string]bool{}
	add := func(room string, f *failure) {
		up, known := out[room]
		out[room] = f == nil && (up || !known)
	}
	for _, w := range s.watches {
		add(w.room, w.failure.Load())
	}
	for _, st := range s.streams {
		add(st.room, st.failure.Load())
	}
	return out
}

// update brings the server in line with what a scan has found: new pollers for
// a new process, streams for logs that were not known, an end to those that
// are gone from the settings.
func (m *Monitor) update(ctx context.Context, s *server, seen target.Seen) {
	old := s.target
	s.target, s.up = seen.Target, seen.Up
	switch {
	case !s.up:
		s.closeWatches()
	case old == nil || old.Process.PID != s.target.Process.PID || old.Process.StartTicks != s.target.Process.StartTicks || len(s.watches) == 0:
		s.closeWatches()
		m.addWatches(s)
	case old != s.target:
		// The settings changed under a living process.
		s.closeWatches()
		m.addWatches(s)
	}
	if old != s.target {
		m.updateStreams(ctx, s)
	}
}

func (s *server) closeWatches() {
	for _, w := range s.watches {
		if c, ok := w.poller.(interface{ Close() error }); ok {
			c.Close()
		}
	}
	s.watches = nil
}

// wanted is a stream that should be.
type wanted struct {
	room string
	log  target.LogFile
	from follow.From
	make func(st *stream) error // makes observer and explain
}

// updateStreams starts what is new and ends what is gone.
func (m *Monitor) updateStreams(ctx context.Context, s *server) {
	want := m.wantedStreams(s)
	keep := map[string]bool{}
	s.broken = nil
	for _, w := range want {
		key := s.target.Name + "/" + w.room + "/" + w.log.Name
		if keep[key] {
			// Two logs of one name in two folders: both are followed.
			key += "@" + filepath.Dir(w.log.Path+w.log.Dir)
		}
		keep[key] = true
		if st := s.stream(key); st != nil {
			if st.spec == specOf(w.log) {
				continue
			}
			m.endStream(s, st)
		}
		if err := m.startStream(ctx, s, key, w); err != nil {
			s.broken = append(s.broken, target.Blind{Source: w.room, Reason: "not_followed", Detail: fmt.Sprintf("%s: %v", w.log.Name, err)})
			m.log.Warn("a log is not followed", "target", s.target.Name, "log", w.log.Name, "err", err)
		}
	}
	for _, st := range append([]*stream(nil), s.streams...) {
		if !keep[st.key] {
			m.endStream(s, st)
		}
	}
}

func (s *server) stream(key string) *stream {
	for _, st := range s.streams {
		if st.key == key {
			return st
		}
	}
	return nil
}

// specOf is what makes two streams the same.
func specOf(f target.LogFile) string { return f.Path + "\x00" + f.Dir + "\x00" + f.Match }

// startStream makes a stream, puts its saved state in force and starts it.
func (m *Monitor) startStream(ctx context.Context, s *server, key string, w wanted) error {
	pattern, err := w.log.Pattern()
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	st := &stream{key: key, room: w.room, file: w.log.Name, spec: specOf(w.log)}
	if err := w.make(st); err != nil {
		return err
	}
	spec := follow.Spec{
		Name: w.log.Name, Path: w.log.Path, Dir: w.log.Dir, Pattern: pattern,
		From: w.from, BornAfter: m.states.FirstStart, Lock: st.set,
		LagBytes: m.cfg.Limits.Lag.Bytes, LagAge: m.cfg.Limits.Lag.Age,
	}
	if w.room == "gclog" {
		spec.Since = s.target.Process.Started.Add(-time.Second)
	}
	st.follower = follow.New(spec, st.observer)
	if saved, ok := m.states.Streams[key]; ok {
		if err := st.load(saved); err != nil {
			// Anew, with everything fresh: half a state is worse than none.
			m.log.Warn("a stream's saved state is of no use, it starts anew", "stream", key, "err", err)
			delete(m.states.Streams, key)
			return m.startStream(ctx, s, key, w)
		}
	}
	s.streams = append(s.streams, st)
	st.start(ctx, m.budget)
	return nil
}

// endStream stops a stream and keeps its last state for its return.
func (m *Monitor) endStream(s *server, st *stream) {
	st.end()
	if state, err := st.saveState(time.Now()); err == nil {
		m.states.Streams[st.key] = state
	}
	for i, x := range s.streams {
		if x == st {
			s.streams = append(s.streams[:i:i], s.streams[i+1:]...)
			break
		}
	}
}
