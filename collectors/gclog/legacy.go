package gclog

import "bytes"

// Records up to JDK 8 are brackets in brackets, over as many lines as it takes:
//
//	1.2: [GC 1.2: [ParNew (promotion failed): 9K->9K(9K), 0.1 secs]1.3: [CMS1.4: [CMS-concurrent-sweep: 1/2 secs] [Times: ...]
//	 (concurrent mode failure): 9K->4K(9K), 40.1 secs] 9K->4K(9K), 41.0 secs] [Times: ...]
//
// so a stack of open brackets is kept from line to line. A bracket that began
// as "[GC" or "[Full GC" is a record, and its closing ", N secs]" is what makes
// it a pause. Everything else in brackets is a part of one, or a phase beside
// the application, or noise.
const (
	maxDepth   = 16
	maxRecords = 4
)

// frame is one open bracket.
type frame uint8

const (
	framePart  frame = iota // of no interest
	frameGC                 // a record
	frameYoung              // DefNew, ParNew, PSYoungGen
	frameOld                // Tenured, CMS, PSOldGen, ParOldGen
	framePerm
	frameMeta
	frameConc // CMS-concurrent-…, GC concurrent-…
)

// record is an open "[GC" or "[Full GC".
type record struct {
	Kind   Kind  `json:"kind,omitempty"`
	Cause  Cause `json:"cause,omitempty"`
	Full   bool  `json:"full,omitempty"`
	Remark bool  `json:"remark,omitempty"` // [YG occupancy was seen: a scavenge may follow inside
	Conc   bool  `json:"conc,omitempty"`   // (initial-mark)
	Failed uint8 `json:"failed,omitempty"` // bit set of Failure
	Single bool  `json:"single,omitempty"` // a heap size without an arrow
	// Heap, Young and Old are the transitions printed so far.
	Heap  Transition `json:"heap"`
	Young Transition `json:"young"`
	Old   Transition `json:"old"`
	Perm  Transition `json:"perm"`
	Meta  Transition `json:"meta"`
}

// legacy takes a line of the old form, or any other line.
func (d *decoder) legacy(b []byte) {
	if d.Nrec > 0 {
		if !d.inside(b) {
			return
		}
	}
	d.top(b)
}

// inside handles a line while a record is open. It answers true when the line
// turned out to begin anew, the record having been given up.
func (d *decoder) inside(b []byte) bool {
	if d.Lines++; d.maxLines > 0 && d.Lines > d.maxLines {
		d.abandon()
		return true
	}
	switch b[0] {
	case '-', 'T', 'D', 'A':
		// Age tables, TLAB lines, survivor sizes: nothing of ours is in them.
		if has(b, "- age") || has(b, "TLAB") || has(b, "Desired survivor") || has(b, "AdaptiveSize") {
			return false
		}
	}
	s, n := legacyStamp(b)
	rest := b[n:]
	if n > 0 {
		if has(rest, stoppedText) {
			d.abandon() // the world runs again, and nobody closed the record
			return true
		}
		if d.begins(rest) {
			return true
		}
	} else if has(b, stoppedText) || d.begins(b) {
		d.abandon()
		return true
	}
	_ = s
	t := b[spaces(b):]
	if has(t, "GC time ") && contains(t, "GCTimeLimit") {
		d.failure(GCOverheadLimit)
		return false
	}
	if d.wantTime && n > 0 {
		d.now = s
	}
	if left := d.scan(b); len(left) > 0 {
		d.rest(left)
	}
	return false
}

// begins says whether a line inside an open record starts another one, which
// means that the open one was torn, unless it is a remark, which may hold a
// scavenge. When it does, the open record is given up.
func (d *decoder) begins(rest []byte) bool {
	k := recordKind(rest)
	if k == notRecord {
		return false
	}
	if r := &d.Records[d.Nrec-1]; r.Remark && d.Nrec < maxRecords && k == gcRecord {
		return false
	}
	d.abandon()
	return true
}

type recordType uint8

const (
	notRecord recordType = iota
	gcRecord
	fullRecord
)

// recordKind looks at "[GC…" and "[Full GC…".
func recordKind(b []byte) recordType {
	switch {
	case has(b, "[Full GC"):
		return fullRecord
	case has(b, "[GC"):
		r := b[3:]
		if len(r) == 0 {
			return gcRecord
		}
		switch r[0] {
		case '-', '[', ':', '\r':
			return gcRecord
		case ' ':
			if has(r, " concurrent-") || has(r, " ref-proc") || has(r, " Worker") || has(r, " log file") {
				return notRecord
			}
			return gcRecord
		}
	}
	return notRecord
}

