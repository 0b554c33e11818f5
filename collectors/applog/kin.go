package applog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A kin is all records with the same level, logger and fingerprint. What such a
// record means is worked out once, for its first one; for the others it is
// enough to see that they are of the kin.
type kin struct {
	level   Level
	logger  string
	pattern string
	tmpl    template
	made    bool // tmpl is filled

	records, byLogger *metric.Number
	events            []*eventState // decided by the head alone
	after             []*boundRule  // may be decided by the exception or its first frame
	thrown            []*thrownKind // the exceptions last seen under it
	nextThrown        int
	ported            bool // its text may tell a port
	pool              bool // its text has a Jetty pool in it
	start             bool // such a record is among the first of a server that starts
	quiet             bool // a trace under it is no failure

	// Of the listener: what it said of the kin with this event, and its gate.
	asked, wanted bool
	askedFor      string
	gate          func() bool

	count, bytes uint64
	first, last  int64
	sample       []byte
	fresh        bool // not known from before
	run          int  // the run of the server in which it was first seen
}

// thrownKind is what an exception line means under one kin.
type thrownKind struct {
	class    string
	text     []byte // the whole of it, when the meaning hangs on it
	needText bool
	exc      *exception
	events   []*eventState
	frames   []*boundRule
}

// exception is one class of exceptions, or all beyond the bound.
type exception struct {
	class        string
	thrown, root *metric.Number
	count        uint64 // as root cause
	asThrown     uint64
	first, last  int64
	fresh        bool
}

// eventState is one event's figures.
type eventState struct {
	name        string
	bytesN      *metric.Number
	byPort      []portNumber
	count       uint64
	bytes       uint64
	first, last int64
	sample      []byte
	gate        func() bool // of the listener, for what is under no kin
}

type portNumber struct {
	port string
	n    *metric.Number
}

// boundRule is a rule and the event it decides.
type boundRule struct {
	*rule
	event *eventState
}

// kinOf finds the kin of a head, or makes it.
func (o *Observer) kinOf(h *head, line []byte) *kin {
	for i, k := range o.hot {
		if k == nil {
			break
		}
		if k.level == h.level && k.logger == string(h.logger) && k.tmpl.fast && k.tmpl.matches(h.message) {
			if i > 0 { // one place nearer: a lone stranger does not oust the storm
				o.hot[i-1], o.hot[i] = k, o.hot[i-1]
			}
			return k
		}
	}
	o.key = append(o.key[:0], byte(h.level))
	o.key = append(append(o.key, h.logger...), 0)
	at := len(o.key)
	o.key = fingerprint(o.key, h.message, nil)
	k := o.kins[string(o.key)]
	if k == nil {
		k = o.newKin(h, string(o.key[at:]), line)
	}
	if !k.made {
		k.made = true
		if k.sample == nil {
			k.sample = bytes.Clone(line[:min(len(line), maxSample)])
		}
		fingerprint(o.key[:at], h.message, &k.tmpl)
	}
	if k.tmpl.fast && k != &o.spill {
		copy(o.hot[len(o.hot)-2:], o.hot[len(o.hot)-1:])
		for i := range o.hot {
			if o.hot[i] == nil || i == len(o.hot)-1 {
				o.hot[i] = k
				break
			}
		}
	}
	return k
}

func (o *Observer) newKin(h *head, pattern string, line []byte) *kin {
	k := &kin{}
	full := len(o.kins) >= maxKins
	if full {
		// No entry of its own: its meaning is worked out each time.
		k = &o.spill
		*k = kin{count: k.count, bytes: k.bytes, first: k.first, last: k.last, made: true}
	}
	k.level, k.logger, k.pattern = h.level, string(h.logger), pattern
	k.records = o.level(h.level)
	k.byLogger = o.figures.Counter(LoggerRecords, k.logger, h.level.String())
	o.mean(k, h.method)
	if full {
		k.pattern = metric.OtherValue
		return k
	}
	o.kins[string(o.key)] = k
	if sum := fnv(o.key); !o.known[sum] {
		o.known[sum] = true
		k.fresh, k.run = true, o.run
		o.newPatterns.Inc()
	}
	return k
}

// mean works out what a kin's head decides, and what may still.
func (o *Observer) mean(k *kin, method bool) {
	class, name := k.logger, ""
	if method {
		// A method does not begin with a capital: then no method was printed.
		if c, m, ok := lastCut([]byte(k.logger), '.'); ok && len(m) > 0 && !isUpper(m[0]) {
			class, name = string(c), string(m)
		}
	}
	for _, r := range o.rules {
		if slices.Contains(r.not, class[lastDot(class)+1:]) {
			continue
		}
		if r.uncaught || r.raw != nil || !r.level(k.level) || !r.classOf(class) ||
			len(r.method) > 0 && method && !slices.Contains(r.method, name) ||
			len(r.method) > 0 && !method && r.text == nil && r.has == nil && r.thrown == nil ||
			!prefixed(k.pattern, r.text) || !within(k.pattern, r.has) {
			continue
		}
		if r.noException {
			k.quiet = true
		}
		if len(r.thrown) > 0 {
			k.after = append(k.after, r)
		} else if !slices.Contains(k.events, r.event) {
			k.events = append(k.events, r.event)
		}
	}
	k.ported = len(k.events) > 0
	for _, r := range k.after {
		k.ported = k.ported || r.pkg != "" || len(r.class) > 0
	}
	base := class[lastDot(class)+1:]
	k.start = base == "VersionLoggerListener" || base == "Server" && strings.HasPrefix(k.pattern, "jetty-")
	k.pool = bytes.Contains([]byte(k.pattern), []byte("QueuedThreadPool[*]"))
}

