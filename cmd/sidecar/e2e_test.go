package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The tests here run the main job with nothing faked: a real Tomcat on a bounded
// Executor, the sidecar's own binary beside it without one setting, a real
// Prometheus with rules/load, and bounded bursts far past the limit. What the
// sidecar says is held against jstack, grep, du and the client's own counts.

// rejection is how each rejection's record ends, in every version and language;
// grep -c of it on catalina.out is the other count of rejections.
const rejection = `^.?java\.util\.concurrent\.RejectedExecutionException`

// limits is the Executor of these tests: of a burst of 80, just 20 are answered.
var limits = lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}

// beside is a sidecar, and the Prometheus that scrapes it.
type beside struct {
	t          *testing.T
	server     *lab.Server
	target     string
	addr       string
	sidecar    *lab.Child
	prometheus *lab.Prometheus
	log        string
}

// startBeside starts both and waits until the sidecar has found the server and
// follows its log.
func startBeside(t *testing.T, server *lab.Server, kind string) *beside {
	t.Helper()
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &beside{
		t: t, server: server, target: fmt.Sprintf("%s-%d", kind, server.Port),
		addr: fmt.Sprintf("127.0.0.1:%d", port), log: filepath.Join(dir, "sidecar.log"),
	}
	b.sidecar, err = lab.StartProgram("sidecar", b.log, program,
		"run", "--web.listen-address="+b.addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.sidecar.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(b.log)
			t.Logf("the sidecar's own log:\n%s", said)
		}
	})
	b.until(30*time.Second, "the sidecar finds "+b.target, func(m lab.Scrape) bool {
		up, ok := m.Sum("target_up", "target", b.target)
		_, events := m.Sum("applog_events_total", "target", b.target, "event", "executor_rejected")
		return ok && up == 1 && events
	})
	root, err := lab.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	b.prometheus, err = lab.StartPrometheus(t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: sidecar, static_configs: [{targets: [%q]}]}]
