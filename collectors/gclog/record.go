package gclog

import "bytes"

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
	At     Stamp `json:"at"`               // the stamp in front of it
	// Heap, Young and Old are the transitions printed so far.
	Heap  Transition `json:"heap"`
	Young Transition `json:"young"`
	Old   Transition `json:"old"`
	Perm  Transition `json:"perm"`
	Meta  Transition `json:"meta"`
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
		*r = record{Full: k == fullRecord, Kind: KindYoung, At: d.now}
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
	c := d.causeNamed(g)
	if c == causeNone {
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
		r := &d.Records[d.Nrec] // free again, and not used before close returns
		secs, ok := secondsBefore(before)
		if !ok {
			// "[GC monitor]" of an application, or a record whose end was lost.
			if d.Nrec == 0 {
				d.out(d.event(IncompleteEvent))
			}
			return
		}
		d.close(r, secs)
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

// close emits a whole record.
func (d *decoder) close(r *record, secs float64) {
	nested := d.Nrec > 0
	d.now = r.At
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
	for f := PromotionFailed; r.Failed != 0 && f < failureCount; f++ {
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
	if nested && k != KindYoung {
		return // its heap is that of the pause around it
	}
	d.LastHeap, d.LastYoung = r.Heap.Set, k == KindYoung
	if r.Heap.Set {
		e := d.event(HeapEvent)
		e.Heap, e.Rough = r.Heap, k == KindCleanup && d.Details
		d.out(e)
	}
	switch {
	case r.Young.Set:
		d.heap(Young, r.Young, false)
	case r.Old.Set && r.Heap.Set:
		// A full collection of CMS prints the old generation and the whole.
		y := Transition{Before: r.Heap.Before - r.Old.Before, After: r.Heap.After - r.Old.After, Set: true}
		if y.Before >= 0 && y.After >= 0 {
			d.heap(Young, y, false)
		}
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
