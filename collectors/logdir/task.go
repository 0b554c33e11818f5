package logdir

import (
	"context"
	"time"
)

// A task is the one outstanding piece of work on one mount, folder or process.
// It may block for ever in the kernel, on a mount whose server is gone; then it
// stays the only one, and Poll goes on without it.
type task struct {
	done    chan struct{} // nil when nothing is outstanding
	started time.Time
}

// busy says whether work is outstanding, and makes room for the next when it
// has ended.
func (t *task) busy() bool {
	if t.done == nil {
		return false
	}
	select {
	case <-t.done:
		t.done = nil
		return false
	default:
		return true
	}
}

// start runs do beside Poll. What do changes belongs to it until Poll has seen
// the task's end.
func (t *task) start(now time.Time, do func()) {
	done := make(chan struct{})
	t.done, t.started = done, now
	go func() {
		defer close(done)
		do()
	}()
}

// wait waits for the tasks that were started in this Poll, until the time is
// up. Nobody waits again for one that was late.
func wait(ctx context.Context, patience time.Duration, tasks []*task) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, t := range tasks {
		select {
		case <-t.done:
		case <-timer.C:
			timer.Reset(0)
		case <-ctx.Done():
		}
	}
}
