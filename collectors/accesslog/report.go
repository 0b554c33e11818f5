package accesslog

import (
	"slices"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// ReportOptions say what a Report covers.
type ReportOptions struct {
	// From and To bound the lines by their own time: From is within, To is not.
	// Zero is no bound.
	From, To time.Time
	// Routes say how paths become the routes of the table; the zero value folds
	// ids.
	Routes Routes
	// Guess is what Recognise took a bare file for, to be told in the report.
	Guess *Guess
}

// A Report is what a person wants to know of an access log, gathered in one
// pass with constant memory. It takes lines as an Observer does, and prints.
type Report struct {
	m    *Matcher
	opt  ReportOptions
	from int64 // Unix ms
	to   int64
	rec  Record

	lines, bytesRead, directives int64
	outside                      int64 // lines that From and To leave out
	gaps                         int64
	refused                      [refusals]int64
	last                         refusedRing

	requests      int64
	byStatus      [1000]int64
	byMethod      [methods]int64
	nameless      int64
	responseBytes int64
	withBytes     int64
	durations     *metric.Hist
	sum, max      float64
	coarse        int64
	negative      int64
	firsts        *metric.Hist
	firstSum      float64
	firstMax      float64
	conn          [3]int64

	start, end int64 // of the log's own time, Unix ms; 0 for none
	seconds    seconds
	sweep      sweep
	router     *router
	routes     []routeFigures
}

type routeFigures struct {
	requests, errors int64
	sum, max         float64
	hist             *metric.Hist
}

// reportRoutes is the number of routes in a report's table before "other".
const reportRoutes = 1000

// NewReport makes an empty report of what m reads.
func NewReport(m *Matcher, opt ReportOptions) *Report {
	r := &Report{m: m, opt: opt, durations: metric.NewHist(nil), firsts: metric.NewHist(nil)}
	r.last.keep = 8
	if !opt.From.IsZero() {
		r.from = opt.From.UnixMilli()
	}
	if !opt.To.IsZero() {
		r.to = opt.To.UnixMilli()
	}
	routes := opt.Routes
	if !routes.On() {
		routes.Fold = true
	}
	routes.Max = max(routes.Max, reportRoutes)
	r.router = newRouter(routes)
	r.seconds.init()
	return r
}

// Observe takes one line.
func (r *Report) Observe(line []byte) (open bool) {
	r.lines++
	r.bytesRead += int64(len(line)) + 1
	rec := &r.rec
	switch why := r.m.Parse(line, rec); why {
	case Accepted:
	case Directive:
		r.directives++
		return false
	default:
		r.refused[why]++
		r.last.add(why, line)
		return false
	}
	ms, timed := rec.Time()
	if r.from != 0 || r.to != 0 {
		if !timed || ms < r.from || r.to != 0 && ms >= r.to {
			r.outside++
			return false
		}
	}
	r.requests++
	if rec.Status < len(r.byStatus) {
		r.byStatus[rec.Status]++
	}
	r.byMethod[rec.Method]++
	rec.Split()
	if rec.Nameless {
		r.nameless++
	}
	if rec.Has&HasBytes != 0 {
		r.withBytes++
		r.responseBytes += rec.Bytes
	}
	if rec.Has&HasFirstByte != 0 {
		r.firsts.Observe(rec.FirstByte)
		r.firstSum += rec.FirstByte
		r.firstMax = max(r.firstMax, rec.FirstByte)
	}
	switch {
	case rec.Has&HasConn == 0:
	case rec.Conn == 'X':
		r.conn[0]++
	case rec.Conn == '+':
		r.conn[1]++
	default:
		r.conn[2]++
	}
	if rec.Negative {
		r.negative++
	}
	if rec.Has&HasDuration != 0 {
		r.durations.Observe(rec.Duration)
		r.sum += rec.Duration
		r.max = max(r.max, rec.Duration)
		if rec.Coarse {
			r.coarse++
		}
	}
	r.route(rec)
	if timed {
		if r.start == 0 || ms < r.start {
			r.start = ms
		}
		r.end = max(r.end, ms)
		r.seconds.add(ms/1000, rec.Status >= 500)
		r.sweep.add(rec)
	}
	return false
}

func (r *Report) route(rec *Record) {
	n, _ := r.router.number(rec)
	for n >= len(r.routes) {
		r.routes = append(r.routes, routeFigures{})
	}
	f := &r.routes[n]
	f.requests++
	if rec.Status >= 500 {
		f.errors++
	}
	if rec.Has&HasDuration != 0 {
		f.sum += rec.Duration
		f.max = max(f.max, rec.Duration)
		if f.hist == nil {
			f.hist = metric.NewHist(nil)
		}
		f.hist.Observe(rec.Duration)
	}
}

// Idle has nothing to close.
func (r *Report) Idle(time.Time) {}

// Gap counts: bytes were lost before the next line.
func (r *Report) Gap() { r.gaps++ }

// Requests is how many lines were requests.
func (r *Report) Requests() int64 { return r.requests }

// A bin counts the requests of a span of seconds.
type bin struct{ requests, errors int64 }

// seconds holds the rate over time: the newest ones by second, in a ring wide
// enough for lines that come out of order, and all of them in bins whose width
// doubles when they become too many.
type seconds struct {
	ring    [ringSeconds]bin
	newest  int64 // 0 when empty
	busiest []busySecond
	bins    []bin
	width   int64 // seconds of a bin
	first   int64 // of bins[0], a multiple of width
}

type busySecond struct{ unix, requests int64 }

const (
	ringSeconds  = 1024
	maxBins      = 4096
	busiestCount = 10
)

func (s *seconds) init() { s.width = 1 }

func (s *seconds) add(unix int64, failed bool) {
	if s.newest == 0 {
		s.newest = unix
	}
	if unix > s.newest {
		if unix-s.newest >= ringSeconds {
			s.retireAll()
		} else {
			for u := s.newest + 1; u <= unix; u++ {
				s.retire(u - ringSeconds)
			}
		}
		s.newest = unix
	}
	if unix <= s.newest-ringSeconds {
		// A straggler: it is in the bins, but its second has been judged.
		s.bin(unix, bin{1, b2i(failed)})
		return
	}
	b := &s.ring[mod(unix, ringSeconds)]
	b.requests++
	b.errors += b2i(failed)
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func mod(a, n int64) int64 { return ((a % n) + n) % n }

// retire moves a second out of the ring.
func (s *seconds) retire(unix int64) {
	b := &s.ring[mod(unix, ringSeconds)]
	if b.requests == 0 {
		return
	}
	s.bin(unix, *b)
	s.busy(unix, b.requests)
	*b = bin{}
}

func (s *seconds) retireAll() {
	for u := s.newest - ringSeconds + 1; u <= s.newest; u++ {
		s.retire(u)
	}
}

func (s *seconds) busy(unix, requests int64) {
	i, _ := slices.BinarySearchFunc(s.busiest, requests, func(b busySecond, n int64) int {
		if b.requests >= n {
			return -1
		}
		return 1
	})
	if i >= busiestCount {
		return
	}
	s.busiest = slices.Insert(s.busiest, i, busySecond{unix, requests})
	s.busiest = s.busiest[:min(len(s.busiest), busiestCount)]
}

// bin adds to the bins, making room before, behind, or by doubling the width.
func (s *seconds) bin(unix int64, b bin) {
	if len(s.bins) == 0 {
		s.first = unix - mod(unix, s.width)
		s.bins = append(s.bins, bin{})
	}
	for {
		at := unix - mod(unix, s.width)
		from := min(at, s.first)
		to := max(at, s.first+int64(len(s.bins)-1)*s.width)
		if (to-from)/s.width < maxBins {
			if n := int((s.first - from) / s.width); n > 0 {
				s.bins = slices.Insert(s.bins, 0, make([]bin, n)...)
				s.first = from
			}
			for s.first+int64(len(s.bins))*s.width <= at {
				s.bins = append(s.bins, bin{})
			}
			k := (at - s.first) / s.width
			s.bins[k].requests += b.requests
			s.bins[k].errors += b.errors
			return
		}
		s.double()
	}
}

func (s *seconds) double() {
	wide := s.width * 2
	first := s.first - mod(s.first, wide)
	out := make([]bin, 0, len(s.bins)/2+1)
	for i, b := range s.bins {
		k := int((s.first + int64(i)*s.width - first) / wide)
		for len(out) <= k {
			out = append(out, bin{})
		}
		out[k].requests += b.requests
		out[k].errors += b.errors
	}
	s.bins, s.width, s.first = out, wide, first
}

// A sweep finds how many requests were in work at once: +1 at each start, -1 at
// each end, in milliseconds. Lines come in order of their ends, so a start is
// known only when its end is; the window is long enough for requests of four
// minutes, and longer ones count from where it begins.
type sweep struct {
	delta   []int32
	base    int64 // the time of the oldest millisecond in the window
	newest  int64
	running int64
	peak    int64
	peakAt  int64
	clipped int64 // requests longer than the window, or out of order beyond it
	inexact int64 // requests of which a time is known to the second only
	counted int64
}

const sweepMillis = 1 << 18

func (s *sweep) add(r *Record) {
	begin, end, exact, ok := r.Span()
	if !ok {
		return
	}
	if s.delta == nil {
		s.delta = make([]int32, sweepMillis)
		s.base = end - sweepMillis/2
		s.newest = s.base
	}
	s.counted++
	if !exact {
		// Of a second's requests nobody knows the order: spread them over it
		// evenly, or all of them would be in work at its first millisecond.
		s.inexact++
		shift := s.inexact * 618 % 1000
		begin, end = begin+shift, end+shift
	}
	if end-s.base >= sweepMillis {
		s.advance(end - sweepMillis + 1)
	}
	if end < s.base {
		s.clipped++
		return
	}
	if begin < s.base {
		s.clipped++
		begin = s.base
	}
	s.delta[mod(begin, sweepMillis)]++
	s.delta[mod(end, sweepMillis)]--
	s.newest = max(s.newest, end)
}

// advance moves the window's beginning to a later millisecond.
func (s *sweep) advance(to int64) {
	for t := s.base; t < to; t++ {
		if t > s.newest {
			break // nothing beyond has been written
		}
		d := &s.delta[mod(t, sweepMillis)]
		if s.running += int64(*d); s.running > s.peak {
			s.peak, s.peakAt = s.running, t
		}
		*d = 0
	}
	s.base = to
}

// finish is the peak over all, and whether it is exact.
func (s *sweep) finish() (peak, at int64, exact bool) {
	if s.delta == nil {
		return 0, 0, false
	}
	rest := *s
	rest.delta = slices.Clone(s.delta)
	rest.advance(s.newest + 1)
	if rest.peak == 0 && s.counted > 0 {
		rest.peak = 1 // requests that were all shorter than a millisecond
	}
	return rest.peak, rest.peakAt, s.inexact == 0 && s.clipped == 0
}

// Span is when the request began and ended, in Unix milliseconds. exact says
// that both are known to the millisecond.
func (r *Record) Span() (begin, end int64, exact, ok bool) {
	have := r.Has & (HasBegin | HasEnd)
	long := int64(r.Duration*1e3 + 0.5)
	known := r.Has&HasDuration != 0 && !r.Coarse
	switch {
	// The finer of two stamps, and the duration; else both stamps.
	case known && have&HasBegin != 0 && r.MillisBegin:
		return r.Begin, r.Begin + long, true, true
	case known && have&HasEnd != 0 && r.MillisEnd:
		return r.End - long, r.End, true, true
	case have == HasBegin|HasEnd && r.MillisBegin && r.MillisEnd:
		return r.Begin, max(r.End, r.Begin), true, true
	case known && have&HasEnd != 0:
		return r.End - long, r.End, false, true
	case known && have&HasBegin != 0:
		return r.Begin, r.Begin + long, false, true
	}
	return 0, 0, false, false
}
