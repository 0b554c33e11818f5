package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// A KeptLine is a line with what was made of it, for whoever wants to see how
// the log is read.
type KeptLine struct {
	Line string // cut to its first bytes
	// Why is the reason of a refusal, Accepted for a record.
	Why Refusal
	// Facts are name and value of what was read, in the order of a request.
	Facts [][2]string
}

const (
	keptLines = 20
	keptBytes = 512
)

// keptRing keeps some of the last lines. A line that is not kept costs one
// comparison: the caller gives leave for a few lines each second, so that a quiet
// log is shown whole and a storm is sampled. What was made of a line is worked
// out when somebody asks.
type keptRing struct {
	leave int
	slots []keptSlot
	next  int
}

type keptSlot struct {
	why     Refusal
	pattern string // with which it was read: a W3C log changes its own
	cut     bool
	line    []byte
}

// Keep gives leave to keep the next n lines for the page. The caller holds the
// Set's lock.
func (o *Observer) Keep(n int) { o.kept.leave = n }

func (k *keptRing) add(why Refusal, pattern string, line []byte) {
	k.leave--
	if len(k.slots) < keptLines {
		k.slots = append(k.slots, keptSlot{})
	}
	s := &k.slots[k.next]
	k.next = (k.next + 1) % keptLines
	short := line[:min(len(line), keptBytes)]
	s.why, s.pattern, s.cut, s.line = why, pattern, len(short) < len(line), append(s.line[:0], short...)
}

// Kept are the lines that were kept, the newest last. The caller holds the Set's
// lock.
func (o *Observer) Kept() []KeptLine {
	k := &o.kept
	out := make([]KeptLine, 0, len(k.slots))
	for i := range k.slots {
		s := &k.slots[(k.next+i)%len(k.slots)]
		l := KeptLine{Line: strings.ToValidUTF8(string(s.line), "\uFFFD"), Why: s.why}
		// A line that was cut, or read by other fields than those in force, can't
		// be read once more.
		var r Record
		if s.why == Accepted && !s.cut && s.pattern == o.m.pattern && o.m.Parse(s.line, &r) == Accepted {
			l.Facts = o.facts(&r)
		}
		out = append(out, l)
	}
	return out
}

// facts are what a record says, as the room counts it.
func (o *Observer) facts(r *Record) (out [][2]string) {
	add := func(name, value string) {
		out = append(out, [2]string{name, strings.ToValidUTF8(value, "\uFFFD")})
	}
	seconds := func(name string, s float64) { add(name, strconv.FormatFloat(s, 'g', 4, 64)+" s") }
	if ms, ok := r.Time(); ok {
		add("time", time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if r.Has&HasRequest != 0 {
		r.Split()
		add("method", r.Method.String())
		if len(r.Path) > 0 {
			add("path", string(r.Path))
		}
		if o.router != nil {
			n, _ := o.router.number(r) // known: the line was counted
			add("route", o.router.names[n])
		}
	}
	if r.Has&HasStatus != 0 {
		add("code", o.codeName[o.code(r.Status)])
	}
	if r.Has&HasBytes != 0 {
		add("bytes", strconv.FormatInt(r.Bytes, 10))
	}
	switch {
	case r.Has&HasDuration != 0 && r.Coarse:
		add("duration", "whole seconds only, not counted")
	case r.Has&HasDuration != 0:
		seconds("duration", r.Duration)
	case r.Negative:
		add("duration", "negative, not counted")
	}
	if r.Has&HasFirstByte != 0 {
		seconds("first byte", r.FirstByte)
	}
	if r.Has&HasConn != 0 {
		add("connection", connName[connOf(r.Conn)])
	}
	if r.Has&HasThread != 0 {
		pool := string(poolOf(r.Thread))
		if pool == "" {
			pool = "none"
		}
		add("pool", pool)
	}
	return out
}
