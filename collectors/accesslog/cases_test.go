package accesslog

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func mustCompile(t testing.TB, format, pattern string, opt Options) *Matcher {
	t.Helper()
	m, err := Compile(format, pattern, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// observe runs lines through a fresh observer and returns its snapshot.
func observe(t testing.TB, m *Matcher, cfg Config, text string) (*Observer, *metric.Snapshot) {
	t.Helper()
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	set := metric.ForTarget("t")
	o := New(set, m, cfg)
	for _, line := range lines([]byte(text)) {
		o.Observe(line)
	}
	return o, snapshot(set)
}

func snapshot(set *metric.Set) *metric.Snapshot {
	g := metric.NewGathering()
	g.Add(set)
	return g.Snapshot(time.Unix(0, 0))
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// sums adds the non-zero samples of a counter by one of its labels.
func sums(s *metric.Snapshot, family, by string) map[string]float64 {
	out := map[string]float64{}
	if f := s.Family(family); f != nil {
		for _, m := range f.Metric {
			if v := m.Counter.GetValue(); v != 0 {
				out[label(m, by)] += v
			}
		}
	}
	return out
}

// Case 13's sibling for text: bytes that are not UTF-8 in path and agent must
// cost neither the scrape nor the count.
func TestCaseInvalidUTF8(t *testing.T) {
	var b strings.Builder
	for i, l := range [][2]string{{"/caf\xe9", "ok"}, {"/\xff\xfe", "\xe5\xe5\xe5"}, {"/a\xc0\xaf", "x\xed\xa0\x80y"}} {
		fmt.Fprintf(&b, "192.0.2.7 - - [30/Jun/2024:12:00:0%d +0000] \"GET %s HTTP/1.1\" 200 5 \"-\" \"%s\" 3\n", i, l[0], l[1])
	}
	m := mustCompile(t, FormatTomcat, `%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i" %D`, Options{ServerVersion: "9.0.70"})
	cfg := DefaultConfig()
	cfg.Routes.Fold = true
	_, s := observe(t, m, cfg, b.String())
	if got := sums(s, "accesslog_requests_total", "code"); !maps.Equal(got, map[string]float64{"2xx": 3}) {
		t.Errorf("requests %v", got)
	}
	for _, f := range s.Families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if !utf8.ValidString(l.GetValue()) {
					t.Errorf("%s: label %q is no UTF-8", f.GetName(), l.GetValue())
				}
			}
		}
	}
}

// Case 17: closed counters are there at 0 before the first request, so that the
// first error is a step that rate() sees.
func TestCaseZeroInit(t *testing.T) {
	m := mustCompile(t, FormatTomcat, "common", Options{})
	o, s := observe(t, m, DefaultConfig(), "")
	_ = o
	found := map[string]bool{}
	for _, f := range s.Families {
		for _, x := range f.Metric {
			found[f.GetName()+"/"+label(x, "method")+"/"+label(x, "code")+label(x, "reason")] = true
		}
	}
	for _, want := range []string{"accesslog_requests_total/GET/5xx", "accesslog_requests_total/POST/2xx", "accesslog_requests_total/other/4xx", "accesslog_parse_errors_total//mismatch"} {
		if !found[want] {
			t.Errorf("%s is not there before the first line", want)
		}
	}
	if f := s.Family("accesslog_request_duration_seconds"); f != nil {
		t.Error("a histogram is there before its first value")
	}
}

