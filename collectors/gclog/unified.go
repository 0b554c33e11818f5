package gclog

import "bytes"

// decorated takes a line whose decorations stand in d.deco.
func (d *decoder) decorated(b []byte) {
	d.Unified = true
	msg := b[d.deco.message:]
	if d.wantTime {
		d.now = Stamp{}
	}
	if d.deco.hasTags {
		t := d.deco.tags
		switch {
		case len(t) == 0:
			d.dropped(msg)
			return
		case t[0] == 'g' && has(t, "gc"):
			if !relevant(t) {
				return
			}
		case t[0] == 's' && has(t, "safepoint"):
			if len(t) > 9 && t[9] == ',' && string(t[10:]) == "stats" {
				return
			}
		default:
			// A class was loaded, a thread started: not our subject. Or this is a
			// hostname and there are no tags, then the message says so itself.
			if d.deco.hasLevel || !has(msg, "GC(") && !has(msg, "Safepoint ") {
				return
			}
			d.deco.hasTags = false
		}
	}
	if d.wantTime {
		d.now = d.deco.stamp(b)
	}
	d.message(msg, d.deco.hasTags)
}

// relevant says whether lines with these tags can bring events. Most lines of a
// debug log end here.
func relevant(t []byte) bool {
	if len(t) == 2 {
		return true
	}
	switch string(t[2:]) {
	case ",start", ",phases", ",heap", ",init", ",metaspace", ",ergo", ",promotion", ",ref", ",exit":
		return string(t[2:]) != ",ref"
	}
	return false
}

func (d *decoder) tag(s string) bool { return d.deco.hasTags && string(d.deco.tags) == s }

// dropped reads "  346 messages dropped due to async logging".
func (d *decoder) dropped(msg []byte) {
	m := trim(msg)
	mant, _, n := number(m)
	if n == 0 || !has(m[n:], " messages dropped") {
		return
	}
	// Ends of pauses may be among them.
	d.release(false)
	d.Outer.Set = false
	e := d.event(DroppedEvent)
	e.Count = mant
	d.out(e)
}

// bareLine takes a line without decoration and without "GC(n)", in a log that
// has such messages. It answers false when it is not one of unified logging.
func (d *decoder) bareLine(b []byte) bool {
	switch b[0] {
	case 'S':
		if has(b, `Safepoint "`) {
			d.safepoint(b)
			return true
		}
	case 'A':
		if has(b, "Allocation Stall (") {
			d.stall(b, StallEvent)
			return true
		}
	case 'U':
		if has(b, "Using ") {
			d.using(b[6:])
			return true
		}
	}
	return knownBare(b)
}

