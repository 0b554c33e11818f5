package gclog

import "bytes"

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
	if has(m, "GC Overhead Limit") {
		i := bytes.Index(m, []byte("Counter "))
		if i < 0 {
			return
		}
		if v, _, n := number(m[i+8:]); n == 0 || v == 0 {
			return
		}
	} else if !overLimit(m) {
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
