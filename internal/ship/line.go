package ship

import (
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grafana/loki/pkg/push"
)

// maxAhead is how far in the future a line may be; Loki takes ten minutes.
const maxAhead = 5 * 60 * 1e9

// cutMark ends a line that was cut.
const cutMark = "… (cut)"

// labels are what may differ between two streams. All of them have few values:
// event comes from a list, level too.
type labels struct{ target, source, level, event string }

// A stream is the lines with the same labels.
type stream struct {
	text  string // {event="…", …}
	event string
	last  int64 // the time of its last line
}

// next gives a line its own nanosecond: Loki keeps one of two lines with equal
// time and text, and some servers order by time alone. The time is given once,
// when the line joins the queue, so that a push that is tried again carries the
// same times and what had landed is not doubled.
func (st *stream) next(at int64) int64 {
	if at <= st.last {
		at = st.last + 1
	}
	st.last = at
	return at
}

// A line waits to be sent.
type line struct {
	stream *stream
	at     int64
	text   string
	meta   push.LabelsAdapter
	weight int64 // 1 for a chosen line, 0 for one of our own
}

// overhead is about what a line takes beside its text and the values of its
// metadata: itself, its share of the list, and the list of its metadata.
const overhead = 224

func (l *line) size() int64 {
	n := len(l.text) + overhead
	for _, m := range l.meta {
		n += len(m.Value)
	}
	return int64(n)
}

// queue is lines in the order of their coming.
type queue struct {
	list   []line
	head   int
	bytes  int64
	weight int64 // chosen lines in it
}

func (q *queue) lines() int { return len(q.list) - q.head }

func (q *queue) push(l line) {
	q.list = append(q.list, l)
	q.bytes += l.size()
	q.weight += l.weight
}

func (q *queue) pop() line {
	l := q.list[q.head]
	q.list[q.head] = line{}
	q.head++
	q.bytes -= l.size()
	q.weight -= l.weight
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
		if cap(q.list) > 1024 {
			q.list = nil // a storm's memory goes back
		}
	} else if q.head > 512 && q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return l
}

// putBack puts lines that were taken before all others.
func (q *queue) putBack(lines []line) {
	q.list = append(lines, q.list[q.head:]...)
	q.head = 0
	n := amount(lines)
	q.bytes += n.bytes
	q.weight += n.lines
}

// take removes lines of at most so many bytes, and at least one.
func (q *queue) take(bytes int64) (out []line) {
	for q.lines() > 0 {
		n := q.list[q.head].size()
		if len(out) > 0 && n > bytes {
			break
		}
		bytes -= n
		out = append(out, q.pop())
	}
	return out
}

func amount(lines []line) (n lot) {
	for i := range lines {
		n.lines += lines[i].weight
		n.bytes += lines[i].size()
	}
	return n
}

// stream finds or makes the stream of an entry; the caller holds the lock.
func (s *Shipper) stream(t *Tap, e *Entry) *stream {
	key := labels{t.target, t.source, e.Level, e.Event}
	st := s.streams[key]
	if st == nil {
		pairs := map[string]string{"target": t.target, "source": t.source, "level": e.Level, "event": e.Event, "host": s.host}
		for name, value := range s.cfg.Labels {
			pairs[name] = value
		}
		st = &stream{text: labelText(pairs), event: strings.Clone(e.Event)}
		st.last = s.lasts[st.text]
		// Labels are cloned: those of an entry may point into a caller's buffer.
		key = labels{strings.Clone(key.target), strings.Clone(key.source), strings.Clone(key.level), strings.Clone(key.event)}
		s.streams[key] = st
	}
	return st
}

// lastTimes is the time of the last line of each stream: who goes on with it must
// not give a time twice, or equal lines of one second before and after a restart
// would be one to Loki. With these the lines that are read again after kill -9 get
// the times that they had, so that Loki keeps one of each. What is longer ago than
// an hour will not come again. The caller holds the lock.
func (s *Shipper) lastTimes(now time.Time) map[string]int64 {
	out := map[string]int64{}
	recent := now.Add(-time.Hour).UnixNano()
	keep := func(text string, last int64) {
		if last > recent {
			out[text] = max(out[text], last)
		}
	}
	for text, last := range s.lasts {
		keep(text, last)
	}
	for _, st := range s.streams {
		keep(st.text, st.last)
	}
	return out
}

// labelText writes labels as a push carries them. Empty ones are left out.
func labelText(pairs map[string]string) string {
	names := make([]string, 0, len(pairs))
	for name, v := range pairs {
		if v != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(strconv.Quote(clean(pairs[name], 1024)))
	}
	b.WriteByte('}')
	return b.String()
}

// clean makes a label value of what may be anything.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cutAt(s, limit)
}

// valid makes text of a line: it may hold anything, and protobuf takes UTF-8
// only. NULs and the colours of a terminal are of no use to a reader.
func valid(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = colours.ReplaceAllString(s, "")
	}
	return s
}

// cutAt cuts before the limit, and no rune in two.
func cutAt(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
