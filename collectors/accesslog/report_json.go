package accesslog

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// reportJSON is the report as one object, for scripts and for comparing with
// what a load generator says. What is not in the log is absent, never 0.
type reportJSON struct {
	Kind         string  `json:"kind"`
	Format       string  `json:"format"`
	Pattern      string  `json:"pattern"`
	Recognised   *string `json:"recognised,omitempty"` // why the file was taken for that
	Confidence   float64 `json:"confidence,omitempty"`
	DurationUnit string  `json:"duration_unit"`
	// DurationResolution is 1 where seconds are logged without decimals.
	DurationResolution float64          `json:"duration_resolution_seconds,omitempty"`
	Lines              int64            `json:"lines"`
	Requests           int64            `json:"requests"`
	Refused            map[string]int64 `json:"refused"`
	Outside            int64            `json:"outside_of_range,omitempty"`
	Gaps               int64            `json:"gaps,omitempty"`
	ByStatus           map[string]int64 `json:"by_status"`
	ByMethod           map[string]int64 `json:"by_method"`
	Nameless           int64            `json:"without_request"`
	ErrorRatio         *float64         `json:"error_ratio,omitempty"` // 5xx of all
	ResponseBytes      *int64           `json:"response_bytes"`
	Duration           *figures         `json:"duration_seconds"` // null where none can be had, as are the others
	FirstByte          *figures         `json:"first_byte_seconds,omitempty"`
	Negative           int64            `json:"negative_durations,omitempty"`
	Aborted            *int64           `json:"aborted"`
	From               string           `json:"from,omitempty"` // the first and the last line's time
	To                 string           `json:"to,omitempty"`
	Seconds            float64          `json:"seconds,omitempty"`
	Rate               float64          `json:"requests_per_second,omitempty"`
	Concurrency        *concurrency     `json:"concurrency,omitempty"`
	Busiest            []busyJSON       `json:"busiest_seconds,omitempty"`
	Routes             []routeJSON      `json:"slowest_routes,omitempty"`
	Bins               *binsJSON        `json:"rate,omitempty"`
	LastRefused        []refusedJSON    `json:"last_refused,omitempty"`
	Advice             string           `json:"advice,omitempty"`
}