// Case 18: 100,000 distinct paths with a cap.
func TestCaseCardinality(t *testing.T) {
	var b strings.Builder
	for i := range uint32(100000) {
		fmt.Fprintf(&b, "192.0.2.7 - - [30/Jun/2024:12:00:00 +0000] \"GET /x/%08xq?id=%d HTTP/1.1\" 404 5 1\n", i*2654435761, i)
	}
	for i := range 1000 {
		fmt.Fprintf(&b, "192.0.2.7 - - [30/Jun/2024:12:00:01 +0000] \"GET /shop/item/%d HTTP/1.1\" 200 5 1\n", i)
	}
	m := mustCompile(t, FormatTomcat, "common", Options{})
	m = mustCompile(t, FormatTomcat, m.Pattern()+" %D", Options{ServerVersion: "9.0.1"})
	cfg := DefaultConfig()
	// The q makes words of the hashes, so that folding can't help.
	cfg.Routes = Routes{Fold: true, Patterns: []string{"/shop/item/{id}"}, Max: 500}
	o, s := observe(t, m, cfg, b.String())
	routes := sums(s, "accesslog_requests_total", "route")
	total := 0.0
	for r, n := range routes {
		total += n
		if strings.Contains(r, "?") {
			t.Errorf("a query string became a label: %s", r)
		}
	}
	if len(routes) > 501 || total != 101000 || routes["/shop/item/{id}"] != 1000 || routes["other"] != 99501 {
		t.Errorf("%d routes, total %v, reserved %v, other %v", len(routes), total, routes["/shop/item/{id}"], routes["other"])
	}
	refused := 0.0
	o.set.Refused(func(f *metric.Family, n float64) {
		if f == Requests {
			refused = n
		}
	})
	if refused != 99501 {
		t.Errorf("refused %v", refused)
	}
	// The case's own paths are hashes: folding makes one route of nearly all.
	cfg.Routes = Routes{Fold: true, Max: 500}
	_, s = observe(t, m, cfg, strings.ReplaceAll(b.String(), "q?", "?"))
	if routes = sums(s, "accesslog_requests_total", "route"); routes["/x/{id}"] < 99900 || routes["/shop/item/{id}"] != 1000 {
		t.Errorf("folded: %v, %v", routes["/x/{id}"], routes["/shop/item/{id}"])
	}
}