`, filepath.Join(root, "rules/load/*.yml"), b.addr))
	lab.Need(t, err)
	t.Cleanup(b.prometheus.Stop)
	if !lab.Until(20*time.Second, func() bool {
		got, err := b.prometheus.Query(fmt.Sprintf("count_over_time(target_up{target=%q}[1m]) >= 3", b.target))
		return err == nil && len(got) == 1
	}) {
		t.Fatal("Prometheus has not scraped the sidecar")
	}
	return b
}

// until waits for the exposition to satisfy ok, and fails the test with what it
// was waiting for when it doesn't.
func (b *beside) until(limit time.Duration, what string, ok func(m lab.Scrape) bool) {
	b.t.Helper()
	var last error
	if !lab.Until(limit, func() bool {
		if gone, how := b.sidecar.Exited(); gone {
			b.t.Fatalf("the sidecar ended: %v", how)
		}
		m, err := lab.ReadMetrics(b.addr)
		last = err
		return err == nil && ok(m)
	}) {
		b.t.Fatalf("within %v not seen: %s (%v)", limit, what, last)
	}
}

// figure reads one figure of the target; absent is told from 0.
func (b *beside) figure(name string, labels ...string) (float64, bool) {
	b.t.Helper()
	m, err := lab.ReadMetrics(b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	return m.Sum(name, append(labels, "target", b.target)...)
}

// alerts are those of our target: the machine may run other servers, which the
// sidecar sees too.
func (b *beside) alerts(state string) (names []string) {
	b.t.Helper()
	all, err := b.prometheus.Alerts("")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range all {
		if a.Labels["target"] == b.target && (state == "" || a.State == state) {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names
}

func (b *beside) fires(name string) bool {
	for _, n := range b.alerts("firing") {
		if n == name {
			return true
		}
	}
	return false
}

// settles waits until a figure of the sidecar is what another program counts,
// within a tolerance, and fails with both when it does not become so.
func (b *beside) settles(what string, within float64, sidecar func() (float64, bool), other func() (float64, error)) {
	b.t.Helper()
	var got, want float64
	var seen bool
	if !lab.Until(10*time.Second, func() bool {
		var err error
		if want, err = other(); err != nil {
			b.t.Fatalf("%s: %v", what, err)
		}
		got, seen = sidecar()
		return seen && got-want <= within && want-got <= within
	}) {
		b.t.Errorf("%s: the sidecar says %v (seen: %v), want %v", what, got, seen, want)
	}
}

// agrees holds all the figures of a server at rest against the other programs'.
// requests is the number of complete answers since the sidecar came, before the
// count of grep when it came.
func (b *beside) agrees(requests, before int) {
	b.t.Helper()
	b.settles("requests in the access log", 0,
		func() (float64, bool) { return b.figure("accesslog_requests_total") },
		func() (float64, error) { return float64(requests), nil })
	b.agreesBeside(before)
}

// agreesBeside is agrees without the requests.
func (b *beside) agreesBeside(before int) {
	b.t.Helper()
	b.settles("rejections", 0,
		func() (float64, bool) { return b.figure("applog_events_total", "event", "executor_rejected") },
		func() (float64, error) {
			n, err := lab.GrepCount(rejection, b.server.CatalinaOut)
			return float64(n - before), err
		})
	b.settles("threads of catalina-exec", 1,
		func() (float64, bool) { return b.figure("jvm_threadpool_threads", "pool", "catalina-exec") },
		func() (float64, error) {
			n, err := b.server.ThreadsNamed("catalina-exec-")
			return float64(n), err
		})
	b.settles("bytes in the log folder", 0,
		func() (float64, bool) { return b.figure("logdir_size_bytes", "dir", b.server.LogDir) },
		func() (float64, error) {
			n, err := lab.DU(b.server.LogDir)
			return float64(n), err
		})
}

// burst sends a burst in the background and returns its counts when asked.
func (b *beside) burst(n, ms int, timeout time.Duration) func() lab.Tally {
	done := make(chan lab.Tally, 1)
	go func() { done <- lab.Burst(b.server.Addr, "/slow?ms="+strconv.Itoa(ms), n, timeout) }()
	return func() lab.Tally { return <-done }
}

// firesSoon says whether the alert fires within ten seconds of now.
func (b *beside) firesSoon(name string) {
	b.t.Helper()
	began := time.Now()
	if !lab.Until(10*time.Second, func() bool { return b.fires(name) }) {
		b.t.Errorf("%s does not fire within 10 s; alerts now: %v", name, b.alerts(""))
		return
	}
	b.t.Logf("%s fires after %.1f s", name, time.Since(began).Seconds())
}

func TestEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	jdks := lab.JDKs()
	if len(jdks) == 0 {
		_, err := lab.AnyJDK(8)
		lab.Need(t, err)
	}
	for _, c := range []lab.Tomcat{
		{}, // 8.5.32, the case itself, on the oldest JDK
		{Version: "11.0.24", JDK: jdks[len(jdks)-1]}, // the newest of both
	} {
		name := "oldest"
		if c.Version != "" {
			name = "newest"
			if c.JDK.Major < 17 {
				continue
			}
		}
		t.Run(name, func(t *testing.T) {
			c.Executor, c.AcceptCount, c.AccessLogPattern = &limits, 100, `%h %l %u %t "%r" %s %b %D`
			s := lab.StartTomcat(t, c)
			b := startBeside(t, s, "tomcat")

			if got := lab.Burst(s.Addr, "/slow?ms=1", 5, 20*time.Second); got.Answers[200] != 5 {
				t.Fatalf("the quiet server: %v", got)
			}
			b.agrees(5, 0)
			if names := b.alerts(""); len(names) > 0 {
				t.Errorf("alerts on a quiet server: %v", names)
			}

			tally := b.burst(80, 2000, 20*time.Second)
			b.firesSoon("ExecutorRejectionStorm") // counted from before the first rejection
			got := tally()
			t.Log(got)
			if got.Answers[200] != 20 || got.Complete() != 20 || got.Closed+got.Reset != 60 {
				t.Errorf("of 80 on 10+10: %v", got)
			}
			b.agrees(25, 0)
			if n, _ := b.figure("applog_events_total", "event", "executor_rejected"); n < 60 || n > 65 {
				t.Errorf("%v rejections, want about 60", n)
			}
			b.notDoubled()

			// Thousands of rejections, and then all figures once more.
			report, err := lab.AB(s.URL("/slow?ms=50"), 3000, 100, 20*time.Second)
			lab.Need(t, err)
			b.agrees(25+report.Answers(len("slept 50 ms\n")), 0)
			b.budget()

			s.Stop()
			b.until(15*time.Second, "target_up 0 after the server was stopped", func(m lab.Scrape) bool {
				up, ok := m.Sum("target_up", "target", b.target)
				return ok && up == 0
			})
			b.firesSoon("TargetDown")
		})
	}
}

// notDoubled checks that the records in catalina.DATE.log, which are the same
// once more, are there and yet not counted: else the test before proves nothing.
func (b *beside) notDoubled() {
	b.t.Helper()
	copies, _ := filepath.Glob(filepath.Join(b.server.LogDir, "catalina.*.log"))
	if len(copies) != 1 {
		b.t.Fatalf("%d files catalina.DATE.log", len(copies))
	}
	if !lab.Until(5*time.Second, func() bool {
		n, err := lab.GrepCount(rejection, copies[0])
		return err == nil && n >= 60
	}) {
		b.t.Error("catalina.DATE.log does not carry the rejections a second time")
	}
}

// budget holds the series of one target against what is promised.
func (b *beside) budget() {
	b.t.Helper()
	m, err := lab.ReadMetrics(b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, s := range m {
		if s.Labels["target"] == b.target {
			n++
		}
	}
	b.t.Logf("%d series of %s", n, b.target)
	if n > 1500 {
		b.t.Errorf("%d series of one target, more than 1,500", n)
	}
}

// With NIO2 some of the clients that are turned away hang until their own
// timeout, few rejections are logged, and the connector may stop for good (seen
// with 10.1 on JDK 17). The sidecar has to see what there is to see in any case.
func TestEndToEndNIO2(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	for _, version := range []string{"8.5.32", "10.1.34"} {
		t.Run(version, func(t *testing.T) {
			s := lab.StartTomcat(t, lab.Tomcat{Version: version, Protocol: "nio2", Executor: &limits, AcceptCount: 100,
				AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
			b := startBeside(t, s, "tomcat")
			if got := lab.Burst(s.Addr, "/slow?ms=1", 5, 20*time.Second); got.Answers[200] != 5 {
				t.Fatalf("the quiet server: %v", got)
			}
			b.agrees(5, 0)
			t.Log(lab.Burst(s.Addr, "/slow?ms=1000", 80, 5*time.Second))
			// A client that gave up may be answered late, and stands in the access
			// log: what that file holds is the truth here.
			b.settles("requests in the access log", 0,
				func() (float64, bool) { return b.figure("accesslog_requests_total") },
				func() (float64, error) { return float64(lab.CountLines(s.AccessLog(), "GET /slow")), nil })
			b.agreesBeside(0)
			if n, _ := b.figure("applog_events_total", "event", "executor_rejected"); n > 0 {
				b.firesSoon("ExecutorRejectionStorm")
			} else {
				t.Log("this time no rejection was logged at all")
			}
			if up, ok := b.figure("target_up"); !ok || up != 1 {
				t.Errorf("target_up %v (%v): the process lives, whatever its connector does", up, ok)
			}
			s.Stop()
			b.until(15*time.Second, "target_up 0 after the server was stopped", func(m lab.Scrape) bool {
				up, ok := m.Sum("target_up", "target", b.target)
				return ok && up == 0
			})
		})
	}
}

// Jetty with a bounded queue, where each rejection is one line of the pool's own.
func TestEndToEndJetty(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	for _, version := range lab.Jetties {
		t.Run(version, func(t *testing.T) {
			s := lab.StartJetty(t, lab.Jetty{Version: version, MinThreads: 4, MaxThreads: 12, MaxQueueSize: 10, RequestLog: true})
			b := startBeside(t, s, "jetty")
			if got := lab.Burst(s.Addr, "/slow?ms=1", 5, 20*time.Second); got.Answers[200] != 5 {
				t.Fatalf("the quiet server: %v", got)
			}
			if names := b.alerts(""); len(names) > 0 {
				t.Errorf("alerts on a quiet server: %v", names)
			}
			tally := b.burst(200, 1500, 20*time.Second)
			b.firesSoon("ExecutorRejectionStorm")
			got := tally()
			t.Log(got)
			b.settles("requests in the request log", 0,
				func() (float64, bool) { return b.figure("accesslog_requests_total") },
				func() (float64, error) { return float64(5 + got.Complete()), nil })
			b.settles("rejections", 0,
				func() (float64, bool) { return b.figure("applog_events_total", "event", "executor_rejected") },
				func() (float64, error) {
					n, err := lab.GrepCount(`:WARN *:oejut\.QueuedThreadPool:.* rejected `, s.CatalinaOut)
					return float64(n), err
				})
			s.Stop()
			b.until(15*time.Second, "target_up 0 after the server was stopped", func(m lab.Scrape) bool {
				up, ok := m.Sum("target_up", "target", b.target)
				return ok && up == 0
			})
		})
	}
}

// A sidecar that comes later says nothing of what was before, and misses nothing
// of what comes then.
func TestEndToEndPast(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	past := lab.Burst(s.Addr, "/slow?ms=1000", 80, 20*time.Second)
	report, err := lab.AB(s.URL("/slow?ms=10"), 2000, 100, 20*time.Second)
	lab.Need(t, err)
	before, err := lab.GrepCount(rejection, s.CatalinaOut)
	if err != nil || before < 60 {
		t.Fatalf("%d rejections before the sidecar came (%v; %v, %+v)", before, err, past, report)
	}

	b := startBeside(t, s, "tomcat")
	var alerts []string
	if lab.Until(15*time.Second, func() bool {
		alerts = b.alerts("")
		return len(alerts) > 0
	}) {
		t.Errorf("alerts about the past: %v", alerts)
	}
	b.agrees(0, before)

	tally := b.burst(80, 1500, 20*time.Second)
	b.firesSoon("ExecutorRejectionStorm")
	b.agrees(tally().Complete(), before)
}
