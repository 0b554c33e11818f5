package applog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestEvents gives each event the record that tells it.
func TestEvents(t *testing.T) {
	const juli = "30-Jun-2024 12:00:00.000 %s [%s] %s %s\n%s"
	rec := func(level, thread, logger, message string, trace ...string) string {
		return fmt.Sprintf(juli, level, thread, logger, message, strings.Join(trace, ""))
	}
	const rex = "\tjava.util.concurrent.RejectedExecutionException: Work queue full.\n\t\tat a.B.c(B.java:1)\n"
	const net = "org.apache.tomcat.util.net."
	seen := map[string]bool{}
	for _, c := range []struct {
		text string
		want string // "event@port event …"
	}{
		// Tomcat 7.0: text and socket glued together.
		{rec("WARNING", "http-bio-8080-Acceptor-0", net+"JIoEndpoint.processSocket", "Socket processing request was rejected for:java.net.Socket@1", rex), "executor_rejected@8080"},
		{rec("WARNING", "http-bio-8080-exec-1", net+"JIoEndpoint.processSocketAsync", "Socket reprocessing request was rejected for:java.net.Socket@1", rex), "executor_rejected@8080"},
		{rec("WARNING", "http-apr-8080-Acceptor", net+"AprEndpoint.setSocketOptions", "Socket processing request was rejected for [139,703,958,200,480]", rex), "executor_rejected@8080"},
		// A shared Executor's thread (NIO2): the port is in the socket.
		{rec("WARNING", "catalina-exec-7", net+"AbstractEndpoint.processSocket", "Executor rejected socket [a@1:b@2:c[connected local=/127.0.0.1:18081 remote=/127.0.0.1:1]] for processing", rex), "executor_rejected@18081"},
		{rec("警告", "http-nio-8080-Poller", net+"AbstractEndpoint.processSocket", "执行器拒绝套接字 [x]", rex), "executor_rejected@8080"},
		// Behind a bridge the logger is the subclass and there is no method; packages are cut.
		{"2024-06-30 12:00:00,100 WARN  [http-nio-8080-Poller] o.a.tomcat.util.net.NioEndpoint - Executor rejected socket [x] for processing\njava.util.concurrent.RejectedExecutionException: x\n", "executor_rejected@8080"},
		{"2024-06-30 12:00:00,100 WARN  [http-nio-8080-Poller] NioEndpoint - rejet\njava.util.concurrent.RejectedExecutionException: x\n", "executor_rejected@8080"},
		{"2024-06-30 12:00:00.100:WARN :oejut.QueuedThreadPool:qtp1-14: QueuedThreadPool[qtp1]@3{STARTED,4<=12<=12,i=0,r=-1,t=59999ms,q=7}[x@1{capacity=1}] rejected Accept@6[java.nio.channels.SocketChannel[connected local=/127.0.0.1:8081 remote=/127.0.0.1:1]]\n", "executor_rejected@8081"},
		{"2024-06-30 12:00:00.100:WARN :oejuts.AdaptiveExecutionStrategy:qtp1-14: Execute failed\njava.util.concurrent.RejectedExecutionException: x\n\tat a.B.c(B.java:1)\n", ""},
		{rec("SEVERE", "http-8080-Acceptor-0", net+"ThreadPool.logFull", "All threads (150) are currently busy, waiting. Increase maxThreads (150) or check the servlet status"), "threads_exhausted@8080"},
		{rec("INFO", "http-8080-Acceptor-0", net+"JIoEndpoint.getWorkerThread", "Maximum number of threads (200) created for connector with address null and port 8080"), "threads_exhausted@8080"},
		{rec("SEVERE", "http-nio-8080-Acceptor", net+"Acceptor.run", "Socket accept failed", "\tjava.io.IOException: Too many open files\n"), "too_many_open_files@8080"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\tjava.lang.OutOfMemoryError: Java heap space\n"), "out_of_memory_heap"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\tjava.lang.OutOfMemoryError: Metaspace\n"), "out_of_memory_metaspace"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\tjava.lang.OutOfMemoryError: Direct buffer memory\n"), "out_of_memory_direct"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\tjava.lang.OutOfMemoryError: Requested array size exceeds VM limit\n"), "out_of_memory_array"},
		{rec("SEVERE", "http-nio-8080-exec-1", "org.apache.coyote.AbstractProtocol$ConnectionHandler.process", "Failed to complete processing of a request", "\tjava.lang.OutOfMemoryError: Java heap space\n"), "out_of_memory_heap request_failed_out_of_memory@8080"},
		{"Exception in thread \"http-nio-8080-Poller\" java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory\n\tat a.B.c(B.java:1)\n", "out_of_memory_threads@8080 poller_died@8080"},
		{"Exception in thread \"http-nio-8080-Acceptor\" java.lang.Error\n", "acceptor_died@8080"},
		{"Exception in thread \"worker\" java.lang.StackOverflowError\n", "stack_overflow thread_died"},
		{"Exception in thread \"Thread-1\" java.nio.channels.ShutdownChannelGroupException\n\tat a.B.c(B.java:1)\n", "nio2_thread_died"},
		{"Terminating due to java.lang.OutOfMemoryError: Java heap space\n", "exit_on_out_of_memory"},
		{"[3.699s][warning][os,thread] Failed to start the native thread for java.lang.Thread \"x\"\n", "native_thread_failed"},
		{"# A fatal error has been detected by the Java Runtime Environment:\n#\n", "jvm_crash"},
		{"Dumping heap to java_pid77.hprof ...\n", "heap_dump"},
		{rec("WARNING", "Catalina-utility-1", "org.apache.catalina.valves.StuckThreadDetectionValve.notifyStuckThreadDetected", "Thread [http-nio-8080-exec-1] (id=[18]) has been active for [9,391] milliseconds", "\tjava.lang.Throwable\n\t\tat a.B.c(B.java:1)\n"), "stuck_thread"},
		{rec("WARNING", "Catalina-utility-1", "org.apache.catalina.valves.StuckThreadDetectionValve.notifyStuckThreadCompleted", "Thread [x] was previously reported to be stuck but has completed."), "stuck_thread_completed"},
		{rec("SEVERE", "main", "org.apache.catalina.util.LifecycleBase.handleSubClassException", "Failed to initialize component [Connector[\"http-nio-8080\"]]", "\torg.apache.catalina.LifecycleException: Protocol handler initialization failed\n\t\tat a.B.c(B.java:1)\n\tCaused by: java.net.BindException: Address already in use\n"), "address_in_use connector_failed"},
		{rec("SEVERE", "main", "a.B.c", "x", "\tjava.net.BindException: Address already in use (Bind failed)\n"), "address_in_use"},
		{rec("WARNING", "http-nio-8080-exec-1", "a.B.c", "x", "\tjava.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 30000ms.\n"), "connection_pool_exhausted"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\torg.apache.tomcat.jdbc.pool.PoolExhaustedException: [x] Timeout: Pool empty.\n"), "connection_pool_exhausted"},
		{rec("SEVERE", "http-nio-8080-exec-1", "a.B.c", "x", "\torg.apache.catalina.connector.ClientAbortException: java.io.IOException: Broken pipe\n"), "client_abort"},
		{rec("FINE", "http-nio-8443-exec-1", net+"NioEndpoint.x", "Handshake failed", "\tjavax.net.ssl.SSLHandshakeException: no cipher suites in common\n"), "tls_handshake_failed"},
		{rec("INFO", "http-nio-8080-exec-1", "org.apache.coyote.http11.Http11Processor.service", "Error parsing HTTP request header\n Note: further occurrences of HTTP request parsing errors will be logged at DEBUG level.", "\tjava.lang.IllegalArgumentException: En-tête trop grand\n\t\tat org.apache.coyote.http11.Http11InputBuffer.fill(Http11InputBuffer.java:1)\n"), "header_too_large"},
		{rec("INFO", "http-nio-8080-exec-1", "org.apache.coyote.http11.Http11Processor.service", "Error parsing HTTP request header", "\tjava.lang.IllegalArgumentException: Invalid character found in method name\n\t\tat org.apache.coyote.http11.Http11InputBuffer.parseRequestLine(Http11InputBuffer.java:1)\n"), ""},
		{"2024-06-30 12:00:00.100:WARN:oejh.HttpParser:qtpX-23: URI is too large >8192\n", "header_too_large"},
		{"2024-06-30 12:00:00.100:WARN:oejs.LowResourceMonitor:Scheduler-2: Low Resources: Check if\n", "low_resources"},
		{"2024-06-30 12:00:00.100:WARN:oejx.XmlConfiguration:main: \njava.lang.IllegalStateException: Insufficient configured threads: required=3 < max=2 for x\n\tat a.B.c(B.java:1)\n", "insufficient_threads"},
		{"2024-06-30 12:00:00.100:WARN:oejs.AcceptRateLimit:qtp1-1: AcceptLimit rate exceeded 11>10 on x\n", "accept_limit"},
		{rec("SEVERE", "http-apr-8080-Poller", net+"AprEndpoint$Poller.run", "Critical poller failure (restarting poller): [1] [2]"), "apr_poller_failed"},
	} {
		r := NewReport(DefaultConfig())
		feed(r, []byte(c.text), 0)
		got := r.Result()
		var all []string
		for _, name := range slices.Sorted(maps.Keys(got.Events)) {
			seen[name] = true
			if got.Events[name] != 1 {
				t.Errorf("%s\n %d times %s", c.text, got.Events[name], name)
			}
			for p := range got.EventPorts[name] {
				if p != "" && slices.Contains(eventNamed(name).Labels, "port") {
					name += "@" + p
				}
			}
			all = append(all, name)
		}
		if s := strings.Join(all, " "); s != c.want {
			t.Errorf("%s\n events %q, want %q", c.text, s, c.want)
		}
	}
	for _, e := range Events {
		if !seen[e.Name] && len(e.rules) > 0 {
			t.Errorf("event %s has no record in this test", e.Name)
		}
		if e.Versions == "" || e.Meaning == "" || e.Next == "" {
			t.Errorf("event %s says too little", e.Name)
		}
	}
}