// top reads a line, or the rest of one, while no record is open.
func (d *decoder) top(b []byte) {
	for steps := 0; len(b) > 0; steps++ {
		i := d.skipStamps(b)
		b = b[i:]
		if len(b) == 0 {
			return
		}
		if b[0] != '[' {
			d.text(b)
			return
		}
		switch recordKind(b) {
		case gcRecord, fullRecord:
			d.Lines = 0
			b = d.scan(b)
			if d.Nrec > 0 {
				return
			}
			continue
		}
		switch {
		case has(b, "[Eden: "):
			d.edenLine(b[1:])
		case has(b, "[CMS-concurrent-"), has(b, "[GC concurrent-"):
			b = d.scan(b)
			if d.Depth > 0 && d.Nrec == 0 {
				d.Depth = 0 // cut off
			}
			continue
		case has(b, "[Pause "), has(b, "[Concurrent "):
			if b = d.shenandoah8(b); b == nil {
				return
			}
			continue
		}
		end := bytes.IndexByte(b, ']')
		if end < 0 {
			if !knownBracket(b) {
				d.unrecognised(b)
			}
			return
		}
		if !knownBracket(b) && steps == 0 && i == 0 {
			d.unrecognised(b)
			return
		}
		b = b[end+1:]
		if len(b) > 0 && b[0] == ',' { // "[Eden: …], [Metaspace: …]"
			b = b[1:]
		}
	}
}

// rest reads what stands behind a record that was closed in the middle of a
// line: " [Times: …]", or the next record glued to it.
func (d *decoder) rest(b []byte) { d.top(b) }

// skipStamps jumps over blanks and everything a time stamp is made of, whole,
// torn or twice. A "T" belongs to it only between digits.
func (d *decoder) skipStamps(b []byte) int {
	i := spaces(b)
	if s, n := legacyStamp(b[i:]); n > 0 {
		if d.wantTime {
			d.now = s
		}
		i += n
	}
	for i < len(b) {
		switch c := b[i]; {
		case isDigit(c), c == '.', c == ',', c == ':', c == '+', c == ' ', c == '#', c == '\t', c == 'Z':
		case c == '-':
			if i+1 >= len(b) || !isDigit(b[i+1]) {
				return i
			}
		case c == 'T':
			if i == 0 || !isDigit(b[i-1]) || i+1 >= len(b) || !isDigit(b[i+1]) {
				return i
			}
		default:
			return i
		}
		i++
	}
	return i
}

// interesting marks the bytes at which scan stops.
var interesting = func() (t [256]bool) {
	for _, c := range "[](>" {
		t[c] = true
	}
	return t
}()

// scan reads brackets until the line ends or no bracket is open any more, and
// answers what is left of the line then. It begins at a '[' when none is open.
func (d *decoder) scan(b []byte) []byte {
	for i := 0; i < len(b); {
		c := b[i]
		if !interesting[c] {
			i++
			continue
		}
		switch c {
		case '[':
			i += d.push(b[i:])
		case ']':
			d.pop(b[:i])
			i++
			if d.Depth == 0 {
				return b[i:]
			}
		case '(':
			i += d.parenthesis(b[i:])
		case '>':
			i = d.arrow(b, i)
		}
	}
	// A size without an arrow ("30K(50K), 0.1 secs]") is read at the pop.
	return nil
}

// push opens a bracket and answers how many bytes to go on by.
func (d *decoder) push(b []byte) int {
	if len(b) > 2 && b[1] == '0' && b[2] == 'x' {
		// An address range of a heap table: "[0x1, 0x2)", closed by what it likes.
		i := 3
		for i < len(b) && b[i] != ')' && b[i] != ']' {
			i++
		}
		return min(i+1, len(b))
	}
	if d.Depth == maxDepth {
		d.abandon()
		return len(b)
	}
	f := framePart
	switch k := recordKind(b); {
	case k != notRecord && (d.Depth == 0 || d.Nrec > 0):
		if d.Nrec == maxRecords {
			d.abandon()
			return len(b)
		}
		r := &d.Records[d.Nrec]
		*r = record{Full: k == fullRecord, Kind: KindYoung}
		d.Nrec++
		f = frameGC
		n := 3
		if k == fullRecord {
			r.Kind = KindFull
			n = 8
		}
		d.header(r, b[n:])
		d.Frames[d.Depth] = f
		d.Depth++
		return n
	case has(b, "[CMS-concurrent-"), has(b, "[GC concurrent-"):
		f = frameConc
	case d.Nrec > 0:
		f = d.partFrame(b)
	}
	d.Frames[d.Depth] = f
	d.Depth++
	return 1
}