// Case 19: the unit of %D is the version's, never a guess.
func TestCaseUnits(t *testing.T) {
	log := func(unit int) string {
		return fmt.Sprintf(`192.0.2.7 - - [30/Jun/2024:12:00:00 +0000] "GET /a HTTP/1.1" 200 10 %d
192.0.2.7 - - [30/Jun/2024:12:00:01 +0000] "GET /b HTTP/1.1" 200 10 %d
192.0.2.7 - - [30/Jun/2024:12:00:02 +0000] "GET /c HTTP/1.1" 200 10 %d`, 40*unit, 1200*unit, 3*unit)
	}
	const custom = `%h %l %u %t "%r" %s %b %D`
	for _, tt := range []struct {
		name, format, pattern, log string
		opt                        Options
		unit                       string
	}{
		{"tomcat 6", FormatTomcat, custom, log(1), Options{ServerKind: "tomcat", ServerVersion: "6.0.53"}, "ms"},
		{"tomcat 9", FormatTomcat, custom, log(1), Options{ServerKind: "tomcat", ServerVersion: "9.0.70"}, "ms"},
		{"tomcat 10.0.0-M1", FormatTomcat, custom, log(1), Options{ServerKind: "tomcat", ServerVersion: "10.0.0-M1"}, "ms"},
		{"tomcat 10.1", FormatTomcat, custom, log(1000), Options{ServerKind: "tomcat", ServerVersion: "10.1.60"}, "us"},
		{"tomcat 11", FormatTomcat, custom, log(1000), Options{ServerKind: "tomcat", ServerVersion: "11.0.2"}, "us"},
		{"jetty", FormatJetty, `%{client}a - %u %t "%r" %s %O %D`, log(1000), Options{ServerKind: "jetty", ServerVersion: "9.4.57"}, "us"},
		{"setting", FormatTomcat, custom, log(1), Options{DurationUnit: "ms"}, "ms"},
		{"setting beats version", FormatTomcat, custom, log(1), Options{ServerVersion: "10.1.60", DurationUnit: "ms"}, "ms"},
		{"unknown", FormatTomcat, custom, log(1), Options{}, "unknown"},
		{"{ms}T", FormatTomcat, `%h %l %u %t "%r" %s %b %{ms}T`, log(1), Options{}, "ms"},
		{"{us}T", FormatTomcat, `%h %l %u %t "%r" %s %b %{us}T`, log(1000), Options{}, "us"},
		{"{ns}T", FormatTomcat, `%h %l %u %t "%r" %s %b %{ns}T`, log(1000000), Options{}, "ns"},
		{"fractions", FormatTomcat, `%h %l %u %t "%r" %s %b %T`, strings.NewReplacer(" 40", " 0.040", " 1200", " 1.200", " 3\n", " 0.003\n").Replace(log(1) + "\n"), Options{ServerVersion: "9.0.1"}, "s"},
		{"ncsa latency", FormatNCSA, "latency", log(1), Options{}, "ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mustCompile(t, tt.format, tt.pattern, tt.opt)
			if unit, _ := m.DurationUnit(); unit != tt.unit {
				t.Errorf("unit %s, want %s", unit, tt.unit)
			}
			_, s := observe(t, m, DefaultConfig(), strings.TrimSuffix(tt.log, "\n"))
			if got := sums(s, "accesslog_requests_total", "code"); got["2xx"] != 3 {
				t.Fatalf("requests %v", got)
			}
			available := s.Family("accesslog_duration_available").Metric[0].Gauge.GetValue()
			f := s.Family("accesslog_request_duration_seconds")
			if tt.unit == "unknown" {
				if f != nil || available != 0 {
					t.Error("a duration of unknown unit was exported")
				}
				if m.Advice() == "" {
					t.Error("and nothing says so")
				}
				return
			}
			if f == nil || available != 1 {
				t.Fatal("no duration")
			}
			h := f.Metric[0].Histogram
			if h.GetSampleCount() != 3 || math.Abs(h.GetSampleSum()-1.243) > 1e-9 {
				t.Errorf("count %d sum %v", h.GetSampleCount(), h.GetSampleSum())
			}
			for _, b := range h.Bucket {
				want, ok := map[float64]uint64{0.0025: 0, 0.005: 1, 0.05: 2, 2.5: 3}[b.GetUpperBound()]
				if ok && b.GetCumulativeCount() != want {
					t.Errorf("le %v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
				}
			}
		})
	}
}

// Case 20: quotes inside quoted fields, escaped and not, and a planted status.
func TestCaseQuotes(t *testing.T) {
	const log = `192.0.2.1 - - [30/Jun/2024:12:00:00 +0000] "GET /1 HTTP/1.1" 200 12 "-" "Probe " v2" 7
192.0.2.1 - - [30/Jun/2024:12:00:01 +0000] "GET /2 HTTP/1.1" 200 12 "-" "Probe \" v2" 7
192.0.2.1 - - [30/Jun/2024:12:00:02 +0000] "GET /3 HTTP/1.1" 200 12 "-" "ends with backslash \\" 7
192.0.2.1 - - [30/Jun/2024:12:00:03 +0000] "GET /4 HTTP/1.1" 200 12 "-" "x" 500 99 "-" "y" 7
192.0.2.1 - - [30/Jun/2024:12:00:04 +0000] "GET /q?a="b" HTTP/1.1" 404 12 "-" "ua" 7
192.0.2.1 - - [30/Jun/2024:12:00:05 +0000] "GET /\x86x HTTP/1.1" 200 12 "-" "ua" 7`
	const pattern = `%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i" %D`
	for _, kind := range []string{"", "tomcat"} {
		c := tallyOf(mustCompile(t, FormatTomcat, pattern, Options{ServerKind: kind, ServerVersion: "9"}), []byte(log))
		if c.status[200] != 5 || c.status[404] != 1 || c.status[500] != 0 || len(c.refused) > 0 || c.durations != 6 || math.Abs(c.sum-0.042) > 1e-12 {
			t.Errorf("%+v", c)
		}
	}
	// An old Tomcat takes the rest of the line as the protocol: the request is
	// what ends as requests do.
	planted := `192.0.2.1 - - [30/Jun/2024:12:00:03 +0000] "GET /4" 200 12 "-" "y HTTP/1.1" 505 12 "-" "ua" 7`
	c := tallyOf(mustCompile(t, FormatTomcat, pattern, Options{ServerVersion: "7"}), []byte(planted))
	if c.status[505] != 1 {
		t.Errorf("planted: %+v", c)
	}
}

