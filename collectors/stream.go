package collectors

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// A stream is one followed log with its observer, and a goroutine of its own.
//
// The observer's Set is also the follower's lock: position and counters move
// together under it, and are saved together under it.
type stream struct {
	key      string // in the checkpoint: target/room/file
	room     string
	file     string // the label
	set      *metric.Set
	observer Observer
	follower *follow.Follower
	// explain says what the room knows of its log; called with the lock held.
	explain func() (detail string, refused []status.Refused)

	failure atomic.Pointer[failure]
	saved   savedStream // the last saved state
	version uint64      // of the follower, when it was saved
	stop    context.CancelFunc
	done    chan struct{}
}

// failure is a look that did not work.
type failure struct {
	err error
	at  time.Time
}

// savedStream is one stream in the checkpoint.
type savedStream struct {
	// At is when the stream was last alive. A state that nobody claims is kept
	// for as long as its target may come back.
	At       time.Time       `json:"at"`
	Position json.RawMessage `json:"position"`
	Observer json.RawMessage `json:"observer"`
}

// load puts a saved state in force. The position counts only together with the
// counters: where one can't be read, both start anew.
func (s *stream) load(saved savedStream) error {
	s.set.Lock()
	defer s.set.Unlock()
	if err := s.observer.Load(saved.Observer); err != nil {
		return err
	}
	return s.follower.Load(saved.Position)
}

// start begins to follow.
func (s *stream) start(ctx context.Context, b *follow.Budget) {
	ctx, s.stop = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.follower.Run(ctx, b, func(err error, now time.Time) {
			if err == nil {
				s.failure.Store(nil)
				return
			}
			s.failure.Store(&failure{err, now})
		})
	}()
}

// end stops following; what was read is in the last save.
func (s *stream) end() {
	if s.stop != nil {
		s.stop()
		<-s.done
	}
	s.follower.Close()
}

// save writes down position and counters as of one instant, and adds the
// figures of the same instant to the gathering. A stream whose backlog of the
// start is not read yet adds nothing: its history must not look like news.
func (s *stream) save(g *metric.Gathering, now time.Time) (savedStream, error) {
	s.set.Lock()
	defer s.set.Unlock()
	if s.follower.CaughtUp() {
		s.follower.Ledger().Write(s.set, s.file)
		g.Add(s.set)
	}
	if v := s.follower.Version(); v == s.version && s.saved.Position != nil {
		s.saved.At = now
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
	s.saved = savedStream{At: now, Position: position, Observer: observer}
	s.version = s.follower.Version()
	return s.saved, nil
}

// state is the stream as a person sees it.
func (s *stream) state() status.Source {
	s.set.Lock()
	defer s.set.Unlock()
	l := s.follower.Ledger()
	out := status.Source{Name: s.room, File: s.file, Path: s.follower.Path(), Ledger: &status.Ledger{
		Written: l.Written, Read: l.Read, Skipped: l.Skipped, Lost: l.Lost, Lag: l.LagBytes(), Gaps: l.GapCount(),
	}}
	if s.explain != nil {
		out.Detail, out.Refused = s.explain()
	}
	if f := s.failure.Load(); f != nil {
		out.Error, out.ErrorAt = f.err.Error(), f.at
	}
	return out
}
