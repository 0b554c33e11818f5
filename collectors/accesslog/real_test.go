package accesslog_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// odd are requests as scanners, old clients and mistakes send them. Each gets
// exactly one answer or none, and what the client was told must be what the log
// says.
var odd = []string{
	"GET /slow?ms=1 HTTP/1.0\r\n\r\n",
	"GET /slow?ms=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: he said \"hi\" \\back\\ end\r\nConnection: close\r\n\r\n",
	"GET /slow?ms=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\" 500 99 \"-\" \"y\r\nConnection: close\r\n\r\n",
	"GET /slow?ms=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: caf\xe9\r\nConnection: close\r\n\r\n",
	"GET /slow?ms=1 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7, 198.51.100.2\r\nConnection: close\r\n\r\n",
	"GET /slow?op=status&code=503 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET /slow?op=npe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET /nope HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"HEAD /slow?ms=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"FOO-BAR /slow?ms=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"PATCH /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	"GET /caf%C3%A9?x=%E6%97%A5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET /slow?ms=1&q=\"x\" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET /" + strings.Repeat("a", 7000) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET http://example.test/nope?a=b HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n",
	"GET /a/../nope;jsessionid=ABC?x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET / HTTP/9.9\r\nHost: a\r\nConnection: close\r\n\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}

// send writes raw bytes and reads the status of the answer; 0 for none.
func send(t *testing.T, addr, request string) (status int) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return 0
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		return 0
	}
	// The server closes when it is done, and then the line is on its way.
	_, _ = io.Copy(io.Discard, c)
	return status
}

// drive loads a server with ab and odd requests, and holds its log against what
// the clients saw. m reads the log.
// unlogged is a status that this server answers without a line.
func drive(t *testing.T, s *lab.Server, m *accesslog.Matcher, unlogged int) {
	t.Helper()
	const sleep, n = 50, 200
	want := map[int]int{}
	report, err := lab.AB(s.URL(fmt.Sprintf("/slow?ms=%d", sleep)), n, 10, 30*time.Second)
	lab.Need(t, err)
	answers := report.Answers(len("slept 50 ms\n"))
	if answers != n {
		t.Errorf("ab got %d answers of %d", answers, n)
	}
	want[200] += answers
	slow := 0
	for range 3 {
		begin := time.Now()
		if status := send(t, s.Addr, "GET /slow?ms=300 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); status == 200 {
			want[200]++
			slow++
		}
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Fatalf("300 ms took %v", took)
		}
	}
	silent := 0
	for _, request := range odd {
		if status := send(t, s.Addr, request); status != 0 {
			want[status]++
		} else {
			silent++
		}
	}
	t.Logf("clients saw %v, and %d times nothing", want, silent)

	delete(want, unlogged)
	total := 0
	for _, c := range want {
		total += c
	}
	var text string
	lab.Until(15*time.Second, func() bool {
		text = s.AccessLog()
		return strings.Count(text, "\n") >= total
	})
	got := map[int]int{}
	seconds, slowSeconds := 0.0, 0.0
	var rec accesslog.Record
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if why := m.Parse([]byte(line), &rec); why != accesslog.Accepted {
			if why != accesslog.Directive {
				t.Errorf("%v: %.300q", why, line)
			}
			continue
		}
		rec.Split()
		got[rec.Status]++
		switch query := string(rec.Query); {
		case m.HasDuration() && rec.Has&accesslog.HasDuration == 0:
			t.Errorf("no duration: %.300q", line)
		case strings.HasSuffix(query, "ms=50"):
			seconds += rec.Duration
			if rec.Duration < .049 || rec.Duration > 5 {
				t.Errorf("50 ms were read as %v s: %.300q", rec.Duration, line)
			}
		case strings.HasSuffix(query, "ms=300"):
			slowSeconds += rec.Duration
			if rec.Duration < .299 || rec.Duration > 5 {
				t.Errorf("300 ms were read as %v s: %.300q", rec.Duration, line)
			}
		}
	}
	if silent == 0 && !maps.Equal(got, want) {
		t.Errorf("the log says %v, the clients %v", got, want)
	}
	for status, n := range want {
		if got[status] < n {
			t.Errorf("status %d: the log has %d, the clients %d", status, got[status], n)
		}
	}
	// Ten connections at once for as long as ab took: no more request time can
	// there have been, and nearly as much.
	if most := report.Seconds*10 + .1; seconds > most || seconds < n*sleep/1000.*.98 {
		t.Errorf("ab's requests took %.3f s in all, within %.3f to %.3f", seconds, n*sleep/1000., most)
	}
	if slowSeconds < float64(slow)*.299 || math.IsNaN(slowSeconds) {
		t.Errorf("%d requests of 300 ms took %v s", slow, slowSeconds)
	}
}

