package accesslog

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// An Observer turns the lines of one access log into figures. It satisfies
// collectors.Observer.
type Observer struct {
	set    *metric.Set
	m      *Matcher
	cfg    Config
	router *router // nil when routes are off
	clock  func() time.Time
	rec    Record

	// Handles, found at first sight: rows by route's number, in each a table by
	// code's and method's number.
	rows     []row
	codes    [1000]uint8 // status to code's number, 0 for none yet
	codeName []string    // code's number to label
	bytes    *metric.Number
	errors   [refusals]*metric.Number
	conn     [3]*metric.Number
	pool     string // the last thread pool seen
	poolNum  *metric.Number
	pools    map[string]*metric.Number

	refused refusedRing
	kept    keptRing
	recent  recentSeconds
	lag     lagMeter
	ear     *Listener // nil where nobody listens
	told    Told
}

// row are the series of one route.
type row struct {
	name      string
	requests  []*metric.Number // [code*methods+method]
	durations []durations      // [code]
}

type durations struct {
	duration, first *metric.Hist
	exemplarUntil   int64   // the last exemplar stands until then, in Unix ms,
	exemplarAbove   float64 // unless a request takes longer than this
}

// New makes an observer that writes into set. The settings have been checked.
func New(set *metric.Set, m *Matcher, cfg Config) *Observer {
	o := &Observer{set: set, m: m, cfg: cfg}
	if cfg.Routes.On() {
		o.router = newRouter(cfg.Routes)
	}
	if cfg.KeepRefused == 0 {
		cfg.KeepRefused = DefaultConfig().KeepRefused
	}
	o.refused.keep = cfg.KeepRefused
	o.start()
	return o
}

// SetClock gives the observer a clock, against which it measures how late lines
// come. Without one there is no lag; replay has none.
func (o *Observer) SetClock(now func() time.Time) { o.clock = now }

// Matcher is the pattern in force.
func (o *Observer) Matcher() *Matcher { return o.m }

// classes are the codes whose counters begin at 0.
var classes = []string{"1xx", "2xx", "3xx", "4xx", "5xx"}

// start looks the handles up anew and makes the closed counters visible, so
// that rate() sees the first error. By method that costs 50 series, once, and
// only where the log has methods; with routes or exact codes the sets are open.
func (o *Observer) start() {
	o.rows = nil
	o.codes = [1000]uint8{}
	o.codeName = []string{"other"}
	o.pools = map[string]*metric.Number{}
	o.pool, o.poolNum = "", nil
	o.conn = [3]*metric.Number{}
	if o.router == nil && o.cfg.Codes != "exact" && o.m.Logs(HasStatus|HasRequest) {
		for _, c := range classes {
			for m := range methods {
				o.set.Start(Requests, m.String(), c, "")
			}
		}
	}
	for r := Empty; r < refusals; r++ {
		if (r == BadJSON) == (o.m.json != nil) || r < BadTime {
			o.errors[r] = o.set.Start(ParseErrors, r.String())
		}
	}
	if o.m.Logs(HasBytes) {
		o.bytes = o.set.Start(ResponseBytes)
	}
	if o.m.Logs(HasConn) {
		for i := range o.conn {
			o.conn[i] = o.set.Start(ConnectionStatus, connName[i])
		}
	}
	o.available()
}

func (o *Observer) available() {
	v := 0.0
	if o.m.HasDuration() {
		v = 1
	}
	o.set.Gauge(DurationAvailable).Set(v)
}

