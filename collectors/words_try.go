package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// What of a log goes to Loki is decided by five settings and whatever the user
// adds, and a person who sets them should see what they do before the night in
// which it matters. So each of them has a line that it chooses and one that it
// does not, and they go the way of a real line: through the room that reads such
// a log, the listener and the queue. The lines of the built-in choices are made
// of their settings: with gc_pause at 200ms they are pauses of 200 and 199 ms.

// A Tried line is what became of a line that the choice of loki.select was tried
// with.
type Tried struct {
	Key   string       // the setting that it tries: select.gc_pause, select.tests[0]
	Value string       // of that setting, or the name of the choice
	Line  string       // as the log has it
	Shown []ship.Shown // as it would be sent; empty where it is not chosen
	Err   error        // it is not as it has to be
}

// an example is a line of a log and what has to become of it.
type example struct {
	key, value string
	ship.Trial
}

// TryLoki tries the choice with the built-in lines and with the user's.
func (c *Config) TryLoki() (out []Tried) {
	// The user's own choices might choose the lines that the built-in ones have
	// to leave.
	plain := *c
	plain.Loki.Select.Lines = nil
	plain.AppLog.Events = nil
	for _, e := range builtInExamples(&c.Loki.Select) {
		out = append(out, plain.try(e))
	}
	for i := range c.Loki.Select.Lines {
		l := &c.Loki.Select.Lines[i]
		source := l.Source
		if source == "" {
			source = "applog"
		}
		e := example{fmt.Sprintf("select.lines[%d]", i), l.Name, ship.Trial{Source: source, Line: l.Test, Want: ship.WantChosen}}
		t := c.try(e)
		if errors.Is(t.Err, errNoPattern) {
			// That it matches was seen; what the server's own pattern makes of it
			// can't be known from one line.
			t.Err = nil
			t.Shown = []ship.Shown{{Event: l.Name, Labels: fmt.Sprintf(`{event=%q, source="accesslog"}`, l.Name), Text: l.Test}}
		}
		out = append(out, t)
	}
	return append(out, c.tryTests()...)
}

// checkLoki tries the user's own lines.
func (c *Config) checkLoki() error {
	for _, t := range c.tryTests() {
		if t.Err != nil {
			return fmt.Errorf("%s: %w", t.Key, t.Err)
		}
	}
	return nil
}

func (c *Config) tryTests() (out []Tried) {
	for i, t := range c.Loki.Select.Tests {
		out = append(out, c.try(example{fmt.Sprintf("select.tests[%d]", i), "want " + t.Want, t}))
	}
	return out
}

// try lets one line go its way.
func (c *Config) try(e example) Tried {
	t := Tried{Key: e.key, Value: e.value, Line: e.Line}
	t.Shown, t.Err = c.choose(e.Trial)
	if t.Err != nil {
		return t
	}
	events := []string{}
	for _, s := range t.Shown {
		events = append(events, s.Event)
	}
	switch {
	case e.Want == ship.WantNone && len(events) > 0:
		t.Err = fmt.Errorf("the line is chosen and should not be, as %s: %s", t.Shown[0].Labels, e.Line)
	case e.Want == ship.WantNone:
	case len(events) == 0:
		t.Err = fmt.Errorf("the line is not chosen, want %s: %s", e.Want, e.Line)
	case e.Want != ship.WantChosen && !slices.Contains(events, e.Want):
		t.Err = fmt.Errorf("the line is chosen as %s, want the event %s: %s", t.Shown[0].Labels, e.Want, e.Line)
	}
	return t
}

// errNoPattern says that one line is not enough to tell an access log's pattern.
var errNoPattern = errors.New("the access log's pattern can't be told from the line: give it as pattern")

// choose gives the lines to the room that reads such a log, and returns what
// would be sent.
func (c *Config) choose(t ship.Trial) (shown []ship.Shown, err error) {
	var matcher *accesslog.Matcher
	if t.Source == "accesslog" {
		if matcher, err = c.patternOf(t); err != nil {
			return nil, err
		}
	}
	refused := false
	shown = ship.Try(c.Loki, func(s *ship.Shipper) {
		m := &Monitor{ship: s, cfg: *c}
		server := &target.Target{Name: "example"}
		st := &stream{set: metric.NewSet(), role: applog.Primary}
		var o Observer
		switch t.Source {
		case "accesslog":
			st.log.Name = "access_log"
			a := accesslog.New(st.set, matcher, c.AccessLog)
			m.hearAccess(st, server, a)
			o = a
			defer func() { refused = len(a.Refused()) > 0 }()
		case "gclog":
			st.log.Name = "gc.log"
			g := gclog.New(st.set, c.GCLog)
			m.hearGC(st, server, g)
			o = g
		default:
			st.log.Name = "catalina.out"
			a := applog.New(st.set, c.AppLog)
			m.hearApp(st, server, a)
			o = a
		}
		for line := range strings.Lines(t.Line) {
			o.Observe([]byte(strings.TrimRight(line, "\r\n")))
		}
		o.Idle(time.Now())
	})
	if refused {
		return nil, fmt.Errorf("the line is none of this pattern, %s: %s", matcher.Pattern(), t.Line)
	}
	return shown, nil
}

