// Package applog counts what a server's application log says: records by level,
// exceptions, and the events by which a server under load tells that it is in
// trouble.
//
// The story it was written for: Tomcat 8.5.32, NIO, a shared Executor with a
// queue of 100. Below 90,000 requests a second all 500 threads were taken, and
// for each connection turned away the Poller logged "Executor rejected socket …
// RejectedExecutionException: Work queue full." with its trace, some ten
// thousand times a second, until the disk held 253 GB of it. Whoever watches
// that must name it within the first second, count it exactly, and cost next to
// nothing meanwhile: so the hot path compares bytes with those of the last
// records (kin.go, flood.go) and parses only what is new.
//
// A line is one of three: the head of a record in one of the layouts
// (layout*.go), a line that goes on with the open record (its stack trace), or
// raw: what System.out, the JVM and thread dumps put into the same file. A
// record is counted at its head, its exception when the exception's line is
// read, and an event at the first line that decides it; only the root cause of
// a trace waits for the trace's end.
//
//	           head                      exception line, frames, Caused by
//	  ┌─────────────────────────┐      ┌──────────────┐
//	  │                         ▼      ▼              │
//	nothing open ◄─── Gap ─── record open ────────────┘
//	  │   ▲                     │   │
//	  └───┘ raw line      head: │   └─ Idle: the root cause is counted, and late
//	                close, open │      lines of the trace still belong to it
//	                            ▼
//	                       next record
//
// Known to work: Tomcat 8.5, 9.0, 10.1 and 11 (juli's OneLineFormatter in both
// of its line forms, SimpleFormatter, JsonFormatter), Jetty 9.4 to 12
// (StdErrLog), logback, log4j 1 and 2 and their JSON layouts; JDK 8 to 25. What
// differs between versions is told where it is read.
package applog

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

const source = "application log"

// The metrics of this room.
var (
	Records = &metric.Family{Name: "applog_records_total", Kind: metric.Counter, Labels: []string{"level"}, Source: source,
		Help: "Records in the server's own logs, by level as the layout names it (juli: SEVERE, WARNING, INFO; log4j, logback and Jetty: ERROR, WARN, INFO). A record that two files carry counts once."}
	Lines = &metric.Family{Name: "applog_lines_total", Kind: metric.Counter, Source: source,
		Help: "Lines in the server's own logs, of all files."}
	Bytes = &metric.Family{Name: "applog_bytes_total", Kind: metric.Counter, Source: source,
		Help: "Bytes in the server's own logs, of all files: two files that carry the same records take the disk twice."}
	RawLines = &metric.Family{Name: "applog_raw_lines_total", Kind: metric.Counter, Source: source,
		Help: "Lines that belong to no record: System.out, the JVM's own messages, thread dumps, lines in no known layout."}
	LoggerRecords = &metric.Family{Name: "applog_logger_records_total", Kind: metric.Counter, Labels: []string{"logger", "level"}, Open: []string{"logger"}, Limit: 40, Source: source,
		Help: "Records by logger (class and method where the layout prints them) and level; the loggers seen first have their own series, the rest is other."}
	EventsTotal = &metric.Family{Name: "applog_events_total", Kind: metric.Counter, Labels: []string{"event", "port"}, Open: []string{"port"}, Limit: 200, Source: source,
		Help: "Signs of trouble in the server's log, such as executor_rejected, by the connector's port where the record tells it."}
	EventBytes = &metric.Family{Name: "applog_event_bytes_total", Kind: metric.Counter, Labels: []string{"event"}, Limit: 100, Source: source,
		Help: "Bytes of the records that told an event, with their stack traces: what fills the disk."}
	Exceptions = &metric.Family{Name: "applog_exceptions_total", Kind: metric.Counter, Labels: []string{"class", "role"}, Open: []string{"class"}, Limit: 2 * maxExceptions, Source: source,
		Help: "Exceptions under records of level WARNING and above, by class: role thrown is the outermost, root the deepest cause."}
	NewExceptions = &metric.Family{Name: "applog_new_exceptions_total", Kind: metric.Counter, Source: source,
		Help: "Exception classes seen for the first time."}
	NewPatterns = &metric.Family{Name: "applog_new_patterns_total", Kind: metric.Counter, Source: source,
		Help: "Message patterns (numbers, ids, quoted and bracketed values taken out) seen for the first time."}
	Dropped = &metric.Family{Name: "applog_records_dropped_by_logger_total", Kind: metric.Counter, Source: source,
		Help: "Records that are in catalina.out and not in catalina.DATE.log: Tomcat's asynchronous file handler drops the newest beyond 10,000. Advances when both files have been quiet for 5 seconds."}

	poolThreads = poolGauge("threads", "Threads of Jetty's pool, as its last message about a full pool says.")
	poolIdle    = poolGauge("threads_idle", "Idle threads of Jetty's pool, as its last message about a full pool says.")
	poolMin     = poolGauge("threads_min", "Configured minimum of threads of Jetty's pool.")
	poolMax     = poolGauge("threads_max", "Configured maximum of threads of Jetty's pool.")
	poolQueue   = poolGauge("queue", "Jobs waiting in the queue of Jetty's pool, as its last message about a full pool says.")
	poolJobs    = poolGauge("jobs", "The same as jetty_queued_thread_pool_queue, under the name that dashboards for simpleclient ask for.")
	poolReserve = poolGauge("threads_reserved", "Reserved threads of Jetty's pool, as its last message about a full pool says.")
)

