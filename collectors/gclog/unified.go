package gclog

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
	case ",start", ",phases", ",heap", ",init", ",metaspace", ",ergo", ",promotion":
		return true
	}
	return false
}

// dropped reads "  346 messages dropped due to async logging".
func (d *decoder) dropped(msg []byte) {
	m := trim(msg)
	mant, _, n := number(m)
	if n == 0 || !has(m[n:], " messages dropped") {
		return
	}
	d.Outer.Set = false // its end may be among them
	e := d.event(DroppedEvent)
	e.Count = mant
	d.out(e)
}

// bareBegins says whether a line is one of those that begin an undecorated log.
func bareBegins(b []byte) bool {
	switch b[0] {
	case 'U':
		return len(b) < 32 && has(b, "Using ") && collectorNamed(b[6:]) != CollectorUnknown
	case 'I':
		return has(b, "Initializing The Z")
	case 'C':
		return has(b, "CardTable entry size: ")
	case 'H':
		return has(b, "Heuristics ergonomically sets ")
	case 'S':
		return has(b, `Safepoint "`) && contains(b, " ns")
	}
	return false
}

// bareLine takes a line without decoration and without "GC(n)", in a log that
// has such messages. It answers false when it is not one of unified logging.
func (d *decoder) bareLine(b []byte) bool {
	if !knownBare(b) {
		return false
	}
	d.deco.hasTags = false
	d.now = Stamp{}
	d.plainMessage(b, false)
	return true
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
		case has(m, "GC "):
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
		d.overhead(m)
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

var (
	nameMinor = []byte("minor")
	nameMajor = []byte("major")
	nameCycle = []byte("cycle")
)
