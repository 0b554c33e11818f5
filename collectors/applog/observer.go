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