// Case 21: requests that never were requests.
func TestCaseGarbageRequests(t *testing.T) {
	var b bytes.Buffer
	for i, l := range []string{`"-" 400 -`, `"-" 408 - `, `"GET null HTTP/1.1" 400 812`, `"GET null null" 400 1896`,
		`"\x16\x03\x01\x00\xf7\x01" 400 -`, "\"\x16\x03\x01\x02\"\x01\xfc\" 400 -", `"PROPFIND /x HTTP/1.1" 405 -`, `"QUUX` + strings.Repeat("Y", 300) + ` / HTTP/1.1" 501 -`} {
		fmt.Fprintf(&b, "198.51.100.9 - - [30/Jun/2024:12:00:0%d +0000] %s\n", i, l)
	}
	m := mustCompile(t, FormatTomcat, "common", Options{})
	c := tallyOf(m, b.Bytes())
	if c.requests != 8 || len(c.refused) > 0 || c.bytes != 2708 || !maps.Equal(c.status, map[int]int{400: 5, 408: 1, 405: 1, 501: 1}) {
		t.Errorf("%+v", c)
	}
	cfg := DefaultConfig()
	cfg.Routes.Fold = true
	_, s := observe(t, m, cfg, b.String())
	if got := sums(s, "accesslog_requests_total", "method"); !maps.Equal(got, map[string]float64{"GET": 2, "other": 6}) {
		t.Errorf("methods %v", got)
	}
	if got := sums(s, "accesslog_requests_total", "route"); !maps.Equal(got, map[string]float64{"-": 6, "/x": 1, "/": 1}) {
		t.Errorf("routes %v", got)
	}
}

// Case 32: the hour that happens twice, with and without an offset in the line.
func TestCaseRepeatedHour(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	m := mustCompile(t, FormatTomcat, `%{yyyy-MM-dd HH:mm:ss,SSS}t %s`, Options{Zone: berlin})
	var r Record
	for _, tt := range []struct {
		line string
		want int64
	}{
		{"2024-10-27 02:30:00,000 200", 1729989000},
		{"2024-10-27 02:59:59,000 200", 1729990799},
		{"2024-10-27 02:00:01,000 200", 1729990801},
		{"2024-10-27 02:30:00,000 200", 1729992600},
		{"2024-10-27 03:00:00,000 200", 1729994400},
	} {
		if why := m.Parse([]byte(tt.line), &r); why != Accepted || r.End != tt.want*1000 {
			t.Errorf("%s: %v, %d, want %d", tt.line, why, r.End/1000, tt.want)
		}
	}
	m = mustCompile(t, FormatTomcat, `%{yyyy-MM-dd HH:mm:ss}t %s`, Options{Zone: berlin})
	if m.Parse([]byte("2024-03-31 02:30:00 200"), &r); r.End != 1711848600*1000 {
		t.Errorf("the hour that does not exist: %d", r.End/1000)
	}
	m = mustCompile(t, FormatTomcat, `%t %s`, Options{Zone: time.FixedZone("x", 12345)})
	for line, want := range map[string]int64{"[27/Oct/2024:02:30:00 +0200] 200": 1729989000, "[27/Oct/2024:02:30:00 +0100] 200": 1729992600} {
		if m.Parse([]byte(line), &r); r.End != want*1000 {
			t.Errorf("%s: %d", line, r.End/1000)
		}
	}
}
