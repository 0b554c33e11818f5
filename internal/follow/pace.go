package follow

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits are the settings "limits": the sidecar is a guest beside a server
// under load.
type Limits struct {
	// CPU is how many cores the sidecar takes at most while it reads logs.
	CPU float64 `yaml:"cpu"`
	// Memory is the soft limit of the Go runtime in bytes. 0 means none.
	Memory int64 `yaml:"memory"`
	// LagBytes and LagAge are how far reading may fall behind before blocks are
	// skipped, which is counted.
	LagBytes int64         `yaml:"lag_bytes"`
	LagAge   time.Duration `yaml:"lag_age"`
}

// DefaultLimits are half a core, 1 GiB and a minute.
func DefaultLimits() Limits {
	return Limits{CPU: 0.5, LagBytes: defaultLagBytes, LagAge: defaultLagAge}
}

// Check says what is wrong with the limits.
func (l Limits) Check() error {
	switch {
	// Less than a thousandth reads nothing, more than any machine has is a slip.
	case !(l.CPU >= 0.001 && l.CPU <= 1024):
		return fmt.Errorf("cpu: %v is not between 0.001 and 1024 cores", l.CPU)
	case l.Memory < 0 || l.Memory > 0 && l.Memory < 16<<20:
		return fmt.Errorf("memory: %d bytes is less than the 16 MiB that the program needs at rest", l.Memory)
	case l.LagBytes < 4*blockSize:
		return fmt.Errorf("lag_bytes: %d is less than 1 MiB", l.LagBytes)
	case l.LagAge < 5*time.Second:
		return fmt.Errorf("lag_age: %v is less than 5 s", l.LagAge)
	}
	return nil
}

// A Pacer keeps the CPU budget of the whole process: all followers ask it
// before they read on. What it pays from is time: cores seconds of CPU for each
// second, saved up for one second at most, so that a burst after a quiet second
// is read at once. While the account is overdrawn nobody reads; the log grows
// meanwhile, and is then read in larger pieces, which costs less.
type Pacer struct {
	cores float64
	cpu   func() time.Duration // of the whole process, user and system
	now   func() time.Time

	mu     sync.Mutex
	at     time.Time
	used   time.Duration
	credit time.Duration
}

// NewPacer makes the budget. cores of 0 or less means no limit.
func NewPacer(cores float64) *Pacer {
	p := &Pacer{cores: cores, cpu: processCPU, now: time.Now}
	p.at, p.used = p.now(), p.cpu()
	p.credit = p.full()
	return p
}

func (p *Pacer) full() time.Duration { return time.Duration(p.cores * float64(time.Second)) }

// wait is how long to wait before reading on.
func (p *Pacer) wait() time.Duration {
	if p == nil || p.cores <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, used := p.now(), p.cpu()
	p.credit += time.Duration(p.cores * float64(now.Sub(p.at)))
	p.credit = min(p.credit-(used-p.used), p.full())
	// Others in the process may have overdrawn the account; reading still gets
	// a piece every second.
	p.credit = max(p.credit, -p.full())
	p.at, p.used = now, used
	if p.credit >= 0 {
		return 0
	}
	return time.Duration(float64(-p.credit) / p.cores)
}

const (
	// busyPoll is between two looks at a log that storms, steadyPoll at one that
	// grows, and idlePoll at one that does not.
	//
	// A log that is cut off to be rotated loses what was written since the last
	// look. That is a matter of bytes: while little comes in a quarter of a second,
	// looking ten times a second would cost more in waking than in reading.
	busyPoll   = 100 * time.Millisecond
	steadyPoll = 250 * time.Millisecond
	idlePoll   = time.Second
	// storm is how much one look has found where the next is to come sooner.
	storm = 2 << 20
)

// Run looks until ctx ends, four times a second while the log grows, ten times
// while it storms, and less often when it does not grow, down to once a second.
// report takes each new error of Look, and nil when it works again; the follower
// goes on in any case. Run does not close the follower.
func (f *Follower) Run(ctx context.Context, p *Pacer, report func(error)) {
	failing := false
	delay := steadyPoll
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		before := f.led.Written
		more, err := f.Look(time.Now())
		if report != nil && (err != nil || failing && f.told == "") {
			failing = err != nil
			report(err)
		}
		switch {
		case more:
			delay = p.wait()
		case f.led.Written-before >= storm:
			delay = max(busyPoll, p.wait())
		case f.led.Written != before || f.split.open:
			delay = max(steadyPoll, p.wait())
		default:
			delay = min(max(delay, steadyPoll)*3/2, idlePoll)
		}
		if delay <= 0 {
			continue
		}
		// All followers of the process wake at the same moments: one waking of
		// the process for two hundred quiet files costs a fifth of two hundred.
		grid := busyPoll
		switch {
		case delay >= idlePoll:
			grid = idlePoll
		case delay >= steadyPoll:
			grid = steadyPoll
		}
		now := time.Now()
		next := now.Add(delay)
		if at := next.Truncate(grid); at.After(now) {
			next = at
		}
		timer.Reset(next.Sub(now))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// Drain looks until what is there is read, at a stop: the position then saved
// leaves nothing behind that was there.
func (f *Follower) Drain(ctx context.Context, now time.Time) error {
	for ctx.Err() == nil {
		more, err := f.Look(now)
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
}
