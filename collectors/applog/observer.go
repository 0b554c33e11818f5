package applog

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

const (
	maxSample = 1024
	maxPorts  = 32
)

// recordKind is what the open entry is.
type recordKind uint8

const (
	nothing  recordKind = iota
	full                // a record of a layout
	uncaught            // "Exception in thread …", and a trace that somebody printed
	dump                // a thread dump or a heap listing: indented lines are raw
)

// record is the open entry.
type record struct {
	kind   recordKind
	k      *kin
	bytes  uint64
	told   uint64 // of these, what is counted already
	port   string
	at     int64
	exc    *exception // as thrown
	root   *exception // the deepest cause so far
	indent int        // of the exception's line, in tabs
	framed bool       // a frame was read
	frames []*boundRule
	events [4]*eventState
	n      int
	rooted bool // the root cause is counted
	late   bool // port is not read yet: Observer.recThread has the thread
	heard  hearing
}

// Observer counts one file. It satisfies collectors.Observer, and ObserveBlock
// is the faster way in for whoever has many lines at once.
type Observer struct {
	cfg Config
	set *metric.Set
	// figures is set, or a private Set for a copy, whose records are counted for
	// nobody but Pair.
	figures *metric.Set

	lines, bytes, raw          *metric.Number
	newExceptions, newPatterns *metric.Number
	byLevel                    [levels]*metric.Number

	layouts []layout // those that were seen, the last one first
	others  []layout // those that were not yet
	fixed   bool     // the layout is given
	simple  *simple  // the one layout whose first line waits for its second

	h          head
	rec        record
	openMethod bool
	held       bool   // the last line may be the first of a SimpleFormatter's record
	cand       bool   // the last line may be an exception's, or raw
	keep       []byte // the line that is held or cand
	bare       []byte // the exception of a trace that somebody printed, until its first frame
	plain      []byte // a line without its colours
	key        []byte

	kins     map[string]*kin
	hot      [4]*kin
	spill    kin
	known    map[uint64]bool
	excs     map[string]*exception
	lastExc  *exception
	otherExc *exception
	knownExc map[string]bool
	events   []*eventState
	byEvent  map[string]*eventState
	rules    []*boundRule
	uncaught []*boundRule
	rawRules []*boundRule
	user     []*userEvent

	lastThread []byte
	recThread  []byte
	lastPort   string
	ports      map[string]string
	pools      map[string]*poolGauges

	run             int  // starts of the server seen in the log
	starting        bool // the last record was one of a start
	firstAt, lastAt int64
	records         uint64     // heads read, which is what Pair compares
	seen            uint64     // lines, as a whole number
	pair            *savedPair // of a primary that has a copy
	recent          ring
	bodies          bodies
	threwNow        bool      // the last line was an exception's
	tells           uint64    // events of records, as a whole number
	rawSeen         uint64    // raw lines, as a whole number
	times           *timeline // of a Report
	ear             *ear      // nil where nobody listens
}

// New makes the observer of one file. cfg was checked.
func New(set *metric.Set, cfg Config) *Observer {
	if cfg.Role == "" {
		cfg.Role = Primary
	}
	o := &Observer{cfg: cfg, set: set, figures: set,
		kins: map[string]*kin{}, known: map[uint64]bool{},
		excs: map[string]*exception{}, knownExc: map[string]bool{}, pools: map[string]*poolGauges{}, ports: map[string]string{}}
	if cfg.Role == Copy {
		o.figures = metric.NewSet()
	}
	o.lines, o.bytes = set.Start(Lines), set.Start(Bytes)
	o.raw = o.figures.Start(RawLines)
	o.newExceptions, o.newPatterns = o.figures.Start(NewExceptions), o.figures.Start(NewPatterns)
	for l := None + 1; l < levels; l++ {
		o.byLevel[l] = o.figures.Start(Records, l.String())
	}
	o.otherExc = o.newException(metric.OtherValue)
	o.byEvent = map[string]*eventState{}
	for i := range Events {
		e := &Events[i]
		st := o.newEvent(e.Name, len(e.Labels) > 0)
		for j := range e.rules {
			r := &boundRule{&e.rules[j], st}
			switch {
			case r.raw != nil:
				o.rawRules = append(o.rawRules, r)
			case r.uncaught:
				o.uncaught = append(o.uncaught, r)
			default:
				o.rules = append(o.rules, r)
			}
		}
	}
	for i := range cfg.Events {
		u, err := cfg.Events[i].compile()
		if err != nil {
			continue // Check said so
		}
		u.state = o.newEvent(cfg.Events[i].Name, false)
		o.user = append(o.user, u)
	}
	o.setLayouts()
	return o
}