// message decodes a unified message. tagged says that there is a tags field and
// that it says gc or safepoint.
func (d *decoder) message(m []byte, tagged bool) {
	if !has(m, "GC(") {
		d.plainMessage(m, tagged)
		return
	}
	i := 3
	var id int64
	for i < len(m) && isDigit(m[i]) && i < 20 {
		id = id*10 + int64(m[i]-'0')
		i++
	}
	if i == 3 || i+1 >= len(m) || m[i] != ')' || m[i+1] != ' ' {
		return
	}
	m = m[i+2:]
	// ZGC of two generations: y: minor, Y: young of a major, O: old.
	var gen byte
	if len(m) > 3 && m[1] == ':' && m[2] == ' ' && (m[0] == 'y' || m[0] == 'Y' || m[0] == 'O') {
		gen = m[0]
		m = m[3:]
		d.Collector = ZGC
	}
	if len(m) == 0 {
		return
	}
	switch m[0] {
	case ' ':
		if gen != 0 || d.Collector == ZGC {
			d.zgcRow(m, gen)
		}
	case 'P':
		switch {
		case has(m, "Pause "):
			d.pause(m[6:], id)
		case has(m, "PSYoungGen: "):
			d.Collector = Parallel
			d.generation(m[12:], Young, id)
		case has(m, "ParOldGen: "):
			d.Collector = Parallel
			d.generation(m[11:], Old, id)
		case has(m, "ParNew: "):
			d.Collector = CMS
			d.generation(m[8:], Young, id)
		case has(m, "Promotion failed"), has(m, "Promotion Failed"):
			d.promotionFailed(m)
		}
	case 'D':
		switch {
		case has(m, "DefNew: "):
			d.Collector = Serial
			d.generation(m[8:], Young, id)
		case has(m, "Degenerated GC upgrad"):
			d.failure(FullAfterDegenerated)
		}
	case 'T':
		switch {
		case has(m, "Tenured: "):
			d.generation(m[9:], Old, id)
		case has(m, "To-space "):
			d.failure(ToSpaceExhausted)
		}
	case 'C':
		switch {
		case has(m, "Concurrent "):
			d.concurrent(m[11:], id)
		case has(m, "CMS: "):
			d.generation(m[5:], Old, id)
		case has(m, "Capacity:"):
			d.zgcRow(m, gen)
		case has(m, "Cannot finish degen"):
			d.failure(FullAfterDegenerated)
		}
	case 'E':
		if has(m, "Eden regions: ") {
			d.Collector = G1
			d.regionLine(m[14:], id, 1)
		}
	case 'S':
		if has(m, "Survivor regions: ") {
			d.regionLine(m[18:], id, 2)
		}
	case 'O':
		switch {
		case has(m, "Old regions: "):
			d.regionLine(m[13:], id, 4)
		case has(m, "Old Generation "):
			// The end of the old part of a major; the cycle's own line follows.
		}
	case 'H':
		if has(m, "Humongous regions: ") {
			d.regionLine(m[19:], id, 8)
		}
	case 'M':
		switch {
		case has(m, "Metaspace: "):
			d.generation(m[11:], Metaspace, id)
		case has(m, "Minor Collection ("):
			d.cycle(m[17:], "minor")
		case has(m, "Major Collection ("):
			d.cycle(m[17:], "major")
		}
	case 'G':
		switch {
		case has(m, "Garbage Collection ("):
			d.cycle(m[19:], "cycle")
		case has(m, "GC Overhead Limit"):
			d.overhead(m)
		case has(m, "GC time "):
			d.overhead(m)
		}
	case 'A':
		if has(m, "Allocation Stall (") {
			d.stall(m, StallEvent)
		}
	}
}

// plainMessage decodes a message that belongs to no collection.
func (d *decoder) plainMessage(m []byte, tagged bool) {
	if len(m) == 0 {
		return
	}
	switch m[0] {
	case 'S':
		if has(m, `Safepoint "`) {
			d.safepoint(m)
		}
	case 'T':
		if has(m, stoppedText) {
			d.stoppedLine(m)
		}
	case 'E':
		if has(m, "Entering safepoint region: ") {
			d.OpLen = copy(d.Operation[:], trim(m[27:]))
		}
	case 'A':
		if has(m, "Allocation Stall (") {
			d.stall(m, StallEvent)
		}
	case 'R':
		if has(m, "Relocation Stall (") {
			d.stall(m, RelocationStallEvent)
		}
	case 'U':
		if has(m, "Using ") {
			d.using(m[6:])
		}
	case 'H':
		if has(m, "Heap Region Size: ") || has(m, "Heap region size: ") {
			if v, n := size(m[18:]); n > 0 && v > 0 {
				d.RegionSize = v
			}
		}
	case 'P':
		if tagged && has(m, "Pause ") {
			d.pause(m[6:], -1)
		}
	case 'G':
		if has(m, "GC Overhead Limit") || has(m, "GC time ") {
			d.overhead(m)
		}
	case 'V':
		if has(m, "Version: ") {
			d.version(m[9:])
		}
	case 'I':
		if has(m, "Initializing The Z") {
			d.Collector = ZGC
		}
	}
}

// using reads the line that names the collector, the first of every JVM's log.
func (d *decoder) using(m []byte) {
	c := collectorNamed(m)
	if c == CollectorUnknown {
		return
	}
	if d.LastID > 0 || d.Outer.Set || d.Held.Set {
		d.restart()
	}
	d.Unified = true
	d.Collector = c
}

