package gclog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Observer counts one stream. It satisfies collectors.Observer.
type Observer struct {
	set *metric.Set
	cfg Config
	dec *decoder

	pauses map[pauseKey]*pauseHandles
	// last are the handles of lastKey: pauses of one kind come in rows.
	lastKey pauseKey
	last    *pauseHandles

	stopped    map[string]*metric.Hist
	concurrent map[string]*metric.Number
	stalls     map[string]*metric.Hist
	failures   [failureCount]*metric.Number
	before     [generations]*metric.Number
	after      [generations]*metric.Number
	committed  [generations]*metric.Number

	sync, allocated, promoted, humongous, unrecognised, incomplete, dropped *metric.Number

	acc account

	kept keeper
	ear  *Listener // nil where nobody listens
	line []byte    // that is being read, where somebody does
}

// pauseKey is collector, kind and cause in one number.
type pauseKey uint32

type pauseHandles struct {
	seconds     *metric.Hist // nil until one that is not nested comes
	collections *metric.Number
}

// handleLimit bounds our own look-up tables of open labels; the Set bounds the
// series.
const handleLimit = 256

// New makes an observer that writes into set.
func New(set *metric.Set, cfg Config) *Observer {
	o := &Observer{set: set, cfg: cfg}
	o.dec = newDecoder(o.take)
	if cfg.MaxRecordLines > 0 {
		o.dec.maxLines = cfg.MaxRecordLines
	}
	o.handles()
	return o
}

// handles looks all series up anew, at the start and after Load.
func (o *Observer) handles() {
	o.pauses = map[pauseKey]*pauseHandles{}
	o.last = nil
	o.stopped = map[string]*metric.Hist{}
	o.concurrent = map[string]*metric.Number{}
	o.stalls = map[string]*metric.Hist{}
	o.before, o.after, o.committed = [generations]*metric.Number{}, [generations]*metric.Number{}, [generations]*metric.Number{}
	for f := Failure(0); f < failureCount; f++ {
		o.failures[f] = o.set.Start(failuresTotal, f.String())
	}
	o.sync = o.set.Start(safepointSync)
	o.allocated = o.set.Start(allocatedBytes)
	o.promoted = o.set.Start(promotedBytes)
	o.humongous = o.set.Start(humongousTotal)
	o.unrecognised = o.set.Start(unrecognisedLines)
	o.incomplete = o.set.Start(incompleteRecords)
	o.dropped = o.set.Start(droppedMessages)
}

// Observe takes one line.
func (o *Observer) Observe(line []byte) bool {
	if o.cfg.Mixed && (len(line) == 0 || line[0] == '\t') {
		return o.dec.waiting()
	}
	if o.ear != nil {
		o.line = line
		o.read(line)
		if o.ear.Match != nil {
			o.hearLine(line)
		}
		o.line = nil
		return o.dec.waiting()
	}
	o.read(line)
	return o.dec.waiting()
}

// read decodes a line, and keeps it for the page while there is leave to.
func (o *Observer) read(line []byte) {
	if o.kept.leave > 0 {
		o.keep(line)
	} else {
		o.kept.whole = line
		o.dec.line(line)
	}
	o.kept.whole = nil // the line is not ours any more
}

// Idle closes what waits only for the next line. A record of JDK 8 stays open:
// its rest comes when the collection ends, which may take a minute.
func (o *Observer) Idle(time.Time) { o.dec.idle() }

// Gap says that lines were lost.
func (o *Observer) Gap() { o.dec.gap() }

// take counts one event.
func (o *Observer) take(e *Event) {
	switch e.Type {
	case PauseEvent:
		h := o.handlesOf(e)
		h.collections.Inc()
		if !e.Nested {
			if h.seconds == nil {
				h.seconds = o.set.Histogram(pauseSeconds, o.dec.Collector.String(), e.Kind.String(), e.Cause.String())
			}
			h.seconds.Observe(e.Seconds)
		}
		if e.Promoted > 0 {
			o.promoted.Add(e.Promoted)
		}
		if e.Cause == causeHumongous {
			o.humongous.Inc()
		}
	case ConcurrentEvent:
		o.phase(e.Name).Add(e.Seconds)
	case StoppedEvent:
		h := o.stopped[string(e.Name)]
		if h == nil {
			h = o.set.Histogram(stoppedSeconds, string(e.Name))
			if len(o.stopped) < handleLimit {
				o.stopped[string(e.Name)] = h
			}
		}
		h.Observe(e.Seconds)
		o.sync.Add(e.Sync)
	case StallEvent:
		pool := poolOf(e.Name)
		h := o.stalls[string(pool)]
		if h == nil {
			h = o.set.Histogram(stallSeconds, string(pool))
			if len(o.stalls) < handleLimit {
				o.stalls[string(pool)] = h
			}
		}
		h.Observe(e.Seconds)
	case FailureEvent:
		o.failures[e.Failure].Inc()
	case HeapEvent:
		o.heap(e)
	case AllocatedEvent:
		if e.Promoted > 0 {
			o.promoted.Add(e.Promoted)
		}
		if e.Heap.After > 0 {
			o.allocated.Add(e.Heap.After)
		}
	case DroppedEvent:
		o.dropped.Add(float64(e.Count))
		o.acc.lost()
	case IncompleteEvent:
		o.incomplete.Inc()
		o.acc.lost()
	case UnrecognisedEvent:
		if !o.cfg.Mixed {
			o.unrecognised.Inc()
			o.kept.refuse()
		}
	case RestartEvent:
		o.acc = account{}
	}
	if o.kept.at != nil {
		o.kept.made(o.dec, e)
	}
	if o.ear != nil {
		o.hear(e)
	}
}

