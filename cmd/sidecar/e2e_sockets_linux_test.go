package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// ownUser is a user that has no process here: no limit of processes binds root.
func ownUser() uint32 { return 61_000 + uint32(os.Getpid()%4000) }

// A Tomcat that can have no more threads loses its Poller: it lives, it accepts,
// its log goes quiet, and nobody is answered. /metrics says so within ten seconds,
// and the rule pack fires.
func TestEndToEndPollerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Version: "9.0.98", ShortPort: true, AnyAddress: true, Executor: &lab.Executor{MaxThreads: 20, MinSpare: 4, MaxQueueSize: 100},
		AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`, JVMArgs: []string{"-Xss16m"}})
	b := startBeside(t, s, "tomcat")
	if got := lab.Burst(s.Addr, "/slow?ms=1", 2, 20*time.Second); got.Answers[200] != 2 {
		t.Fatalf("the quiet server: %v", got)
	}
	b.until(10*time.Second, "a verdict of the quiet server", func(m lab.Scrape) bool {
		n, ok := m.Sum("connector_stalled", "target", b.target, "reason", "poller")
		return ok && n == 0
	})
	// Room for everything but one more stack of 16 MB.
	memory, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(memory))[0])
	if err != nil {
		t.Fatal(err)
	}
	lab.Need(t, s.Limit("as", pages*os.Getpagesize()+12<<20))
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
		Service:   `<Executor name="second" namePrefix="second-exec-" maxThreads="5" minSpareThreads="2"/>`,
		Connector: `maxSpareThreads="75" minProcessors="5" enableLookups="maybe"`})
	// HotSpot raised the limit of descriptors at its start: these come after it.
	lab.Need(t, s.Limit("nofile", 256))
	lab.Need(t, s.Limit("nproc", 250))
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	// As the server's user, since root without CAP_SYS_PTRACE (in a container) does
	// not see all of another's.
	text := filepath.Join(dir, "discovered")
	child, err := lab.StartProgramAs(ownUser(), "discover", text, program, "discover")
	lab.Need(t, err)
	if !lab.Until(30*time.Second, func() bool { gone, _ := child.Exited(); return gone }) {
		t.Fatal("discover does not end")
	}
	discovered, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr, name := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("tomcat-%d", s.Port)
	sidecar, err := lab.StartProgramAs(ownUser(), "sidecar", filepath.Join(dir, "sidecar.log"), program,
		"run", "--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	lab.Need(t, err)
	t.Cleanup(sidecar.Stop)
	var figures lab.Scrape
	if !lab.Until(30*time.Second, func() bool {
		figures, err = lab.ReadMetrics(addr)
		if err != nil {
			return false
		}
		_, ok := figures.Sum("target_finding", "target", name)
		return ok
	}) {
		said, _ := os.ReadFile(filepath.Join(dir, "sidecar.log"))
		gone, how := s.Exited()
		t.Fatalf("no finding about %s (ended: %v %v): %v\n%s\n%s", name, gone, how, err, said, s.Output())
	}
	res, err := http.Get("http://" + addr + "/status.json")
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
		if server.Target != nil && server.Target.Name == name {
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
		if n, ok := figures.Sum("target_finding", "target", name, "finding", want.id); !ok || n != 1 {
			t.Errorf("target_finding{finding=%q} is %v (there: %v)", want.id, n, ok)
		}
	}
	if t.Failed() {
		t.Logf("the page has:\n%s\ndiscover says:\n%s", shown, discovered)
	}
}