func poolGauge(name, help string) *metric.Family {
	return &metric.Family{Name: "jetty_queued_thread_pool_" + name, Kind: metric.Gauge, Labels: []string{"unit"}, Open: []string{"unit"}, Limit: 4, Merge: metric.Max, Source: source, Help: help}
}

// Metrics are all families of this room.
var Metrics = []*metric.Family{Records, Lines, Bytes, RawLines, LoggerRecords, EventsTotal, EventBytes, Exceptions, NewExceptions, NewPatterns, Dropped,
	poolThreads, poolIdle, poolMin, poolMax, poolQueue, poolJobs, poolReserve}

// The bounds of what a stranger's text may make us keep.
const (
	maxExceptions = 30  // classes with a series and an entry of their own
	maxKins       = 512 // patterns with an entry of their own
	maxLayouts    = 6   // layouts mixed in one file
)

// Roles of a file beside the others of its target.
const (
	// Primary is the one complete log, catalina.out: everything is counted.
	Primary = "primary"
	// Copy carries the same records again, catalina.DATE.log beside
	// catalina.out: only its lines and bytes are counted.
	Copy = "copy"
	// Own has records of its own, localhost.DATE.log: everything is counted.
	Own = "own"
)

// Config are the settings of one application log.
type Config struct {
	// Role is primary, copy or own; what discovery says unless it is set.
	Role string `yaml:"role"`
	// Layout is empty to recognise the layout from the records, or a conversion
	// pattern of logback or log4j as it stands in their configuration:
	// "%d %-5level [%thread] %logger - %msg%n".
	Layout string `yaml:"layout"`
	// Events are events of your own, beside the built-in ones.
	Events []UserEvent `yaml:"events"`
	// Ports are the connectors' ports. Events that tell a port start at 0 for
	// each, so that increase() sees the first. Discovery fills it.
	Ports []int `yaml:"-"`
}

// DefaultConfig recognises everything by itself.
func DefaultConfig() Config { return Config{Role: Primary} }

// Check finds what can't be used, with the setting's name and the reason.
func (c *Config) Check() error {
	switch c.Role {
	case "", Primary, Copy, Own:
	default:
		return fmt.Errorf("role: %q is not primary, copy or own", c.Role)
	}
	if c.Layout != "" {
		if _, err := compilePattern(c.Layout); err != nil {
			return fmt.Errorf("layout: %w", err)
		}
	}
	names := map[string]bool{}
	for i := range Events {
		names[Events[i].Name] = true
	}
	for i := range c.Events {
		e := &c.Events[i]
		if err := e.Check(); err != nil {
			return fmt.Errorf("events[%d]: %w", i, err)
		}
		if names[e.Name] {
			return fmt.Errorf("events[%d]: name: %q is there already", i, e.Name)
		}
		names[e.Name] = true
	}
	if len(c.Events) > 40 {
		return fmt.Errorf("events: %d are more than 40", len(c.Events))
	}
	return nil
}

// A UserEvent is an event of the user's own. Its condition is held against the
// message of every record, and against raw lines when it has no level.
type UserEvent struct {
	// Name is the value of the label event: small letters, digits and _.
	Name string `yaml:"name"`
	// Literal is text that the line has in it. Either it or Regexp is set.
	Literal string `yaml:"literal"`
	// Regexp is a regular expression in Go's syntax. It costs far more than a
	// literal: some microseconds a record.
	Regexp string `yaml:"regexp"`
	// Level is the lowest level of the record ("WARNING"); empty is any.
	Level string `yaml:"level"`
	// Test is a line as the log has it; the check says whether it is found.
	Test string `yaml:"test"`
}

var userName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Check compiles the event and runs its test line.
func (e *UserEvent) Check() error {
	u, err := e.compile()
	if err != nil {
		return err
	}
	if e.Test == "" {
		return nil
	}
	var h head
	line := []byte(e.Test)
	message, level := line, Fatal
	for _, l := range builtin() {
		if l.head(line, &h) == yes {
			message, level = h.message, h.level
		}
	}
	if p := infer(line); p != nil && p.head(line, &h) == yes {
		message, level = h.message, h.level
	}
	if !u.matches(message, level) {
		return fmt.Errorf("test: the line is not found by this event: %s", e.Test)
	}
	return nil
}

// userEvent is a UserEvent, ready to use.
type userEvent struct {
	literal []byte
	re      *regexp.Regexp
	min     Level
	raw     bool
	state   *eventState
}

func (e *UserEvent) compile() (*userEvent, error) {
	if !userName.MatchString(e.Name) {
		return nil, fmt.Errorf("name: %q is not of small letters, digits and _", e.Name)
	}
	if (e.Literal == "") == (e.Regexp == "") {
		return nil, fmt.Errorf("%s: one of literal and regexp is needed", e.Name)
	}
	u := &userEvent{literal: []byte(e.Literal), raw: e.Level == ""}
	if e.Regexp != "" {
		re, err := regexp.Compile(e.Regexp)
		if err != nil {
			return nil, fmt.Errorf("%s: regexp: %w", e.Name, err)
		}
		u.re = re
		prefix, _ := re.LiteralPrefix()
		u.literal = []byte(prefix)
	}
	if e.Level != "" {
		l, ok := levelOf([]byte(strings.ToUpper(e.Level)))
		if !ok {
			return nil, fmt.Errorf("%s: level: %q is no level", e.Name, e.Level)
		}
		u.min = l
	}
	return u, nil
}