// patternOf is the pattern that the user gives with the line, or the one that
// the line itself tells.
func (c *Config) patternOf(t ship.Trial) (*accesslog.Matcher, error) {
	zone, err := c.AccessLog.Location()
	if err != nil {
		return nil, err
	}
	opt := accesslog.Options{DurationUnit: c.AccessLog.DurationUnit, Zone: zone}
	if t.Pattern != "" {
		m, err := accesslog.Compile(accesslog.FormatTomcat, t.Pattern, opt)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		return m, nil
	}
	guess := accesslog.Recognise(append(bytes.TrimRight([]byte(t.Line), "\n"), '\n'))
	if guess.Format == "" {
		return nil, errNoPattern
	}
	return accesslog.Compile(guess.Format, guess.Pattern, opt)
}

// builtInExamples are a line that each built-in choice takes and one that it
// leaves, at the settings in force.
func builtInExamples(s *ship.Select) (out []example) {
	add := func(key string, value any, source, pattern, line, want string) {
		out = append(out, example{"select." + key, fmt.Sprint(value), ship.Trial{Source: source, Pattern: pattern, Line: line, Want: want}})
	}
	record := func(level string) string {
		return "2026-11-30 12:00:00,001 " + level + " [main] com.acme.shop.OrderService - a record at " + level
	}
	words := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
	switch at := slices.Index(words, strings.ToUpper(s.Level)); {
	case at < 0: // none
		add("level", s.Level, "applog", "", record("FATAL"), ship.WantNone)
	default:
		add("level", s.Level, "applog", "", record(words[at]), ship.WantChosen)
		if at > 0 {
			add("level", s.Level, "applog", "", record(words[at-1]), ship.WantNone)
		}
	}

	// A line of the JVM's own, which has no level to be chosen by.
	told, want := "Terminating due to java.lang.OutOfMemoryError: Java heap space", "exit_on_out_of_memory"
	if !s.Events {
		want = ship.WantNone
	}
	add("events", s.Events, "applog", "", told, want)
	add("events", s.Events, "applog", "", "Terminating the tour of the heap", ship.WantNone)

	pause := func(d time.Duration) string {
		return fmt.Sprintf("[2026-11-30T12:00:00.000+0000][12.345s][info][gc] GC(3) Pause Full (System.gc()) 100M->20M(256M) %.3fms", d.Seconds()*1e3)
	}
	fails := "[2026-11-30T12:00:00.000+0000][12.345s][info][gc] GC(4) To-space exhausted"
	// A GC log has microseconds at best.
	if d := (s.GCPause + time.Microsecond - 1).Truncate(time.Microsecond); d > 0 {
		add("gc_pause", s.GCPause, "gclog", "", pause(d), "gc_pause")
		add("gc_pause", s.GCPause, "gclog", "", pause(max(0, d-time.Millisecond)), ship.WantNone)
		add("gc_pause", d, "gclog", "", fails, "gc_to_space_exhausted")
	} else {
		add("gc_pause", s.GCPause, "gclog", "", pause(time.Hour), ship.WantNone)
	}

	const pattern = `%h %l %u %t "%r" %s %b %{ms}T`
	request := func(status int, d time.Duration) string {
		return fmt.Sprintf(`192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] "GET /shop/cart HTTP/1.1" %d 1234 %d`, status, d.Milliseconds())
	}
	// Neither slow nor failed, where the settings leave room for that.
	quick, well := time.Duration(0), 200
	if s.Status > 0 && s.Status <= well {
		well = s.Status - 1
	}
	switch st := s.Status; {
	case st == 0:
		add("status", st, "accesslog", pattern, request(503, quick), ship.WantNone)
	case st <= 599: // no server answers with more
		add("status", st, "accesslog", pattern, request(max(st, 100), quick), accesslog.EventFailed)
		if st > 100 {
			add("status", st, "accesslog", pattern, request(st-1, quick), ship.WantNone)
		}
	}
	switch d := s.Slow.Truncate(time.Millisecond); {
	case well < 100: // each request has failed, so none is told as slow
	case s.Slow == 0:
		add("slow", s.Slow, "accesslog", pattern, request(well, time.Hour), ship.WantNone)
	case d < 2*time.Millisecond:
		add("slow", s.Slow, "accesslog", pattern, request(well, time.Second), accesslog.EventSlow)
	default:
		if d < s.Slow {
			d += time.Millisecond
		}
		add("slow", s.Slow, "accesslog", pattern, request(well, d), accesslog.EventSlow)
		add("slow", s.Slow, "accesslog", pattern, request(well, d-time.Millisecond), ship.WantNone)
	}
	return out
}