type figures struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50"`
	P66   float64 `json:"p66"`
	P75   float64 `json:"p75"`
	P80   float64 `json:"p80"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P98   float64 `json:"p98"`
	P99   float64 `json:"p99"`
}

type concurrency struct {
	Mean  float64 `json:"mean"`
	Peak  int64   `json:"peak"`
	At    string  `json:"at"`
	Exact bool    `json:"exact"` // both ends of each request known to the millisecond
}

type busyJSON struct {
	At       string `json:"at"`
	Requests int64  `json:"requests"`
}

type routeJSON struct {
	Route    string   `json:"route"`
	Requests int64    `json:"requests"`
	Errors   int64    `json:"errors"`
	Sum      *float64 `json:"duration_sum,omitempty"`
	Mean     *float64 `json:"mean,omitempty"`
	P95      *float64 `json:"p95,omitempty"`
	Max      *float64 `json:"max,omitempty"`
}

type binsJSON struct {
	From     string  `json:"from"`
	Width    int64   `json:"width_seconds"`
	Requests []int64 `json:"requests"`
	Errors   []int64 `json:"errors"`
}

type refusedJSON struct {
	Reason string `json:"reason"`
	Line   string `json:"line"`
}

// JSON is the report as one object.
func (r *Report) JSON() any {
	unit, whole := r.m.DurationUnit()
	out := &reportJSON{
		Kind: "accesslog", Format: r.m.Format(), Pattern: r.m.Pattern(), DurationUnit: unit,
		Lines: r.lines, Requests: r.requests, Outside: r.outside, Gaps: r.gaps,
		Refused: map[string]int64{}, ByStatus: map[string]int64{}, ByMethod: map[string]int64{},
		Nameless: r.nameless, Negative: r.negative, Advice: r.m.Advice(),
	}
	if g := r.opt.Guess; g != nil {
		out.Recognised, out.Confidence = &g.Why, g.Confidence
	}
	if whole || r.coarse > 0 {
		out.DurationResolution = 1
	}
	for why, n := range r.refused {
		if n > 0 {
			out.Refused[Refusal(why).String()] = n
		}
	}
	for _, l := range r.last.list() {
		out.LastRefused = append(out.LastRefused, refusedJSON{l.Reason.String(), l.Line})
	}
	errors := int64(0)
	for status, n := range r.byStatus {
		if n == 0 {
			continue
		}
		name := "-"
		if status > 0 {
			name = strconv.Itoa(status)
		}
		out.ByStatus[name] = n
		if status >= 500 {
			errors += n
		}
	}
	if r.requests > 0 && r.byStatus[0] < r.requests {
		ratio := float64(errors) / float64(r.requests)
		out.ErrorRatio = &ratio
	}
	for m, n := range r.byMethod {
		if n > 0 {
			out.ByMethod[Method(m).String()] = n
		}
	}
	if r.m.Logs(HasBytes) || r.withBytes > 0 {
		out.ResponseBytes = &r.responseBytes
	}
	if n := r.durations.Count(); n > 0 {
		out.Duration = r.figures(r.durations.Count(), r.sum, r.max, r.durations.Quantile)
	}
	if n := r.firsts.Count(); n > 0 {
		out.FirstByte = r.figures(n, r.firstSum, r.firstMax, r.firsts.Quantile)
	}
	if r.m.Logs(HasConn) || r.conn != [3]int64{} {
		out.Aborted = &r.conn[0]
	}
	if r.start != 0 || r.end != 0 {
		out.From, out.To = stamp(r.start), stamp(r.end)
		out.Seconds = r.span()
		out.Rate = round(float64(r.requests)/out.Seconds, 3)
	}
	if peak, at, exact := r.sweep.finish(); peak > 0 {
		out.Concurrency = &concurrency{Peak: peak, At: stamp(at), Exact: exact, Mean: round(r.sum/r.span(), 3)}
	}
	s := r.seconds.done()
	for _, b := range s.busiest {
		out.Busiest = append(out.Busiest, busyJSON{stamp(b.unix * 1000), b.requests})
	}
	if len(s.bins) > 0 {
		bins := &binsJSON{From: stamp(s.first * 1000), Width: s.width}
		for _, b := range s.bins {
			bins.Requests = append(bins.Requests, b.requests)
			bins.Errors = append(bins.Errors, b.errors)
		}
		out.Bins = bins
	}
	for _, n := range r.slowest(20) {
		f := &r.routes[n]
		j := routeJSON{Route: r.router.names[n], Requests: f.requests, Errors: f.errors}
		if f.hist != nil {
			sum, mean, p95, most := round(f.sum, 6), round(f.sum/float64(f.hist.Count()), 6), quantile(f.hist.Quantile, .95, f.max), f.max
			j.Sum, j.Mean, j.P95, j.Max = &sum, &mean, &p95, &most
		}
		out.Routes = append(out.Routes, j)
	}
	return out
}

func (r *Report) figures(n uint64, sum, most float64, q func(float64) float64) *figures {
	at := func(p float64) float64 { return quantile(q, p, most) }
	return &figures{
		Count: n, Sum: round(sum, 6), Max: most,
		P50: at(.50), P66: at(.66), P75: at(.75), P80: at(.80), P90: at(.90), P95: at(.95), P98: at(.98), P99: at(.99),
	}
}

// quantile keeps a bucket's middle from passing the greatest value.
func quantile(q func(float64) float64, p, most float64) float64 {
	v := q(p)
	if v != v {
		return 0
	}
	// Three to four digits are all that a bucket 9 % wide knows.
	return min(round(v, max(0, 4-int(math.Floor(math.Log10(max(v, 1e-9)))))), most)
}

func round(v float64, digits int) float64 {
	scale := math.Pow(10, float64(digits))
	return math.Round(v*scale) / scale
}

func stamp(ms int64) string {
	if ms%1000 == 0 {
		return time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// span is the log's own time in seconds, the last second included.
func (r *Report) span() float64 {
	return float64(r.end/1000-r.start/1000) + 1
}

// slowest are the numbers of the routes that took the most time in all, which
// is where time can be won; without durations, the ones asked for most.
func (r *Report) slowest(n int) []int {
	var out []int
	for i := range r.routes {
		if r.routes[i].requests > 0 {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		x, y := &r.routes[a], &r.routes[b]
		return cmp.Or(cmp.Compare(y.sum, x.sum), cmp.Compare(y.requests, x.requests))
	})
	return out[:min(n, len(out))]
}

// done is a copy with the ring judged as well, so that a report may be printed
// while lines still come.
func (s *seconds) done() *seconds {
	c := *s
	c.bins, c.busiest = slices.Clone(s.bins), slices.Clone(s.busiest)
	if c.newest != 0 {
		c.retireAll()
	}
	return &c
}