func collectorNamed(m []byte) Collector {
	switch {
	case has(m, "Serial"):
		return Serial
	case has(m, "Parallel"):
		return Parallel
	case has(m, "Concurrent Mark Sweep"):
		return CMS
	case has(m, "G1"):
		return G1
	case has(m, "The Z "), has(m, "the Z "), has(m, "ZGC"):
		return ZGC
	case has(m, "Shenandoah"):
		return Shenandoah
	case has(m, "Epsilon"):
		return Epsilon
	}
	return CollectorUnknown
}

// pause reads what follows "Pause ": words, groups, perhaps a transition, a
// number and "ms" to the end of the line. Without the number it is the start.
func (d *decoder) pause(m []byte, id int64) {
	nameEnd := words(m)
	if nameEnd == 0 {
		return
	}
	name := m[:nameEnd]
	kind, known := kindByPause[string(name)]
	rest := m[nameEnd:]
	var (
		cause    Cause
		hasCause bool
		conc     bool
		evac     bool
		unknown  bool
		t        Transition
		secs     float64
		ended    bool
	)
scan:
	for {
		rest = rest[spaces(rest):]
		if len(rest) == 0 {
			break
		}
		switch {
		case rest[0] == '(':
			g, n := group(rest)
			if n == 0 || len(g) == 0 {
				return
			}
			rest = rest[n:]
			switch {
			case isDigit(g[0]):
				// JDK 9 early builds print the two stamps of the pause.
			case string(g) == "Normal", string(g) == "Prepare Mixed":
				d.Collector = G1
			case string(g) == "Mixed":
				kind = KindMixed
				d.Collector = G1
			case string(g) == "Concurrent Start":
				conc = true
				d.Collector = G1
			case has(g, "Evacuation Failure"):
				evac = true
				d.Collector = G1
			default:
				if c, ok := causes[string(g)]; ok {
					cause, hasCause = c, true
				} else {
					unknown = true
				}
			}
		case isDigit(rest[0]):
			if tr, n := transition(rest); n > 0 {
				t = tr
				rest = rest[n:]
				continue
			}
			v, ok := millis(rest)
			if !ok {
				return
			}
			secs, ended = v, true
			break scan
		default:
			return // "Pause Init Mark (G)  = ..." is the table at exit
		}
	}
	if kind == KindInitialMark && (hasCause || unknown) && cause != causeCMSInitial && cause != causeCMSRemark {
		// G1 of JDK 9 and 10: a young pause that also marks.
		kind, conc = KindYoung, true
	}
	d.guess(kind, cause)
	if unknown && !hasCause && (kind == KindYoung || kind == KindMixed || kind == KindFull) && d.Collector != Shenandoah {
		cause = causeOther
	}
	if !known && kind == KindOther && ended {
		d.unrecognised(m)
	}
	if !ended {
		d.pauseStart(id, kind)
		return
	}
	d.pauseEnd(id, kind, cause, conc, evac, t, secs)
}

// words is the length of the capitalised words at the start of m.
func words(m []byte) int {
	i, end := 0, 0
	for i < len(m) {
		c := m[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-':
			i++
			end = i
			continue
		case c == ' ':
			i++
			continue
		}
		break
	}
	return end
}

// millis reads "5.123ms" or "5.123 ms" that ends the line.
func millis(b []byte) (float64, bool) {
	mant, frac, n := number(b)
	if n == 0 {
		return 0, false
	}
	rest := b[n:]
	rest = rest[spaces(rest):]
	if !has(rest, "ms") || spaces(rest[2:]) != len(rest)-2 {
		return 0, false
	}
	return scaled(mant, frac, 3), true
}

