package gclog

import (
	"math"
	"slices"
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
	covers      cover
	generatns   [generations]Transition
	bins        timeBins
}

type kindStats struct {
	count   uint64
	sum     float64
	max     float64
	timed   uint64
	exact   []float64
	hist    *metric.Hist
	nesting uint64
}

func (k *kindStats) add(v float64) {
	k.count++
	k.timed++
	k.sum += v
	k.max = math.Max(k.max, v)
	if k.hist != nil {
		k.hist.Observe(v)
		return
	}
	k.exact = append(k.exact, v)
	if len(k.exact) == maxExact {
		k.spill()
	}
}

// spill trades exactness for bounded memory.
func (k *kindStats) spill() {
	if k.hist == nil {
		k.hist = metric.NewHist(PauseBuckets)
	}
	for _, v := range k.exact {
		k.hist.Observe(v)
	}
	k.exact = nil
}

func (k *kindStats) merge(o *kindStats) {
	k.count += o.count
	k.timed += o.timed
	k.sum += o.sum
	k.nesting += o.nesting
	k.max = math.Max(k.max, o.max)
	if k.hist == nil && o.hist == nil && len(k.exact)+len(o.exact) < maxExact {
		k.exact = append(k.exact, o.exact...)
		return
	}
	k.spill()
	if o.hist != nil {
		k.hist.Merge(o.hist)
	}
	for _, v := range o.exact {
		k.hist.Observe(v)
	}
}

func (k *kindStats) quantile(q float64) float64 {
	if k.timed == 0 {
		return math.NaN()
	}
	if k.hist != nil {
		return math.Min(k.hist.Quantile(q), k.max)
	}
	s := slices.Clone(k.exact)
	slices.Sort(s)
	i := int(math.Ceil(q*float64(len(s)))) - 1
	return s[max(0, min(i, len(s)-1))]
}

type causeStats struct {
	count uint64
	sum   float64
	max   float64
}

func (c *causeStats) add(v float64) {
	c.count++
	c.sum += v
	c.max = math.Max(c.max, v)
}

type longPause struct {
	seconds, sync float64
	kind          string
	cause         string
	at            Stamp
}

func longer(list []longPause, p longPause) []longPause {
	if len(list) == maxLongest && p.seconds <= list[len(list)-1].seconds {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, p, func(a, b longPause) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return -1 // the earlier stays in front
	})
	list = slices.Insert(list, i, p)
	return list[:min(len(list), maxLongest)]
}

// cover adds up the time that a log covers, the time between one JVM and the
// next left out.
type cover struct {
	sum, start float64
	// seen is the greatest stamp, end where its event ended, which may be later.
	seen, end float64
	open      bool
	restarts  int
}

// to moves the end to v and says whether another run began there.
func (c *cover) to(v, after float64, uptime bool) (again bool) {
	switch {
	case !c.open:
		c.start, c.seen, c.end, c.open = v, v, v, true
	case v < c.seen-1:
		// Uptime that falls is another JVM; a wall clock that falls was set back.
		c.sum += c.end - c.start
		c.start, c.seen, c.end = v, v, v
		if uptime {
			c.restarts++
		}
		again = true
	}
	c.seen = math.Max(c.seen, v)
	c.end = math.Max(c.end, v+after)
	return again
}

// seconds is the time covered so far.
func (c *cover) seconds() float64 { return c.sum + c.end - c.start }

// trend is a line of least squares through heap sizes over time.
type trend struct {
	n, sx, sy, sxx, sxy, syy float64
	first, last              float64
}

func (t *trend) add(x, y float64) {
	if t.n == 0 {
		t.first = x
	}
	t.last = x
	x -= t.first // keeps the sums small
	t.n++
	t.sx += x
	t.sy += y
	t.sxx += x * x
	t.sxy += x * y
	t.syy += y * y
}

// slope is in bytes a second, fit is r squared.
func (t *trend) slope() (perSecond, fit float64, ok bool) {
	d := t.n*t.sxx - t.sx*t.sx
	if t.n < 5 || d <= 0 {
		return 0, 0, false
	}
	perSecond = (t.n*t.sxy - t.sx*t.sy) / d
	if v := t.n*t.syy - t.sy*t.sy; v > 0 {
		c := t.n*t.sxy - t.sx*t.sy
		fit = c * c / (d * v)
	}
	return perSecond, fit, true
}

// timeBins keeps a plot of fixed width over a span that is not known
// beforehand: when time runs past the end, two bins become one.
type timeBins struct {
	start, width float64
	set          bool
	bins         [plotBins]bin
	used         int
}

type bin struct {
	pauses    uint64
	pauseSum  float64
	pauseMax  float64
	heapMin   float64
	heapMax   float64
	heapCount uint64
}

func (b *bin) merge(o bin) {
	b.pauses += o.pauses
	b.pauseSum += o.pauseSum
	b.pauseMax = math.Max(b.pauseMax, o.pauseMax)
	if o.heapCount > 0 {
		if b.heapCount == 0 || o.heapMin < b.heapMin {
			b.heapMin = o.heapMin
		}
		b.heapMax = math.Max(b.heapMax, o.heapMax)
		b.heapCount += o.heapCount
	}
}

func (t *timeBins) at(x float64) *bin {
	if !t.set {
		t.start, t.width, t.set = x, .05, true
	}
	if x < t.start {
		x = t.start
	}
	for x >= t.start+t.width*plotBins {
		for i := 0; i < plotBins/2; i++ {
			n := t.bins[2*i]
			n.merge(t.bins[2*i+1])
			t.bins[i] = n
		}
		clear(t.bins[plotBins/2:])
		t.width *= 2
		t.used = (t.used + 1) / 2
		if t.width > 1e12 {
			t.start = x // a clock that makes no sense
		}
	}
	i := min(int((x-t.start)/t.width), plotBins-1)
	t.used = max(t.used, i+1)
	return &t.bins[i]
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
