package collectors

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

const (
	answers    = `accesslog_requests_total{code="2xx",method="GET",route="",target="tomcat-8080"}`
	rejections = `applog_events_total{event="executor_rejected",port="8080",target="tomcat-8080"}`
)

func answer(i int) string {
	return fmt.Sprintf("127.0.0.1 - - [30/Nov/2026:12:00:%02d +0000] \"GET /slow?n=%d HTTP/1.1\" 200 17 %d\n", i%60, i, 100+i%7)
}

func rejection(i int) string {
	return fmt.Sprintf("30-Nov-2026 12:00:%02d.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@%x:java.nio.channels.SocketChannel[connected local=/127.0.0.1:8080 remote=/127.0.0.1:%d]] for processing\n"+
		"\tjava.util.concurrent.RejectedExecutionException: Queue capacity is full\n\t\tat org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:172)\n", i%60, i%1000, i, 30000+i%30000)
}

func TestCatalogueIsSound(t *testing.T) {
	if err := metric.Check(Catalogue()); err != nil {
		t.Error(err)
	}
}

// TestEmittedIsDeclared: what is served stands in the catalogue.
func TestEmittedIsDeclared(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	m.append("access.log", answer(1))
	m.append("catalina.out", rejection(1))
	r.until(answers, 1)
	r.until(rejections, 1)
	declared := map[string]bool{}
	for _, f := range Catalogue() {
		declared[f.Name] = true
	}
	for _, f := range r.Snapshot().Families {
		if !declared[f.GetName()] {
			t.Errorf("%s is served and not in the catalogue", f.GetName())
		}
	}
}

// TestNoCounterFallsAndNoLineIsCountedTwice: the sidecar is killed again and
// again while the logs grow, and in the end every line was counted once.
func TestNoCounterFallsAndNoLineIsCountedTwice(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	r.until(answers, 0)
	last := map[string]float64{}
	sent := 0
	for life := range 8 {
		for burst := range 3 {
			for range 50 + 13*life + burst {
				sent++
				m.append("access.log", answer(sent))
				m.append("catalina.out", rejection(sent))
			}
			r.tick(r.ctx, time.Now(), false)
			// Some ticks come before the lines are read, some after.
			if burst == 1 {
				time.Sleep(120 * time.Millisecond)
			}
			last = checkRising(t, last, values(r.text()))
		}
		r.die()
		r = m.run()
		last = checkRising(t, last, values(r.text()))
	}
	r.until(answers, float64(sent))
	r.until(rejections, float64(sent))
	if got, _ := r.value(`target_restarts_total{target="tomcat-8080"}`); got != 0 {
		t.Errorf("a restart of the sidecar counts as %v restarts of the server", got)
	}
}

// checkRising finds counters of the server's logs that fell. A series that is
// not shown yet (its log is being caught up with) has not fallen.
func checkRising(t *testing.T, before, now map[string]float64) map[string]float64 {
	t.Helper()
	for series, v := range now {
		name, _, _ := strings.Cut(series, "{")
		counts := strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_count")
		ours := strings.HasPrefix(name, "accesslog_") || strings.HasPrefix(name, "applog_") || strings.HasPrefix(name, "logfile_")
		if counts && ours && v < before[series] {
			t.Errorf("%s fell from %v to %v", series, before[series], v)
		}
		before[series] = max(v, before[series])
	}
	return before
}

// TestHistoryIsNoNews: what the logs held before the first start is not
// counted, and the closed counters stand at 0 so that the first step is seen.
func TestHistoryIsNoNews(t *testing.T) {
	m := newMachine(t)
	for i := range 100 {
		m.append("catalina.out", rejection(i))
	}
	r := m.run()
	r.until(rejections, 0)
	m.append("catalina.out", rejection(7))
	r.until(rejections, 1)
}

// TestALogMadeLaterIsReadWhole: a log that appears while the sidecar runs is
// news from its first line on.
func TestALogMadeLaterIsReadWhole(t *testing.T) {
	m := newMachine(t)
	os.Remove(m.base + "/logs/access.log")
	r := m.run()
	m.append("access.log", answer(1)+answer(2))
	r.until(answers, 2)
}

func TestAServerThatStopsIsDownAndComesBack(t *testing.T) {
	const up, restarts = `target_up{target="tomcat-8080"}`, `target_restarts_total{target="tomcat-8080"}`
	m := newMachine(t)
	r := m.run()
	m.append("access.log", answer(1))
	r.until(answers, 1)
	r.until(up, 1)
	m.end(pid)
	r.look()
	r.until(up, 0)
	if _, ok := r.value(`process_open_fds{target="tomcat-8080"}`); ok {
		t.Error("a process that is gone still has descriptors")
	}
	// The last lines of a dead server are still counted.
	m.append("access.log", answer(2))
	r.until(answers, 2)
	m.start(pid+1, 2000)
	r.look()
	r.until(up, 1)
	r.until(restarts, 1)
	m.append("access.log", answer(3))
	r.until(answers, 3)
}

