package collectors

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// A stream is one followed log with its observer, and a goroutine of its own.
//
// The observer's Set is also the follower's lock: position and counters move
// together under it, and are saved together under it.
type stream struct {
	key      string // in the checkpoint: target/room/file
	room     string
	log      target.LogFile
	root     string // beneath which log's paths lie, "" for our own "/"
	set      *metric.Set
	observer Observer
	follower *follow.Follower
	// role is an application log's beside the others: primary, copy or own.
	role string
	// unbuffered says that an access log shows each request as it ends.
	unbuffered bool
	// again says that another stream follows the same file: its ledger is told
	// once.
	again bool
	// fromStart says that the log was read from its first byte.
	fromStart bool
	// detail says in a few words how the room reads its log, and explain adds what
	// it keeps for the page; called with the lock held.
	detail  func() string
	explain func(*status.Explained)
	// tap takes the chosen lines; nil where none are shipped.
	tap *ship.Tap

	failure atomic.Pointer[failure]
	bugs    atomic.Int64 // panics of the observer that were survived
	saved   follow.Saved // the last saved state, and where the stream stood then
	at      follow.Ledger
	idles   int64 // calls of Idle, which closes entries and may count them
	idlesAt int64
	stop    context.CancelFunc
	done    chan struct{}
}

// failure is a look that did not work.
type failure struct {
	err error
	at  time.Time
}

// beneath is a path of the target as we see it.
func (s *stream) beneath(path string) string {
	if path == "" || s.root == "" {
		return path
	}
	return filepath.Join(s.root, path)
}

// load puts a saved state in force. The position counts only together with the
// counters: where one can't be read, both start anew.
func (s *stream) load(saved follow.Saved) error {
	s.set.Lock()
	defer s.set.Unlock()
	if err := s.observer.Load(saved.Observer); err != nil {
		return err
	}
	return s.follower.Load(saved.Position)
}

// start begins to follow.
func (s *stream) start(ctx context.Context, p *follow.Pacer) {
	ctx, s.stop = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.follower.Run(ctx, p, func(err error) {
			if err == nil {
				s.failure.Store(nil)
				return
			}
			s.failure.Store(&failure{err, time.Now()})
		})
	}()
}

// halt stops following and waits until nobody reads any more.
func (s *stream) halt() {
	if s.stop != nil {
		s.stop()
		<-s.done
		s.stop = nil
	}
}

// close lets go of the file and of the tap. Nobody reads any more.
func (s *stream) close() {
	s.follower.Close()
	if s.tap != nil {
		s.hush()
		s.tap.Close()
	}
}

// state is position and counters as of one instant. Where nothing was read or
// written since the last time, it is the last one.
func (s *stream) state() (follow.Saved, error) {
	s.set.Lock()
	defer s.set.Unlock()
	return s.stateLocked()
}

// counted is the part of a ledger that only grows. Where it stands still, so
// does the stream.
func counted(l follow.Ledger) follow.Ledger {
	return follow.Ledger{Written: l.Written, Read: l.Read, Skipped: l.Skipped, Lost: l.Lost,
		Rotations: l.Rotations, Truncations: l.Truncations, Lines: l.Lines, Gaps: l.Gaps}
}

// moved says that the observer was called since the state was saved. The lock is
// held.
func (s *stream) moved() bool {
	return s.saved.Position == nil || counted(s.follower.Ledger()) != s.at || s.idles != s.idlesAt
}

func (s *stream) stateLocked() (follow.Saved, error) {
	l := s.follower.Ledger()
	if !s.moved() && l.Lag == 0 {
		return s.saved, nil
	}
	position, err := s.follower.Save()
	if err != nil {
		return s.saved, err
	}
	observer, err := s.observer.Save()
	if err != nil {
		return s.saved, err
	}
	s.saved = follow.Saved{Position: position, Observer: observer}
	s.at, s.idlesAt = counted(l), s.idles
	return s.saved, nil
}

// publish saves, and adds the figures of the same instant to the gathering. A
// new stream whose backlog of the start is not read yet adds nothing: its
// history must not look like news. One that goes on from a saved state was in
// the sums before, and stays in them, or they would fall.
//
// One whose log can't be read and never could adds nothing either: its zeros
// would say that nothing happened, where nothing was seen. Beside such a one
// (dark), the zeros of a log that is not there would say the same for the room.
func (s *stream) publish(g *metric.Gathering, dark bool) (state follow.Saved, caughtUp bool, err error) {
	s.set.Lock()
	defer s.set.Unlock()
	if k, ok := s.observer.(keeper); ok {
		k.Keep(keptPerSecond)
	}
	l := s.follower.Ledger()
	unseen := s.unseen() || dark && !l.HasSize && counted(l) == follow.Ledger{}
	if caughtUp = s.follower.CaughtUp(); !unseen && (caughtUp || s.follower.Continued()) {
		if !s.again {
			l.Publish(s.set, s.log.Name)
		}
		g.Add(s.set)
	}
	state, err = s.stateLocked()
	return state, caughtUp, err
}

// unseen says that the log is there, can't be read, and never could be. The lock
// is held.
func (s *stream) unseen() bool {
	l := s.follower.Ledger()
	return l.Blind != "" && counted(l) == follow.Ledger{}
}

// dark are the rooms of a server in which a log can't be seen at all.
func dark(streams []*stream) map[string]bool {
	out := map[string]bool{}
	for _, s := range streams {
		s.set.Lock()
		if s.unseen() {
			out[s.room] = true
		}
		s.set.Unlock()
	}
	return out
}

// atEnd says that all there is has been read.
func (s *stream) atEnd() bool {
	s.set.Lock()
	defer s.set.Unlock()
	return s.follower.CaughtUp() && s.follower.Ledger().Lag == 0
}

// blind is why the log can't be read, if it can't.
func (s *stream) blind() []target.Blind {
	s.set.Lock()
	defer s.set.Unlock()
	return s.blindLocked()
}

func (s *stream) blindLocked() []target.Blind {
	reason := s.follower.Ledger().Blind
	if reason == "" {
		return nil
	}
	b := target.Blind{Source: s.room, Reason: "log_" + reason, Detail: s.log.Name + " in " + s.log.Folder() + " can't be read"}
	switch reason {
	case "permission":
		b.Needs = "the right to read it: the server's own user, or root"
	case "no_openat2":
		b.Needs = "Linux 5.6, or targets.without_openat2: walk"
	case "not_regular":
		b.Detail += ": it is no regular file, and reading a pipe would steal its lines"
	}
	return []target.Blind{b}
}

// describe is the stream as a person sees it.
func (s *stream) describe(cfg *Config) status.Source {
	s.set.Lock()
	defer s.set.Unlock()
	l := s.follower.Ledger()
	gaps := int64(0)
	for _, n := range l.Gaps {
		gaps += n
	}
	path := s.log.Path
	if path == "" {
		path = s.log.Dir + "/" + s.log.Name
	}
	out := status.Source{Name: s.room, File: s.log.Name, Path: path, Ledger: &status.Ledger{
		Written: l.Written, Read: l.Read, Skipped: l.Skipped, Lost: l.Lost, Lag: l.Lag, LagSeconds: l.LagSeconds, Gaps: gaps,
	}}
	out.Blind = s.blindLocked()
	if s.detail != nil {
		out.Detail = s.detail()
	}
	out.Explain = s.explainer(cfg)
	if f := s.failure.Load(); f != nil {
		out.Error, out.ErrorAt = f.err.Error(), f.at
	}
	return out
}