// header reads the words behind "[GC": "pause", "remark", "cleanup".
func (d *decoder) header(r *record, b []byte) {
	b = b[spaces(b):]
	switch {
	case has(b, "pause"):
		d.Collector = G1
	case has(b, "remark"):
		d.Collector = G1
		r.Kind = KindRemark
	case has(b, "cleanup"):
		d.Collector = G1
		r.Kind = KindCleanup
	}
}

// partFrame names a bracket inside a record and draws from its name what it
// tells of the record.
func (d *decoder) partFrame(b []byte) frame {
	r := &d.Records[d.Nrec-1]
	n := b[1:]
	if len(n) == 0 {
		return framePart
	}
	switch n[0] {
	case 'D':
		if has(n, "DefNew") {
			d.Collector = Serial
			return frameYoung
		}
	case 'P':
		switch {
		case has(n, "ParNew"):
			d.Collector = CMS
			return frameYoung
		case has(n, "PSYoungGen"):
			d.Collector = Parallel
			return frameYoung
		case has(n, "ParOldGen"), has(n, "PSOldGen"):
			d.Collector = Parallel
			r.Full = true
			return frameOld
		case has(n, "Perm "), has(n, "PSPermGen"):
			return framePerm
		}
	case 'A':
		if has(n, "ASParNew") || has(n, "ASPSYoungGen") {
			return frameYoung
		}
	case 'T':
		if has(n, "Tenured") {
			if d.Collector == CollectorUnknown {
				d.Collector = Serial
			}
			r.Full = true
			return frameOld
		}
	case 'M':
		if has(n, "Metaspace") {
			return frameMeta
		}
	case 'C':
		switch {
		case has(n, "CMS Perm"):
			return framePerm
		case has(n, "CMS") && (len(n) == 3 || n[3] == ':' || n[3] == ' ' || n[3] == '(' || n[3] == '[' || isDigit(n[3])):
			d.Collector = CMS
			r.Full = true
			return frameOld
		}
	case '1':
		switch {
		case has(n, "1 CMS-initial-mark"):
			d.Collector = CMS
			r.Kind = KindInitialMark
		case has(n, "1 CMS-remark"):
			d.Collector = CMS
			r.Kind = KindRemark
		}
	case 'Y':
		if has(n, "YG occupancy") {
			d.Collector = CMS
			r.Kind, r.Remark = KindRemark, true
		}
	}
	return framePart
}

// parenthesis reads "(…)" in a record or one of its generations.
func (d *decoder) parenthesis(b []byte) int {
	if d.Nrec == 0 {
		return 1
	}
	f := d.Frames[d.Depth-1]
	if f != frameGC && f != frameYoung && f != frameOld {
		return 1
	}
	// Groups are short; a longer one is not closed on this line.
	g, n := group(b[:min(len(b), 128)])
	if n == 0 || len(g) == 0 {
		return 1
	}
	r := &d.Records[d.Nrec-1]
	if isDigit(g[0]) {
		if f == frameGC && !r.Heap.Set {
			// "30K(50K)": the size of the whole heap at a CMS mark.
			if _, isSize, _ := sizeGroup(b); isSize {
				r.Single = true
			}
		}
		if contains(g, "promotion fail") { // (0: promotion failure size = 131074)
			r.Failed |= 1 << PromotionFailed
		}
		return n
	}
	switch g[0] {
	case 'y', 'm', 'p', 'i', 't', 'c', 'o':
		switch {
		case string(g) == "young":
		case string(g) == "mixed", string(g) == "partial":
			if f == frameGC {
				r.Kind = KindMixed
			}
		case string(g) == "initial-mark":
			r.Conc = true
		case has(g, "to-space "):
			r.Failed |= 1 << ToSpaceExhausted
		case has(g, "promotion failed"):
			r.Failed |= 1 << PromotionFailed
		case has(g, "concurrent mode failure"):
			r.Failed |= 1 << ConcurrentModeFailure
		case has(g, "concurrent mode interrupted"):
			r.Failed |= 1 << ConcurrentModeInterrupted
		}
		return n
	}
	if f != frameGC || r.Cause != 0 || r.Heap.Set {
		return n
	}
	c, ok := causes[string(g)]
	if !ok {
		c = causeOther
	}
	r.Cause = c
	switch {
	case c.isG1():
		d.Collector = G1
	case c == causeCMSInitial && !r.Full:
		d.Collector = CMS
		r.Kind = KindInitialMark
	case c == causeCMSRemark && !r.Full && d.Nrec == 1:
		// The scavenge inside the remark has the same cause, one level deeper.
		d.Collector = CMS
		r.Kind, r.Remark = KindRemark, true
	}
	return n
}