// Observe counts one line. An access log has no entries of several lines, so
// nothing is ever open.
func (o *Observer) Observe(line []byte) (open bool) {
	r := &o.rec
	refusal := o.m.Parse(line, r)
	if o.kept.leave > 0 {
		o.kept.add(refusal, o.m.pattern, line)
	}
	switch refusal {
	case Accepted:
	case Directive:
		o.available() // the fields may have changed
		return false
	default:
		o.refuse(refusal, line)
		return false
	}
	number, full := numEmpty, false
	if o.router != nil {
		if number, full = o.router.number(r); full {
			o.set.Refuse(Requests)
		}
	}
	if number >= len(o.rows) {
		o.growRows(number)
	}
	row := &o.rows[number]
	code := o.code(r.Status)
	if code >= len(row.durations) {
		row.grow(code)
	}
	i := code*int(methods) + int(r.Method)
	if row.requests[i] == nil {
		row.requests[i] = o.set.Counter(Requests, r.Method.String(), o.codeName[code], row.name)
	}
	row.requests[i].Inc()
	ms, timed := r.Time()
	if r.Has&HasBytes != 0 {
		if o.bytes == nil {
			o.bytes = o.set.Counter(ResponseBytes)
		}
		o.bytes.Add(float64(r.Bytes))
	}
	if r.Has&HasDuration != 0 && !r.Coarse {
		d := &row.durations[code]
		if d.duration == nil {
			d.duration = o.set.Histogram(Duration, o.codeName[code], row.name)
		}
		d.duration.Observe(r.Duration)
		if timed && r.Has&(HasTrace|HasThread) != 0 && (ms >= d.exemplarUntil || r.Duration > d.exemplarAbove) {
			o.exemplar(d, r, ms)
		}
	}
	if r.Has&HasFirstByte != 0 {
		d := &row.durations[code]
		if d.first == nil {
			d.first = o.set.Histogram(FirstByte, o.codeName[code], row.name)
		}
		d.first.Observe(r.FirstByte)
	}
	if r.Has&HasConn != 0 {
		o.connection(r.Conn)
	}
	if r.Has&HasThread != 0 {
		o.thread(r.Thread)
	}
	if timed {
		o.recent.add(ms, r)
		if o.clock != nil {
			o.lag.see(ms, o.clock, o.set)
		}
	}
	if o.ear != nil {
		if !timed {
			ms = 0
		}
		o.hear(line, r, ms)
	}
	return false
}

// code is the number of a status' label.
func (o *Observer) code(status int) int {
	if status >= len(o.codes) {
		return 0
	}
	if c := o.codes[status]; c != 0 {
		return int(c)
	}
	return o.newCode(status)
}

// newCode gives a number to a status seen for the first time. 255 exact codes
// are more than there are; beyond that it is other.
func (o *Observer) newCode(status int) int {
	name := ""
	switch {
	case status == 0:
		// No status is logged, or a dash: the label stays empty.
	case status < 100 || status > 599:
		return 0
	case o.cfg.Codes == "exact":
		name = fmt.Sprint(status)
	default:
		name = classes[status/100-1]
	}
	for i, n := range o.codeName[1:] {
		if n == name {
			o.codes[status] = uint8(i + 1)
			return i + 1
		}
	}
	if len(o.codeName) > 255 {
		return 0
	}
	o.codeName = append(o.codeName, name)
	o.codes[status] = uint8(len(o.codeName) - 1)
	return len(o.codeName) - 1
}

func (o *Observer) growRows(number int) {
	for len(o.rows) <= number {
		name := ""
		if o.router != nil {
			name = o.router.names[len(o.rows)]
		}
		o.rows = append(o.rows, row{name: name})
	}
}

func (r *row) grow(code int) {
	for len(r.durations) <= code {
		r.durations = append(r.durations, durations{})
		r.requests = append(r.requests, make([]*metric.Number, methods)...)
	}
}

// exemplarMillis is how long an exemplar stands: about as long as a scrape waits.
const exemplarMillis = 10_000

// exemplar points from the histogram to a request: by its trace id where one is
// logged, else by the thread that served it. One in ten seconds and a series,
// and far slower ones in between, so that lines cost nothing.
func (o *Observer) exemplar(d *durations, r *Record, ms int64) {
	d.exemplarUntil, d.exemplarAbove = ms+exemplarMillis, 4*r.Duration
	label, id := "thread", r.Thread
	if r.Has&HasTrace != 0 {
		label, id = "trace_id", traceID(r.Trace)
	}
	if len(id) > 64 {
		id = id[:64] // OpenMetrics allows 128 characters in all
	}
	d.duration.SetExemplar(metric.Exemplar{
		Label: label, ID: strings.ToValidUTF8(string(id), "\uFFFD"), Value: r.Duration, At: float64(ms) / 1e3,
	})
}

// traceID takes the trace's id out of a traceparent (00-TRACE-SPAN-01) or b3
// header (TRACE-SPAN-1).
func traceID(h []byte) []byte {
	if len(h) == 55 && h[2] == '-' && h[35] == '-' {
		return h[3:35]
	}
	for i, c := range h {
		if (c == '-' || c == ':') && (i == 16 || i == 32) {
			return h[:i]
		}
	}
	return h
}

