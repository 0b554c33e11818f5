package gclog

// The decoder turns lines into events. One decoder reads one stream; nothing of
// a line is kept but what stands in open, which is small, bounded and can be
// written into the checkpoint.
//
//	line -> clean -> starts with [deco]...[deco]?  -> unified.go  -> message
//	              -> "GC(n) ..." without decoration -> unified.go
//	              -> else                           -> legacy.go   -> brackets
type decoder struct {
	out func(*Event)
	ev  Event
	// wantTime: read the stamps too. An observer has no use for them.
	wantTime bool
	maxLines int

	deco decorations
	// hops counts how often one line was taken up anew behind some text, which
	// keeps the time linear and the stack flat whatever the line holds.
	hops      int
	lastCause Cause
	jdk       string // the last version that was printed
	releasing bool   // what comes out now is of the line before
	now       Stamp
	open
}

// open is everything that is unfinished between two lines.
type open struct {
	Collector Collector `json:"collector,omitempty"`
	Unified   bool      `json:"unified,omitempty"` // what the last line of a known form was
	// Bare says that unified messages without any decoration were seen.
	Bare bool `json:"bare,omitempty"`

	// Unified.
	Starts     bool    `json:"starts,omitempty"`   // start lines are printed
	Outer      started `json:"outer"`              // the pause that began and did not end
	Held       held    `json:"held"`               // a Full that may lie inside the next Young
	LastID     int64   `json:"last_id,omitempty"`  // of the last pause that ended
	RegionSize float64 `json:"region,omitempty"`   // G1, bytes
	Regions    regions `json:"regions"`            // G1's lines of the collection at hand
	OldID      int64   `json:"old_id,omitempty"`   // collection whose old generation is in OldGrew
	OldGrew    float64 `json:"old_grew,omitempty"` // bytes
	Capacity   float64 `json:"capacity,omitempty"` // ZGC's last capacity row, bytes
	// Operation is the safepoint operation said by JDK 9 to 12's "Entering" line.
	Operation [48]byte `json:"-"`
	OpLen     int      `json:"-"`
	// Degenerated is the id of the last degenerated collection, plus one.
	Degenerated int64 `json:"degenerated,omitempty"`

	// Legacy.
	LastUp  float64            `json:"last_up,omitempty"` // uptime of the last record
	Frames  [maxDepth]frame    `json:"frames"`
	Depth   int                `json:"depth,omitempty"`
	Records [maxRecords]record `json:"records"`
	Nrec    int                `json:"nrec,omitempty"`
	Lines   int                `json:"lines,omitempty"` // that the open record spans
	// LastHeap: the last pause printed its own heap sizes, so that a following
	// Eden line only refines them.
	LastHeap  bool `json:"last_heap,omitempty"`
	LastYoung bool `json:"last_young,omitempty"` // the last pause was young, so the Eden line says what it promoted
	// Histogram: a class histogram is open at the top level.
	Histogram bool `json:"histogram,omitempty"`
	// Details: G1 prints Eden lines, whose sizes are better than the headers'.
	Details bool `json:"details,omitempty"`
}

type started struct {
	ID   int64 `json:"id"`
	Kind Kind  `json:"kind"`
	Set  bool  `json:"set,omitempty"`
}

type held struct {
	Set     bool       `json:"set,omitempty"`
	ID      int64      `json:"id,omitempty"`
	Cause   Cause      `json:"cause,omitempty"`
	Seconds float64    `json:"seconds,omitempty"`
	Heap    Transition `json:"heap"`
}

type regions struct {
	ID        int64   `json:"id,omitempty"`
	YoungFrom float64 `json:"young_from,omitempty"`
	YoungTo   float64 `json:"young_to,omitempty"`
	OldBefore float64 `json:"old_from,omitempty"`
	OldAfter  float64 `json:"old_to,omitempty"`
	Seen      uint8   `json:"seen,omitempty"` // bits: eden, survivor, old, humongous
}

func newDecoder(out func(*Event)) *decoder {
	return &decoder{out: out, maxLines: DefaultConfig().MaxRecordLines}
}

// line decodes one line.
func (d *decoder) line(b []byte) {
	b = clean(b)
	if len(b) == 0 {
		return
	}
	d.hops = 0
	if b[0] == '[' && d.deco.parse(b) && !d.deco.foreign(b) {
		if d.Nrec > 0 {
			d.abandon() // the server was restarted on a newer Java
		}
		d.decorated(b)
		return
	}
	if b[0] == 'G' && has(b, "GC(") {
		d.Unified, d.Bare = true, true
		d.now = Stamp{}
		d.message(b, false)
		return
	}
	if d.Bare && d.Nrec == 0 && d.bareLine(b) {
		return
	}
	if !d.Bare && d.Nrec == 0 && bareBegins(b) {
		d.Bare = true
		d.bareLine(b)
		return
	}
	d.legacy(b)
}

// event hands one event on and makes room for the next.
func (d *decoder) event(t EventType) *Event {
	d.ev = Event{Type: t}
	return &d.ev
}

func (d *decoder) failure(f Failure) {
	e := d.event(FailureEvent)
	e.Failure = f
	d.out(e)
}

func (d *decoder) heap(g Generation, t Transition, refines bool) {
	e := d.event(HeapEvent)
	e.Gen, e.Heap, e.Refines = g, t, refines
	d.out(e)
}

func (d *decoder) unrecognised(b []byte) {
	e := d.event(UnrecognisedEvent)
	e.Name = b
	d.out(e)
}

// idle closes what waits only for its next line.
func (d *decoder) idle() { d.release(false) }

// gap says that the next line does not follow the last one.
func (d *decoder) gap() {
	d.release(false)
	d.abandon()
	d.Outer.Set = false
	d.OpLen = 0
}

// restart forgets what the JVM before left open.
func (d *decoder) restart() {
	d.gap()
	d.open = open{Unified: d.Unified, Bare: d.Bare}
	d.out(d.event(RestartEvent))
}

// waiting says whether idle would close something.
func (d *decoder) waiting() bool { return d.Held.Set }
