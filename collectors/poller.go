package collectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// pollTime is how long a tick waits for its pollers. One that takes longer
// (a hung mount, /proc of a stuck process) is left to end by itself, is not
// called again meanwhile, and its last figures stay.
const pollTime = 700 * time.Millisecond

// A watch is one poller of one target.
type watch struct {
	room   string
	set    *metric.Set
	poller Poller
	// blind says what the poller can't see, and why.
	blind func() []target.Blind
	// stays says that it looks on when the process is gone, until the next one
	// is there.
	stays bool

	busy    atomic.Bool
	failure atomic.Pointer[failure]
	errors  atomic.Pointer[map[string]float64] // by reason
}

// saver is a poller with counters of its own.
type saver interface {
	Save() ([]byte, error)
	Load([]byte) error
}

// pollAll calls every watch and waits for them, no longer than
// pollTime.
func pollAll(ctx context.Context, watches []*watch, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	var wg sync.WaitGroup
	for _, w := range watches {
		if !w.busy.CompareAndSwap(false, true) {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer w.busy.Store(false)
			w.note(w.poll(ctx, now), now)
		}()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); cancel(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// poll is Poll, and survives a mistake of ours in it.
func (w *watch) poll(ctx context.Context, now time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// A room that writes its figures holds the Set's lock: nobody may wait for
			// it for ever.
			w.set.TryLock()
			w.set.Unlock()
			err = fmt.Errorf("%w: %v", errBug, p)
		}
	}()
	return w.poller.Poll(ctx, now)
}

// errBug is a panic in a room.
var errBug = errors.New("BUG: please report this")

func (w *watch) note(err error, now time.Time) {
	if err == nil {
		w.failure.Store(nil)
		return
	}
	w.failure.Store(&failure{err, now})
	counts := map[string]float64{}
	if old := w.errors.Load(); old != nil {
		for k, v := range *old {
			counts[k] = v
		}
	}
	counts[errorReason(err)]++
	w.errors.Store(&counts)
}

// errorReason is the bounded word for an error.
func errorReason(err error) string {
	switch {
	case errors.Is(err, errBug):
		return "bug"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, fs.ErrNotExist):
		return "not_found"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return "failed"
}

// key is where the checkpoint keeps the state of a poller that has one.
func (w *watch) key(s *server) string { return s.name() + "/" + w.room }

// describe is the poller as a person sees it.
func (w *watch) describe(cfg *Config) status.Source {
	out := status.Source{Name: w.room}
	room := w.room
	out.Explain = func(bool) status.Explained { return status.Explained{Settings: settingsOf(room, cfg, false)} }
	if w.blind != nil {
		out.Blind = w.blind()
	}
	if f := w.failure.Load(); f != nil {
		out.Error, out.ErrorAt = f.err.Error(), f.at
	}
	return out
}