// guess names the collector from what only one of them prints.
func (d *decoder) guess(k Kind, c Cause) {
	switch {
	case c.isG1():
		d.Collector = G1
	case k >= KindMarkStart && k <= KindRelocateStart:
		d.Collector = ZGC
	case k >= KindInitMark && k <= KindDegenerated:
		d.Collector = Shenandoah
	case c == causeErgonomics && d.Collector == CollectorUnknown:
		d.Collector = Parallel
	case k == KindInitialMark && d.Collector == CollectorUnknown:
		d.Collector = CMS
	}
}

// pauseStart remembers a pause that may hold another one: a CMS remark holds a
// scavenge, a young of Serial in JDK 9 to 11 (and of CMS) holds the full that
// its failure led to.
func (d *decoder) pauseStart(id int64, k Kind) {
	d.Starts = true
	if d.Outer.Set && d.holds(k, id) {
		return
	}
	d.Outer = started{ID: id, Kind: k, Set: true}
}

func (d *decoder) holds(inner Kind, id int64) bool {
	o := d.Outer
	switch o.Kind {
	case KindRemark:
		return inner == KindYoung && id > o.ID && d.Collector != G1
	case KindYoung:
		return inner == KindFull && id == o.ID+1 && (d.Collector == Serial || d.Collector == CMS || d.Collector == CollectorUnknown)
	}
	return false
}

func (d *decoder) pauseEnd(id int64, k Kind, c Cause, conc, evac bool, t Transition, secs float64) {
	nested := false
	switch {
	case k == KindYoung && c == causeCMSRemark:
		nested = true // always inside a remark
	case d.Outer.Set && d.Outer.ID == id:
		d.Outer.Set = false
	case d.Outer.Set && d.holds(k, id):
		nested = true
	default:
		d.Outer.Set = false
	}
	// Without start lines a Full inside a Young can only be known by the Young's
	// line, which comes next and has the lower number: wait for it.
	if d.Held.Set {
		d.release(k == KindYoung && id == d.Held.ID-1)
	}
	if k == KindFull && !nested && !d.Starts && id >= 0 && id == d.LastID+2 &&
		(d.Collector == Serial || d.Collector == CMS || d.Collector == CollectorUnknown) {
		d.Held = held{Set: true, ID: id, Cause: c, Seconds: secs}
		// Its heap is the outer one's as well.
		return
	}
	if id > d.LastID {
		d.LastID = id
	}
	if evac {
		d.failure(EvacuationFailure)
	}
	if k == KindDegenerated {
		d.failure(Degenerated)
		d.Degenerated = id + 1
	}
	e := d.event(PauseEvent)
	e.Kind, e.Cause, e.Nested, e.ConcStart, e.Seconds = k, c, nested, conc, secs
	if k == KindYoung && d.OldID == id && d.OldGrew > 0 {
		e.Promoted = d.OldGrew
	}
	d.OldGrew = 0
	d.out(e)
	if t.Set {
		if nested {
			return
		}
		d.heap(Heap, t, false)
	}
}

// release ends the wait for a Young around a Full.
func (d *decoder) release(nested bool) {
	if !d.Held.Set {
		return
	}
	h := d.Held
	d.Held = held{}
	if h.ID > d.LastID {
		d.LastID = h.ID
	}
	e := d.event(PauseEvent)
	e.Kind, e.Cause, e.Nested, e.Seconds = KindFull, h.Cause, nested, h.Seconds
	d.out(e)
}

// concurrent reads what follows "Concurrent ".
func (d *decoder) concurrent(m []byte, id int64) {
	if has(m, "mode ") || has(m, "Mode ") {
		d.modeFailure(m[5:])
		return
	}
	n := words(m)
	if n == 0 {
		return
	}
	name := m[:n]
	rest := m[n:]
	for {
		rest = rest[spaces(rest):]
		if len(rest) == 0 {
			return
		}
		if rest[0] == '(' {
			_, k := group(rest)
			if k == 0 {
				return
			}
			rest = rest[k:]
			continue
		}
		if !isDigit(rest[0]) {
			return
		}
		if t, k := transition(rest); k > 0 {
			if t.Sized {
				d.heap(Heap, t, false)
			}
			rest = rest[k:]
			continue
		}
		break
	}
	secs, ok := millis(rest)
	if !ok {
		return
	}
	e := d.event(ConcurrentEvent)
	e.Name, e.Seconds = name, secs
	d.out(e)
}