func (o *Observer) handlesOf(e *Event) *pauseHandles {
	key := pauseKey(o.dec.Collector)<<16 | pauseKey(e.Kind)<<8 | pauseKey(e.Cause)
	if o.last != nil && o.lastKey == key {
		return o.last
	}
	h := o.pauses[key]
	if h == nil {
		h = &pauseHandles{collections: o.set.Counter(collectionsTotal, o.dec.Collector.String(), e.Kind.String(), e.Cause.String())}
		o.pauses[key] = h
	}
	o.lastKey, o.last = key, h
	return h
}

func (o *Observer) phase(name []byte) *metric.Number {
	n := o.concurrent[string(name)]
	if n == nil {
		n = o.set.Counter(concurrentSeconds, phaseLabel(name))
		if len(o.concurrent) < handleLimit {
			o.concurrent[string(name)] = n
		}
	}
	return n
}

// phaseLabel writes "Cleanup for Next Mark" as "cleanup-for-next-mark", as the
// older logs have it.
func phaseLabel(name []byte) string {
	b := make([]byte, len(name))
	for i, c := range name {
		switch {
		case c == ' ':
			b[i] = '-'
		case c >= 'A' && c <= 'Z':
			b[i] = c | 0x20
		default:
			b[i] = c
		}
	}
	return string(b)
}

func (o *Observer) heap(e *Event) {
	if e.Rough {
		o.acc.rough(e)
		return
	}
	set := func(to *[generations]*metric.Number, f *metric.Family, v float64) {
		n := to[e.Gen]
		if n == nil {
			n = o.set.Gauge(f, e.Gen.String())
			to[e.Gen] = n
		}
		n.Set(v)
	}
	set(&o.before, heapBefore, e.Heap.Before)
	set(&o.after, heapAfter, e.Heap.After)
	if e.Heap.Sized {
		set(&o.committed, heapCommitted, e.Heap.Committed)
	}
	if e.Gen == Heap {
		o.allocated.Add(o.acc.heap(e))
	}
}

// account turns a chain of heap transitions into bytes allocated: what is there
// before a collection, less what was left by the one before it.
type account struct {
	Last  float64 `json:"last"`
	Known bool    `json:"known,omitempty"`
}

func (a *account) heap(e *Event) (allocated float64) {
	if a.Known && !e.Refines {
		allocated = max(0, e.Heap.Before-a.Last)
	}
	a.Last, a.Known = e.Heap.After, true
	return allocated
}

func (a *account) rough(e *Event) {
	if a.Known {
		a.Last = max(0, a.Last-max(0, e.Heap.Before-e.Heap.After))
	}
}

// lost: a collection may be missing, so the next difference means nothing.
func (a *account) lost() { a.Known = false }

// poolOf folds a thread's name to its pool's: the number at its end is taken
// away, and the hash in the names of Jetty's pools.
func poolOf(name []byte) []byte {
	if has(name, "qtp") {
		return name[:3]
	}
	end := len(name)
	for end > 0 && (isDigit(name[end-1]) || name[end-1] == '-' || name[end-1] == '#' || name[end-1] == '_' || name[end-1] == ' ') {
		end--
	}
	if end == 0 {
		return name
	}
	return name[:end]
}

// saved is the checkpoint of an observer.
type saved struct {
	Set     json.RawMessage `json:"set"`
	Open    open            `json:"open"`
	Op      string          `json:"op,omitempty"`
	Account account         `json:"account"`
}

// Save writes down figures and open state.
func (o *Observer) Save() ([]byte, error) {
	set, err := o.set.Save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(saved{Set: set, Open: o.dec.open, Op: string(o.dec.Operation[:o.dec.OpLen]), Account: o.acc})
}

// valid says whether every index in the state points into its list.
func (o *open) valid() bool {
	ok := o.Depth >= 0 && o.Depth <= maxDepth && o.Nrec >= 0 && o.Nrec <= min(o.Depth, maxRecords) &&
		o.Collector < collectorCount && o.Outer.Kind < kinds && int(o.Held.Cause) < len(causeNames)
	for _, r := range o.Records {
		ok = ok && r.Kind < kinds && int(r.Cause) < len(causeNames)
	}
	records := 0
	for _, f := range o.Frames[:max(0, min(o.Depth, maxDepth))] {
		if f == frameGC {
			records++
		}
	}
	return ok && records == o.Nrec
}

// Load takes them back.
func (o *Observer) Load(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load GC log state: %w", err)
	}
	if err := o.set.Load(s.Set, Metrics); err != nil {
		return err
	}
	if !s.Open.valid() {
		s.Open = open{} // of another version, or damaged: its record is lost, no more
	}
	o.dec.open = s.Open
	o.dec.OpLen = copy(o.dec.Operation[:], s.Op)
	o.acc = s.Account
	o.handles()
	return nil
}