func TestRealTomcat(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	lab.Exclusive(t)
	const agent = ` "%{User-Agent}i"`
	for _, tt := range []struct{ version, pattern string }{
		{"7.0.109", `%h %l %u %t "%r" %s %b %D %F %I`},
		{"8.5.32", `%h %l %u %t "%r" %s %b %D %F %I %X` + agent + " %D"}, // before headers were escaped
		{"8.5.100", `%h %l %u %t "%r" %s %b %D %F %I %X` + agent},
		{"9.0.98", `%h %l %u %t "%r" %s %b %D %F %I %X` + agent},
		{"10.1.34", `%h %l %u %t "%r" %s %b %D %F %I %X` + agent},
		{"11.0.24", `%{begin:msec}t %{end:msec}t %m %U%q %H %s %B %D %{ms}T` + agent},
	} {
		t.Run(tt.version, func(t *testing.T) {
			s := lab.StartTomcat(t, lab.Tomcat{Version: tt.version, AccessLogPattern: tt.pattern})
			m, err := accesslog.Compile(accesslog.FormatTomcat, tt.pattern, accesslog.Options{ServerKind: "tomcat", ServerVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			unlogged := 0
			if strings.HasPrefix(tt.version, "7.") {
				unlogged = 505 // seen: Tomcat 7 logs nothing of "GET / HTTP/9.9"
			}
			drive(t, s, m, unlogged)
		})
	}
	t.Run("json", func(t *testing.T) {
		const pattern = `%h %t "%r" %s %b %D %F %I %X %{User-Agent}i`
		s := lab.StartTomcat(t, lab.Tomcat{Version: "10.1.34", AccessLogPattern: pattern, ValveClass: "org.apache.catalina.valves.JsonAccessLogValve"})
		m, err := accesslog.Compile(accesslog.FormatJSON, pattern, accesslog.Options{ServerKind: "tomcat", ServerVersion: "10.1.34"})
		if err != nil {
			t.Fatal(err)
		}
		drive(t, s, m, 0)
	})
	t.Run("w3c", func(t *testing.T) {
		const pattern = `date time c-ip cs-method cs-uri-stem cs-uri-query sc-status bytes time-taken cs(User-Agent)`
		s := lab.StartTomcat(t, lab.Tomcat{Version: "9.0.98", AccessLogPattern: pattern, ValveClass: "org.apache.catalina.valves.ExtendedAccessLogValve"})
		m, err := accesslog.Compile(accesslog.FormatW3C, pattern, accesslog.Options{ServerKind: "tomcat", ServerVersion: "9.0.98"})
		if err != nil {
			t.Fatal(err)
		}
		drive(t, s, m, 0)
	})
}

func TestRealJetty(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	lab.Exclusive(t)
	const format = `%{client}a - %u %t "%r" %s %O "%{Referer}i" "%{User-Agent}i" %D %X`
	for _, tt := range []struct{ version, format, pattern string }{
		{"9.4.57.v20241219", accesslog.FormatNCSA, "latency"},
		{"12.0.16", accesslog.FormatJetty, format},
	} {
		t.Run(tt.version, func(t *testing.T) {
			o := lab.Jetty{Version: tt.version, RequestLog: true, Latency: true}
			if tt.format == accesslog.FormatJetty {
				o.Format = tt.pattern
			}
			s := lab.StartJetty(t, o)
			m, err := accesslog.Compile(tt.format, tt.pattern, accesslog.Options{ServerKind: "jetty", ServerVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			drive(t, s, m, 0)
		})
	}
}
