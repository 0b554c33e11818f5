package accesslog

// A Listener is told of requests that failed or were slow, for whoever wants the
// words behind the numbers. It is called under the Set's lock.
type Listener struct {
	// Status is the least status that is told, 0 for none; Slow the least
	// duration in seconds, 0 for none.
	Status int
	Slow   float64
	// Match gives a line chosen for another reason that reason's name, or "". nil
	// chooses none.
	Match func(line []byte) string
	Told  func(t *Told)
}

// Why a request is told.
const (
	EventFailed = "request_failed"
	EventSlow   = "request_slow"
)

// Told is a request that is told. It lives until the listener returns.
type Told struct {
	Event  string
	Status int
	At     int64 // Unix milliseconds, 0 where the line has no time
	Line   []byte
	Thread []byte
	Trace  []byte
}

// Listen gives the observer a listener, before its first line.
func (o *Observer) Listen(l Listener) { o.ear = &l }

// hear looks at a request that was counted.
func (o *Observer) hear(line []byte, r *Record, ms int64) {
	l := o.ear
	event := ""
	switch {
	case l.Status > 0 && r.Has&HasStatus != 0 && r.Status >= l.Status:
		event = EventFailed
	case l.Slow > 0 && r.Has&HasDuration != 0 && r.Duration >= l.Slow:
		event = EventSlow
	case l.Match != nil:
		event = l.Match(line)
	}
	if event == "" {
		return
	}
	o.told = Told{Event: event, Status: r.Status, At: ms, Line: line}
	if r.Has&HasThread != 0 {
		o.told.Thread = r.Thread
	}
	if r.Has&HasTrace != 0 {
		o.told.Trace = traceID(r.Trace)
	}
	l.Told(&o.told)
}