func (d *decoder) modeFailure(m []byte) {
	switch {
	case has(m, "failure"), has(m, "Failure"):
		d.failure(ConcurrentModeFailure)
	case has(m, "interrupted"), has(m, "Interrupted"):
		d.failure(ConcurrentModeInterrupted)
	}
}

// promotionFailed: the plain line is one an event. At debug and trace level a
// line with the size follows for every worker.
func (d *decoder) promotionFailed(m []byte) {
	if len(trim(m)) == len("Promotion failed") {
		d.failure(PromotionFailed)
	}
}

// overhead: JDK 25 prints the counter at each collection; it is trouble from 1.
func (d *decoder) overhead(m []byte) {
	if has(m, "GC Overhead") {
		i := bytes.Index(m, []byte("Counter "))
		if i < 0 {
			return
		}
		if v, _, n := number(m[i+8:]); n == 0 || v == 0 {
			return
		}
	} else if !contains(m, "GCTimeLimit") {
		return
	}
	d.failure(GCOverheadLimit)
}

// cycle reads what follows "Garbage Collection " and its like:
// "(cause) 558M(2%)->126M(0%)" and, with two generations, the cycle's seconds,
// which are beside the application. Without sizes it is the start.
func (d *decoder) cycle(m []byte, kind string) {
	d.Collector = ZGC
	g, n := group(m)
	if n == 0 {
		return
	}
	rest := m[n:]
	rest = rest[spaces(rest):]
	t, k := transition(rest)
	if k == 0 {
		return
	}
	if d.Capacity > 0 {
		t.Committed, t.Sized = d.Capacity, true
		d.Capacity = 0
	}
	rest = trim(rest[k:])
	e := d.event(CycleEvent)
	switch kind {
	case "minor":
		e.Name = nameMinor
	case "major":
		e.Name = nameMajor
	default:
		e.Name = nameCycle
	}
	e.Cause = causes[string(g)]
	if e.Cause == 0 {
		e.Cause = causeOther
	}
	if v, n := decimal(rest, 0); n > 0 && string(rest[n:]) == "s" {
		e.Seconds = v
	}
	d.out(e)
	d.heap(Heap, t, false)
}

var (
	nameMinor = []byte("minor")
	nameMajor = []byte("major")
	nameCycle = []byte("cycle")
)

// zgcRow reads the rows of ZGC's heap table that matter: the capacity, and what
// was allocated while the cycle ran. The fourth column is Relocate End.
func (d *decoder) zgcRow(m []byte, gen byte) {
	m = m[spaces(m):]
	switch {
	case has(m, "Capacity:"):
		if v, ok := column(m[9:], 3); ok {
			d.Capacity = v
		}
	case has(m, "Allocated:"):
		// Old collections run beside young ones, which count the same bytes.
		if gen == 'O' {
			return
		}
		if v, ok := column(m[10:], 3); ok && v > 0 {
			e := d.event(AllocatedEvent)
			e.Heap.After = v
			d.out(e)
		}
	}
}

// column reads the size in one column of "   40M (42%)   44M (46%)   -  ".
func column(m []byte, want int) (float64, bool) {
	for col := 0; ; col++ {
		m = m[spaces(m):]
		if len(m) == 0 {
			return 0, false
		}
		if m[0] == '-' {
			if col == want {
				return 0, false
			}
			m = m[1:]
			continue
		}
		v, n := size(m)
		if n == 0 {
			return 0, false
		}
		if col == want {
			return v, true
		}
		m = m[n:]
		m = m[spaces(m):]
		if len(m) > 0 && m[0] == '(' {
			_, k := group(m)
			if k == 0 {
				return 0, false
			}
			m = m[k:]
		}
	}
}