func eventNamed(name string) *Event {
	for i := range Events {
		if Events[i].Name == name {
			return &Events[i]
		}
	}
	return &Event{}
}

// TestUserEvents: a literal on any line, an expression from WARN on.
func TestUserEvents(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Events = []UserEvent{{Name: "order_lost", Literal: "order lost"}, {Name: "slow_query", Regexp: `slow query: [0-9]{4,} ms`, Level: "WARN"}}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	r := NewReport(cfg)
	feed(r, []byte(`2024-06-30 12:00:00,001 INFO  [main] a.B - order lost
2024-06-30 12:00:00,001 WARN  [main] a.B - slow query: 999 ms
2024-06-30 12:00:00,001 WARN  [main] a.B - slow query: 1000 ms
2024-06-30 12:00:00,001 WARN  [main] a.B - slow query: 1001 ms
2024-06-30 12:00:00,001 INFO  [main] a.B - slow query: 1001 ms
slow query: 1001 ms
order lost on stdout
`), 1<<16)
	if got := r.Result().Events; got["order_lost"] != 2 || got["slow_query"] != 2 {
		t.Errorf("events %v", got)
	}
}

// TestJettyPool reads the figures of a pool, Jetty 12's unknown keys included.
func TestJettyPool(t *testing.T) {
	o := New(metric.NewSet(), DefaultConfig())
	o.Observe([]byte("2024-06-30 12:00:00.100:WARN :oejut.QueuedThreadPool:qtp1-14: QueuedThreadPool[qtp1018298342]@3cb1ffe6{STARTED,4<=11<=12,i=2,r=-1,t=59999ms,q=7}[ReservedThreadExecutor@a{capacity=1}] rejected Accept@6"))
	figures := func() []float64 {
		var out []float64
		for _, f := range poolFamilies {
			v, ok := o.set.Gauge(f, "qtp").Value()
			if !ok {
				v = math.NaN()
			}
			out = append(out, v)
		}
		return out
	}
	if got := fmt.Sprint(figures()); got != "[11 2 4 12 7 7 NaN]" {
		t.Errorf("threads, idle, min, max, queue, jobs, reserved: %s", got)
	}
	o.Observe([]byte("2024-06-30 12:00:00.100:WARN:oejut.QueuedThreadPool:qtp1-14: QueuedThreadPool[qtp1018298342]@3cb1ffe6{STARTED,4<=12<=12,i=0,r=1,q=10}[x] rejected Accept@6"))
	if got := fmt.Sprint(figures()); got != "[12 0 4 12 10 10 1]" {
		t.Errorf("threads, idle, min, max, queue, jobs, reserved: %s", got)
	}
}

