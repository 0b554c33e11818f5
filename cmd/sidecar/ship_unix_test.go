//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The whole program beside a Tomcat of which there are only the files: a made-up
// /proc, real logs. What is tested is the way of a line to Loki across storms,
// refusals, a signal and kill -9, by what /metrics says meanwhile.

// A pretended server.
type pretended struct {
	t          *testing.T
	proc, base string
}

const pretendedPID = 4711

func pretend(t *testing.T) *pretended {
	t.Helper()
	dir := t.TempDir()
	p := &pretended{t, filepath.Join(dir, "proc"), filepath.Join(dir, "base")}
	own := fmt.Sprintf("%s/%d", p.proc, pretendedPID)
	for path, text := range map[string]string{
		p.proc + "/stat": "cpu  1 2 3 4 5 6 7 8 9 10\nbtime 1764489600\n",
		p.base + "/conf/server.xml": `<Server><Service name="Catalina"><Connector port="8080"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost">
<Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs" prefix="access" suffix=".log" rotatable="false" pattern="%h %l %u %t &quot;%r&quot; %s %b %D"/>
</Host></Engine></Service></Server>`,
		p.base + "/logs/catalina.out": "",
		p.base + "/logs/access.log":   "",
		own + "/stat":                 fmt.Sprintf("%d (java) S 1 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 54 0 1000 2808832000 44257 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pretendedPID),
		own + "/status":               fmt.Sprintf("Name:\tjava\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%d\t%[2]d\t%[2]d\t%[2]d\nGroups:\t\nNSpid:\t%d\n", os.Getuid(), os.Getgid(), pretendedPID),
		own + "/cmdline":              strings.Join([]string{"java", "-Dcatalina.base=" + p.base, "-Dcatalina.home=" + p.base, "org.apache.catalina.startup.Bootstrap", "start"}, "\x00") + "\x00",
		own + "/environ":              "",
		own + "/maps":                 "7f00-7f01 r-xp 00000000 08:01 123    /usr/lib/jvm/java-17/lib/server/libjvm.so\n",
		own + "/comm":                 "java\n",
	} {
		p.must(os.MkdirAll(filepath.Dir(path), 0o755))
		p.must(os.WriteFile(path, []byte(text), 0o644))
	}
	p.must(os.MkdirAll(own+"/fd", 0o755))
	for name, to := range map[string]string{"cwd": p.base, "exe": "/usr/lib/jvm/java-17/bin/java", "root": "/", "fd/1": p.base + "/logs/catalina.out", "fd/2": p.base + "/logs/catalina.out"} {
		p.must(os.Symlink(to, own+"/"+name))
	}
	return p
}

func (p *pretended) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pretended) log(name string) *os.File {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.base, "logs", name), os.O_APPEND|os.O_WRONLY, 0)
	p.must(err)
	p.t.Cleanup(func() { f.Close() })
	return f
}

// A moodyLoki answers what it is told to, and keeps what it took.
type moodyLoki struct {
	mood  atomic.Int64 // the status; 0 is 204, 1 is no answer at all
	mu    sync.Mutex
	lines []moodyLine
}

type moodyLine struct {
	stream, at, text string
}

func (l *moodyLoki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch mood := int(l.mood.Load()); mood {
	case 0:
	case 1:
		<-r.Context().Done()
		return
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(mood)
		return
	default:
		w.WriteHeader(mood)
		return
	}
	var push struct {
		Streams []struct {
			Stream map[string]string
			Values [][]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &push); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range push.Streams {
		for _, v := range st.Values {
			x := moodyLine{stream: st.Stream["source"] + " " + st.Stream["event"]}
			json.Unmarshal(v[0], &x.at)
			json.Unmarshal(v[1], &x.text)
			l.lines = append(l.lines, x)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (l *moodyLoki) taken() []moodyLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]moodyLine(nil), l.lines...)
}

// A shipping sidecar, of which each scrape is looked at.
type shipping struct {
	t        *testing.T
	settings string
	state    string
	proc     string
	addr     string
	cmd      *exec.Cmd
	over     chan struct{}

	scrapes atomic.Int64 // that had the series and added up
	wrong   atomic.Pointer[string]
	looking sync.WaitGroup
}

func newShipping(t *testing.T, p *pretended, settings string) *shipping {
	t.Helper()
	dir := t.TempDir()
	s := &shipping{t: t, settings: filepath.Join(dir, "sidecar.yml"), state: filepath.Join(dir, "state"), proc: p.proc}
	p.must(os.WriteFile(s.settings, []byte(settings), 0o644))
	// This test program is the sidecar when it is called so.
	self, err := os.Executable()
	p.must(err)
	p.must(os.Symlink(self, filepath.Join(dir, "sidecar")))
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
	})
	return s
}

