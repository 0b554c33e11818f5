package logdir

import "time"

// Windows are the spans over which the fall of free space is measured, and the
// values of the label window.
var windows = []struct {
	name string
	span time.Duration
}{{"10s", 10 * time.Second}, {"60s", time.Minute}, {"10m", 10 * time.Minute}}

// horizon is how far, in spans of itself, a window may speak. Ten seconds of
// growth say nothing about tomorrow; that is a matter of the minima over hours,
// which a rule sees.
const horizon = 10

// keepSamples holds ten minutes of one look a second, and some.
const keepSamples = 640

// sample is the free space at one time.
type sample struct {
	at    time.Time
	avail int64
}

// A forecast tells from the latest samples when a file system will be full.
type forecast struct {
	ring []sample
	next int
}

// add takes one look. A step back in time starts anew: nothing can be measured
// over it.
func (f *forecast) add(at time.Time, avail int64) {
	if n := len(f.ring); n > 0 {
		if last := f.at(n - 1); !at.After(last.at) {
			f.ring, f.next = f.ring[:0], 0
		}
	}
	if len(f.ring) < keepSamples {
		f.ring = append(f.ring, sample{at, avail})
		return
	}
	f.ring[f.next] = sample{at, avail}
	f.next = (f.next + 1) % keepSamples
}

// at is the i-th sample from the oldest.
func (f *forecast) at(i int) sample { return f.ring[(f.next+i)%len(f.ring)] }

// full is how many seconds are left at the rate of the last span, and whether
// the span may say so: it must be half filled with looks, free space must have
// fallen over it, and the end must be no farther than ten spans.
func (f *forecast) full(span time.Duration) (seconds float64, ok bool) {
	n := len(f.ring)
	if n < 2 {
		return 0, false
	}
	last := f.at(n - 1)
	lo, hi := 0, n-1 // the first sample within the span
	for lo < hi {
		mid := (lo + hi) / 2
		if last.at.Sub(f.at(mid).at) > span {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first := f.at(lo)
	took := last.at.Sub(first.at)
	fell := first.avail - last.avail
	if took < span/2 || fell <= 0 {
		return 0, false
	}
	left := float64(last.avail) * took.Seconds() / float64(fell)
	return left, left <= horizon*span.Seconds()
}
