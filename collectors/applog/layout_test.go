package applog

import (
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestLayouts gives each layout its first line and says what it must read.
func TestLayouts(t *testing.T) {
	const day = "2024-06-30 12:00:00"
	for _, c := range []struct {
		line                                            string
		layout, level, thread, logger, message, instant string
	}{
		{"30-Jun-2024 12:00:00.123 WARNING [http-nio-8080-Poller] a.b.C.d what [x] y", "juli-oneline", "WARNING", "http-nio-8080-Poller", "a.b.C.d", "what [x] y", day + ".123"},
		{"30-Jun-2024 12:00:00.123 AM FEINSTEN [main] a.b.C.d x", "juli-oneline", "FINEST", "main", "a.b.C.d", "x", day + ".123"},
		{"30-Jun-2024 12:00:00.123 INFO [a thread [1]] a.b.C.d x", "juli-oneline", "INFO", "a thread [1]", "a.b.C.d", "x", day + ".123"},
		{"30-Jun-2024 12:00:00.123 INFO [main] a.b.C.d", "juli-oneline", "INFO", "main", "a.b.C.d", "", day + ".123"},
		{"2024-06-30 12:00:00.123:WARN:oejs.HttpChannel:qtp1-16: /slow", "jetty-stderrlog", "WARN", "qtp1-16", "oejs.HttpChannel", "/slow", day + ".123"},
		{"2024-06-30 12:00:00.123:INFO :oejs.Server:main: Started", "jetty-stderrlog", "INFO", "main", "oejs.Server", "Started", day + ".123"},
		{"2024-06-30 12:00:00.123:INFO::main: Logging", "jetty-stderrlog", "INFO", "main", "", "Logging", day + ".123"},
		{"2024-06-30 12:00:00.123:INFO:oejs.Server: Jetty 7", "jetty-stderrlog", "INFO", "", "oejs.Server", "Jetty 7", day + ".123"},
		{"2024-06-30 12:00:00.123:WARN:oejs.AbstractConnector:qtp1-14-acceptor-0@1-ServerConnector@2{HTTP/1.1, (http/1.1)}{127.0.0.1:18204}: ", "jetty-stderrlog", "WARN",
			"qtp1-14-acceptor-0@1-ServerConnector@2{HTTP/1.1, (http/1.1)}{127.0.0.1:18204}", "oejs.AbstractConnector", "", day + ".123"},
		{`{"time": "2024-06-30T12:00:00.123Z", "level": "WARNING", "thread": "main", "class": "a.b.C", "method": "d", "message": "x \"y\""}`, "json-juli", "WARNING", "main", "a.b.C.d", `x \"y\"`, day + ".123"},
		{`{"@timestamp":"2024-06-30T12:00:00.123Z","@version":"1","message":"x","logger_name":"a.B","thread_name":"main","level":"ERROR","level_value":40000,"stack_trace":"a.B: c\n\tat d.E.f(E.java:1)\n"}`, "json-logstash", "ERROR", "main", "a.B", "x", day + ".123"},
		{`{"@timestamp":"2024-06-30T14:00:00.123+02:00","log.level":"WARN","message":"x","ecs.version":"1.2.0","process.thread.name":"main","log.logger":"a.B"}`, "json-ecs", "WARN", "main", "a.B", "x", day + ".123"},
		{`{"@timestamp":"2024-06-30T12:00:00.123Z","log":{"level":"WARN","logger":"a.B"},"process":{"pid":1,"thread":{"name":"main"}},"message":"x"}`, "json-ecs", "WARN", "main", "a.B", "x", day + ".123"},
		{`{"instant":{"epochSecond":1719748800,"nanoOfSecond":1},"thread":"main","level":"WARN","loggerName":"a.B","message":"x","thrown":{"commonElementCount":0,"message":"m","name":"a.BException"}}`, "json-log4j2", "WARN", "main", "a.B", "x", day + ".000"},
		{`{"sequenceNumber":0,"timestamp":1719748800123,"nanoseconds":1,"level":"WARN","threadName":"main","loggerName":"a.B","message":"x","throwable":null}`, "json-logback", "WARN", "main", "a.B", "x", day + ".123"},
		{`{"version":"1.1","host":"h","timestamp":1719748800.123,"level":4,"_logger":"a","short_message":"x"}`, "json-gelf", "WARN", "", "", "x", day + ".000"},
		{"2024-06-30 12:00:00,123 ERROR [main] a.B - x", "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p [%t] %c - %m", "ERROR", "main", "a.B", "x", day + ".123"},
		{"2024-06-30 12:00:00,123 INFO  [main] a.B - x", "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p [%t] %c - %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"2024-06-30 12:00:00,123 [main] INFO  a.B - x", "%d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %c - %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"2024-06-30T12:00:00.123Z  INFO 77 --- [main] a.B    : x", "%d{yyyy-MM-dd HH:mm:ss,SSSXXX} %-5p %pid --- [%t] %c : %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"2024-06-30T12:00:00.123+02:00  INFO 77 --- [app] [main] a.B : x", "%d{yyyy-MM-dd HH:mm:ss,SSSXXX} %-5p %pid --- [%X{}] [%t] %c : %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"2024-06-30 12:00:00.123  WARN 77 --- [main] a.B : x", "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %pid --- [%t] %c : %m", "WARN", "main", "a.B", "x", day + ".123"},
		{"12:00:00.123 [main] DEBUG a.B - x", "%d{HH:mm:ss.SSS} [%t] %-5p %c - %m", "DEBUG", "main", "a.B", "x", ""},
		{"12:00:00.123 [main] DEBUG a.B -- x", "%d{HH:mm:ss.SSS} [%t] %-5p %c -- %m", "DEBUG", "main", "a.B", "x", ""},
		{"2024-06-30 12:00:00,123 INFO a", "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %m", "INFO", "", "", "a", day + ".123"},
		{"2024-06-30 12:00:00,123 INFO  [a.B] (main) x", "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p [%c] (%t) %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"2024-06-30 12:00:00 ERROR a.B:42 - x", "%d{yyyy-MM-dd HH:mm:ss} %-5p %c:%L - %m", "ERROR", "", "a.B", "x", day + ".000"},
		{"30 Jun 2024 12:00:00,123 ERROR a.B - x", "%d{dd MMM yyyy HH:mm:ss,SSS} %-5p %c - %m", "ERROR", "", "a.B", "x", day + ".123"},
		{"INFO  2024-06-30 12:00:00,123 [main] a.B - x", "%-5p %d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %c - %m", "INFO", "main", "a.B", "x", day + ".123"},
		{"[2024-06-30 12:00:00,123] ERROR x y (a.B)", "[%d{yyyy-MM-dd HH:mm:ss,SSS}] %-5p %m", "ERROR", "", "", "x y (a.B)", day + ".123"},
		{"2024-06-30 12:00:00.123 | ERROR | main | a.B | x", "%d{yyyy-MM-dd HH:mm:ss,SSS} | %-5p | %c | %m", "ERROR", "", "main", "a.B | x", day + ".123"}, // the level is right; for the rest there is the setting
	} {
		o := New(metric.NewSet(), DefaultConfig())
		o.Observe([]byte(c.line))
		if got := o.Layout(); got != c.layout {
			t.Errorf("%s\n layout %q, want %q", c.line, got, c.layout)
			continue
		}
		if c.layout == "" {
			continue
		}
		var h head
		if o.layouts[0].head([]byte(c.line), &h) != yes {
			t.Errorf("%s\n is no head the second time", c.line)
			continue
		}
		if h.level.String() != c.level || string(h.thread) != c.thread || string(h.logger) != c.logger || string(h.message) != c.message || clockText(h.at) != c.instant {
			t.Errorf("%s\n level %s thread %q logger %q message %q at %s", c.line, h.level, h.thread, h.logger, h.message, clockText(h.at))
		}
	}
}

// TestGivenPatterns reads conversion patterns as people write them.
func TestGivenPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, line, level, thread, logger, message string }{
		{"%d %-5level [%thread] %logger - %msg%n", "2024-06-30 12:00:00,100 ERROR [x] a.B - m", "ERROR", "x", "a.B", "m"},
		{"%d{ISO8601} | %p | %t | %c | %m%n%ex", "2024-06-30 12:00:00,100 | WARN | main | a.B | m", "WARN", "main", "a.B", "m"},
		{"%highlight(%-5level) %d{HH:mm:ss} %cyan(%logger{36}) %msg%n", "INFO  12:00:00 a.B m n", "INFO", "", "a.B", "m n"},
		{"%clr(%d{${LOG_DATEFORMAT_PATTERN:-yyyy-MM-dd HH:mm:ss.SSS}}){faint} %clr(${LOG_LEVEL_PATTERN:-%5p}) %clr(${PID:- }){magenta} %clr(---){faint} %clr([%15.15t]){faint} %clr(%-40.40logger{39}){cyan} %clr(:){faint} %m%n${LOG_EXCEPTION_CONVERSION_WORD:-%wEx}",
			"2024-06-30 12:00:00.123  WARN 77 --- [           main] a.B                                      : m", "WARN", "main", "a.B", "m"},
		{"%style{%d{DATE}}{bright} %p %C.%M(%F:%L) %m", "30 Jun 2024 12:00:00,123 FATAL a.B.c(B.java:3) m", "FATAL", "", "a.B", "m"},
		{"[%-5p] %d{yyyy/MM/dd HH:mm:ss} %c{1} - %m%n", "[INFO ] 2024/06/30 12:00:00 B - m", "INFO", "", "B", "m"},
		{"%5p [%t] (%F:%L) - %m%n", " INFO [main] (B.java:3) - m", "INFO", "main", "", "m"},
		{"%d{dd/MM/yyyy hh:mm:ss a} %p %m%n", "30/06/2024 03:00:00 PM ERROR m", "ERROR", "", "", "m"},
	} {
		cfg := Config{Layout: c.pattern}
		if err := cfg.Check(); err != nil {
			// The date's format is a variable with a default of its own inside of %d{}.
			t.Errorf("%s\n %v", c.pattern, err)
			continue
		}
		o := New(metric.NewSet(), cfg)
		var h head
		if o.layouts[0].head([]byte(c.line), &h) != yes {
			t.Errorf("%s\n does not read %s", c.pattern, c.line)
			continue
		}
		if h.level.String() != c.level || string(h.thread) != c.thread || string(h.logger) != c.logger || string(h.message) != c.message {
			t.Errorf("%s\n level %s thread %q logger %q message %q", c.line, h.level, h.thread, h.logger, h.message)
		}
		o.Observe([]byte(c.line))
		if o.records != 1 {
			t.Errorf("%s\n is no record", c.line)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Role: "main"}, `role: "main" is not primary, copy or own`},
		{Config{Layout: "%d %p"}, "has no message"},
		{Config{Layout: "[%t] %m"}, "has neither date nor level"},
		{Config{Layout: "%d %p %q %m"}, "no conversion word"},
		{Config{Layout: "%d{HH %p %m"}, "no end of {"},
		{Config{Events: []UserEvent{{Name: "Bad Name", Literal: "x"}}}, "events[0]: name:"},
		{Config{Events: []UserEvent{{Name: "a"}}}, "one of literal and regexp"},
		{Config{Events: []UserEvent{{Name: "a", Regexp: "("}}}, "events[0]: a: regexp:"},
		{Config{Events: []UserEvent{{Name: "a", Literal: "x", Level: "LOUD"}}}, "is no level"},
		{Config{Events: []UserEvent{{Name: "a", Literal: "x", Test: "y"}}}, "test: the line is not found"},
		{Config{Events: []UserEvent{{Name: "executor_rejected", Literal: "x"}}}, "is there already"},
		{Config{Events: []UserEvent{{Name: "a", Literal: "x", Level: "ERROR", Test: "2024-06-30 12:00:00,001 INFO x"}}}, "test: the line is not found"},
	} {
		if err := c.cfg.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q in it", c.cfg, err, c.want)
		}
	}
	ok := Config{Role: Own, Events: []UserEvent{{Name: "a", Regexp: "slow query: [0-9]{4,} ms", Level: "WARN", Test: "2024-06-30 12:00:00,001 WARN [main] a.B - slow query: 1834 ms"}}}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
}

