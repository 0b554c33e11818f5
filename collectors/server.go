package collectors

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// A server is one target with its sources at work. Pollers belong to the
// process and end with it; streams belong to the pathnames and outlive a
// restart, because a log goes on where the process did not.
type server struct {
	entry  *target.Entry
	target *target.Target // the last that was seen; nil until then
	// seen is the same for the goroutines of the streams, which open the
	// target's files.
	seen    atomic.Pointer[target.Target]
	set     *metric.Set // target_*, connector_* and what is said of its sources
	watches []*watch
	streams []*stream
	// broken are sources that could not be set up.
	broken []target.Blind
	pair   pairing
	blame  blamer
	// findings are the settings that will hurt, as last judged.
	findings []target.Finding
	judged   time.Time
}

func newServer(e *target.Entry) *server {
	return &server{entry: e, set: metric.ForTarget(e.Name)}
}

// name is the target's.
func (s *server) name() string { return s.entry.Name }

// blind is all that can't be seen of this server.
func (s *server) blind() []target.Blind {
	var out []target.Blind
	if s.target != nil && s.entry.Up {
		out = append(out, s.target.Blind...)
	}
	out = append(out, s.broken...)
	for _, w := range s.watches {
		if w.blind != nil {
			out = append(out, w.blind()...)
		}
	}
	for _, st := range s.streams {
		out = append(out, st.blind()...)
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

// write puts down what is known of the server and of the sources.
func (s *server) write() {
	s.blame.note(s.streams)
	s.set.Lock()
	defer s.set.Unlock()
	s.set.Begin()
	s.entry.WriteTo(s.set)
	if s.entry.Up {
		target.WriteFindings(s.set, s.findings)
	}
	for source, up := range s.sourcesUp() {
		s.set.Gauge(sourceUp, source).Set(truth(up))
	}
	for _, b := range s.blind() {
		s.set.Gauge(sourceBlind, b.Source, b.Reason).Set(1)
	}
	for _, w := range s.watches {
		if errs := w.errors.Load(); errs != nil {
			for reason, n := range *errs {
				s.set.Counter(sourceErrors, w.room, reason).Set(n)
			}
		}
	}
	for _, st := range s.streams {
		if n := st.bugs.Load(); n > 0 {
			s.set.Counter(sourceErrors, st.room, "bug").Add(float64(n))
		}
	}
	s.blame.write(s.set)
	s.set.Sweep()
}

// update brings the server in line with what a scan has found: new pollers for
// a new process, streams for logs that were not known, an end to those that
// are gone from the settings.
func (m *Monitor) update(ctx context.Context, s *server) {
	old := s.target
	if s.entry.Target != nil {
		s.target = s.entry.Target
		s.seen.Store(s.target)
	}
	if !s.entry.Up {
		m.keepWatches(s)
		stay := slices.DeleteFunc(slices.Clone(s.watches), func(w *watch) bool { return !w.stays })
		s.watches = slices.DeleteFunc(s.watches, func(w *watch) bool { return w.stays })
		s.closeWatches()
		s.watches = stay
		return
	}
	if old == s.target && len(s.watches) == len(pollers) {
		return
	}
	m.updateStreams(ctx, s)
	s.pair.join(s.streams)
	if len(s.watches) == len(pollers) && reflect.DeepEqual(polled(old), polled(s.target)) {
		return
	}
	// Another process, or other settings under a living one.
	m.keepWatches(s)
	s.closeWatches()
	s.judged = time.Time{}
	for _, p := range pollers {
		w := p.make(m, s.target)
		w.room = p.room
		if state, ok := m.states[w.key(s)]; ok {
			if sv, ok := w.poller.(saver); ok {
				if err := sv.Load(state.Observer); err != nil {
					m.log.Warn("a poller's saved state is of no use, it starts anew", "poller", w.key(s), "err", err)
				}
			}
		}
		s.watches = append(s.watches, w)
	}
}

// polled is what pollers are made of. A scan that learns something else of the
// same process (a port that listens now, one more log) leaves them alone: their
// last sample is what the next share is worked out from.
func polled(t *target.Target) any {
	connectors := slices.Clone(t.Connectors)
	for i := range connectors {
		connectors[i].Listening = false
	}
	return []any{t.Process, t.Kind, t.Version, t.JDK, t.Base, t.HeapDump, t.PerfData, connectors, t.Executors, logDirs(t)}
}

// keepWatches saves the state of pollers that have one, for the checkpoint and
// for their successors. One that is still in a call is left alone: its state of
// the last tick stands.
func (m *Monitor) keepWatches(s *server) {
	for _, w := range s.watches {
		if w.busy.Load() {
			continue
		}
		if sv, ok := w.poller.(saver); ok {
			w.set.Lock()
			state, err := sv.Save()
			w.set.Unlock()
			if err == nil {
				m.states[w.key(s)] = follow.Saved{Observer: state}
			}
		}
	}
}

func (s *server) closeWatches() {
	for _, w := range s.watches {
		if c, ok := w.poller.(interface{ Close() error }); ok && !w.busy.Load() {
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
	// again says that another stream follows the same file and keeps its ledger.
	again bool
	// make gives the stream its Set, its observer and what it has to say.
	make func(st *stream) error
}

// updateStreams starts what is new and ends what is gone.
func (m *Monitor) updateStreams(ctx context.Context, s *server) {
	keep := map[string]bool{}
	before := s.broken
	s.broken = nil
	for _, l := range logs {
		for _, w := range l.want(m, s.target) {
			w.room = l.room
			key := s.name() + "/" + w.room + "/" + w.log.Name
			if keep[key] {
				key += "@" + w.log.Folder() // one name in two folders
			}
			keep[key] = true
			if err := m.ensureStream(ctx, s, key, w); err != nil {
				b := target.Blind{Source: w.room, Reason: "not_followed", Detail: fmt.Sprintf("%s is not followed: %v", w.log.Name, err)}
				s.broken = append(s.broken, b)
				if slices.Contains(before, b) {
					continue // said already; this comes by with each scan
				}
				m.log.Warn("a log is not followed", "target", s.name(), "log", w.log.Name, "err", err)
			}
		}
	}
	for _, st := range append([]*stream(nil), s.streams...) {
		if !keep[st.key] {
			m.endStream(s, st)
		}
	}
}

// ensureStream leaves a stream alone that is as it should be, and makes it
// anew where the log's place or form has changed.
func (m *Monitor) ensureStream(ctx context.Context, s *server, key string, w wanted) error {
	if st := s.stream(key); st != nil {
		if st.log == w.log && st.root == rootOf(s.target) {
			return nil
		}
		m.endStream(s, st)
	}
	st, err := m.newStream(s, key, w)
	if err != nil {
		return err
	}
	if saved, ok := m.states[key]; ok {
		if err := st.load(saved); err != nil {
			// Anew, with everything fresh: half a state is worse than none.
			m.log.Warn("a stream's saved state is of no use, it starts anew", "stream", key, "err", err)
			st.close()
			if st, err = m.newStream(s, key, w); err != nil {
				return err
			}
		}
	}
	s.streams = append(s.streams, st)
	st.start(ctx, m.pacer)
	return nil
}

func (m *Monitor) newStream(s *server, key string, w wanted) (*stream, error) {
	pattern, err := w.log.Pattern()
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	st := &stream{key: key, room: w.room, log: w.log, root: rootOf(s.target), again: w.again}
	if err := w.make(st); err != nil {
		return nil, err
	}
	spec := follow.Spec{
		Name: w.log.Name, Path: st.beneath(w.log.Path), Dir: st.beneath(w.log.Dir), Pattern: pattern, From: w.from, Open: s.opener(st.root),
		Lock: st.set, LagBytes: m.cfg.Limits.LagBytes, LagAge: m.cfg.Limits.LagAge,
	}
	if w.from == follow.Start {
		spec.Since = s.target.Process.Started.Add(-time.Second)
	}
	if born, ok := follow.Born(spec.Path, spec.Dir, pattern); ok && born.After(m.first) {
		spec.From = follow.Start
	}
	st.fromStart = spec.From == follow.Start
	st.follower = follow.New(spec, guarded(st, m.log))
	return st, nil
}

// rootOf is the folder beneath which a target's paths lie, "" for our own "/".
func rootOf(t *target.Target) string {
	if t.Process.Root == "/" {
		return ""
	}
	return t.Process.Root
}

// opener opens what the target names as the target may: beneath its own root,
// never through a link out of it, and nothing that its user may not read. A
// server.xml that names /etc/shadow as its access log gets nowhere. nil leaves
// opening to the follower, where there are no such roots.
func (s *server) opener(root string) func(string) (*os.File, error) {
	if runtime.GOOS != "linux" {
		return nil
	}
	return func(path string) (*os.File, error) {
		return s.seen.Load().Open(strings.TrimPrefix(path, root))
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

// endStream stops a stream and keeps its last state for its return.
func (m *Monitor) endStream(s *server, st *stream) {
	st.halt()
	st.hush() // before it is saved, or it would be told again
	if state, err := st.state(); err == nil {
		m.states[st.key] = state
	}
	st.close()
	for i, x := range s.streams {
		if x == st {
			s.streams = append(s.streams[:i:i], s.streams[i+1:]...)
			break
		}
	}
}