// generation reads "80K(90K)->10K(90K) Eden: ..." of one generation.
func (d *decoder) generation(m []byte, g Generation, id int64) {
	t, n := transition(m)
	if n == 0 {
		return
	}
	if g == Old {
		d.OldID, d.OldGrew = id, t.After-t.Before
	}
	d.heap(g, t, false)
}

// regionLine reads "6->0(14)" of G1's region counts. Eden and survivors make
// the young generation, old and humongous regions the old one; the size of a
// region must be known.
func (d *decoder) regionLine(m []byte, id int64, bit uint8) {
	if d.RegionSize == 0 {
		return
	}
	t, n := transition(m)
	if n == 0 {
		return
	}
	r := &d.Regions
	if r.ID != id || r.Seen&bit != 0 {
		*r = regions{ID: id}
	}
	r.Seen |= bit
	if bit <= 2 {
		r.YoungFrom += t.Before
		r.YoungTo += t.After
		if r.Seen&3 == 3 && bit == 2 {
			d.heap(Young, Transition{Before: r.YoungFrom * d.RegionSize, After: r.YoungTo * d.RegionSize, Set: true}, false)
		}
		return
	}
	r.OldBefore += t.Before
	r.OldAfter += t.After
	if bit == 4 {
		d.OldID, d.OldGrew = id, (t.After-t.Before)*d.RegionSize
	}
	if r.Seen&12 == 12 {
		d.heap(Old, Transition{Before: r.OldBefore * d.RegionSize, After: r.OldAfter * d.RegionSize, Set: true}, false)
	}
}

// stall reads "Allocation Stall (http-nio-8080-exec-1) 12.165ms".
func (d *decoder) stall(m []byte, t EventType) {
	from := bytes.IndexByte(m, '(')
	to := bytes.LastIndexByte(m, ')')
	if from < 0 || to < from {
		return
	}
	rest := m[to+1:]
	secs, ok := millis(rest[spaces(rest):])
	if !ok {
		return
	}
	e := d.event(t)
	e.Name, e.Seconds = m[from+1:to], secs
	d.out(e)
}

// safepoint reads JDK 13's line of a whole stop:
//
//	Safepoint "ZMarkStart", Time since last: 9 ns, Reaching safepoint: 9 ns, … Total: 99 ns, Threads: …
//
// Its parts differ by version, so each is found by its name.
func (d *decoder) safepoint(m []byte) {
	m = m[len(`Safepoint "`):]
	q := bytes.IndexByte(m, '"')
	if q < 0 {
		return
	}
	op := m[:q]
	total, ok := nanos(m[q:], "Total: ")
	if !ok {
		return
	}
	sync, _ := nanos(m[q:], "Reaching safepoint: ")
	d.Outer.Set = false // the world runs again
	e := d.event(StoppedEvent)
	e.Name, e.Seconds, e.Sync = op, total, sync
	d.out(e)
}

func nanos(m []byte, key string) (float64, bool) {
	i := bytes.Index(m, []byte(key))
	if i < 0 {
		return 0, false
	}
	mant, frac, n := number(m[i+len(key):])
	if n == 0 || !has(m[i+len(key)+n:], " ns") {
		return 0, false
	}
	return scaled(mant, frac, 9), true
}

const stoppedText = "Total time for which application threads were stopped: "

// stoppedLine reads the line of JDK 6 to 12, from its first word on.
func (d *decoder) stoppedLine(m []byte) bool {
	m = m[len(stoppedText):]
	v, n := decimal(m, 0)
	if n == 0 || !has(m[n:], " seconds") {
		return false
	}
	rest := m[n+8:]
	var sync float64
	const took = ", Stopping threads took: "
	if has(rest, took) {
		if v, n := decimal(rest[len(took):], 0); n > 0 && has(rest[len(took)+n:], " seconds") {
			sync = v
		}
	}
	d.Outer.Set = false
	e := d.event(StoppedEvent)
	e.Name, e.Seconds, e.Sync = d.Operation[:d.OpLen], v, sync
	d.OpLen = 0
	d.out(e)
	return true
}