// TestBounds: a hostile log has as many of everything as it likes.
func TestBounds(t *testing.T) {
	set := metric.NewSet()
	o := New(set, DefaultConfig())
	for i := range 5000 {
		o.Observe(fmt.Appendf(nil, "30-Jun-2024 12:00:00.000 SEVERE [http-nio-%d-exec-1] a.b.C%c%c%c.d word%c%c", 1+i%60000, 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i%26, 'a'+i/26%26))
		o.Observe(fmt.Appendf(nil, "\ta.b.E%c%c%cException: x", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26))
		o.Observe(fmt.Appendf(nil, "30-Jun-2024 12:00:00.000 WARNING [http-nio-%d-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [7] for processing", 1+i%60000))
	}
	o.Gap()
	n := 0
	snap := metric.NewGathering()
	snap.Add(set)
	sums := map[string]float64{}
	for _, f := range snap.Snapshot(time.Time{}).Families {
		n += len(f.Metric)
		for _, m := range f.Metric {
			sums[f.GetName()] += m.Counter.GetValue()
		}
	}
	if n > 400 {
		t.Errorf("%d series", n)
	}
	for name, want := range map[string]float64{"applog_records_total": 10000, "applog_logger_records_total": 10000, "applog_exceptions_total": 10000, "applog_events_total": 5000} {
		if sums[name] != want {
			t.Errorf("%s sums up to %v, want %v", name, sums[name], want)
		}
	}
	if len(o.kins) > maxKins || len(o.excs) > maxExceptions {
		t.Errorf("%d kins, %d exceptions", len(o.kins), len(o.excs))
	}
	if err := metric.Check(Metrics); err != nil {
		t.Error(err)
	}
}
