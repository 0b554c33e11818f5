package applog

import (
	"encoding/json"
	"fmt"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// saved is the observer's part of the checkpoint: the figures and what is open.
type saved struct {
	Set     json.RawMessage `json:"set"`
	Records uint64          `json:"records"`
	Lines   uint64          `json:"lines"`
	// Known are the hashes of the patterns and the exceptions seen, so that a
	// restart of the sidecar makes none of them new.
	Known      []uint64 `json:"known,omitempty"`
	Exceptions []string `json:"exceptions,omitempty"`
	// Layouts are those in use, patterns as their text.
	Layouts []string   `json:"layouts,omitempty"`
	Open    *savedOpen `json:"open,omitempty"`
	Held    *string    `json:"held,omitempty"` // the line that is held
	Cand    *string    `json:"cand,omitempty"` // the line that may be an exception's
	Simple  *savedHead `json:"simple,omitempty"`
	Pair    *savedPair `json:"pair,omitempty"`
}

// savedOpen is the open record. Its head is kept whole: on Load it is read
// again, without counting, which brings back all that hangs on it.
type savedOpen struct {
	Kind    recordKind `json:"kind"`
	Level   Level      `json:"level"`
	Thread  string     `json:"thread,omitempty"`
	Logger  string     `json:"logger,omitempty"`
	Method  bool       `json:"method,omitempty"`
	Message []byte     `json:"message,omitempty"`
	Bytes   uint64     `json:"bytes"`
	Told    uint64     `json:"told"`
	Port    string     `json:"port,omitempty"`
	At      int64      `json:"at,omitempty"`
	Thrown  string     `json:"thrown,omitempty"`
	Root    string     `json:"root,omitempty"`
	Indent  int        `json:"indent,omitempty"`
	Framed  bool       `json:"framed,omitempty"`
	Rooted  bool       `json:"rooted,omitempty"`
	Quiet   bool       `json:"quiet,omitempty"` // thrown, and not counted
	Events  []string   `json:"events,omitempty"`
	Bare    []byte     `json:"bare,omitempty"`
	// Words is what a listener is to be told of it, where there is one.
	Words *savedWords `json:"words,omitempty"`
}

// savedWords is the text that is being taken, or the head that may yet be wanted
// for what its trace tells. Without it the record that was open at a kill would be
// lost to the listener, and nobody would know.
type savedWords struct {
	Text   []byte `json:"text,omitempty"`
	Head   []byte `json:"head,omitempty"`
	Thread []byte `json:"thread,omitempty"`
	Event  string `json:"event,omitempty"`
}

type savedHead struct {
	Logger []byte `json:"logger"`
	At     int64  `json:"at"`
}

// Save returns the figures and the open state.
func (o *Observer) Save() ([]byte, error) {
	set, err := o.set.Save()
	if err != nil {
		return nil, err
	}
	s := saved{Set: set, Records: o.records, Lines: o.seen, Pair: o.pair}
	for h := range o.known {
		s.Known = append(s.Known, h)
	}
	for c := range o.knownExc {
		s.Exceptions = append(s.Exceptions, c)
	}
	if !o.fixed {
		for _, l := range o.layouts {
			s.Layouts = append(s.Layouts, l.name())
		}
	}
	keep := string(o.keep)
	if o.held {
		s.Held = &keep
		s.Simple = &savedHead{Logger: o.simple.logger[:o.simple.n], At: o.simple.at}
	} else if o.cand {
		s.Cand = &keep
	}
	if r := &o.rec; r.kind != nothing {
		if r.late {
			r.late, r.port = false, o.portOfThread(o.recThread)
		}
		so := &savedOpen{Kind: r.kind, Bytes: r.bytes, Told: r.told, Port: r.port, At: r.at, Indent: r.indent, Framed: r.framed, Rooted: r.rooted}
		if r.k != nil {
			so.Level, so.Logger, so.Message = r.k.level, r.k.logger, o.openMessage()
			so.Method = o.openMethod
		}
		if r.kind == uncaught {
			so.Bare = o.bare
		}
		if r.exc != nil {
			so.Thrown = r.exc.class
			so.Quiet = r.rooted && r.exc == o.otherExc
		}
		if r.root != nil {
			so.Root = r.root.class
		}
		for _, e := range r.events[:r.n] {
			so.Events = append(so.Events, e.name)
		}
		so.Words = o.words()
		s.Open = so
	}
	return json.Marshal(&s)
}

// openMessage is enough of the open record's message to find its kin again: the
// fingerprint stands for it, since a fingerprint's fingerprint is itself.
func (o *Observer) openMessage() []byte { return []byte(o.rec.k.pattern) }

// Load takes a Save back into a fresh observer.
func (o *Observer) Load(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load the state of an application log: %w", err)
	}
	if err := o.set.Load(s.Set, Metrics); err != nil {
		return err
	}
	o.records, o.seen, o.pair = s.Records, s.Lines, s.Pair
	for _, h := range s.Known {
		if len(o.known) < 8*maxKins {
			o.known[h] = true
		}
	}
	for _, c := range s.Exceptions {
		if len(o.knownExc) < 8*maxExceptions {
			o.knownExc[c] = true
		}
	}
	for i := len(s.Layouts) - 1; i >= 0; i-- {
		o.use(s.Layouts[i])
	}
	switch {
	case s.Held != nil && s.Simple != nil && o.simple != nil:
		o.held, o.keep = true, []byte(*s.Held)
		o.simple.n, o.simple.at = copy(o.simple.logger[:], s.Simple.Logger), s.Simple.At
	case s.Cand != nil:
		o.cand, o.keep = true, []byte(*s.Cand)
	}
	if s.Open != nil {
		o.reopen(s.Open)
	}
	return nil
}

