// Package accesslog reads the access logs of Tomcat and Jetty.
//
// The access log is the server's own account of a load run: one line for each
// answer, written when it was sent. A pattern from the server's configuration
// compiles into a Matcher, a short list of field operations that a hand-written
// loop runs over each line; no regular expression is involved, and no
// allocation. What the pattern says nothing about can't be known, above all the
// unit of %D: it is milliseconds in Tomcat up to 9 and microseconds from 10 on,
// with no mark in the file. So a unit comes from the server's version or from
// the settings, never from a guess, and where neither knows there is no
// duration.
//
//	line ── Matcher.Parse ── Record (base units) ── Observer ── metric.Set
//	                   └──── Refusal (a closed list, counted, last ones kept)
//
// Known to work, read in the sources or seen running: AccessLogValve,
// ExtendedAccessLogValve (W3C) and JsonAccessLogValve of Tomcat 6 to 11 (the
// JSON one exists since 8.5.90, 9.0.75 and 10.1.8), Jetty's NCSARequestLog of 6
// to 9.4 and CustomRequestLog of 9.4 to 12. What changed between them:
//
//   - %D, see above; %T is seconds with three decimals up to Tomcat 9 and whole
//     seconds from 10 on, when %{ms}T and its kin came. %F stayed milliseconds.
//   - Header values are written raw before 8.5.62 and 9.0.42, and escaped as in
//     C from then on; Jetty never escapes. So a quote inside a quoted field is
//     no end of the field: the matcher anchors the left part of the pattern at
//     the request and the right part at the end of the line.
//   - %t is the end of a request in Tomcat and its start in Jetty.
//   - Of a request that never was one (TLS bytes, an over-long target) Tomcat 9
//     writes "GET null HTTP/1.1", Tomcat 10 "GET - HTTP/1.1" or "-", and Jetty
//     "- - -".
package accesslog

import "github.com/jvm-sidecar/sidecar/internal/metric"

// Metrics are the figures of this room.
var Metrics = []*metric.Family{
	Requests, Duration, FirstByte, ResponseBytes, ParseErrors,
	DurationAvailable, EventLag, ConnectionStatus, PoolRequests,
}

// Requests counts the answers.
var Requests = &metric.Family{
	Name:   "accesslog_requests_total",
	Help:   "Requests that the server has answered and logged, by method, class of status (or exact status, as a setting) and route (empty unless routes are set).",
	Kind:   metric.Counter,
	Labels: []string{"method", "code", "route"},
	Open:   []string{"route"},
	Limit:  2000,
	Source: "access log",
}

// Duration is how long requests took.
var Duration = &metric.Family{
	Name:    "accesslog_request_duration_seconds",
	Help:    "Time that the server took for a request, as it logged it, from reading the request line to the end of the answer.",
	Kind:    metric.Histogram,
	Labels:  []string{"code", "route"},
	Open:    []string{"route"},
	Limit:   600,
	Buckets: metric.LatencyBuckets,
	Source:  "access log: %D, %T, time-taken or elapsedTime",
}

// FirstByte is the time to first byte.
var FirstByte = &metric.Family{
	Name:    "accesslog_first_byte_seconds",
	Help:    "Time until the server committed the answer, that is until its first byte could leave. Only where the pattern logs %F.",
	Kind:    metric.Histogram,
	Labels:  []string{"code", "route"},
	Open:    []string{"route"},
	Limit:   600,
	Buckets: metric.LatencyBuckets,
	Source:  "access log: %F",
}

// ResponseBytes is the volume of the answers.
var ResponseBytes = &metric.Family{
	Name:   "accesslog_response_bytes_total",
	Help:   "Bytes of the logged answers, without headers in Tomcat and with them in Jetty's %S.",
	Kind:   metric.Counter,
	Source: "access log: %b, %B, %O, bytes",
}

// ParseErrors counts the lines that the pattern refuses.
var ParseErrors = &metric.Family{
	Name:   "accesslog_parse_errors_total",
	Help:   "Lines that don't follow the pattern, by reason. They are in no other figure.",
	Kind:   metric.Counter,
	Labels: []string{"reason"},
	Source: "access log",
}

// DurationAvailable says whether the pattern logs a duration.
var DurationAvailable = &metric.Family{
	Name:   "accesslog_duration_available",
	Help:   "1 when the log carries a duration of known unit finer than a second, 0 when it does not: then there is no latency to show.",
	Kind:   metric.Gauge,
	Merge:  metric.Max,
	Source: "the valve's pattern and the server's version",
}

// EventLag is the delay between a request's end and our reading of its line.
var EventLag = &metric.Family{
	Name:   "accesslog_event_lag_seconds",
	Help:   "The longest delay of late between the end of a request and the reading of its line. A buffered valve writes in lumps of up to 10 s.",
	Kind:   metric.Gauge,
	Merge:  metric.Max,
	Source: "access log: %t against the clock",
}

// ConnectionStatus counts what became of the connection.
var ConnectionStatus = &metric.Family{
	Name:   "accesslog_connection_status_total",
	Help:   "Answers by what became of the connection afterwards: keep-alive (+), close (-), or aborted (X) by the client before the answer was complete.",
	Kind:   metric.Counter,
	Labels: []string{"status"},
	Source: "access log: %X",
}

// PoolRequests counts answers by the pool whose thread wrote them.
var PoolRequests = &metric.Family{
	Name:   "accesslog_pool_requests_total",
	Help:   "Answers by thread pool: the thread's name without its number.",
	Kind:   metric.Counter,
	Labels: []string{"pool"},
	Open:   []string{"pool"},
	Limit:  50,
	Source: "access log: %I",
}
