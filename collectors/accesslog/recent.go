package accesslog

import (
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A RefusedLine is a line that the pattern refused, cut to its first bytes.
type RefusedLine struct {
	Reason Refusal
	Line   string
}

const refusedBytes = 240

// refusedRing keeps the last refused lines. Its slots are reused: a log of
// nothing but refused lines costs a copy each and no allocation.
type refusedRing struct {
	keep  int
	slots []refusedSlot
	next  int
}

type refusedSlot struct {
	why  Refusal
	line []byte
}

func (r *refusedRing) add(why Refusal, line []byte) {
	line = line[:min(len(line), refusedBytes)]
	if len(r.slots) < r.keep {
		r.slots = append(r.slots, refusedSlot{why, append(make([]byte, 0, refusedBytes), line...)})
		return
	}
	if r.keep == 0 {
		return
	}
	s := &r.slots[r.next]
	s.why, s.line = why, append(s.line[:0], line...)
	r.next = (r.next + 1) % r.keep
}

func (r *refusedRing) list() []RefusedLine {
	out := make([]RefusedLine, 0, len(r.slots))
	for i := range r.slots {
		s := r.slots[(r.next+i)%len(r.slots)]
		out = append(out, RefusedLine{s.why, string(s.line)})
	}
	return out
}

// A Second is what the log says of one second of its own time.
type Second struct {
	Unix     int64
	Requests uint32
	Errors   uint32  // 5xx
	Duration float64 // the sum, in seconds
}

// recentSpan is how many seconds are at hand for the page.
const recentSpan = 600

// recentSeconds bins the lines by their own time: a buffered valve writes in
// lumps of 10 s, which bins by the time of reading would show as spikes.
type recentSeconds struct {
	ring   [recentSpan]Second
	newest int64
	// The second of the last line, which is the next line's nearly always.
	last     *Second
	from, to int64 // its bounds, Unix ms
}

func (s *recentSeconds) add(ms int64, r *Record) {
	if ms < s.from || ms >= s.to {
		if ms < 0 || !s.turn(ms/1000) {
			return
		}
	}
	s.last.Requests++
	if r.Status >= 500 {
		s.last.Errors++
	}
	s.last.Duration += r.Duration
}

// turn goes to another second. A straggler whose place is taken by a newer
// second is left out.
func (s *recentSeconds) turn(unix int64) bool {
	b := &s.ring[unix%recentSpan]
	if b.Unix != unix {
		if unix < b.Unix {
			return false
		}
		*b = Second{Unix: unix}
		s.newest = max(s.newest, unix)
	}
	s.last, s.from, s.to = b, unix*1000, unix*1000+1000
	return true
}

// Recent are the last n seconds of the log's own time up to its newest line,
// oldest first; a second without a request is there with zeros.
func (o *Observer) Recent(n int) []Second {
	n = min(n, recentSpan)
	if o.recent.newest == 0 {
		return nil
	}
	out := make([]Second, 0, n)
	for u := o.recent.newest - int64(n) + 1; u <= o.recent.newest; u++ {
		if u < 0 {
			continue
		}
		if s := o.recent.ring[u%recentSpan]; s.Unix == u {
			out = append(out, s)
		} else {
			out = append(out, Second{Unix: u})
		}
	}
	return out
}

// lagMeter measures how late lines are read. The clock is asked only when the
// log's second changes. Lines of one lump begin with the latest, so the figure
// is the greatest of this window and the one before.
type lagMeter struct {
	second        int64
	window        int64 // start of the current one, Unix seconds
	current, last float64
	lumps         int // windows in which the lag passed lumpSeconds
}

const (
	lagWindow   = 15
	lumpSeconds = 3
)

func (l *lagMeter) see(ms int64, clock func() time.Time, set *metric.Set) {
	if ms/1000 == l.second {
		return
	}
	l.second = ms / 1000
	now := clock()
	l.turn(now.Unix())
	// A stamp of whole seconds is up to a second older than the request.
	lag := float64(now.UnixMilli()-ms) / 1e3
	l.current = max(l.current, lag)
	set.Gauge(EventLag).Set(max(l.current, l.last, 0))
}

func (l *lagMeter) turn(unix int64) {
	if unix < l.window+lagWindow {
		return
	}
	if l.current >= lumpSeconds {
		l.lumps++
	} else if l.lumps > 0 {
		l.lumps--
	}
	l.last = l.current
	if unix >= l.window+2*lagWindow {
		l.last = 0
	}
	l.current, l.window = 0, unix
}

func (l *lagMeter) idle(now time.Time, set *metric.Set) {
	if l.window == 0 || now.Unix() < l.window+2*lagWindow {
		return
	}
	l.turn(now.Unix())
	set.Gauge(EventLag).Set(max(l.current, l.last, 0))
}

// Lumpy says that lines come so late, again and again, that figures of one
// second are coarse: the valve buffers. The advice is buffered="false" on the
// valve, which costs the server a write for each request.
func (o *Observer) Lumpy() bool { return o.lag.lumps >= 3 }
