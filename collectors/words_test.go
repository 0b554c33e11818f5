package collectors

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A stub keeps what is pushed to it as JSON.
type stub struct {
	mu     sync.Mutex
	status int
	lines  []string // stream labels that matter, and the line
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
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
		for _, st := range push.Streams {
			for _, v := range st.Values {
				var text string
				json.Unmarshal(v[1], &text)
				s.lines = append(s.lines, st.Stream["target"]+" "+st.Stream["source"]+" "+st.Stream["level"]+" "+st.Stream["event"]+" "+text)
			}
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(s.status)
}

func (s *stub) count(prefix, suffix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, suffix) {
			n++
		}
	}
	return n
}

// shipsTo is a machine whose lines go to a stub that answers with the status; 0
// takes them.
func shipsTo(t *testing.T, status int) (*stub, *machine) {
	t.Helper()
	s := &stub{status: status}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	m := newMachine(t)
	m.cfg.Loki.URL, m.cfg.Loki.Encoding, m.cfg.Loki.BatchWait = srv.URL+"/loki/api/v1/push", "json", 10*time.Millisecond
	// The lines are of one fixed day; how old they are does not matter here.
	m.cfg.Loki.MaxAge = 3650 * 24 * time.Hour
	return s, m
}

// TestChosenLinesGoToLoki: the words of a storm, a failed request and nothing
// else, with figures that add up.
func TestChosenLinesGoToLoki(t *testing.T) {
	s, m := shipsTo(t, 0)
	r := m.run()
	r.until(answers, 0)
	const storm = 500
	for i := range storm {
		m.append("catalina.out", rejection(i))
		m.append("access.log", answer(i))
	}
	m.append("access.log", strings.Replace(answer(1), " 200 ", " 503 ", 1))
	r.until(rejections, storm)
	r.until(`ship_selected_lines_total`, storm+1)
	r.until(`ship_queued_lines{where="memory"}`, 0)
	sum := func() float64 {
		total := 0.0
		for series, v := range values(r.text()) {
			for _, name := range []string{"ship_shipped_", "ship_suppressed_", "ship_dropped_", "ship_queued_lines"} {
				if strings.HasPrefix(series, name) {
					total += v
				}
			}
		}
		return total
	}
	if have := sum(); have != storm+1 {
		t.Errorf("shipped + suppressed + dropped + queued = %v, selected %d", have, storm+1)
	}
	shipped, _ := r.value(`ship_shipped_lines_total`)
	rejected := s.count("tomcat-8080 applog WARN executor_rejected 30-Nov-2026", "StandardThreadExecutor.java:172)")
	if rejected == 0 || rejected+1 != int(shipped) {
		t.Errorf("%d rejections landed, shipped %v", rejected, shipped)
	}
	if n := s.count("tomcat-8080 accesslog ERROR request_failed 127.0.0.1", ""); n != 1 {
		t.Errorf("%d failed requests landed", n)
	}
}

// TestDeadLokiHurtsNobody: the figures of the server come as without it, the
// sidecar stops within its bound, and the next one sends what was kept.
func TestDeadLokiHurtsNobody(t *testing.T) {
	s, m := shipsTo(t, 503)
	r := m.run()
	r.until(answers, 0)
	for i := range 100 {
		m.append("catalina.out", rejection(i))
	}
	r.until(rejections, 100)
	r.until(`ship_selected_lines_total`, 100)
	r.close()
	s.mu.Lock()
	s.status = 0
	s.mu.Unlock()
	r = m.run()
	r.until(`ship_selected_lines_total`, 100)
	r.until(`ship_queued_lines{where="spool"}`, 0)
	r.until(`ship_queued_lines{where="memory"}`, 0)
	if s.count("tomcat-8080 applog WARN executor_rejected", "") == 0 {
		t.Error("nothing of what was kept landed")
	}
	r.until(rejections, 100)
}

// saving calls something once, when an observer is saved.
type saving struct {
	Observer
	late func()
}

func (s *saving) Save() ([]byte, error) {
	if late := s.late; late != nil {
		s.late = nil
		late()
	}
	return s.Observer.Save()
}

