package gclog

import "bytes"

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
