package applog

import "bytes"

// Lines that open no record: what is raw, and what only looks so.

// other takes a line at column 0 that opens no record.
func (o *Observer) other(line []byte) {
	r := &o.rec
	if o.cand {
		o.settle(line)
	}
	switch {
	case bytes.HasPrefix(line, inThread):
		o.inThread(line)
		return
	case r.kind == nothing || r.kind == dump:
	case bytes.HasPrefix(line, causedBy), bytes.HasPrefix(line, suppressedMark), bytes.HasPrefix(line, wrappedBy), isMore(line):
		r.bytes += uint64(len(line) + 1)
		if r.heard == taking {
			o.more(line)
		}
		o.trace(0, line)
		return
	case r.kind == full && r.exc == nil:
		if c := throwable(line); c != nil {
			if endsAsThrowable(c) {
				r.bytes += uint64(len(line) + 1)
				if r.heard == taking {
					o.more(line)
				}
				o.threw(line, 0)
				return
			}
			o.cand = true
			o.keep = append(o.keep[:0], line...)
			return
		}
	case r.exc != nil && !r.framed && !r.rooted:
		// An exception's text may have newlines: a frame after it will tell.
		o.cand = true
		o.keep = append(o.keep[:0], line...)
		return
	}
	if c := throwable(line); c != nil && endsAsThrowable(c) && (r.kind != full || r.framed) {
		// Somebody printed a trace of his own; a frame will tell. Without one it may
		// be the VM's word before a heap dump, about what is thrown and logged later.
		o.openRaw(uncaught, line)
		o.bare = append(o.bare[:0], line...)
		return
	}
	if opensDump(line) {
		o.openRaw(dump, line)
		return
	}
	o.rawLine(line)
}

// opensDump knows the first lines of what the JVM prints with indented lines
// of its own: thread dumps, their threads, and heaps.
func opensDump(line []byte) bool {
	switch line[0] {
	case '"':
		return bytes.Contains(line, []byte(" prio=")) || bytes.Contains(line, []byte(" tid="))
	case 'F':
		return bytes.HasPrefix(line, []byte("Full thread dump"))
	case 'H':
		return string(line) == "Heap"
	case '{':
		return bytes.HasPrefix(line, []byte("{Heap "))
	}
	return false
}

func (o *Observer) openRaw(kind recordKind, line []byte) {
	o.close()
	o.bare = o.bare[:0]
	o.rawLine(line)
	o.rec.kind = kind
	o.rec.bytes = uint64(len(line) + 1)
	o.rec.rooted = kind == dump
}

func (o *Observer) dropHeld() {
	o.held = false
	o.other(o.keep)
}

// rawLine counts a line that belongs to nothing, and the events it tells.
func (o *Observer) rawLine(line []byte) {
	o.raw.Inc()
	o.rawSeen++
	o.recent.raw(line)
	if o.ear != nil && o.ear.Match != nil {
		o.hearRaw(nil, line)
	}
	for _, r := range o.rawRules {
		if len(line) > 0 && prefixed2(line, r.raw) && within2(line, r.rawHas) {
			o.tellRaw(r.event, line)
		}
	}
	for _, u := range o.user {
		if u.raw && u.matches(line, Fatal) {
			o.tellRaw(u.state, line)
		}
	}
}

// tellRaw counts an event of a single line; it belongs to no open record.
func (o *Observer) tellRaw(e *eventState, line []byte) {
	e.count++
	e.number(o, "").Inc()
	n := uint64(len(line) + 1)
	e.bytes += n
	e.bytesN.Add(float64(n))
	if e.sample == nil {
		e.sample = bytes.Clone(line[:min(len(line), maxSample)])
	}
	if o.ear != nil {
		o.hearRaw(e, line)
	}
}

func prefixed2(s []byte, any []string) bool {
	for _, p := range any {
		if len(s) >= len(p) && string(s[:len(p)]) == p {
			return true
		}
	}
	return len(any) == 0
}

func within2(s []byte, any []string) bool {
	for _, p := range any {
		if bytes.Contains(s, []byte(p)) {
			return true
		}
	}
	return len(any) == 0
}

// inThread takes "Exception in thread "NAME" class: text", what the JVM prints
// when a thread dies of an exception.
func (o *Observer) inThread(line []byte) {
	o.openRaw(uncaught, line)
	name, rest, ok := bytes.Cut(line[len(inThread):], []byte("\" "))
	if !ok {
		return
	}
	o.rec.port = o.portOfThread(name)
	o.died(line, name, rest, o.thrownRaw(rest))
}

func (u *userEvent) matches(b []byte, l Level) bool {
	if l < u.min && l != None {
		return false
	}
	if len(u.literal) > 0 && !bytes.Contains(b, u.literal) {
		return false
	}
	return u.re == nil || u.re.Match(b)
}