func (s *shipping) start() {
	s.t.Helper()
	port, err := lab.FreePort()
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = fmt.Sprintf("127.0.0.1:%d", port)
	s.cmd = exec.Command(filepath.Join(filepath.Dir(s.settings), "sidecar"), "run", "--config.file="+s.settings, "--path.procfs="+s.proc,
		"--storage.path="+s.state, "--web.listen-address="+s.addr)
	s.cmd.Stdout, s.cmd.Stderr = s.t.Output(), s.t.Output()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.over = make(chan struct{})
	s.looking.Go(func() {
		for {
			select {
			case <-s.over:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if m, err := lab.ReadMetrics(s.addr); err == nil {
				s.look(m)
			}
		}
	})
}

// look holds what one scrape says of the lines against itself.
func (s *shipping) look(m lab.Scrape) {
	selected, ok := m.Sum("ship_selected_lines_total")
	if !ok {
		return
	}
	for _, name := range m.Names() {
		if strings.HasPrefix(name, "promtail_") { // of loki-client-go's Client
			s.wrong.CompareAndSwap(nil, &name)
		}
	}
	sum := 0.0
	for _, name := range []string{"ship_shipped_lines_total", "ship_suppressed_lines_total", "ship_dropped_lines_total", "ship_queued_lines"} {
		n, _ := m.Sum(name)
		sum += n
	}
	if sum != selected {
		text := fmt.Sprintf("shipped + suppressed + dropped + queued are %v, selected %v", sum, selected)
		s.wrong.CompareAndSwap(nil, &text)
		return
	}
	if selected > 0 {
		s.scrapes.Add(1)
	}
}

func (s *shipping) wait() {
	close(s.over)
	s.looking.Wait()
	s.cmd.Wait()
	s.cmd = nil
}

// kill is kill -9.
func (s *shipping) kill() {
	s.cmd.Process.Kill()
	s.wait()
}

// stop is SIGTERM, which has to end the program within the bound.
func (s *shipping) stop() {
	s.t.Helper()
	began := time.Now()
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.wait()
	if d := time.Since(began); d > 8*time.Second {
		s.t.Errorf("stopping took %v", d)
	}
}

// until waits for a figure of /metrics.
func (s *shipping) until(what string, ok func(m lab.Scrape) bool) lab.Scrape {
	s.t.Helper()
	var m lab.Scrape
	if !lab.Until(30*time.Second, func() bool {
		var err error
		m, err = lab.ReadMetrics(s.addr)
		return err == nil && ok(m)
	}) {
		var have []string
		for _, sample := range m {
			if name := sample.Labels["__name__"]; strings.HasPrefix(name, "ship_") {
				have = append(have, fmt.Sprint(sample.Labels, " ", sample.Value))
			}
		}
		s.t.Fatalf("in 30 s not: %s\n%s", what, strings.Join(have, "\n"))
	}
	return m
}

func (s *shipping) check() {
	s.t.Helper()
	if wrong := s.wrong.Load(); wrong != nil {
		s.t.Error(*wrong)
	}
	s.t.Logf("%d scrapes added up", s.scrapes.Load())
}

func figure(m lab.Scrape, name string, labels ...string) float64 {
	v, _ := m.Sum(name, labels...)
	return v
}

// TestSpoolSurvivesKill9: Loki is down, what waits goes to the spool, the sidecar
// is killed. The next one sends what the spool holds in order and once, with
// the times it had; what was in memory is counted as lost; at no scrape is a
// line in two places or in none.
func TestSpoolSurvivesKill9(t *testing.T) {
	loki := &moodyLoki{}
	loki.mood.Store(http.StatusServiceUnavailable)
	srv := httptest.NewServer(loki)
	defer srv.Close()
	p := pretend(t)
	s := newShipping(t, p, fmt.Sprintf(`
loki:
  url: %s/loki/api/v1/push
  encoding: json
  lines_per_second: 100000
  queue_bytes: 262144
  batch_bytes: 8192
  batch_wait: 10ms
  min_backoff: 50ms
  max_backoff: 200ms
  max_age: 8760h
`, srv.URL))
	s.start()
	s.until("the access log is seen", func(m lab.Scrape) bool { _, ok := m.Sum("accesslog_requests_total"); return ok })
	log := p.log("access.log")
	const lines = 2000
	for i := range lines {
		fmt.Fprintf(log, "192.0.2.7 - - [%s] \"GET /n/%06d HTTP/1.1\" 503 12 5\n", time.Now().Format("02/Jan/2006:15:04:05 -0700"), i)
		if i%20 == 0 { // a piece that is read at once has to fit in half of the memory
			time.Sleep(20 * time.Millisecond)
		}
	}
	// Once a scrape shows all of them, so does the checkpoint.
	m := s.until("all are selected and some in the spool", func(m lab.Scrape) bool {
		return figure(m, "ship_selected_lines_total") == lines && figure(m, "ship_queued_lines", "where", "spool") > 0
	})
	// On a machine that is busy with other things a piece may be read that is more
	// than memory holds, before a disk can take any of it.
	full := figure(m, "ship_dropped_lines_total")
	if n := figure(m, "ship_dropped_lines_total", "reason", "queue_full"); n != full || n > lines/2 {
		t.Errorf("%v are dropped, %v of them because the queue was full, and there is a spool", full, n)
	}
	s.kill()
	loki.mood.Store(0)
	s.start()
	m = s.until("the spool is empty", func(m lab.Scrape) bool {
		return figure(m, "ship_shipped_lines_total") > 0 && figure(m, "ship_queued_lines") == 0
	})
	lost := figure(m, "ship_dropped_lines_total", "reason", "restart")
	if n := figure(m, "ship_selected_lines_total"); n != lines || lost == 0 || lost+full != figure(m, "ship_dropped_lines_total") || lost+full+figure(m, "ship_shipped_lines_total") != lines {
		t.Errorf("selected %v, lost %v of memory, shipped %v", n, lost, figure(m, "ship_shipped_lines_total"))
	}
	if lost > 262144/224 {
		t.Errorf("%v lines were lost, more than the memory holds", lost)
	}
	taken := loki.taken()
	if float64(len(taken)) != lines-lost-full {
		t.Errorf("%d lines were taken, want %v", len(taken), lines-lost-full)
	}
	for i := 1; i < len(taken); i++ {
		if a, b := taken[i-1], taken[i]; requested(b.text) <= requested(a.text) || b.at <= a.at {
			t.Fatalf("%s %s after %s %s", b.at, b.text, a.at, a.text)
		}
	}
	s.stop()
	if left, _ := filepath.Glob(filepath.Join(s.state, "ship", "*")); len(left) > 0 {
		t.Errorf("the spool still has %v", left)
	}
	s.check()
}

// requested is the requested path in a line of an access log.
func requested(line string) string {
	_, rest, _ := strings.Cut(line, "GET ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// TestAccountInAStorm: a storm of several logs, a Loki of all moods, a signal and
// two kills in the middle of it. What /metrics says adds up at every scrape.
func TestAccountInAStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm of some twenty seconds; not with -short")
	}
	loki := &moodyLoki{}
	srv := httptest.NewServer(loki)
	defer srv.Close()
	p := pretend(t)
	s := newShipping(t, p, fmt.Sprintf(`
loki:
  url: %s/loki/api/v1/push
  encoding: json
  lines_per_second: 200
  queue_bytes: 65536
  batch_bytes: 8192
  batch_wait: 10ms
  timeout: 300ms
  min_backoff: 50ms
  max_backoff: 200ms
  max_age: 8760h
  spool_bytes: 200000
`, srv.URL))
	s.start()
	s.until("both logs are seen", func(m lab.Scrape) bool {
		_, access := m.Sum("accesslog_requests_total")
		_, app := m.Sum("applog_lines_total")
		return access && app
	})
	over, storm := make(chan struct{}), sync.WaitGroup{}
	access, app := p.log("access.log"), p.log("catalina.out")
	storm.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
			now := time.Now()
			for j := range 20 {
				fmt.Fprintf(access, "192.0.2.7 - - [%s] \"GET /n/%d HTTP/1.1\" %d 12 5\n", now.Format("02/Jan/2006:15:04:05 -0700"), i, 500+j%4)
				fmt.Fprintf(app, "%s WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [x@%x] for processing\n\tjava.util.concurrent.RejectedExecutionException: full\n", now.Format("02-Jan-2006 15:04:05.000"), i)
			}
		}
	})
	for round := range 8 {
		loki.mood.Store([]int64{0, 503, 400, 429, 1, 401, 503, 0}[round])
		time.Sleep(1500 * time.Millisecond)
		switch round {
		case 1, 6:
			s.kill()
			s.start()
		case 4:
			s.stop()
			s.start()
		}
	}
	close(over)
	storm.Wait()
	m := s.until("nothing waits any more", func(m lab.Scrape) bool {
		return figure(m, "ship_selected_lines_total") > 0 && figure(m, "ship_queued_lines") == 0 && figure(m, "logfile_lag_bytes") == 0
	})
	for _, name := range []string{"ship_shipped_lines_total", "ship_suppressed_lines_total", "ship_summary_lines_total"} {
		if figure(m, name) == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	for _, reason := range []string{"refused", "rejected"} {
		if figure(m, "ship_dropped_lines_total", "reason", reason) == 0 {
			t.Errorf("nothing was %s", reason)
		}
	}
	s.stop()
	s.check()
	if s.scrapes.Load() < 100 {
		t.Errorf("only %d scrapes", s.scrapes.Load())
	}
}