// TestKillAfterALineBetween: a line is read when its log's place is saved and the
// shipper's figures are not, which is a moment of each tick, and kill -9 follows.
// It is neither selected nor sent a second time by the next sidecar.
func TestKillAfterALineBetween(t *testing.T) {
	_, m := shipsTo(t, 503)
	r := m.run()
	r.until(answers, 0)
	// The access log's place is saved, and then that of catalina.out.
	streams := r.sorted()[0].streams
	named := func(name string) int {
		return slices.IndexFunc(streams, func(st *stream) bool { return st.log.Name == name })
	}
	if access := named("access.log"); access < 0 || access > named("catalina.out") {
		t.Fatal("the order of the streams is another one now")
	}
	last := streams[named("catalina.out")]
	failed := strings.Replace(answer(1), " 200 ", " 503 ", 1)
	last.set.Lock()
	last.observer = &saving{last.observer, func() {
		m.append("access.log", failed)
		for deadline := time.Now().Add(10 * time.Second); r.ship.Counts().Selected == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("the line was not read")
				return
			}
		}
	}}
	last.set.Unlock()
	m.append("catalina.out", "30-Nov-2026 12:00:00.000 INFO [main] com.acme.Shop.open nothing to choose\n")
	r.until("ship_selected_lines_total", 1)
	r.die()
	next := m.run()
	next.until(strings.Replace(answers, "2xx", "5xx", 1), 1)
	next.until("ship_selected_lines_total", 1)
}

// TestOpenRecordAcrossEnds: the last record of a log is open until nothing comes
// for a while. The sidecar that is killed then leaves it to the next one, the one
// that is stopped or reads its settings again tells it itself: it is selected once.
func TestOpenRecordAcrossEnds(t *testing.T) {
	for name, end := range map[string]func(m *machine, r *running) *running{
		"kill":   func(m *machine, r *running) *running { r.die(); return m.run() },
		"stop":   func(m *machine, r *running) *running { r.close(); return m.run() },
		"reload": func(m *machine, r *running) *running { r.Reload(m.cfg); r.look(); return r },
	} {
		t.Run(name, func(t *testing.T) {
			s, m := shipsTo(t, 0)
			r := m.run()
			r.until(answers, 0)
			m.append("catalina.out", rejection(1))
			r.until(rejections, 1) // at its first line
			if n, _ := r.value("ship_selected_lines_total"); n != 0 {
				t.Skip("the machine is slow: the record is not open any more")
			}
			r = end(m, r)
			m.append("catalina.out", rejection(2))
			r.until("ship_shipped_lines_total", 2)
			for i := range 2 {
				if n := s.count("tomcat-8080 applog WARN executor_rejected "+strings.TrimSpace(rejection(i+1)), ""); n != 1 {
					t.Errorf("record %d landed %d times, want once and whole", i+1, n)
				}
			}
			if n, _ := r.value("ship_selected_lines_total"); n != 2 {
				t.Errorf("%v were selected, want 2", n)
			}
		})
	}
}

// TestTraceOf: the id of a trace is found where layouts print it.
func TestTraceOf(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for text, want := range map[string]string{
		"2026-11-30 12:00:00,001 WARN [main] [traceId=" + id + ", spanId=00f067aa0ba902b7] a.B - x":  id,
		`{"@timestamp":"2026-11-30T12:00:00Z","level":"WARN","trace.id":"` + id + `","message":"x"}`: id,
		"WARN trace_id: 463ac35c9f6413ad x":                  "463ac35c9f6413ad",
		"WARN [dd.trace_id=6249785623524942554 x] y":         "6249785623524942554",
		"WARN traceparent=00-" + id + "-00f067aa0ba902b7-01": id,
		"WARN no such thing\n\ttraceId=" + id:                "",
		"WARN traceId= spanId=":                              "",
		"WARN traceId=xyz":                                   "",
		"":                                                   "",
	} {
		if have := traceOf([]byte(text)); have != want {
			t.Errorf("%s: %q, want %q", text, have, want)
		}
	}
}
