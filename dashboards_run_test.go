package sidecar

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// emptyHere are the queries that say nothing about the run below, and why that
// is right. Each is "board, panel query", as panelQuery prints itself. The run is
// on a Tomcat with G1 and a Jetty with ZGC, on a large disk.
var emptyHere = map[string]string{
	"Every board, annotation GC failures":                          "no collection failed",
	"Load run, When is the disk full? A":                           "the disk is far from full: logfs_full_seconds is absent then",
	"Load run, Who takes the CPU? D":                               "no CPU quota",
	"Logs and disk, When is the disk full? A":                      "the disk is far from full: logfs_full_seconds is absent then",
	"Threads and connectors, Does the quota stop it? A":            "no CPU quota",
	"Threads and connectors, Is something short on the machine? A": "a kernel may have no /proc/pressure",
	"Threads and connectors, Do threads fight over locks? A":       "JDK 25 has no such counter",
	"Threads and connectors, Do threads fight over locks? B":       "JDK 25 has no such counter",
	"JVM and GC, How much memory does the process take? C":         "no cgroup with a memory controller",
	"JVM and GC, How much memory does the process take? D":         "no memory limit",
	"The sidecar itself, Which looks fail? A":                      "nothing failed",
	"The sidecar itself, What can't it see, and why? A":            "all may be seen",
	"The sidecar itself, Is a metric too wide? A":                  "none is",
}

// TestEveryPanelShowsARealRun records one short run: a real Tomcat on a bounded
// Executor and a real Jetty on a bounded pool with ZGC on JDK 25, both overloaded
// for some seconds, the sidecar beside them and a real Prometheus that scrapes it
// each second. Then it asks that Prometheus each query
// of each dashboard as Grafana would. A panel without data is a mistake in its
// query, or it stands in emptyHere with its reason.
func TestEveryPanelShowsARealRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	p, targets, instance, from := recordRun(t)
	to := time.Now()
	queries := panelQueries(t)
	silent := map[string]bool{}
	for _, c := range []struct {
		name, rate string
		step       time.Duration
	}{
		// Fifteen minutes on a screen, where the data source knows of the scrape each
		// second ($__rate_interval is then four scrapes), and where it does not: then
		// Grafana takes 15 s for the scrape interval.
		{"scrape interval known", "4s", time.Second},
		{"scrape interval not known", "1m0s", 15 * time.Second},
	} {
		for _, q := range queries {
			points, of := 0, map[string]int{}
			for kind, target := range targets {
				expr := q.filled("$__rate_interval", c.rate, "$job", "sidecar", "$instance", instance, "$target", target)
				start := from
				if q.instant {
					start = to
				}
				series, err := p.Range(expr, start, to, c.step)
				if err != nil {
					t.Fatalf("%v: %v", q, err)
				}
				for _, s := range series {
					of[kind] += len(s.Points)
				}
				points += of[kind]
			}
			switch why := emptyHere[q.String()]; {
			case of["tomcat"] > 0 && strings.Contains(q.panel, "Jetty"):
				t.Errorf("%v shows something about a Tomcat", q)
			case points == 0 && why == "":
				t.Errorf("%s: %v shows nothing: %s", c.name, q, q.expr)
			case points > 0 && why != "":
				t.Logf("shown, though %s: %v", why, q)
			case points == 0:
				silent[q.String()] = true
			}
		}
	}
	for q := range emptyHere {
		found := false
		for _, have := range queries {
			found = found || have.String() == q
		}
		if !found {
			t.Errorf("emptyHere has %q, which is no panel", q)
		}
	}
	t.Logf("%d queries, %d of them rightly silent", len(queries), len(silent))
	for q := range silent {
		t.Logf("silent: %s (%s)", q, emptyHere[q])
	}
}

