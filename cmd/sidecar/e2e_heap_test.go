package main

import (
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// A Tomcat whose heap is full of what is still reachable lives on: it accepts,
// fails requests without an answer, and writes them down as answered with 200. The
// client's own count says that they failed, and within ten seconds the sidecar
// does: by the log's records, and by an alert.
func TestEndToEndHeapFull(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Version: "10.1.34", Executor: &lab.Executor{MaxThreads: 20, MinSpare: 4, MaxQueueSize: 100},
		AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`, JVMArgs: []string{"-Xmx48m", "-XX:+UseSerialGC"}})
	b := startBeside(t, s, "tomcat")
	if got := lab.Burst(s.Addr, "/slow?ms=1", 2, 20*time.Second); got.Answers[200] != 2 {
		t.Fatalf("the quiet server: %v", got)
	}
	thrown := func(m lab.Scrape) float64 {
		n, _ := m.Sum("applog_exceptions_total", "target", b.target, "class", "java.lang.OutOfMemoryError")
		return n
	}
	b.until(10*time.Second, "the two requests", func(m lab.Scrape) bool {
		n, _ := m.Sum("accesslog_requests_total", "target", b.target)
		return n == 2 && thrown(m) == 0
	})
	lost := make(chan lab.Tally, 1)
	go func() { lost <- lab.Burst(s.Addr, "/slow?op=leak&n=2", 60, 20*time.Second) }()
	if !lab.Until(30*time.Second, func() bool { return strings.Contains(s.Output(), "OutOfMemoryError: Java heap space") }) {
		t.Fatalf("the heap has room: %s", s.Output())
	}
	died := time.Now()
	b.until(10*time.Second, "the OutOfMemoryError", func(m lab.Scrape) bool {
		n, _ := m.Sum("applog_events_total", "target", b.target, "event", "out_of_memory_heap")
		return n > 0 && thrown(m) > 0
	})
	t.Logf("told after %.1f s", time.Since(died).Seconds())
	b.firesSoon("NewException")
	got := <-lost
	t.Log(got)
	if got.Answers[200] == 60 {
		t.Errorf("all were answered: %v", got)
	}
	if up, ok := b.figure("target_up"); !ok || up != 1 {
		t.Errorf("target_up %v (%v): the process lives", up, ok)
	}
}
