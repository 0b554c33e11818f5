package gclog

// pause reads what follows "Pause ": words, groups, perhaps a transition, a
// number and "ms" to the end of the line. Without the number it is the start.
func (d *decoder) pause(m []byte, id int64) {
	nameEnd := words(m)
	if nameEnd == 0 {
		return
	}
	name := m[:nameEnd]
	kind, known := KindYoung, true
	if string(name) != "Young" {
		kind, known = kindByPause[string(name)]
		if !known && has(name, "Verify ") {
			kind, known = KindVerify, true
		}
	}
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
				if c := d.causeNamed(g); c != causeNone {
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
		d.Held = held{Set: true, ID: id, Cause: c, Seconds: secs, Heap: t}
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
		if nested && k != KindYoung {
			return // its heap is that of the pause around it
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
	d.releasing = true
	defer func() { d.releasing = false }()
	if h.ID > d.LastID {
		d.LastID = h.ID
	}
	e := d.event(PauseEvent)
	e.Kind, e.Cause, e.Nested, e.Seconds = KindFull, h.Cause, nested, h.Seconds
	d.out(e)
	if h.Heap.Set && !nested { // a nested one's heap is that of the outer one too
		d.heap(Heap, h.Heap, false)
	}
}