// arrow reads the transition whose '>' stands at i, and answers where to go on.
func (d *decoder) arrow(b []byte, i int) int {
	if i == 0 || b[i-1] != '-' || d.Nrec == 0 {
		return i + 1
	}
	from := i - 1
	for from > 0 && partOfSize[b[from-1]] {
		from--
	}
	for from < i && b[from] != '-' && !isDigit(b[from]) {
		from++
	}
	t, n := transition(b[from:])
	if n == 0 || from+n <= i {
		return i + 1
	}
	r := &d.Records[d.Nrec-1]
	switch d.Frames[d.Depth-1] {
	case frameGC:
		r.Heap = t
	case frameYoung:
		r.Young = t
	case frameOld:
		r.Old = t
	case framePerm:
		r.Perm = t
	case frameMeta:
		r.Meta = t
	}
	return from + n
}

var partOfSize = func() (t [256]bool) {
	for _, c := range "0123456789.,KMGB()" {
		t[c] = true
	}
	return t
}()

// pop closes a bracket; before is the line up to it.
func (d *decoder) pop(before []byte) {
	if d.Depth == 0 {
		return
	}
	d.Depth--
	f := d.Frames[d.Depth]
	switch f {
	case frameConc:
		d.concurrentEnd(before)
	case frameGC:
		d.Nrec--
		r := d.Records[d.Nrec]
		secs, ok := secondsBefore(before)
		if !ok {
			// "[GC monitor]" of an application, or a record whose end was lost.
			if d.Nrec == 0 {
				d.out(d.event(IncompleteEvent))
			}
			return
		}
		d.close(&r, secs)
	}
}

// secondsBefore reads "0.0011 secs" or "1.120/1.300 secs" at the end of b.
func secondsBefore(b []byte) (float64, bool) {
	if !bytes.HasSuffix(b, []byte(" secs")) {
		return 0, false
	}
	end := len(b) - 5
	i := end
	for i > 0 && (isDigit(b[i-1]) || b[i-1] == '.' || b[i-1] == ',') {
		i--
	}
	// A comma in front of the number ends what was before it.
	for i < end && !isDigit(b[i]) {
		i++
	}
	v, n := decimal(b[i:end], 0)
	return v, n == end-i && n > 0
}

// concurrentEnd emits "[CMS-concurrent-mark: 0.06/0.07 secs]" and
// "[GC concurrent-mark-end, 1.23 secs]"; starts and aborts carry no time.
func (d *decoder) concurrentEnd(before []byte) {
	secs, ok := secondsBefore(before)
	if !ok {
		return
	}
	i := bytes.LastIndex(before, []byte("concurrent-"))
	if i < 0 {
		return
	}
	name := before[i+len("concurrent-"):]
	if has(before[max(0, i-4):], "CMS-") && d.Collector == CollectorUnknown {
		d.Collector = CMS
	}
	end := 0
	for end < len(name) && (name[end]|0x20 >= 'a' && name[end]|0x20 <= 'z' || name[end] == '-') {
		end++
	}
	name = bytes.TrimSuffix(name[:end], []byte("-end"))
	if len(name) == 0 {
		return
	}
	e := d.event(ConcurrentEvent)
	e.Name, e.Seconds = name, secs
	d.out(e)
}

// close emits a whole record.
func (d *decoder) close(r *record, secs float64) {
	nested := d.Nrec > 0
	k := r.Kind
	switch {
	case r.Full:
		k = KindFull
	case k == KindYoung && r.Single && !r.Heap.Set:
		// gc only: "[GC 46468K(83008K), 0.1 secs]" is one of the two marks.
		k = KindMark
		d.Collector = CMS
	case k == KindRemark && r.Cause == causeCMSRemark && r.Heap.Set && nested:
		k = KindYoung
	}
	for f := PromotionFailed; f < failureCount; f++ {
		if r.Failed&(1<<f) != 0 {
			d.failure(f)
		}
	}
	e := d.event(PauseEvent)
	e.Kind, e.Cause, e.Nested, e.ConcStart, e.Seconds = k, r.Cause, nested, r.Conc, secs
	if k == KindYoung && r.Young.Set && r.Heap.Set {
		e.Promoted = max(0, (r.Young.Before-r.Young.After)-(r.Heap.Before-r.Heap.After))
	}
	d.out(e)
	if nested {
		return
	}
	d.LastHeap, d.LastYoung = r.Heap.Set, k == KindYoung
	if r.Heap.Set {
		e := d.event(HeapEvent)
		e.Heap, e.Rough = r.Heap, k == KindCleanup && d.Details
		d.out(e)
	}
	if r.Young.Set {
		d.heap(Young, r.Young, false)
	}
	if r.Old.Set {
		d.heap(Old, r.Old, false)
	} else if r.Young.Set && r.Heap.Set {
		o := Transition{Before: r.Heap.Before - r.Young.Before, After: r.Heap.After - r.Young.After, Set: true}
		if r.Heap.Sized && r.Young.Sized {
			o.Committed, o.Sized = r.Heap.Committed-r.Young.Committed, true
		}
		if o.Before >= 0 && o.After >= 0 && o.Committed >= 0 {
			d.heap(Old, o, false)
		}
	}
	if r.Perm.Set {
		d.heap(Perm, r.Perm, false)
	}
	if r.Meta.Set {
		d.heap(Metaspace, r.Meta, false)
	}
}