// cool forgets which kins are hot.
func (o *Observer) cool() { o.hot = [len(o.hot)]*kin{} }

func (r *rule) level(l Level) bool {
	if r.min == 0 {
		return l.grave()
	}
	return l >= r.min || l == None
}

// classOf holds a logger's class against the rule's.
func (r *rule) classOf(class string) bool {
	if r.pkg == "" && len(r.class) == 0 {
		return true
	}
	base := class
	if i := lastDot(class); i >= 0 {
		base = class[i+1:]
	}
	if r.pkg != "" && !inPackage(class[:len(class)-len(base)], r.pkg) {
		return false
	}
	if len(r.class) == 0 {
		return true
	}
	for _, c := range r.class {
		if base == c || len(base) > len(c) && base[:len(c)] == c && base[len(c)] == '$' {
			return true
		}
	}
	return false
}

func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' {
			return i
		}
	}
	return -1
}

// inPackage compares package names ("a.b."), where each part may be cut to its
// first letter, as logback's %logger{36} and log4j's %c{1.} print it.
func inPackage(have, want string) bool {
	for want != "" {
		if have == "" {
			return false
		}
		i, j := 0, 0
		for have[i] != '.' {
			i++
		}
		for want[j] != '.' {
			j++
		}
		if have[:i] != want[:j] && (i != 1 || have[0] != want[0]) {
			return false
		}
		have, want = have[i+1:], want[j+1:]
	}
	return have == ""
}

func prefixed(s string, any []string) bool {
	for _, p := range any {
		if len(s) >= len(p) && s[:len(p)] == p {
			return true
		}
	}
	return len(any) == 0
}

func within(s string, any []string) bool {
	for _, p := range any {
		if bytes.Contains([]byte(s), []byte(p)) {
			return true
		}
	}
	return len(any) == 0
}

// threw says that the text is an exception's line for sure, because one of the
// same class came under this kin before. In a storm that spares reading the
// class's name again.
func (k *kin) threw(text []byte) bool {
	if len(k.thrown) == 0 {
		return false
	}
	class := k.thrown[0].class
	n := len(class)
	return len(text) > n+1 && text[n] == ':' && text[n+1] == ' ' && string(text[:n]) == class
}

// thrownOf finds what an exception line means under a kin.
func (o *Observer) thrownOf(k *kin, text []byte) *thrownKind {
	for _, t := range k.thrown {
		n := len(t.class)
		if len(text) >= n && string(text[:n]) == t.class && (len(text) == n || text[n] == ':') &&
			(!t.needText || string(t.text) == string(text)) {
			return t
		}
	}
	class := throwable(text)
	if class == nil {
		return nil
	}
	t := &thrownKind{class: string(class), exc: o.exceptionOf(class)}
	for _, r := range k.after {
		if !slices.Contains(r.thrown, t.class) {
			continue
		}
		if len(r.excText) > 0 {
			t.needText = true
			if !within(string(text[len(class):]), r.excText) {
				continue
			}
		}
		switch {
		case len(r.frame) > 0:
			t.frames = append(t.frames, r)
		case !slices.Contains(t.events, r.event):
			t.events = append(t.events, r.event)
		}
	}
	if t.needText {
		t.text = bytes.Clone(text)
	}
	if len(k.thrown) < 4 {
		k.thrown = append(k.thrown, t)
	} else {
		k.thrown[k.nextThrown%4] = t
		k.nextThrown++
	}
	return t
}

// exceptionOf finds a class's entry, or the one of all others.
func (o *Observer) exceptionOf(class []byte) *exception {
	if o.lastExc != nil && o.lastExc.class == string(class) {
		return o.lastExc
	}
	e := o.excs[string(class)]
	if e == nil {
		if len(o.excs) >= maxExceptions {
			return o.otherExc
		}
		e = o.newException(string(class))
		if !o.knownExc[e.class] {
			o.knownExc[e.class] = true
			e.fresh = true
			o.newExceptions.Inc()
		}
		o.excs[e.class] = e
	}
	o.lastExc = e
	return e
}

func (o *Observer) newException(class string) *exception {
	return &exception{class: class,
		thrown: o.figures.Counter(Exceptions, class, "thrown"),
		root:   o.figures.Counter(Exceptions, class, "root")}
}

// fnv is FNV-1a: a hash that is the same in the next run, for the checkpoint.
func fnv(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
