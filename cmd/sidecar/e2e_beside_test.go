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
func startBeside(t *testing.T, server *lab.Server, kind string, args ...string) *beside {
	t.Helper()
	return startBesideWith(t, server, kind, filepath.Join(t.TempDir(), "state"), args...)
}

// startBesideWith is startBeside with the sidecar's state in a folder of the
// caller's.
func startBesideWith(t *testing.T, server *lab.Server, kind, storage string, args ...string) *beside {
	t.Helper()
	b := startAlone(t, server, kind, storage, args...)
	b.startPrometheus("")
	return b
}

// startAlone is startBesideWith without a Prometheus.
func startAlone(t *testing.T, server *lab.Server, kind, storage string, args ...string) *beside {
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
		append([]string{"run", "--web.listen-address=" + b.addr, "--storage.path=" + storage}, args...)...)
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
	return b
}

// startPrometheus starts one that scrapes the sidecar each second and has the
// load rules; more is added to its configuration.
func (b *beside) startPrometheus(more string) {
	t := b.t
	t.Helper()
	root, err := lab.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	b.prometheus, err = lab.StartPrometheus(t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s, external_labels: {from: prometheus}}
rule_files: [%q]
scrape_configs: [{job_name: sidecar, static_configs: [{targets: [%q]}]}]
%s`, filepath.Join(root, "rules/load/*.yml"), b.addr, more))
	lab.Need(t, err)
	t.Cleanup(b.prometheus.Stop)
	if !lab.Until(20*time.Second, func() bool {
		got, err := b.prometheus.Query(fmt.Sprintf("count_over_time(target_up{target=%q}[1m]) >= 3", b.target))
		return err == nil && len(got) == 1
	}) {
		t.Fatal("Prometheus has not scraped the sidecar")
	}
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