// TestReloadKeepsCounters: new settings make every source anew, from what it
// has counted.
func TestReloadKeepsCounters(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	m.append("access.log", answer(1))
	r.until(answers, 1)
	cfg := Defaults()
	cfg.AccessLog.KeepRefused = 3
	r.Reload(cfg)
	m.append("access.log", answer(2))
	r.look()
	r.until(answers, 2)
}

// TestStorageThatCannotBeWritten: the figures go on, and say so.
func TestStorageThatCannotBeWritten(t *testing.T) {
	m := newMachine(t)
	m.put(m.storage, "a file where the folder should be")
	r := m.run()
	m.append("access.log", answer(1))
	r.until(answers, 1)
	r.until("sidecar_checkpoint_stale", 1)
	if p := r.Status().Problems; len(p) != 1 || !strings.Contains(p[0], "checkpoint") {
		t.Errorf("problems %q", p)
	}
}

// TestSeriesBudget: one target at the defaults stays within 1,500 series,
// however hard a stranger tries.
func TestSeriesBudget(t *testing.T) {
	const budget = 1500
	m := newMachine(t)
	r := m.run()
	var access, app strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&access, "127.0.0.1 - - [30/Nov/2026:12:00:00 +0000] \"M%d /path/%d HTTP/1.1\" %d 17 %d\n", i%300, i, 100+i%500, i)
		fmt.Fprintf(&app, "30-Nov-2026 12:00:00.000 SEVERE [main] com.example.C%d.run Message %d\n\tcom.example.E%dException: x\n", i, i, i)
	}
	m.append("access.log", access.String())
	m.append("catalina.out", app.String()+rejection(1))
	r.until(rejections, 1)
	r.until(`logfile_lag_bytes{file="access.log",target="tomcat-8080"}`, 0)
	n := 0
	for _, line := range strings.Split(r.text(), "\n") {
		if line != "" && line[0] != '#' {
			n++
		}
	}
	t.Logf("%d series", n)
	if n > budget {
		t.Errorf("%d series, the budget is %d", n, budget)
	}
}

// TestOneStreamThatFailsStopsNobody: a pattern that can't be compiled blinds its
// own log and nothing else.
func TestOneStreamThatFailsStopsNobody(t *testing.T) {
	m := newMachine(t)
	xml, err := os.ReadFile(m.base + "/conf/server.xml")
	if err != nil {
		t.Fatal(err)
	}
	m.put(m.base+"/conf/server.xml", strings.Replace(string(xml), "%h %l", "%h %{", 1))
	r := m.run()
	m.append("catalina.out", rejection(1))
	r.until(rejections, 1)
	blind := false
	for series := range values(r.text()) {
		blind = blind || strings.HasPrefix(series, "sidecar_source_blind") && strings.Contains(series, `source="accesslog"`)
	}
	if !blind {
		t.Errorf("nothing says that the access log is not read:\n%s", r.text())
	}
}

// TestALogThatIsNotFollowedIsSaidOnce: not with each scan, for as long as it lasts.
func TestALogThatIsNotFollowedIsSaidOnce(t *testing.T) {
	m := newMachine(t)
	xml, err := os.ReadFile(m.base + "/conf/server.xml")
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(xml), "%h %l", "%h %{", 1)
	m.put(m.base+"/conf/server.xml", bad)
	r := m.run()
	var said strings.Builder
	r.log = slog.New(slog.NewTextHandler(&said, nil))
	for i := range 3 {
		// Anything that is new about the server brings this by once more.
		m.put(m.base+"/conf/server.xml", bad+strings.Repeat("\n", i+1))
		r.scan(r.ctx, time.Now().Add(time.Duration(i+1)*time.Minute))
	}
	if strings.Contains(said.String(), "not followed") {
		t.Errorf("said again:\n%s", said.String())
	}
}

// TestATargetCannotMakeUsReadWhatItMayNot: a log that the server's settings name
// is read only if the server itself may read it.
func TestATargetCannotMakeUsReadWhatItMayNot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can read what the server may not")
	}
	m := newMachine(t)
	// The server runs as nobody, and its access log is a link to root's secret.
	status := fmt.Sprintf("%s/%d/status", m.proc, pid)
	m.put(status, "Name:\tjava\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t\nNSpid:\t4711\n")
	secret := m.base + "/secret"
	m.put(secret, answer(1))
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(m.base + "/logs/access.log")
	r := m.run()
	m.link(m.base+"/logs/access.log", secret)
	m.append("catalina.out", rejection(1))
	r.until(rejections, 1)
	time.Sleep(300 * time.Millisecond)
	r.look()
	if got, _ := r.value(answers); got != 0 {
		t.Errorf("the secret was read: %v requests", got)
	}
	// Once its owner lets the server read it, it is a log like any other.
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	r.until(answers, 1)
	// And what failed before is not said to fail for ever.
	r.until(`sidecar_source_up{source="accesslog",target="tomcat-8080"}`, 1)
}

