package applog

import "bytes"

// Whoever wants the words behind the numbers is told of records here. Nothing is
// copied and nobody is asked unless somebody listens, and in a storm a record
// costs its pattern's gate and no more.

// maxTold bounds the text of one record.
const maxTold = 32 << 10

// A Listener is told of records. Its functions are called under the Set's lock.
type Listener struct {
	// Wanted says whether records of a level are wanted, or those that tell an
	// event, which is "" for none. It is asked once for each pattern and event.
	Wanted func(level Level, event string) bool
	// Match gives a line chosen for another reason that reason's name, or "". nil
	// chooses none.
	Match func(line []byte) string
	// Gate gives a pattern's gate: it is asked at each wanted record, and where it
	// says no, nobody is told of this one.
	Gate func(level Level, pattern string) (pass func() bool)
	// Record is called when a wanted record is whole, or nothing more came for a
	// while.
	Record func(t *Told)
}

// Told is a wanted record. It lives until Record returns.
type Told struct {
	Level          Level
	Event, Pattern string // empty where there is none
	Logger         string
	Thread         []byte
	At             int64  // as in head: Unix milliseconds of the line's own clock read as UTC, or 0
	Text           []byte // the record with its trace, without the last line end
}

// hearing is what is known of the open record in this respect.
type hearing uint8

const (
	unheard hearing = iota // not wanted so far
	taking                 // its text is being taken
	done                   // its gate said no, or it was told
)

// ear is the listener and the record that is being taken.
type ear struct {
	Listener
	head   []byte // the record's first line, where an exception may make it wanted
	text   []byte
	thread []byte
	event  string // the name that Match gave
	past   bool   // the head was read: what is told now is told by the trace
	told   Told
}

// Listen gives the observer a listener, before its first line.
func (o *Observer) Listen(l Listener) { o.ear = &ear{Listener: l} }

// hear looks at a record of which the head is read.
func (o *Observer) hear(line []byte, extra int) {
	e, r, k := o.ear, &o.rec, o.rec.k
	e.past, e.event = true, ""
	if e.Match != nil {
		e.event = e.Match(line)
	}
	if e.event == "" && !o.wants(k) {
		if len(k.after) > 0 {
			e.head = append(e.head[:0], line...)
			e.thread = append(e.thread[:0], o.h.thread...)
		} else {
			r.heard = done
		}
		return
	}
	if k.gate == nil {
		k.gate = e.Gate(k.level, k.pattern)
	}
	if !k.gate() {
		r.heard = done
		return
	}
	e.thread = append(e.thread[:0], o.h.thread...)
	if extra > 0 { // a head of two lines
		o.takeText(o.keep)
		o.more(line)
		return
	}
	o.takeText(line)
}

// wants asks once for each kin and event: the level of a kin is one.
func (o *Observer) wants(k *kin) bool {
	event := ""
	if o.rec.n > 0 {
		event = o.rec.events[0].name
	}
	if !k.asked || k.askedFor != event {
		k.asked, k.askedFor, k.wanted = true, event, o.ear.Wanted(k.level, event)
	}
	return k.wanted
}

func (o *Observer) takeText(line []byte) {
	o.ear.text = append(o.ear.text[:0], line[:min(len(line), maxTold)]...)
	o.rec.heard = taking
}

// hearEvent takes an event that a trace has told, or a thread's death.
func (o *Observer) hearEvent(ev *eventState, line []byte) {
	e, r := o.ear, &o.rec
	// An event that the head tells is looked at with the head, where the answer is
	// known already: in a storm it is asked for each record.
	if r.heard != unheard || r.kind == full && !e.past || !e.Wanted(None, ev.name) {
		return
	}
	switch {
	case r.kind == full:
		if r.k.gate == nil {
			r.k.gate = e.Gate(r.k.level, r.k.pattern)
		}
		if r.heard = done; r.k.gate() {
			o.takeText(e.head)
			e.text = append(e.text, '\n')
			for range min(r.indent, 8) { // what is known of the exception's line has lost its tabs
				e.text = append(e.text, '\t')
			}
			e.text = append(e.text, line[:min(len(line), max(0, maxTold-len(e.text)))]...)
		}
	case r.kind == uncaught:
		if r.heard = done; o.eventGate(ev)() {
			e.event, e.thread = ev.name, e.thread[:0]
			o.takeText(line)
		}
	}
}

func (o *Observer) eventGate(ev *eventState) func() bool {
	if ev.gate == nil {
		ev.gate = o.ear.Gate(None, ev.name)
	}
	return ev.gate
}

// hearRaw takes a line that belongs to nothing; ev is nil where it tells no
// event.
func (o *Observer) hearRaw(ev *eventState, line []byte) {
	e := o.ear
	t := Told{Text: line[:min(len(line), maxTold)]}
	switch {
	case ev != nil:
		if !e.Wanted(None, ev.name) || !o.eventGate(ev)() {
			return
		}
		t.Event, t.Pattern = ev.name, ev.name
	case e.Match != nil && len(line) > 0:
		if t.Event = e.Match(line); t.Event == "" || !e.Gate(None, t.Event)() {
			return
		}
		t.Pattern = t.Event
	default:
		return
	}
	e.told = t
	e.Record(&e.told)
}

// more adds a line to the text that is being taken.
func (o *Observer) more(line []byte) {
	if e := o.ear; len(e.text)+len(line) < maxTold {
		e.text = append(append(e.text, '\n'), line...)
	}
}

// moreBody adds a body that was known: whole lines with their ends.
func (o *Observer) moreBody(text []byte) {
	text = bytes.TrimRight(text, "\r\n")
	if e := o.ear; len(e.text)+len(text) < maxTold {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte{'\n'})
		e.text = append(append(e.text, '\n'), text...)
	}
}

// TellOpen hands over the record that is being taken, when nobody will read on.
func (o *Observer) TellOpen() {
	if o.rec.heard == taking {
		o.tellRecord()
	}
}

// tellRecord hands the record over.
func (o *Observer) tellRecord() {
	e, r := o.ear, &o.rec
	r.heard = done
	e.told = Told{Event: e.event, Thread: e.thread, At: r.at, Text: bytes.TrimRight(e.text, "\n")}
	if k := r.k; k != nil {
		e.told.Level, e.told.Pattern, e.told.Logger = k.level, k.pattern, k.logger
	} else {
		e.told.Pattern = e.event
	}
	if r.n > 0 {
		e.told.Event = r.events[0].name
	}
	e.Record(&e.told)
}