func (o *Observer) setLayouts() {
	o.layouts, o.others = nil, builtin()
	for _, l := range o.others {
		if s, ok := l.(*simple); ok {
			o.simple = s
		}
	}
	if o.cfg.Layout == "" {
		return
	}
	if p, err := compilePattern(o.cfg.Layout); err == nil {
		o.layouts, o.others, o.simple, o.fixed = []layout{p}, nil, nil, true
	}
}

func (o *Observer) newEvent(name string, ported bool) *eventState {
	st := &eventState{name: name, bytesN: o.figures.Start(EventBytes, name)}
	st.byPort = append(st.byPort, portNumber{"", o.figures.Start(EventsTotal, name, "")})
	if ported {
		for _, p := range o.cfg.Ports[:min(len(o.cfg.Ports), maxPorts/2)] {
			s := strconv.Itoa(p)
			st.byPort = append(st.byPort, portNumber{s, o.figures.Start(EventsTotal, name, s)})
		}
	}
	o.events = append(o.events, st)
	o.byEvent[name] = st
	return st
}

func (o *Observer) level(l Level) *metric.Number {
	if o.byLevel[l] == nil {
		o.byLevel[l] = o.figures.Counter(Records, l.String())
	}
	return o.byLevel[l]
}

// Observe takes one line without its end.
func (o *Observer) Observe(line []byte) (open bool) {
	o.seen++
	o.lines.Inc()
	o.bytes.Add(float64(len(line) + 1))
	o.line(line)
	return o.open()
}

func (o *Observer) open() bool {
	return o.held || o.cand || o.rec.kind != nothing && !o.rec.rooted
}

// line does with a line all but count it. Lines of a trace are the many, and
// leave by the first door.
func (o *Observer) line(line []byte) {
	if len(line) > 0 && (line[0] == '\t' || line[0] == ' ') && !o.held {
		if o.rec.kind == full && !o.cand && o.rec.framed && len(line) > 5 && (line[1] == 'a' && line[2] == 't' || line[2] == 'a' && line[3] == 't') {
			o.rec.bytes += uint64(len(line) + 1)
			if o.rec.heard == taking {
				o.more(line)
			}
			return
		}
		if !o.spaced() || o.fastIndent(line) {
			o.indented(line)
			return
		}
	}
	o.column0(line)
}

// fastIndent says that an indented line is of a trace for sure.
func (o *Observer) fastIndent(line []byte) bool {
	_, rest := tabs(line)
	return bytes.HasPrefix(rest, atMark) || isMore(rest)
}

// spaced says whether any layout in use begins its records with a space.
func (o *Observer) spaced() bool {
	for _, l := range o.layouts {
		if l.spaced() {
			return true
		}
	}
	return len(o.layouts) == 0 && !o.fixed
}

// column0 takes a line that does not begin with white space, or is empty.
func (o *Observer) column0(line []byte) {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		o.plain = plain(o.plain[:0], line)
		line = o.plain
	}
	if o.seen == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	// Only now: a line may be nothing but colours, or nothing but the mark.
	if len(line) == 0 {
		if o.held {
			o.dropHeld()
		}
		o.blank()
		return
	}
	extra := 0
	switch o.match(line) {
	case yes:
		if o.held {
			extra, o.held = len(o.keep)+1, false
		}
		if o.cand {
			o.dropCand()
		}
		o.begin(line, extra)
		return
	case hold:
		if o.held {
			o.dropHeld()
		}
		if o.cand {
			o.dropCand()
		}
		o.held = true
		o.keep = append(o.keep[:0], line...)
		return
	}
	if o.held {
		o.dropHeld()
	}
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		o.indented(line)
		return
	}
	o.other(line)
}

// match tries the layouts: those in use first, then the rest, then whether a
// conversion pattern can be read off the line.
func (o *Observer) match(line []byte) verdict {
	if o.simple != nil {
		o.simple.held = o.held
	}
	for i, l := range o.layouts {
		if v := l.head(line, &o.h); v != no {
			if i > 0 {
				copy(o.layouts[1:i+1], o.layouts[:i])
				o.layouts[0] = l
			}
			return v
		}
	}
	if o.fixed {
		return no
	}
	if len(o.layouts) >= maxLayouts { // make room: the one not used for longest
		last := o.layouts[len(o.layouts)-1]
		o.layouts = o.layouts[:len(o.layouts)-1]
		if _, ok := last.(*pattern); !ok {
			o.others = append(o.others, last)
		}
	}
	weak := no
	for i, l := range o.others {
		switch l.head(line, &o.h) {
		case yes:
			o.others = slices.Delete(o.others, i, i+1)
			o.layouts = append([]layout{l}, o.layouts...)
			return yes
		case hold:
			weak = hold
		}
	}
	if p := infer(line); p != nil && p.head(line, &o.h) == yes {
		o.layouts = append([]layout{p}, o.layouts...)
		return yes
	}
	return weak
}