// TestCase24Metrics is the other half of case 24: Loki answers 429, then nothing
// at all, and the figures of the requests are there all the same, an alert
// reaches its webhook, and SIGTERM ends the program in time.
func TestCase24Metrics(t *testing.T) {
	if testing.Short() {
		t.Skip("some ten seconds; not with -short")
	}
	loki := &moodyLoki{}
	loki.mood.Store(http.StatusTooManyRequests)
	srv := httptest.NewServer(loki)
	defer srv.Close()
	p := pretend(t)
	webhook, calls := receive(t)
	notify, err := os.ReadFile(webhook)
	p.must(err)
	s := newShipping(t, p, fmt.Sprintf("loki: {url: %q, lines_per_second: 100000, timeout: 1s}\n%s", srv.URL+"/loki/api/v1/push", notify))
	s.start()
	s.until("the access log is seen", func(m lab.Scrape) bool { _, ok := m.Sum("accesslog_requests_total"); return ok })
	log := p.log("access.log")
	const lines = 20000
	for i := range lines {
		fmt.Fprintf(log, "192.0.2.7 - - [%s] \"GET /n/%06d HTTP/1.1\" 503 12 5\n", time.Now().Format("02/Jan/2006:15:04:05 -0700"), i)
		if i%200 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if i == lines/2 {
			loki.mood.Store(1)
		}
	}
	written := time.Now()
	s.until("all requests are counted", func(m lab.Scrape) bool { return figure(m, "accesslog_requests_total") == lines })
	if d := time.Since(written); d > 5*time.Second {
		t.Errorf("the last request was counted %v after it was written", d)
	}
	p.must(os.RemoveAll(fmt.Sprintf("%s/%d", p.proc, pretendedPID)))
	await(t, calls, 15*time.Second, "TargetDown", "tomcat-8080", "firing")
	s.until("the pushes fail", func(m lab.Scrape) bool {
		return figure(m, "ship_errors_total", "reason", "throttled") > 0 && figure(m, "ship_errors_total", "reason", "timeout") > 0
	})
	s.stop()
	s.check()
}
