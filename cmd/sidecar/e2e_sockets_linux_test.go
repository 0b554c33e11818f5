package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// ownUser is a user that has no process here, so that a limit of processes is one
// of one server's threads alone.
func ownUser() uint32 { return 61_000 + uint32(os.Getpid()%4000) }

// A Tomcat that may have no more threads loses its Poller: it lives, it accepts,
// its log goes quiet, and nobody is answered. /metrics says so within ten seconds,
// and the rule pack fires.
func TestEndToEndPollerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	if os.Getuid() != 0 {
		t.Skip("a limit of threads for one server needs a user of its own, which only root can give it")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Version: "9.0.98", ShortPort: true, AnyAddress: true, Executor: &lab.Executor{MaxThreads: 20, MinSpare: 4, MaxQueueSize: 100},
		AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`, UID: ownUser()})
	b := startBeside(t, s, "tomcat")
	if got := lab.Burst(s.Addr, "/slow?ms=1", 2, 20*time.Second); got.Answers[200] != 2 {
		t.Fatalf("the quiet server: %v", got)
	}
	if n, ok := b.figure("connector_stalled"); !ok || n != 0 {
		t.Errorf("a quiet server is stalled: %v (there: %v)", n, ok)
	}
	lab.Need(t, s.Limit("nproc", 1))
	lost := make(chan lab.Tally, 1)
	go func() { lost <- lab.Burst(s.Addr, "/slow?ms=100", 8, 20*time.Second) }()
	if !lab.Until(20*time.Second, func() bool { return strings.Contains(s.Output(), "unable to create native thread") }) {
		t.Fatalf("the Poller lives: %s", s.Output())
	}
	died := time.Now()
	for _, reason := range []string{"poller", "unread"} {
		b.until(10*time.Second-time.Since(died), "connector_stalled for "+reason, func(m lab.Scrape) bool {
			n, _ := m.Sum("connector_stalled", "target", b.target, "reason", reason)
			return n == 1
		})
		t.Logf("%s: after %.1f s", reason, time.Since(died).Seconds())
	}
	b.firesSoon("ConnectorStalled")
	if got := <-lost; got.Hung == 0 {
		t.Errorf("nobody hung: %v", got)
	}
	if up, ok := b.figure("target_up"); !ok || up != 1 {
		t.Errorf("target_up %v (%v): the process lives", up, ok)
	}
}

// Each setting that hurts is said by discover, on the page and as a metric. All
// are in one server.xml, of a Tomcat that starts with it.
func TestEndToEndFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Version: "9.0.98", Protocol: "nio2", AcceptCount: 1_000_000, MaxThreads: 50, Buffered: true, UID: ownUser(),
		Executor:  &lab.Executor{MaxThreads: 300, MinSpare: 4, MaxQueueSize: 10, Attributes: `prestartminSpareThreads="true"`},
		Service:   `<Executor name="second" namePrefix="second-exec-" maxThreads="5"/>`,
		Connector: `maxSpareThreads="75" minProcessors="5" enableLookups="maybe"`})
	// HotSpot raised the limit of descriptors at its start: these come after it.
	lab.Need(t, s.Limit("nofile", 256))
	lab.Need(t, s.Limit("nproc", 250))
	program, err := lab.Build(t.TempDir(), "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	discovered, err := exec.Command(program, "discover").Output()
	if err != nil {
		t.Fatal(err)
	}
	b := startBeside(t, s, "tomcat")
	res, err := http.Get("http://" + b.addr + "/status.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var page status.Status
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, server := range page.Targets {
		if server.Target != nil && server.Target.Name == b.target {
			for _, f := range server.Findings {
				shown += f.ID + ": " + f.Detail + "\n"
			}
		}
	}
	for _, want := range []struct{ id, reason string }{
		{"accept_count_above_somaxconn", "somaxconn"},
		{"max_threads_above_limit", "ulimit -u"},
		{"max_threads_above_descriptors", "256 descriptors"},
		{"max_connections_above_descriptors", "256 descriptors"},
		{"connector_threads_ignored", "maxThreads=50"},
		{"attribute_ignored", "prestartminSpareThreads"},
		{"attribute_ignored", "maxSpareThreads"},
		{"attribute_ignored", "minProcessors"},
		{"attribute_ignored", `enableLookups="maybe"`},
		{"queue_unbounded", `"second"`},
		{"nio2_bounded_executor", "maxQueueSize=10"},
		{"access_log_without_duration", "%D"},
		{"access_log_buffered", `buffered="false"`},
	} {
		said := false
		for line := range strings.Lines(shown) {
			said = said || strings.HasPrefix(line, want.id+": ") && strings.Contains(line, want.reason)
		}
		if !said {
			t.Errorf("%s (%s) is not on the page", want.id, want.reason)
		}
		said = false
		for line := range strings.Lines(string(discovered)) {
			said = said || strings.Contains(line, "will hurt ("+want.id+"): ") && strings.Contains(line, want.reason)
		}
		if !said {
			t.Errorf("%s (%s) is not said by discover", want.id, want.reason)
		}
		if n, ok := b.figure("target_finding", "finding", want.id); !ok || n != 1 {
			t.Errorf("target_finding{finding=%q} is %v (there: %v)", want.id, n, ok)
		}
	}
	if t.Failed() {
		t.Logf("the page has:\n%s\ndiscover says:\n%s", shown, discovered)
	}
}