// edenLine reads G1's sizes, from "Eden: " on:
//
//	Eden: 8.0M(9.0M)->0.0B(9.0M) Survivors: 0.0B->1024.0K Heap: 8.0M(64.0M)->3.0M(64.0M)
func (d *decoder) edenLine(b []byte) {
	eden, n := transition(b[6:])
	if n == 0 {
		return
	}
	var surv Transition
	if i := bytes.Index(b, []byte("Survivors: ")); i > 0 {
		surv, _ = transition(b[i+11:])
	}
	i := bytes.Index(b, []byte("Heap: "))
	if i < 0 {
		return
	}
	// a(b)->c(d): the size after is d.
	heap, n := transition(b[i+6:])
	if n == 0 {
		return
	}
	d.Collector, d.Details = G1, true
	d.heap(Heap, heap, d.LastHeap)
	if surv.Set {
		y := Transition{Before: eden.Before + surv.Before, After: eden.After + surv.After, Set: true}
		d.heap(Young, y, false)
		o := Transition{Before: heap.Before - y.Before, After: heap.After - y.After, Set: true}
		if o.Before >= 0 && o.After >= 0 {
			d.heap(Old, o, false)
		}
		if p := o.After - o.Before; d.LastYoung && p > 0 {
			e := d.event(AllocatedEvent)
			e.Promoted = p
			d.out(e)
		}
	}
	d.LastHeap, d.LastYoung = false, false
	if i := bytes.Index(b, []byte("[Metaspace: ")); i > 0 {
		if t, n := transition(b[i+12:]); n > 0 {
			d.heap(Metaspace, t, false)
		}
	}
}

// shenandoah8 reads "[Pause Init Mark, start]" and "[Pause Init Mark, 3.341 ms]"
// of the builds for JDK 8, and answers what follows; nil when nothing does.
func (d *decoder) shenandoah8(b []byte) []byte {
	end := bytes.IndexByte(b, ']')
	if end < 0 {
		return nil
	}
	m := b[1:end]
	rest := b[end+1:]
	comma := bytes.LastIndex(m, []byte(", "))
	if comma < 0 {
		return rest
	}
	secs, ok := millis(m[comma+2:])
	if !ok {
		return rest
	}
	d.Collector = Shenandoah
	pause := has(m, "Pause ")
	m = m[bytes.IndexByte(m, ' ')+1 : comma]
	n := words(m)
	name := m[:n]
	m = m[n:]
	var t Transition
	for {
		m = m[spaces(m):]
		if len(m) == 0 {
			break
		}
		if m[0] == '(' {
			_, k := group(m)
			if k == 0 {
				break
			}
			m = m[k:]
			continue
		}
		var k int
		if t, k = transition(m); k == 0 {
			break
		}
		m = m[k:]
	}
	if !pause {
		e := d.event(ConcurrentEvent)
		e.Name, e.Seconds = name, secs
		d.out(e)
		if t.Set {
			d.heap(Heap, t, false)
		}
		return rest
	}
	kind := kindByPause[string(name)]
	if kind == KindDegenerated {
		d.failure(Degenerated)
	}
	e := d.event(PauseEvent)
	e.Kind, e.Seconds = kind, secs
	d.out(e)
	if t.Set {
		d.heap(Heap, t, false)
	}
	return rest
}

// abandon gives up an open record that will never be whole.
func (d *decoder) abandon() {
	if d.Nrec > 0 {
		d.out(d.event(IncompleteEvent))
	}
	d.Depth, d.Nrec, d.Lines = 0, 0, 0
	d.LastHeap, d.LastYoung = false, false
}
