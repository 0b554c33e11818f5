package ship

import (
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grafana/loki/pkg/push"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// maxGates bounds the patterns of one file that are told apart.
const maxGates = 600

// A Tap is where the lines of one file come in. Its methods are called by one
// goroutine at a time: the one that reads the file.
type Tap struct {
	s                    *Shipper
	target, source, file string
	gates                map[gateKey]*Gate // guarded by s.mu
}

type gateKey struct{ level, pattern string }

// A Gate counts the lines of one pattern and lets the first few of each second
// pass.
//
// A storm comes through here ten thousand times a second and more, so a line
// behind a closed gate costs one atomic addition. It is a line selected and
// suppressed from the moment in which somebody looks: each who reads the figures
// takes in first what stands at the gates. The seconds are those of the clock
// that summarise turns.
type Gate struct {
	tap            *Tap
	level, pattern string

	closed  atomic.Bool  // no more pass in this second
	waiting atomic.Int64 // lines that were shut out and are not in the figures yet

	// What follows is guarded by the Shipper's lock.
	event  string // of the last line that passed
	passed int    // in this second
	shut   int64  // of which nothing is told yet
	last   int64  // the time of the last line that passed
}

// Tap opens the way for the lines of one file.
func (s *Shipper) Tap(target, source, file string) *Tap {
	t := &Tap{s: s, target: clean(target, 255), source: source, file: clean(file, 255), gates: map[gateKey]*Gate{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taps[t] = true
	return t
}

// Close tells what was suppressed and not told yet.
func (t *Tap) Close() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.summarise(time.Now())
	delete(t.s.taps, t)
}

// Gate finds the gate of a pattern, or makes it. Keep it: finding it costs more
// than passing it.
func (t *Tap) Gate(level, pattern string) *Gate {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	key := gateKey{level, pattern}
	g := t.gates[key]
	if g == nil {
		if len(t.gates) >= maxGates {
			key.pattern = "other"
			if g = t.gates[key]; g != nil {
				return g
			}
		}
		key = gateKey{strings.Clone(key.level), strings.Clone(key.pattern)}
		g = &Gate{tap: t, level: key.level, pattern: key.pattern}
		t.gates[key] = g
	}
	return g
}

// Pass says whether the next line of the pattern is to be offered. One that is
// not is counted as selected and suppressed, and is done with.
func (g *Gate) Pass() bool {
	if g.closed.Load() {
		g.waiting.Add(1)
		return false
	}
	s := g.tap.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.passed < s.cfg.LinesPerSecond {
		g.passed++
		return true
	}
	g.closed.Store(true)
	g.waiting.Add(1)
	return false
}

// tally takes what stands at the gates into the figures. The caller holds the
// lock.
func (s *Shipper) tally() {
	for t := range s.taps {
		t.tally()
	}
}

func (t *Tap) tally() {
	for _, g := range t.gates {
		if n := g.waiting.Swap(0); n > 0 {
			g.shut += n
			t.s.n.selected += float64(n)
			t.s.n.suppressed += float64(n)
		}
	}
}

// Offer queues a line that its gate let pass.
func (t *Tap) Offer(g *Gate, e *Entry) {
	t.s.offer(t, g, e)
}

// meta is the structured metadata of a line.
func (t *Tap) meta(mask masker, e *Entry) push.LabelsAdapter {
	m := make(push.LabelsAdapter, 0, 4)
	add := func(name, value string) {
		if value != "" {
			m = append(m, push.LabelAdapter{Name: name, Value: mask.mask(clean(value, 512))})
		}
	}
	add("file", t.file)
	add("logger", e.Logger)
	add("pattern", e.Pattern)
	add("thread", e.Thread)
	add("trace_id", e.Trace)
	return m
}

// summarise turns the second: each pattern that had more lines than may pass
// gets one that tells how many. The caller holds the lock.
func (s *Shipper) summarise(now time.Time) {
	for t := range s.taps {
		t.summarise(now)
	}
}

func (t *Tap) summarise(now time.Time) {
	t.tally()
	for _, g := range t.gates {
		g.passed = 0
		g.closed.Store(false)
		if g.shut == 0 {
			continue
		}
		what := g.event
		if what == "" {
			what = g.pattern
		}
		n := g.shut
		g.shut = 0
		t.s.n.summaries++
		// It stands right behind the last line that passed, whose time may be long
		// ago: with our time it would push the lines that follow it.
		e := &Entry{Level: g.level, Event: g.event, Pattern: g.pattern, At: g.last}
		t.s.put(t, e, t.s.mask.mask(what)+": "+thousands(n)+" more", t.meta(t.s.mask, e), now, 0)
	}
}

// thousands writes 12431 as 12,431.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
