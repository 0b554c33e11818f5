package jvm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// dumpTime bounds one dump. A JVM that is paged out answers late, and the poll
// does not wait for it.
const dumpTime = 20 * time.Second

// BlindThreads says that a JVM has too many threads for dumps by themselves.
const BlindThreads = "too_many_threads"

// A stateReader takes a thread dump from time to time, beside the polls.
type stateReader struct {
	mu     sync.Mutex
	cancel context.CancelFunc // of the dump that is being taken
	closed bool
	asked  time.Time // when the last one was begun
	at     time.Time // when the last good one was begun
	counts map[string]int
	dead   int
	blind  *Blind
}

// pollStates begins a dump when one is due. It does not wait for it.
func (p *Poller) pollStates(now time.Time) {
	if !p.cfg.Attach || p.cfg.Dump == nil {
		return
	}
	s := &p.states
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := p.data.Long("java.threads.live"); ok && n > int64(p.cfg.DumpThreads) {
		s.blind = &Blind{Source: "jvm", Reason: BlindThreads,
			Detail: fmt.Sprintf("the JVM has %d threads, and a thread dump would stop it for long: above %d (dump_threads) one is taken only when somebody asks for it", n, p.cfg.DumpThreads)}
		s.counts = nil
		return
	}
	if s.blind != nil && s.blind.Reason == BlindThreads {
		s.blind = nil
	}
	// Three dumps that did not come: the figures are no more what is.
	if s.counts != nil && now.Sub(s.at) > 3*p.cfg.DumpEvery {
		s.counts = nil
	}
	if s.closed || s.cancel != nil || now.Sub(s.asked) < p.cfg.DumpEvery {
		return
	}
	s.asked = now
	ctx, cancel := context.WithTimeout(context.Background(), dumpTime)
	s.cancel = cancel
	go s.take(ctx, p.cfg.Dump, now)
}

func (s *stateReader) take(ctx context.Context, dump func(context.Context) ([]byte, *Blind, error), now time.Time) {
	b, blind, err := dump(ctx)
	var d *Dump
	if err == nil && blind == nil {
		d, err = ParseDump(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	s.cancel = nil
	s.blind = blind
	if err != nil {
		s.blind = &Blind{Source: "jvm", Reason: "no_dump_now", Detail: "the last thread dump failed: " + err.Error()}
	}
	if d != nil {
		s.at, s.counts, s.dead = now, d.States(), len(d.Deadlocked)
	}
}

// States counts the threads that the JVM's own count counts, by state; states
// that none has are 0.
func (d *Dump) States() map[string]int {
	out := map[string]int{}
	for _, s := range States {
		out[s] = 0
	}
	for i := range d.Threads {
		if t := &d.Threads[i]; t.Java && t.State != "" && !isHidden(t.Name) {
			out[t.State]++
		}
	}
	return out
}

// writeStates puts the last dump's figures down. The Set is locked.
func (p *Poller) writeStates() {
	s := &p.states
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		return
	}
	for _, state := range States {
		p.set.Gauge(threadsState, state).Set(float64(s.counts[state]))
	}
	p.set.Gauge(threadsDeadlocked).Set(float64(s.dead))
}

func (s *stateReader) blindNow() []Blind {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blind == nil {
		return nil
	}
	return []Blind{*s.blind}
}

// Close lets go of a dump that is being taken.
func (p *Poller) Close() error {
	p.states.mu.Lock()
	defer p.states.mu.Unlock()
	p.states.closed = true
	if p.states.cancel != nil {
		p.states.cancel()
	}
	return nil
}
