package applog

import (
	"bytes"
	"slices"
)

// Lines that go on with the open record: its exception, frames, causes.

// indented takes a line that begins with white space.
func (o *Observer) indented(line []byte) {
	r := &o.rec
	n, rest := tabs(line)
	if o.cand {
		o.settle(rest)
	}
	switch r.kind {
	case nothing:
		o.rawLine(line)
		return
	case dump:
		o.rawLine(line)
		r.bytes += uint64(len(line) + 1)
		return
	}
	r.bytes += uint64(len(line) + 1)
	if r.heard == taking {
		o.more(line)
	}
	o.trace(n, rest)
}

// trace takes a line that belongs to the open record.
func (o *Observer) trace(n int, rest []byte) {
	r := &o.rec
	switch {
	case len(rest) == 0:
	case bytes.HasPrefix(rest, atMark):
		if !r.framed {
			r.framed = true
			if r.kind == uncaught && len(o.bare) > 0 {
				o.died(o.bare, nil, o.bare, o.thrownRaw(o.bare))
				o.bare = o.bare[:0]
			}
			if len(r.frames) > 0 {
				o.frame(rest[len(atMark):])
			}
		}
	case isMore(rest):
	case bytes.HasPrefix(rest, causedBy):
		if n == r.indent && r.exc != nil {
			o.cause(rest[len(causedBy):])
		}
	case r.exc == nil && r.kind == full:
		if r.k.threw(rest) || throwable(rest) != nil {
			o.threw(rest, n)
		}
	}
}

// threw takes the exception of the open record.
func (o *Observer) threw(text []byte, indent int) {
	r := &o.rec
	t := o.thrownOf(r.k, text)
	if t == nil {
		return
	}
	r.indent = indent
	if r.k.level.grave() && !r.k.quiet {
		r.exc, r.rooted = t.exc, false
		r.exc.thrown.Inc()
		r.exc.asThrown++
		r.exc.see(r.at)
	} else {
		r.exc = o.otherExc // something was thrown, but it is not counted
		r.rooted = true
	}
	for _, e := range t.events {
		o.tell(e, text)
	}
	r.frames = t.frames
	o.threwNow = true
	o.recent.threw(t.class, r)
}

// cause takes the exception of a "Caused by". It may decide an event as well as
// the outermost: frameworks wrap what the pool or the VM threw.
func (o *Observer) cause(text []byte) {
	r := &o.rec
	if r.k == nil {
		if c := throwable(text); c != nil {
			r.root = o.exceptionOf(c)
		}
		return
	}
	t := o.thrownOf(r.k, text)
	if t == nil {
		return
	}
	r.root = t.exc
	for _, e := range t.events {
		o.tell(e, text)
	}
}

func (e *exception) see(at int64) {
	if at == 0 {
		return
	}
	if e.first == 0 {
		e.first = at
	}
	e.last = at
}

// frame takes the first frame, where an event hangs on it.
func (o *Observer) frame(frame []byte) {
	for _, b := range o.rec.frames {
		if within(string(frame), b.frame) {
			o.tell(b.event, frame)
		}
	}
	o.rec.frames = nil
}

// settle decides about the line that may have been an exception's, now that the
// next one is there.
func (o *Observer) settle(next []byte) {
	o.cand = false
	r := &o.rec
	if !bytes.HasPrefix(next, atMark) && !bytes.HasPrefix(next, causedBy) && !isMore(next) {
		if r.kind != full || r.exc == nil || len(next) == 0 || next[0] != ' ' {
			o.dropCand()
			return
		}
	}
	r.bytes += uint64(len(o.keep) + 1)
	if r.heard == taking {
		o.more(o.keep)
	}
	if r.exc == nil {
		o.threw(o.keep, 0)
	}
}

func (o *Observer) dropCand() {
	o.cand = false
	o.rawLine(o.keep)
}

// blank takes an empty line: it belongs to the open record.
func (o *Observer) blank() {
	if o.cand {
		o.dropCand()
	}
	switch o.rec.kind {
	case nothing:
		o.rawLine(nil)
	case dump:
		o.rawLine(nil)
		o.rec.bytes++
	default:
		o.rec.bytes++
	}
}

// died counts the events of an exception that is under no record. name is the
// thread's, nil where only a trace was printed: two threads that die at once
// print over each other, so that "Exception in thread" and the class may stand
// on different lines. A death without its class counts only where the name
// alone says what died.
func (o *Observer) died(line, name, text, class []byte) {
	named := false
	for _, r := range o.uncaught {
		switch {
		case len(r.thrown) > 0:
			if !slices.Contains(r.thrown, string(class)) || !within2(text, r.excText) {
				continue
			}
			named = named || r.event.name == "nio2_thread_died"
		case name == nil || named || !within2(name, r.thread) || r.event.name == "thread_died" && class == nil:
			continue
		default:
			named = true // thread_died is for those that have no event of their own
		}
		o.tell(r.event, line)
	}
}

// thrownRaw counts an exception that is under no record.
func (o *Observer) thrownRaw(text []byte) []byte {
	class := throwable(text)
	if class == nil {
		return nil
	}
	r := &o.rec
	r.exc = o.exceptionOf(class)
	r.exc.thrown.Inc()
	r.exc.asThrown++
	r.indent = 0
	return class
}
