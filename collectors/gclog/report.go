package gclog

import (
	"math"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A Report sums up log files for a reader. Lines are fed as to an Observer;
// Begin names the file they come from. Memory is bounded whatever is fed.
type Report struct {
	dec    *decoder
	files  []*fileStats
	cur    *fileStats
	acc    account
	covers cover // all files as one stream
	// shift is added to uptimes after a restart, so that the plots go on.
	shift, lastTime float64
	lastFull        bool // the last pause was a full one; its heap follows
	prefix          [192]byte
	prefixLen       int
}

const (
	maxFiles     = 1000
	maxExact     = 8192 // pauses of one kind whose percentiles are exact
	maxLongest   = 10
	maxExamples  = 8
	maxLabelled  = 200
	plotBins     = 120
	examplesText = 120
)

// fileStats is what one file says.
type fileStats struct {
	name      string
	collector Collector
	jdk       string
	unified   bool
	bytes     uint64
	lines     uint64

	pauses, nested uint64
	seconds, max   float64
	byKind         [kinds]kindStats
	byCause        [len(causeNames)]causeStats
	failures       [failureCount]uint64
	concStarts     uint64
	stalls         kindStats
	relocStalls    kindStats
	stopped        kindStats
	sync           float64
	operations     map[string]*causeStats
	concurrent     map[string]*causeStats
	cycles         map[string]uint64
	cycleCauses    [len(causeNames)]uint64
	longest        []longPause
	longestStops   []longPause

	heapAfter, committed float64
	hasHeap, hasSize     bool
	heapMax              float64
	afterFull            trend
	afterAny             trend
	allocated, promoted  float64

	dropped, incomplete, unrecognised uint64
	examples                          []string

	first, last Stamp
	firstSet    bool
	// written is when the file was last written to, in Unix time, 0 if unknown.
	written   float64
	covers    cover
	generatns [generations]Transition
	bins      timeBins
}

// NewReport makes an empty report.
func NewReport() *Report {
	r := &Report{}
	r.dec = newDecoder(r.take)
	r.dec.wantTime = true
	return r
}

// Begin says that the following lines come from another file. What is open goes
// on: rotation may cut a collection in two.
func (r *Report) Begin(name string) {
	r.end()
	r.cur = &fileStats{name: name, operations: map[string]*causeStats{}, concurrent: map[string]*causeStats{}, cycles: map[string]uint64{}}
	if len(r.files) < maxFiles {
		r.files = append(r.files, r.cur)
	}
}

// SetWritten says when the file at hand was last written to, in Unix time. A log
// that prints only uptimes has its dates by that: its last line is of then.
func (r *Report) SetWritten(unix float64) { r.file().written = unix }

// dated gives the first and the last stamp dates, where the log prints only
// uptimes and it is known when it was written. A stamp before a restart has
// another start, which no line tells.
func (f *fileStats) dated() (first, last Stamp, ok bool) {
	first, last = f.first, f.last
	if !f.firstSet || f.written <= 0 || !last.HasUp || first.HasWall || last.HasWall {
		return first, last, false
	}
	last.Wall, last.HasWall = f.written, true
	if f.covers.restarts == 0 && first.HasUp && first.Uptime <= last.Uptime {
		first.Wall, first.HasWall = f.written-(last.Uptime-first.Uptime), true
	}
	return first, last, true
}

// end closes the file at hand.
func (r *Report) end() {
	if r.cur == nil {
		return
	}
	r.remember()
}

// finish closes what no further line can close.
func (r *Report) finish() {
	if r.cur != nil {
		r.dec.gap()
	}
	r.end()
}

func (r *Report) file() *fileStats {
	if r.cur == nil {
		r.Begin("")
	}
	return r.cur
}

// Observe takes one line.
func (r *Report) Observe(line []byte) bool {
	f := r.file()
	f.lines++
	f.bytes += uint64(len(line)) + 1
	r.keepStamp(line)
	r.dec.line(line)
	if r.dec.Collector != CollectorUnknown {
		f.collector = r.dec.Collector
	}
	if r.dec.jdk != "" {
		f.jdk = r.dec.jdk
	}
	f.unified = r.dec.Unified
	return r.dec.waiting()
}

// keepStamp keeps the beginning of the last line that may carry a time. Only
// the first and the last are read, when they are wanted.
func (r *Report) keepStamp(line []byte) {
	line = clean(line)
	if len(line) == 0 || line[0] != '[' && !isDigit(line[0]) {
		return
	}
	f := r.cur
	if line[0] == '[' {
		// What is no decoration at all (G1's own brackets) has no digit or level.
		if len(line) < 3 || !isDigit(line[1]) {
			return
		}
	} else {
		s, n := legacyStamp(line)
		if n == 0 {
			return
		}
		r.prefixLen = 0
		if !f.firstSet {
			f.first, f.firstSet = s, true
		}
		// Not every line has both clocks.
		if s.HasUp {
			f.last.Uptime, f.last.HasUp = s.Uptime, true
		}
		if s.HasWall {
			f.last.Wall, f.last.HasWall, f.last.Zone = s.Wall, true, s.Zone
		}
		return
	}
	r.prefixLen = copy(r.prefix[:], line)
	if !f.firstSet {
		if s, ok := stampAt(r.prefix[:r.prefixLen]); ok {
			f.first, f.last, f.firstSet = s, s, true
		}
	}
}

// remember reads the last stamp of the file.
func (r *Report) remember() {
	if r.prefixLen == 0 {
		if r.cur.firstSet {
			r.clock(r.cur.last, 0)
		}
		return
	}
	if s, ok := stampAt(r.prefix[:r.prefixLen]); ok {
		r.cur.last = s
		r.clock(s, 0)
	}
	r.prefixLen = 0
}

// Idle says that nothing more is there at present.
func (r *Report) Idle(time.Time) { r.dec.idle() }

// Gap says that lines were lost.
func (r *Report) Gap() { r.dec.gap() }

// clock is the time of an event on an axis that only grows. after is how long
// the event went on from its stamp.
func (r *Report) clock(s Stamp, after float64) (float64, bool) {
	v, ok := s.Seconds()
	if !ok {
		return r.lastTime, false
	}
	f := r.cur
	if !f.covers.open && f.firstSet {
		if w, ok := f.first.Seconds(); ok && w < v {
			f.covers.to(w, 0, s.HasUp)
			r.covers.to(w, 0, s.HasUp)
		}
	}
	f.covers.to(v, after, s.HasUp)
	if r.covers.to(v, after, s.HasUp) && r.lastTime > v+r.shift {
		r.shift = r.lastTime - v
	}
	r.lastTime = math.Max(r.lastTime, v+r.shift)
	return v + r.shift, true
}

// take sums one event up.
func (r *Report) take(e *Event) {
	f := r.file()
	switch e.Type {
	case PauseEvent:
		r.pause(f, e)
	case ConcurrentEvent:
		named(f.concurrent, e.Name).add(e.Seconds)
	case StoppedEvent:
		f.stopped.add(e.Seconds)
		f.sync += e.Sync
		named(f.operations, e.Name).add(e.Seconds)
		if len(f.longestStops) < maxLongest || e.Seconds > f.longestStops[maxLongest-1].seconds {
			f.longestStops = longer(f.longestStops, longPause{seconds: e.Seconds, sync: e.Sync, kind: string(e.Name), at: r.dec.now})
		}
	case StallEvent:
		f.stalls.add(e.Seconds)
	case RelocationStallEvent:
		f.relocStalls.add(e.Seconds)
	case FailureEvent:
		f.failures[e.Failure]++
	case HeapEvent:
		r.heap(f, e)
	case CycleEvent:
		f.cycles[string(e.Name)]++
		f.cycleCauses[e.Cause]++
	case AllocatedEvent:
		f.allocated += e.Heap.After
		f.promoted += e.Promoted
	case DroppedEvent:
		f.dropped += e.Count
		r.acc.lost()
	case IncompleteEvent:
		f.incomplete++
		r.acc.lost()
	case UnrecognisedEvent:
		f.unrecognised++
		if len(f.examples) < maxExamples {
			f.examples = append(f.examples, string(e.Name[:min(len(e.Name), examplesText)]))
		}
	case RestartEvent:
		r.acc = account{}
	}
}

func named(m map[string]*causeStats, name []byte) *causeStats {
	c := m[string(name)]
	if c == nil {
		n := string(name)
		if len(m) >= maxLabelled {
			n = metric.OtherValue
			if c = m[n]; c != nil {
				return c
			}
		}
		c = &causeStats{}
		m[n] = c
	}
	return c
}

func (r *Report) pause(f *fileStats, e *Event) {
	f.pauses++
	k := &f.byKind[e.Kind]
	if e.ConcStart {
		f.concStarts++
	}
	f.promoted += e.Promoted
	if e.Nested {
		f.nested++
		k.count++
		k.nesting++
		f.byCause[e.Cause].count++
		return
	}
	k.add(e.Seconds)
	f.byCause[e.Cause].add(e.Seconds)
	f.seconds += e.Seconds
	f.max = math.Max(f.max, e.Seconds)
	// A record of JDK 8 bears the time of its begin, a message of 9 that of its end.
	after := e.Seconds
	if r.dec.Unified {
		after = 0
	}
	x, ok := r.clock(r.dec.now, after)
	if !ok {
		x = float64(f.pauses) // no time at all: the plot goes by number
	}
	b := f.bins.at(x)
	b.pauses++
	b.pauseSum += e.Seconds
	b.pauseMax = math.Max(b.pauseMax, e.Seconds)
	if len(f.longest) < maxLongest || e.Seconds > f.longest[maxLongest-1].seconds {
		f.longest = longer(f.longest, longPause{seconds: e.Seconds, kind: e.Kind.String(), cause: e.Cause.String(), at: r.dec.now})
	}
	r.lastFull = e.Kind == KindFull
}

func (r *Report) heap(f *fileStats, e *Event) {
	if e.Rough {
		r.acc.rough(e)
		return
	}
	f.generatns[e.Gen] = e.Heap
	if e.Gen != Heap {
		return
	}
	f.heapAfter, f.hasHeap = e.Heap.After, true
	if e.Heap.Sized {
		f.committed, f.hasSize = e.Heap.Committed, true
	}
	f.heapMax = math.Max(f.heapMax, e.Heap.Before)
	f.allocated += r.acc.heap(e)
	x, ok := r.clock(r.dec.now, 0)
	if !ok {
		x = float64(f.pauses)
	}
	b := f.bins.at(x)
	b.merge(bin{heapMin: e.Heap.After, heapMax: e.Heap.Before, heapCount: 1})
	if e.Refines {
		return
	}
	f.afterAny.add(x, e.Heap.After)
	if r.lastFull {
		f.afterFull.add(x, e.Heap.After)
		r.lastFull = false
	}
}