var connName = [3]string{"aborted", "keep-alive", "close"}

// connOf is the place of what %X logs in connName.
func connOf(c byte) int {
	switch c {
	case 'X':
		return 0
	case '+':
		return 1
	}
	return 2
}

func (o *Observer) connection(c byte) {
	i := connOf(c)
	if o.conn[i] == nil {
		o.conn[i] = o.set.Counter(ConnectionStatus, connName[i])
	}
	o.conn[i].Inc()
}

// thread counts the pool of a thread. Neighbouring lines are of the same pool,
// so the last one is at hand.
func (o *Observer) thread(name []byte) {
	if n := len(o.pool); o.poolNum != nil && len(name) > n+1 && len(name) <= n+6 && name[n] == '-' && string(name[:n]) == o.pool {
		same := true
		for _, c := range name[n+1:] {
			same = same && isDigit(c)
		}
		if same {
			o.poolNum.Inc()
			return
		}
	}
	pool := poolOf(name)
	n, ok := o.pools[string(pool)]
	if !ok {
		label := string(pool)
		if label == "" {
			label = "none" // a virtual thread, or the line of an h2c upgrade
		}
		n = o.set.Counter(PoolRequests, strings.ToValidUTF8(label, "\uFFFD"))
		if len(o.pools) < 1000 {
			o.pools[string(pool)] = n
		}
	}
	n.Inc()
	if string(pool) != o.pool && len(pool) > 3 { // qtp's numbers are two
		o.pool, o.poolNum = string(pool), n
	}
}

// poolOf takes a thread's number off: http-nio-8080-exec-12 is of the pool
// http-nio-8080-exec, catalina-exec-3 of catalina-exec, qtp1589683045-15 of qtp
// (the number behind qtp is the pool's hash and new at each start).
func poolOf(name []byte) []byte {
	if len(name) > 3 && string(name[:3]) == "qtp" && isDigit(name[3]) {
		return name[:3]
	}
	if string(name) == "-" || string(name) == "null" {
		return nil
	}
	n := len(name)
	for n > 0 && isDigit(name[n-1]) {
		n--
	}
	if n < len(name) && n > 0 && (name[n-1] == '-' || name[n-1] == '#' || name[n-1] == '_') {
		n--
	}
	return name[:n]
}

func (o *Observer) refuse(why Refusal, line []byte) {
	if o.errors[why] == nil {
		o.errors[why] = o.set.Counter(ParseErrors, why.String())
	}
	o.errors[why].Inc()
	o.refused.add(why, line)
}

// Idle has nothing to close; it lets the lag of an ended lump go.
func (o *Observer) Idle(now time.Time) { o.lag.idle(now, o.set) }

// Gap has nothing to give up: each line stands alone.
func (o *Observer) Gap() {}

// Refused are the last lines that the pattern refused, the newest last.
func (o *Observer) Refused() []RefusedLine { return o.refused.list() }

// saved is the checkpoint's form.
type saved struct {
	Set    json.RawMessage `json:"set"`
	Routes []string        `json:"routes,omitempty"`
	// Fields is the W3C pattern in force: the #Fields line is behind us.
	Fields string `json:"fields,omitempty"`
}

// Save writes the counters and the open state down.
func (o *Observer) Save() ([]byte, error) {
	set, err := o.set.Save()
	if err != nil {
		return nil, err
	}
	s := saved{Set: set}
	if o.router != nil {
		s.Routes = o.router.names[o.router.firstAdd:]
	}
	if o.m.w3c != nil {
		s.Fields = o.m.pattern
	}
	return json.Marshal(s)
}

// Load takes them back into a fresh observer.
func (o *Observer) Load(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load access log state: %w", err)
	}
	if err := o.set.Load(s.Set, Metrics); err != nil {
		return err
	}
	if o.router != nil {
		for _, name := range s.Routes {
			if len(o.router.names)-numReserved < o.router.max {
				o.router.add(name)
			}
		}
	}
	if o.m.w3c != nil && s.Fields != "" {
		if err := o.m.compileW3C(s.Fields); err != nil {
			return err
		}
	}
	o.errors = [refusals]*metric.Number{}
	o.bytes = nil
	o.start()
	return nil
}