// use puts a layout in front by its name.
func (o *Observer) use(name string) {
	if o.fixed {
		return
	}
	for i, l := range o.others {
		if l.name() == name || l.name() == "json" && len(name) > 4 && name[:5] == "json-" {
			o.others = append(o.others[:i:i], o.others[i+1:]...)
			o.layouts = append([]layout{l}, o.layouts...)
			return
		}
	}
	if p, err := compilePattern(name); err == nil {
		o.layouts = append([]layout{p}, o.layouts...)
	}
}

func (o *Observer) reopen(so *savedOpen) {
	r := &o.rec
	*r = record{kind: so.Kind, bytes: so.Bytes, told: so.Told, port: so.Port, at: so.At, indent: so.Indent, framed: so.Framed, rooted: so.Rooted}
	o.bare = append(o.bare[:0], so.Bare...)
	if so.Kind == full {
		o.h = head{level: so.Level, logger: []byte(so.Logger), method: so.Method, message: so.Message}
		o.openMethod = so.Method
		r.k = o.kinOf(&o.h, so.Message)
		// What was made of the fingerprint is no form for real messages: the next
		// one makes it anew.
		r.k.made, r.k.tmpl, r.k.sample = false, template{}, nil
		o.cool()
	}
	switch {
	case so.Quiet:
		r.exc = o.otherExc
	case so.Thrown != "":
		r.exc = o.saved(so.Thrown)
		if r.k == nil || so.Framed {
			break
		}
		if t := o.thrownOf(r.k, []byte(so.Thrown)); t != nil {
			r.frames = t.frames
		}
	}
	if so.Root != "" {
		r.root = o.saved(so.Root)
	}
	for _, name := range so.Events {
		if e := o.byEvent[name]; e != nil && r.n < len(r.events) {
			r.events[r.n] = e
			r.n++
		}
	}
	o.rehear(so.Words)
}

// words are those of the open record, nil where there is nothing to be told.
func (o *Observer) words() *savedWords {
	e, r := o.ear, &o.rec
	switch {
	case e == nil:
	case r.heard == taking:
		return &savedWords{Text: e.text, Thread: e.thread, Event: e.event}
	case r.heard == unheard && r.kind == full:
		return &savedWords{Head: e.head, Thread: e.thread}
	case r.heard == unheard:
		return &savedWords{}
	}
	return nil
}

// rehear takes them back. A gate that let the record pass is not asked again.
func (o *Observer) rehear(w *savedWords) {
	e, r := o.ear, &o.rec
	r.heard = done
	if e == nil || w == nil {
		return
	}
	e.thread, e.event, e.past = append(e.thread[:0], w.Thread...), w.Event, true
	if w.Text != nil {
		o.takeText(w.Text)
	} else {
		e.head = append(e.head[:0], w.Head...)
		r.heard = unheard
	}
}

// saved finds the entry of a class that a checkpoint names.
func (o *Observer) saved(class string) *exception {
	if class == metric.OtherValue {
		return o.otherExc
	}
	return o.exceptionOf([]byte(class))
}
