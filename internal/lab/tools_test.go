package lab

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestParseAB(t *testing.T) {
	got := parseAB(`
Time taken for tests:   10.027 seconds
Complete requests:      3000
Failed requests:        5612
   (Connect: 1, Receive: 2, Length: 2806, Exceptions: 2803)
Non-2xx responses:      17
Total transferred:      29294 bytes
HTML transferred:       2522 bytes
Requests per second:    299.18 [#/sec] (mean)
`)
	if n := got.Answers(len("slept 200 ms\n")); n != 194 {
		t.Errorf("%d answers, want 194", n)
	}
	got.Text = ""
	want := ABReport{Complete: 3000, Connect: 1, Receive: 2, Length: 2806, Exceptions: 2803, Non2xx: 17, Bytes: 29294, Body: 2522, Seconds: 10.027}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseWrk(t *testing.T) {
	got := parseWrk(`
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   206.91ms    3.25ms 221.04ms   83.33%
  600 requests in 10.02s, 81.45KB read
  Socket errors: connect 0, read 112743, write 12, timeout 3
  Non-2xx or 3xx responses: 4
Requests/sec:     59.88
`)
	got.Text = ""
	want := WrkReport{Requests: 600, Read: 112743, Write: 12, Timeout: 3, Non2xx: 4, PerSecond: 59.88}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if quiet := parseWrk("  10 requests in 1.00s, 1KB read\nRequests/sec:  10.0\n"); quiet.Requests != 10 || quiet.Read != 0 {
		t.Errorf("no errors: %+v", quiet)
	}
}

func TestParseScrape(t *testing.T) {
	s, err := parseScrape(strings.NewReader(`# HELP a_total things
# TYPE a_total counter
a_total{target="tomcat-8080",code="2xx",route="/a\"b\\c,}"} 3
a_total{target="tomcat-8080",code="5xx",route=""} 4 1700000000000
b 1.5e+09
`))
	if err != nil {
		t.Fatal(err)
	}
	if sum, ok := s.Sum("a_total", "target", "tomcat-8080"); sum != 7 || !ok {
		t.Errorf("sum %v %v", sum, ok)
	}
	if sum, ok := s.Sum("a_total", "route", `/a"b\c,}`); sum != 3 || !ok {
		t.Errorf("by route %v %v", sum, ok)
	}
	if sum, ok := s.Sum("b"); sum != 1.5e9 || !ok {
		t.Errorf("b %v %v", sum, ok)
	}
	if _, ok := s.Sum("a_total", "code", "3xx"); ok {
		t.Error("an absent series was found")
	}
	if _, err := parseScrape(strings.NewReader("a{b=\"c} 1\n")); err == nil {
		t.Error("an open label passed")
	}
}

func TestDependencies(t *testing.T) {
	got := dependencies("adduser, libapr1 (>= 1.4.8-2~), libjs-jquery, libluajit-5.1-2 (>= 2.0.4) | libluajit2-5.1-2 (>= 2.1~), libc6 (>= 2.34), tomcat10-common (= 10.1)")
	want := "[[libapr1] [libluajit-5.1-2 libluajit2-5.1-2] [tomcat10-common]]"
	if s := fmt.Sprint(got); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}

func TestJavaMajor(t *testing.T) {
	for version, want := range map[string]int{"1.8.0_392": 8, "17.0.15": 17, "25": 25, "25.0.3": 25, "": 0} {
		if got := javaMajor(version); got != want {
			t.Errorf("%s: %d, want %d", version, got, want)
		}
	}
}

// Each end of a connection is counted as what it was.
func TestBurstEnds(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/close":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		case "/cut":
			c, b, _ := w.(http.Hijacker).Hijack()
			b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive ")
			b.Flush()
			c.Close()
		case "/hang":
			<-r.Context().Done()
		case "/503":
			w.WriteHeader(503)
		}
	}))
	defer s.Close()
	addr := s.Listener.Addr().String()
	for path, count := range map[string]func(Tally) int{
		"/":      func(t Tally) int { return t.Answers[200] },
		"/503":   func(t Tally) int { return t.Answers[503] },
		"/close": func(t Tally) int { return t.Closed },
		"/cut":   func(t Tally) int { return t.Cut },
		"/hang":  func(t Tally) int { return t.Hung },
	} {
		limit := 10 * time.Second
		if path == "/hang" {
			limit = 300 * time.Millisecond
		}
		if got := Burst(addr, path, 5, limit); count(got) != 5 {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// The load tools and Prometheus are real programs from the machine's packages:
// that they can be had and understood is a test of its own.
func TestTools(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches and runs real programs")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer s.Close()
	t.Run("ab", func(t *testing.T) {
		r, err := AB(s.URL+"/", 50, 5, 10*time.Second)
		Need(t, err)
		if r.Complete != 50 || r.Length != 0 || r.Bytes == 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("wrk", func(t *testing.T) {
		r, err := Wrk(s.URL+"/", 2, time.Second)
		Need(t, err)
		if r.Requests == 0 || r.Read != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("prometheus", func(t *testing.T) {
		p, err := StartPrometheus(t.TempDir(), "global: {scrape_interval: 1s}\n")
		Need(t, err)
		defer p.Stop()
		got, err := p.Query("vector(3)")
		if err != nil || len(got) != 1 || got[0].Value != 3 {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("alertmanager", func(t *testing.T) {
		c, addr, err := StartAlertmanager(t.TempDir(), "route: {receiver: none}\nreceivers: [{name: none}]\n")
		Need(t, err)
		defer c.Stop()
		if addr == "" {
			t.Error("no address")
		}
	})
}
