package gclog

import (
	"fmt"
	"math"
)

// A Listener is told of pauses that are long, and of the collector's failures,
// for whoever wants the words behind the numbers. It is called under the Set's
// lock.
type Listener struct {
	// Pause is the least length of a pause that is told, in seconds; 0 is none.
	// A pause inside of another one is not told.
	Pause float64
	// Failures says that fall-backs of the collector are told.
	Failures bool
	// Started is the JVM's start in Unix seconds, for lines that have an uptime
	// only; 0 where it is not known.
	Started float64
	// Match gives a line chosen for another reason that reason's name, or "". nil
	// chooses none.
	Match func(line []byte) string
	Told  func(t *Told)
}

// Told is what is told. It lives until the listener returns.
type Told struct {
	Event   string // gc_pause, gc_ and the failure, or what Match said
	Pattern string
	Failure bool
	At      int64 // Unix nanoseconds; 0 where the line has no time
	// Line is the line that decided it, of a record of several lines the last
	// one; or a text of ours, where no line did.
	Line []byte
}

// Listen gives the observer a listener, before its first line.
func (o *Observer) Listen(l Listener) { o.ear, o.dec.wantTime = &l, true }

// hear looks at an event that was counted.
func (o *Observer) hear(e *Event) {
	l := o.ear
	t := Told{At: o.at(), Line: o.line}
	switch {
	case e.Type == PauseEvent && l.Pause > 0 && e.Seconds >= l.Pause && !e.Nested:
		t.Event, t.Pattern = "gc_pause", e.Kind.String()+" "+e.Cause.String()
		if t.Line == nil {
			t.Line = fmt.Appendf(nil, "Pause %s (%s) %.3f s", e.Kind, e.Cause, e.Seconds)
		}
	case e.Type == FailureEvent && l.Failures:
		t.Event, t.Failure = "gc_"+e.Failure.String(), true
		t.Pattern = t.Event
		if t.Line == nil {
			t.Line = []byte(t.Pattern)
		}
	default:
		return
	}
	l.Told(&t)
}

// at is the time of the line at hand.
func (o *Observer) at() int64 {
	switch now := o.dec.now; {
	case now.HasWall:
		return int64(math.Round(now.Wall*1e3)) * 1e6
	case now.HasUp && o.ear.Started > 0:
		return int64(math.Round((o.ear.Started+now.Uptime)*1e3)) * 1e6
	}
	return 0
}

// hearLine looks for a reason of the listener's own.
func (o *Observer) hearLine(line []byte) {
	if name := o.ear.Match(line); name != "" {
		o.ear.Told(&Told{Event: name, Pattern: name, At: o.at(), Line: line})
	}
}