// begin opens a record. extra are the bytes of a line of its head before this.
func (o *Observer) begin(line []byte, extra int) {
	o.close()
	if o.ear != nil {
		o.ear.past = false
	}
	h := &o.h
	k := o.kinOf(h, line)
	o.records++
	if k.start != o.starting {
		if o.starting = k.start; k.start {
			o.run++
		}
	}
	k.records.Inc()
	k.byLogger.Inc()
	k.count++
	if h.at != 0 {
		if k.first == 0 {
			k.first = h.at
			if o.firstAt == 0 {
				o.firstAt = h.at
			}
		}
		k.last, o.lastAt = h.at, h.at
	}
	o.openMethod = h.method
	r := &o.rec
	r.kind, r.k, r.at = full, k, h.at
	r.bytes = uint64(len(line) + 1 + extra)
	if k.ported {
		r.port = o.portOf(h)
	} else if len(k.after) > 0 { // an exception may make it an event
		o.recThread = append(o.recThread[:0], h.thread...)
		r.late = true
	}
	if k.pool {
		o.jettyPool(h.message)
	}
	for _, e := range k.events {
		o.tell(e, line)
	}
	for _, u := range o.user {
		if u.matches(h.message, h.level) {
			o.tell(u.state, line)
		}
	}
	if o.ear != nil && h.thrown == nil {
		o.hear(line, extra)
	}
	if h.thrown != nil {
		o.threw(h.thrown, 0)
		if h.frame != nil {
			o.frame(h.frame)
		}
		if h.root != nil && r.exc != nil {
			o.cause(h.root)
		}
		if o.ear != nil { // the whole trace is in the line, and all events are told
			o.hear(line, extra)
		}
	}
	if o.times != nil {
		o.times.add(h.at, h.level)
	}
	o.recent.record(k, line, r)
	h.thrown, h.root, h.frame = nil, nil, nil
}

// tell counts an event, once a record.
func (o *Observer) tell(e *eventState, line []byte) {
	r := &o.rec
	for i := 0; i < r.n; i++ {
		if r.events[i] == e {
			return
		}
	}
	o.tells++
	if r.n < len(r.events) {
		r.events[r.n] = e
		r.n++
	}
	if r.late {
		r.late = false
		r.port = o.portOfThread(o.recThread)
	}
	e.count++
	e.number(o, r.port).Inc()
	if r.at != 0 {
		if e.first == 0 {
			e.first = r.at
		}
		e.last = r.at
	}
	if e.sample == nil {
		e.sample = bytes.Clone(line[:min(len(line), maxSample)])
	}
	if o.ear != nil {
		o.hearEvent(e, line)
	}
}

func (e *eventState) number(o *Observer, port string) *metric.Number {
	for i := range e.byPort {
		if e.byPort[i].port == port {
			return e.byPort[i].n
		}
	}
	if len(e.byPort) >= maxPorts {
		port = metric.OtherValue
	}
	n := o.figures.Counter(EventsTotal, e.name, port)
	if len(e.byPort) <= maxPorts {
		e.byPort = append(e.byPort, portNumber{port, n})
	}
	return n
}

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

func (o *Observer) dropHeld() {
	o.held = false
	o.other(o.keep)
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

// close ends the open entry: its root cause is known now.
func (o *Observer) close() {
	r := &o.rec
	if r.kind == nothing {
		return
	}
	o.flush()
	*r = record{}
}

// flush counts what is known of the open entry by now.
func (o *Observer) flush() {
	r := &o.rec
	if r.exc != nil && !r.rooted {
		root := r.root
		if root == nil {
			root = r.exc
		}
		root.root.Inc()
		root.count++
		root.see(r.at)
	}
	r.rooted = true
	if r.heard == taking {
		o.tellRecord()
	}
	more := r.bytes - r.told
	r.told = r.bytes
	if r.k != nil {
		r.k.bytes += more
	}
	if r.n > 0 {
		r.events[0].bytes += more
		r.events[0].bytesN.Add(float64(more))
	}
}

// Idle says that nothing came for a while. Lines of a trace that come later
// still belong to its record.
func (o *Observer) Idle(now time.Time) {
	if o.held {
		o.dropHeld()
	}
	if o.cand {
		o.dropCand()
	}
	if o.rec.kind != nothing {
		o.flush()
	}
}

// Gap says that bytes are missing: what is open ends here.
func (o *Observer) Gap() {
	if o.held {
		o.dropHeld()
	}
	if o.cand {
		o.dropCand()
	}
	o.close()
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
