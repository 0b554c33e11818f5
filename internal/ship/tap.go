package ship

import (
	"regexp"
	"strconv"
	"strings"
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
// A storm comes through here ten thousand times a second, so this is one lock
// that is nearly always free, and a few numbers. The seconds are those of the
// clock that summarise turns.
type Gate struct {
	tap            *Tap
	level, pattern string
	event          string // of the last line that passed
	passed         int    // in this second
	shut           int64  // in this second, of which nothing is told yet
	last           int64  // the time of the last line that passed
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
	s := g.tap.s
	s.mu.Lock()
	if g.passed < s.cfg.LinesPerSecond {
		g.passed++
		s.mu.Unlock()
		return true
	}
	g.shut++
	s.n.selected++
	s.n.suppressed++
	s.mu.Unlock()
	return false
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
	for _, g := range t.gates {
		g.passed = 0
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