// A log that is there and can't be read from the start has no figures: a 0 would
// say that no request came.
func TestALogThatCannotBeSeenIsNotZero(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	m := newMachine(t)
	m.asNobody()
	log := m.base + "/logs/access.log"
	if err := os.Chmod(log, 0o600); err != nil {
		t.Fatal(err)
	}
	r := m.run()
	r.untilSome("sidecar_source_blind", `reason="log_not_the_targets"`)
	// And the page says what the word means, and what would mend it.
	if page, err := json.Marshal(r.Status()); err != nil || !strings.Contains(string(page), "do not let the server's own user read it") ||
		!strings.Contains(string(page), "a file that the server itself may read") {
		t.Errorf("the page does not say why: %v", err)
	}
	for series := range values(r.text()) {
		if strings.HasPrefix(series, "accesslog_") || strings.Contains(series, `file="access.log"`) {
			t.Errorf("%s is told of a log that was never seen", series)
		}
	}
	// The other log is none the worse, and this one begins when it can be read.
	r.until(rejections, 0)
	if err := os.Chmod(log, 0o644); err != nil {
		t.Fatal(err)
	}
	m.append("access.log", answer(1))
	r.until(answers, 1)
	// Not to be read any more takes nothing back.
	if err := os.Chmod(log, 0o600); err != nil {
		t.Fatal(err)
	}
	r.look()
	r.until(answers, 1)
}

// TestWhatIdleCountsIsSaved: the root cause of a trace is counted when nothing
// follows it for a while, without a line or a byte being read. A kill right
// after must not take it back.
func TestWhatIdleCountsIsSaved(t *testing.T) {
	const root = `applog_exceptions_total{class="java.io.IOException",role="root",target="tomcat-8080"}`
	m := newMachine(t)
	r := m.run()
	r.until(answers, 0)
	m.append("catalina.out", "30-Nov-2026 12:00:00.000 SEVERE [main] com.example.A.run Failed\n\tjava.lang.IllegalStateException: x\n\t\tat com.example.A.run(A.java:1)\n\tCaused by: java.io.IOException: y\n\t\tat com.example.A.run(A.java:2)\n")
	r.until(`applog_records_total{level="SEVERE",target="tomcat-8080"}`, 1)
	r.until(root, 1)
	r.die()
	r = m.run()
	if got, _ := r.value(root); got != 1 {
		t.Errorf("the root cause was counted and published, and after a kill there are %v", got)
	}
}

// TestPollersOutliveAScan: a scan that reads a server anew and finds it as it
// was, or with one more log, does not make its pollers anew. They would lose
// their last sample, and with it each share and rate of the next second.
func TestPollersOutliveAScan(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	r.until(answers, 0)
	before := r.servers["tomcat-8080"].watches
	seen := r.servers["tomcat-8080"].target
	m.link(fmt.Sprintf("%s/%d/fd/7", m.proc, pid), m.base+"/logs/extra.log")
	m.put(m.base+"/logs/extra.log", "")
	r.scan(r.ctx, time.Now().Add(40*time.Second)) // a settled server is read anew each half minute
	if r.servers["tomcat-8080"].target == seen {
		t.Fatal("the scan did not read the server anew, so this shows nothing")
	}
	after := r.servers["tomcat-8080"].watches
	if len(before) == 0 || len(after) != len(before) || before[0] != after[0] {
		t.Error("the pollers were made anew")
	}
}

// A server that the settings list and that does not run is a known 0, so that
// TargetDown can fire for it; what can't be seen of it is absent.
func TestListedServerThatDoesNotRun(t *testing.T) {
	const shop, other = `target_up{target="shop"}`, `target_up{target="tomcat-8080"}`
	m := newMachine(t)
	m.cfg.Targets.Servers = []target.Server{{Name: "shop", Kind: target.Tomcat, Match: target.Match{Base: m.base + "-of-nobody"}}}
	r := m.run()
	r.until(shop, 0)
	r.until(other, 1)
	if _, there := r.value(`target_info{target="shop"}`); there || len(r.servers["shop"].watches) > 0 {
		t.Error("something is said of a server that was never seen")
	}
	if st := r.Status(); len(st.Targets) != 2 || st.Targets[0].Target.Name != "shop" || st.Targets[0].Up {
		t.Errorf("the page: %+v", st.Targets)
	}
	// It starts: no restart is counted. Then it is no longer listed.
	m.cfg.Targets.Servers[0].Match.Base = m.base
	r.Reload(m.cfg)
	r.look()
	r.until(shop, 1)
	r.until(`target_restarts_total{target="shop"}`, 0)
	m.end(pid)
	r.look()
	r.until(shop, 0)
}

// A tick comes just after the full second, at which quiet logs are read.
func TestUntilTick(t *testing.T) {
	second := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{
		0: tickPhase, tickPhase - 1: 1, tickPhase: time.Second, 900 * time.Millisecond: 250 * time.Millisecond,
	} {
		if got := untilTick(second.Add(after)); got != want {
			t.Errorf("%v after the second: %v, want %v", after, got, want)
		}
	}
}
