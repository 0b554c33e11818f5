package applog

import (
	"bytes"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// What is counted when a record begins, and when it ends.

// begin opens a record. extra are the bytes of a line of its head before this.
func (o *Observer) begin(line []byte, extra int) {
	o.close()
	if o.ear != nil {
		o.ear.past = false
	}
	h := &o.h
	k := o.kinOf(h, line)
	o.records++
	if k.start != o.starting {
		if o.starting = k.start; k.start {
			o.run++
		}
	}
	k.records.Inc()
	k.byLogger.Inc()
	k.count++
	if h.at != 0 {
		if k.first == 0 {
			k.first = h.at
			if o.firstAt == 0 {
				o.firstAt = h.at
			}
		}
		k.last, o.lastAt = h.at, h.at
	}
	o.openMethod = h.method
	r := &o.rec
	r.kind, r.k, r.at = full, k, h.at
	r.bytes = uint64(len(line) + 1 + extra)
	if k.ported {
		r.port = o.portOf(h)
	} else if len(k.after) > 0 { // an exception may make it an event
		o.recThread = append(o.recThread[:0], h.thread...)
		r.late = true
	}
	if k.pool {
		o.jettyPool(h.message)
	}
	for _, e := range k.events {
		o.tell(e, line)
	}
	for _, u := range o.user {
		if u.matches(h.message, h.level) {
			o.tell(u.state, line)
		}
	}
	if o.ear != nil && h.thrown == nil {
		o.hear(line, extra)
	}
	if h.thrown != nil {
		o.threw(h.thrown, 0)
		if h.frame != nil {
			o.frame(h.frame)
		}
		if h.root != nil && r.exc != nil {
			o.cause(h.root)
		}
		if o.ear != nil { // the whole trace is in the line, and all events are told
			o.hear(line, extra)
		}
	}
	if o.times != nil {
		o.times.add(h.at, h.level)
	}
	o.recent.record(k, line, r)
	h.thrown, h.root, h.frame = nil, nil, nil
}

// tell counts an event, once a record.
func (o *Observer) tell(e *eventState, line []byte) {
	r := &o.rec
	for i := 0; i < r.n; i++ {
		if r.events[i] == e {
			return
		}
	}
	o.tells++
	if r.n < len(r.events) {
		r.events[r.n] = e
		r.n++
	}
	if r.late {
		r.late = false
		r.port = o.portOfThread(o.recThread)
	}
	e.count++
	e.number(o, r.port).Inc()
	if r.at != 0 {
		if e.first == 0 {
			e.first = r.at
		}
		e.last = r.at
	}
	if e.sample == nil {
		e.sample = bytes.Clone(line[:min(len(line), maxSample)])
	}
	if o.ear != nil {
		o.hearEvent(e, line)
	}
}

func (e *eventState) number(o *Observer, port string) *metric.Number {
	for i := range e.byPort {
		if e.byPort[i].port == port {
			return e.byPort[i].n
		}
	}
	if len(e.byPort) >= maxPorts {
		port = metric.OtherValue
	}
	n := o.figures.Counter(EventsTotal, e.name, port)
	if len(e.byPort) <= maxPorts {
		e.byPort = append(e.byPort, portNumber{port, n})
	}
	return n
}

// close ends the open entry: its root cause is known now.
func (o *Observer) close() {
	r := &o.rec
	if r.kind == nothing {
		return
	}
	o.flush()
	*r = record{}
}

// flush counts what is known of the open entry by now.
func (o *Observer) flush() {
	r := &o.rec
	if r.exc != nil && !r.rooted {
		root := r.root
		if root == nil {
			root = r.exc
		}
		root.root.Inc()
		root.count++
		root.see(r.at)
	}
	r.rooted = true
	if r.heard == taking {
		o.tellRecord()
	}
	more := r.bytes - r.told
	r.told = r.bytes
	if r.k != nil {
		r.k.bytes += more
	}
	if r.n > 0 {
		r.events[0].bytes += more
		r.events[0].bytesN.Add(float64(more))
	}
}