// read feeds text and returns the report.
func read(text string) Result {
	r := NewReport(DefaultConfig())
	feed(r, []byte(text), 0)
	r.Idle(time.Time{})
	return r.Result()
}

// TestMixed has three layouts in one file: Tomcat's, the application's logback
// on stdout, and raw lines.
func TestMixed(t *testing.T) {
	got := read(`30-Jun-2024 12:00:00.000 INFO [main] org.apache.catalina.startup.Catalina.start Server startup in [1] milliseconds
2024-06-30 12:00:00.001  INFO 77 --- [main] a.B : up
2024-06-30 12:00:01.001 ERROR 77 --- [main] a.B : failed
java.lang.IllegalStateException: no
	at a.B.c(B.java:1)
hello from System.out
30-Jun-2024 12:00:02.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [x] for processing
	java.util.concurrent.RejectedExecutionException: Queue capacity is full
		at a.B.c(B.java:1)
2024-06-30 12:00:03.001  INFO 77 --- [main] a.B : on
[3.697s][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(40M) 3.5ms
Full thread dump OpenJDK 64-Bit Server VM (17.0.15 mixed mode):

"main" #1 prio=5 os_prio=0 cpu=1.00ms elapsed=1.14s tid=0x1 nid=0x2 runnable
   java.lang.Thread.State: RUNNABLE
	at a.B.c(B.java:1)

Heap
 garbage-first heap   total 131072K, used 46754K
2024-06-30 12:00:04.001  INFO 77 --- [main] a.B : end
`)
	if got.Records != 6 || got.ByLevel["INFO"] != 4 || got.ByLevel["ERROR"] != 1 || got.ByLevel["WARNING"] != 1 {
		t.Errorf("%d records %v", got.Records, got.ByLevel)
	}
	if got.RawLines != 10 {
		t.Errorf("%d raw lines: %q", got.RawLines, got.RawSamples)
	}
	if len(got.Events) != 1 || got.Events["executor_rejected"] != 1 || got.EventPorts["executor_rejected"]["8080"] != 1 {
		t.Errorf("events %v %v", got.Events, got.EventPorts)
	}
	if len(got.Exceptions) != 2 || got.Exceptions["java.lang.IllegalStateException"] != 1 {
		t.Errorf("exceptions %v", got.Exceptions)
	}
}
