package applog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A Report reads one whole log and says what was in it, for sidecar replay. It
// takes constant memory.
type Report struct {
	o     *Observer
	bytes int64
}

// NewReport makes an empty one. cfg was checked.
func NewReport(cfg Config) *Report {
	cfg.Role = Own
	r := &Report{o: New(metric.NewSet(), cfg)}
	r.o.times = &timeline{}
	return r
}

// Observe takes a line without its end.
func (r *Report) Observe(line []byte) bool { return r.o.Observe(line) }

// ObserveBlock takes whole lines with their ends: see Observer.ObserveBlock.
func (r *Report) ObserveBlock(block []byte) (taken, lines int, open bool) {
	return r.o.ObserveBlock(block)
}

// Idle and Gap are the observer's.
func (r *Report) Idle(now time.Time) { r.o.Idle(now) }

// Gap says that bytes are missing.
func (r *Report) Gap() { r.o.Gap() }

// SetBytes sets the number of bytes read, where the caller knows it better than
// the sum of the lines: a file with \r\n, or without an end to its last line.
func (r *Report) SetBytes(n int64) { r.bytes = n }

// Figures are the same as metrics.
func (r *Report) Figures() *metric.Set { return r.o.set }

// Result is what JSON returns.
type Result struct {
	Kind       string            `json:"kind"` // applog
	Layout     string            `json:"layout"`
	Lines      uint64            `json:"lines"`
	Bytes      uint64            `json:"bytes"`
	Records    uint64            `json:"records"`
	ByLevel    map[string]uint64 `json:"by_level"`
	RawLines   uint64            `json:"raw_lines"`
	Events     map[string]uint64 `json:"events"`
	EventBytes map[string]uint64 `json:"event_bytes"`
	// EventPorts has the events by connector port where the record tells it.
	EventPorts map[string]map[string]uint64 `json:"event_ports,omitempty"`
	// Exceptions are by root cause, Thrown by the outermost class.
	Exceptions map[string]uint64 `json:"exceptions"`
	Thrown     map[string]uint64 `json:"thrown"`
	Loggers    map[string]uint64 `json:"loggers"`
	Patterns   []PatternResult   `json:"patterns"`
	First      string            `json:"first,omitempty"` // of the log's own clock
	Last       string            `json:"last,omitempty"`
	PerMinute  []MinuteResult    `json:"per_minute,omitempty"`
	RawSamples []string          `json:"raw_samples,omitempty"`
	// Seen has first and last time of each event and exception.
	Seen map[string]Span `json:"seen,omitempty"`
}

// A Span is a first and a last time, as the log prints them.
type Span struct {
	First string `json:"first"`
	Last  string `json:"last"`
}

// A PatternResult is one pattern of messages.
type PatternResult struct {
	Pattern string `json:"pattern"`
	Level   string `json:"level"`
	Logger  string `json:"logger"`
	Count   uint64 `json:"count"`
	Bytes   uint64 `json:"bytes"`
	First   string `json:"first,omitempty"`
	Last    string `json:"last,omitempty"`
	Sample  string `json:"sample,omitempty"`
	// New says that it was not there before the last start of the server.
	New bool `json:"new"`
}

// A MinuteResult is the records of one step of the log's own clock.
type MinuteResult struct {
	At      string            `json:"at"`
	Seconds int64             `json:"seconds"` // the length of the step
	ByLevel map[string]uint64 `json:"by_level"`
}

// JSON is the report as a value to be encoded.
func (r *Report) JSON() any { return r.Result() }

// Result closes what is open and reads the report.
func (r *Report) Result() Result {
	o := r.o
	o.Gap()
	raw, _ := o.raw.Value()
	bytes, _ := o.bytes.Value()
	out := Result{Kind: "applog", Layout: o.Layout(), Lines: o.seen, Bytes: uint64(bytes), Records: o.records, RawLines: uint64(raw),
		ByLevel: map[string]uint64{}, Events: map[string]uint64{}, EventBytes: map[string]uint64{}, EventPorts: map[string]map[string]uint64{},
		Exceptions: map[string]uint64{}, Thrown: map[string]uint64{}, Loggers: map[string]uint64{}, Seen: map[string]Span{},
		RawSamples: o.Recent().Raw, Patterns: []PatternResult{}}
	if r.bytes > 0 {
		out.Bytes = uint64(r.bytes)
	}
	for l, n := range o.byLevel {
		if v, ok := number(n); ok {
			out.ByLevel[Level(l).String()] = v
		}
	}
	for _, e := range o.events {
		if e.count == 0 {
			continue
		}
		out.Events[e.name] = e.count
		out.EventBytes[e.name] = e.bytes
		for _, p := range e.byPort {
			if v, ok := number(p.n); ok && p.port != "" {
				if out.EventPorts[e.name] == nil {
					out.EventPorts[e.name] = map[string]uint64{}
				}
				out.EventPorts[e.name][p.port] = v
			}
		}
		if e.first != 0 {
			out.Seen[e.name] = Span{clockText(e.first), clockText(e.last)}
		}
	}
	for _, e := range append(slices.Collect(maps.Values(o.excs)), o.otherExc) {
		if e.count > 0 {
			out.Exceptions[e.class] = e.count
		}
		if e.asThrown > 0 {
			out.Thrown[e.class] = e.asThrown
		}
		if e.first != 0 {
			out.Seen[e.class] = Span{clockText(e.first), clockText(e.last)}
		}
	}
	r.patterns(&out)
	r.minutes(&out)
	return out
}

func number(n *metric.Number) (uint64, bool) {
	if n == nil {
		return 0, false
	}
	v, ok := n.Value()
	return uint64(v), ok && v > 0
}

// patterns lists the kins, the heaviest in bytes first.
func (r *Report) patterns(out *Result) {
	for _, k := range append(slices.Collect(maps.Values(r.o.kins)), &r.o.spill) {
		if k.count == 0 {
			continue
		}
		out.Loggers[k.logger] += k.count
		out.Patterns = append(out.Patterns, r.o.patternOf(k))
	}
	slices.SortFunc(out.Patterns, func(a, b PatternResult) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Logger, b.Logger))
	})
}

func (o *Observer) patternOf(k *kin) PatternResult {
	return PatternResult{Pattern: show([]byte(k.pattern)), Level: k.level.String(), Logger: show([]byte(k.logger)), Count: k.count, Bytes: k.bytes,
		First: clockText(k.first), Last: clockText(k.last), Sample: show(k.sample), New: k.fresh && k.run == o.run}
}

// Patterns are the patterns seen, the heaviest in bytes first. The caller holds
// the Set's lock.
func (o *Observer) Patterns() []PatternResult {
	var out Result
	out.Loggers = map[string]uint64{}
	(&Report{o: o}).patterns(&out)
	return out.Patterns
}

func (r *Report) minutes(out *Result) {
	t := r.o.times
	if t == nil || len(t.steps) == 0 {
		return
	}
	for i, c := range t.steps {
		m := MinuteResult{At: clockText(t.start + int64(i)*t.step), Seconds: t.step / 1000, ByLevel: map[string]uint64{}}
		for l, n := range c {
			if n > 0 {
				m.ByLevel[Level(l).String()] = n
			}
		}
		if len(m.ByLevel) > 0 {
			out.PerMinute = append(out.PerMinute, m)
		}
	}
	out.First, out.Last = clockText(r.o.firstAt), clockText(r.o.lastAt)
}

// clockText prints a time as the log's own clock shows it, which has no zone.
func clockText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000")
}
