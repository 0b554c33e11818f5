package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The tests here are of alerts that do something: ask for a thread dump of their
// server, and end the load.

// attached says that a JVM was ever spoken to by the attach mechanism: HotSpot
// then has a thread for it, for the rest of its life, or at least its socket.
func attached(t *testing.T, s *lab.Server) bool {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", s.PID))
	if err != nil || len(names) == 0 {
		t.Fatalf("the threads of the server can't be listed: %v", err)
	}
	for _, name := range names {
		comm, _ := os.ReadFile(name)
		if strings.HasPrefix(string(comm), "Attach Listener") {
			return true
		}
	}
	_, err = os.Stat(fmt.Sprintf("/proc/%d/root/tmp/.java_pid%d", s.PID, s.PID))
	return err == nil
}

// dumps are the thread dumps that a sidecar has kept.
func dumps(t *testing.T, storage string) (texts []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(storage, "dumps/*"))
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// A storm of rejections: with attach allowed, one dump of the server is taken
// while its threads are at it, and kept, however many alerts ask. Without, nothing
// is sent to the JVM.
func TestAlertThreadDump(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	if attached(t, s) {
		t.Fatal("the JVM was attached to before the test began")
	}
	target := fmt.Sprintf("tomcat-%d", s.Port)
	for _, attach := range []string{"off", "on"} {
		t.Run("attach "+attach, func(t *testing.T) {
			url, calls := hook(t)
			storage := filepath.Join(t.TempDir(), "state")
			// This server and no other of the machine: they would be asked for dumps too.
			b := startAlone(t, s, "tomcat", storage, "--config.file="+settings(t, `
jvm: {attach: %s}
targets: {discover: off, servers: [{name: %s, match: {pid: %d}}]}
notify: {webhooks: [{name: test, url: %q}]}
`, attach, target, s.PID, url))
			defer b.sidecar.Stop()
			// Its threads are at work for four seconds, twice.
			tally := b.burst(80, 4000, 30*time.Second)
			await(t, calls, 15*time.Second, "ExecutorRejectionStorm", target, "firing")
			if attach == "off" {
				time.Sleep(5 * time.Second)
				if got := dumps(t, storage); len(got) > 0 || attached(t, s) {
					t.Errorf("attach is off, and %d dumps are there (attached: %v)", len(got), attached(t, s))
				}
				tally()
				return
			}
			if !lab.Until(20*time.Second, func() bool { return len(dumps(t, storage)) > 0 }) {
				t.Fatal("no dump was kept")
			}
			text := dumps(t, storage)[0]
			for _, want := range []string{"Thread dump of " + target, "for the alert ExecutorRejectionStorm", "Full thread dump", `"catalina-exec-`, "java.lang.Thread.sleep"} {
				if !strings.Contains(text, want) {
					t.Errorf("the dump has no %q:\n%.1500s", want, text)
				}
			}
			tally()
			// Whatever else fires within the minute asks in vain.
			b.burst(80, 1000, 30*time.Second)()
			time.Sleep(8 * time.Second)
			if got := dumps(t, storage); len(got) != 1 {
				t.Errorf("%d dumps within a minute", len(got))
			}
			if gone, how := s.Exited(); gone {
				t.Errorf("the server ended: %v", how)
			}
		})
	}
}

// A webhook that stops the load: the first critical alert ends a real load
// generator long before its time, and the storm with it. Meanwhile lines are chosen
// for a Loki that is not there, and ShippingFails says so.
func TestWebhookStopsTheLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real load and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	var load atomic.Pointer[lab.Child]
	stopped := make(chan time.Time, 1)
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c := load.Swap(nil); c != nil {
			c.Stop()
			stopped <- time.Now()
		}
	}))
	defer webhook.Close()
	nobody, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := startAlone(t, s, "tomcat", filepath.Join(t.TempDir(), "state"), "--config.file="+settings(t, `
targets: {discover: off, servers: [{name: tomcat-%d, match: {pid: %d}}]}
notify: {webhooks: [{name: stop the load, url: %q, match: {severity: critical, target: tomcat-%[1]d}}]}
loki: {url: "http://127.0.0.1:%[4]d/loki/api/v1/push"}
`, s.Port, s.PID, webhook.URL, nobody))
	const planned = 60 * time.Second
	began := time.Now()
	wrk, err := lab.StartWrk(filepath.Join(t.TempDir(), "wrk"), s.URL("/slow?ms=200"), 40, planned)
	lab.Need(t, err)
	load.Store(wrk)
	defer wrk.Stop()
	select {
	case at := <-stopped:
		t.Logf("the load was stopped %.1f s after it began, of %v planned", at.Sub(began).Seconds(), planned)
	case <-time.After(planned / 2):
		t.Fatal("nothing stopped the load")
	}
	if gone, _ := wrk.Exited(); !gone {
		t.Error("the load runs on")
	}
	rejections := func() float64 {
		n, _ := b.figure("applog_events_total", "event", "executor_rejected")
		return n
	}
	last := -1.0
	if !lab.Until(20*time.Second, func() bool {
		now := rejections()
		still := now == last
		last = now
		time.Sleep(2 * time.Second)
		return still && now > 0
	}) {
		t.Errorf("rejections go on: %v", last)
	}
	t.Logf("%.0f rejections", last)
	engine := &lab.Prometheus{Addr: b.addr}
	if !lab.Until(90*time.Second, func() bool { return engine.Firing("ShippingFails") }) {
		got, err := engine.Query(`{__name__=~"ship_(errors|batches|queued|dropped).*"} > 0`)
		t.Errorf("ShippingFails does not fire: %v %v", got, err)
	} else if got, err := engine.Alerts("ShippingFails"); err != nil || len(got) != 1 || !strings.Contains(got[0].Annotations["description"], "Pushes fail: connection_refused.") {
		t.Errorf("%+v %v", got, err)
	}
}