// recordRun leaves a Prometheus that has seen a run from before its start to
// after its end.
func recordRun(t *testing.T) (p *lab.Prometheus, targets map[string]string, instance string, from time.Time) {
	t.Helper()
	root, err := lab.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	jdk, err := lab.AnyJDK(17)
	lab.Need(t, err)
	s := lab.StartTomcat(t, lab.Tomcat{
		JDK:              jdk,
		Executor:         &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10},
		AcceptCount:      100,
		AccessLogPattern: `%h %l %u %t "%r" %s %b %D %F %X %I`,
		// So small a heap and so small a log make collections and rotations in seconds.
		JVMArgs: []string{"-Xmx48m", "-XX:+UseG1GC", "-Xlog:gc*,safepoint:file=" + filepath.Join(dir, "gc.log") + ":time,uptime,level,tags:filecount=4,filesize=16k"},
	})
	// What only JDK 25 and ZGC have: the JVM's own account of the collector's CPU,
	// and threads that wait for memory. The heap is as small as ZGC works with.
	newest, err := lab.AnyJDK(25)
	lab.Need(t, err)
	j := lab.StartJetty(t, lab.Jetty{
		Version: lab.Jetties[len(lab.Jetties)-1], JDK: newest, MinThreads: 4, MaxThreads: 10, MaxQueueSize: 10, RequestLog: true,
		JVMArgs: []string{"-Xmx96m", "-XX:+UseZGC", "-Xlog:gc*,safepoint:file=" + filepath.Join(dir, "jetty-gc.log") + ":time,uptime,level,tags"},
	})
	settings := filepath.Join(dir, "sidecar.yml")
	if err := os.WriteFile(settings, []byte("accesslog:\n  routes:\n    patterns: [/slow]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	instance = fmt.Sprintf("127.0.0.1:%d", port)
	target, jetty := fmt.Sprintf("tomcat-%d", s.Port), fmt.Sprintf("jetty-%d", j.Port)
	log := filepath.Join(dir, "sidecar.log")
	sidecar, err := lab.StartProgram("sidecar", log, program, "run", "--config.file="+settings,
		"--web.listen-address="+instance, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sidecar.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(log)
			t.Logf("the sidecar's own log:\n%s", said)
		}
	})
	p, err = lab.StartPrometheus(t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: sidecar, static_configs: [{targets: [%q]}]}]
`, filepath.Join(root, "rules/load/*.yml"), instance))
	lab.Need(t, err)
	t.Cleanup(p.Stop)
	seen := func(what, expr string) {
		t.Helper()
		if !lab.Until(40*time.Second, func() bool {
			got, err := p.Query(expr)
			return err == nil && len(got) > 0
		}) {
			t.Fatalf("not seen in Prometheus: %s (%s)", what, expr)
		}
	}
	of := func(more string) string { return "{target=\"" + target + "\"" + more + "}" }
	from = time.Now()
	seen("the quiet server", "count_over_time(accesslog_parse_errors_total"+of("")+"[1m]) >= 3")
	seen("the quiet Jetty", `count_over_time(target_up{target="`+jetty+`"}[1m]) >= 3`)

	// Garbage in pieces that G1 calls humongous, and an error.
	for _, path := range []string{"/slow?op=alloc&n=200", "/slow?op=npe", "/slow?op=out&n=5", "/missing"} {
		if got := lab.Burst(s.Addr, path, 4, 20*time.Second); got.Complete() != 4 {
			t.Fatalf("%s: %v", path, got)
		}
	}
	storm := time.Now()
	for time.Since(storm) < 8*time.Second {
		if _, err := lab.AB(s.URL("/slow?ms=20"), 400, 100, 20*time.Second); err != nil {
			lab.Need(t, err)
		}
		lab.Burst(s.Addr, "/slow?op=npe", 2, 20*time.Second)
		lab.Burst(s.Addr, "/slow?op=alloc&n=60", 2, 20*time.Second)
		// Garbage faster than ZGC can clear it away.
		lab.Burst(j.Addr, "/slow?op=alloc&n=400", 6, 20*time.Second)
		lab.Burst(j.Addr, "/slow?ms=300", 120, 20*time.Second)
	}
	// A log that is emptied while it is written (copytruncate) is a gap.
	if err := os.Truncate(s.CatalinaOut, 0); err != nil {
		t.Fatal(err)
	}
	seen("the alert", `ALERTS{alertstate="firing",target="`+target+`"}`)
	seen("the requests", "sum(accesslog_requests_total"+of(`,code="2xx"`)+") > 50")
	seen("some scrapes after the last rejection", "changes(applog_events_total"+of(`,event="executor_rejected"`)+"[3s]) == 0")
	seen("Jetty's word of its pool", `jetty_queued_thread_pool_threads{target="`+jetty+`"}`)
	seen("ZGC's stalls", `count_over_time(gclog_allocation_stall_seconds_sum{target="`+jetty+`"}[1m]) >= 3`)
	seen("the gap", "sum(logfile_gaps_total"+of("")+") > 0")
	return p, map[string]string{"tomcat": target, "jetty": jetty}, instance, from
}
