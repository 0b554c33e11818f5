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

// legacy takes a line of the old form, or any other line.
func (d *decoder) legacy(b []byte) {
	if b[0] == ' ' && histogramRow(b) {
		return
	}
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
	if has(b[n:], stoppedText) {
		d.abandon() // the world runs again, and nobody closed the record
		return true
	}
	if d.begins(b[n:]) {
		return true
	}
	t := b[spaces(b):]
	if overLimit(t) {
		d.failure(GCOverheadLimit)
		return false
	}
	if d.wantTime && n > 0 {
		d.now = s
	}
	if left := d.scan(b); len(left) > 0 {
		d.top(left)
	}
	return false
}

// histogramRow: "   1:   12   345  [C". The class names of arrays are brackets
// that nobody closes.
func histogramRow(b []byte) bool {
	i := spaces(b)
	_, frac, n := number(b[i:])
	if n == 0 || frac > 0 || i+n >= len(b) || b[i+n] != ':' {
		return false
	}
	b = b[i+n+1:]
	for range 2 {
		k := spaces(b)
		_, frac, n := number(b[k:])
		if k == 0 || n == 0 || frac > 0 {
			return false
		}
		b = b[k+n:]
	}
	return spaces(b) > 0
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
		case '-', '[', ':', '{':
			return gcRecord
		case 'A', 'T', 'B', 'H':
			// JDK 7 prints no blank before what comes next.
			if has(r, "AdaptiveSize") || has(r, "TLAB") || has(r, "Before GC") || has(r, "Heap ") {
				return gcRecord
			}
		case ' ':
			if has(r, " concurrent-") || has(r, " ref-proc") || has(r, " Worker") || has(r, " log file") {
				return notRecord
			}
			return gcRecord
		default:
			if isDigit(r[0]) { // "[GC2013-05-27T…" and "[GC1.234: [ParNew" of JDK 7
				return gcRecord
			}
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
			if u := d.now; u.HasUp && i > 0 {
				// Every rotated file repeats the header, so only the uptime tells that
				// another JVM writes on.
				if u.Uptime < d.LastUp-1 {
					c := d.Collector
					d.restart()
					d.Collector = c
				}
				d.LastUp = u.Uptime
			}
			b = d.scan(b)
			if d.Nrec > 0 {
				return
			}
			continue
		}
		switch {
		case has(b, "[Eden: "):
			d.edenLine(b[1:])
		case has(b, "[ ") && len(b) > 2 && isDigit(b[2]):
			// G1 of JDK 6 prints the heap alone: "[ 59M->42M(100M)]".
			if t, n := transition(b[2:]); n > 0 {
				d.heap(Heap, t, d.LastHeap)
				d.LastHeap = false
			}
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
			if has(b, "[Class Histogram") {
				d.Histogram = true // its rows and its end stand on lines of their own
			} else if !knownBracket(b) {
				d.unrecognised(b)
			}
			return
		}
		// G1's details are indented, and there are more of them in each version.
		if steps == 0 && i < 3 && !knownBracket(b) {
			d.unrecognised(b)
			return
		}
		b = b[end+1:]
		if len(b) > 0 && b[0] == ',' { // "[Eden: …], [Metaspace: …]"
			b = b[1:]
		}
	}
}

// skipStamps jumps over blanks and everything a time stamp is made of, whole,
// torn or twice. A "T" belongs to it only between digits.
func (d *decoder) skipStamps(b []byte) int {
	i := spaces(b)
	if s, n := legacyStamp(b[i:]); n > 0 {
		d.now = s
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

// abandon gives up an open record that will never be whole.
func (d *decoder) abandon() {
	if d.Nrec > 0 {
		d.out(d.event(IncompleteEvent))
	}
	d.Depth, d.Nrec, d.Lines = 0, 0, 0
	d.LastHeap, d.LastYoung = false, false
}
