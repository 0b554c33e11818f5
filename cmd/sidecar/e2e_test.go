package main

import (
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
			catalogueIsServed(t, b.addr)

			s.Stop()
			b.until(15*time.Second, "target_up 0 after the server was stopped", func(m lab.Scrape) bool {
				up, ok := m.Sum("target_up", "target", b.target)
				return ok && up == 0
			})
			b.firesSoon("TargetDown")
		})
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
