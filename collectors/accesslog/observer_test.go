package accesslog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func TestMetrics(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Error(err)
	}
}

const sample = `10.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET /orders/1 HTTP/1.1" 200 100 2000 1 http-nio-8080-exec-1 +
10.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET /orders/2 HTTP/1.1" 404 - 1000 - http-nio-8080-exec-2 -
10.0.0.1 - - [30/Nov/2026:12:00:01 +0000] "POST /orders HTTP/1.1" 503 50 900000 899 catalina-exec-17 X
10.0.0.1 - - [30/Nov/2026:12:00:02 +0000] "-" 400 - 0 - null -
10.0.0.1 - - [30/Nov/2026:12:00:03 +0000] "GET /orders/3 HTTP/1.1" 200 7 -12 1 http-nio-8080-exec-1 +
10.0.0.1 - - [30/Nov/2026:12:00:03 +0000] "GET /orders/`

const samplePattern = `%h %l %u %t "%r" %s %b %D %F %I %X`

func sampleMatcher(t testing.TB) *Matcher {
	return mustCompile(t, FormatTomcat, samplePattern, Options{ServerKind: "tomcat", ServerVersion: "10.1.34"})
}

func TestObserver(t *testing.T) {
	o, s := observe(t, sampleMatcher(t), DefaultConfig(), sample)
	for _, tt := range []struct {
		family, by string
		want       map[string]float64
	}{
		{"accesslog_requests_total", "method", map[string]float64{"GET": 3, "POST": 1, "other": 1}},
		{"accesslog_requests_total", "code", map[string]float64{"2xx": 2, "4xx": 2, "5xx": 1}},
		{"accesslog_requests_total", "route", map[string]float64{"": 5}},
		{"accesslog_response_bytes_total", "target", map[string]float64{"t": 157}},
		{"accesslog_parse_errors_total", "reason", map[string]float64{"truncated": 1}},
		{"accesslog_connection_status_total", "status", map[string]float64{"keep-alive": 2, "close": 2, "aborted": 1}},
		{"accesslog_pool_requests_total", "pool", map[string]float64{"http-nio-8080-exec": 3, "catalina-exec": 1, "none": 1}},
	} {
		if got := sums(s, tt.family, tt.by); !maps.Equal(got, tt.want) {
			t.Errorf("%s by %s: %v, want %v", tt.family, tt.by, got, tt.want)
		}
	}
	count, sum := uint64(0), 0.0
	for _, m := range s.Family("accesslog_request_duration_seconds").Metric {
		count += m.Histogram.GetSampleCount()
		sum += m.Histogram.GetSampleSum()
	}
	if count != 4 || math.Abs(sum-0.903) > 1e-9 { // the negative one is none
		t.Errorf("durations: %d, %v", count, sum)
	}
	if got := o.Refused(); len(got) != 1 || got[0].Reason != Truncated || !strings.HasSuffix(got[0].Line, "/orders/") {
		t.Errorf("refused: %+v", got)
	}
	recent := o.Recent(4)
	if len(recent) != 4 || recent[0].Requests != 2 || recent[1].Errors != 1 || recent[1].Duration != .9 || recent[3].Requests != 1 {
		t.Errorf("recent: %+v", recent)
	}
	var exemplars []string
	for _, m := range s.Family("accesslog_request_duration_seconds").Metric {
		for _, b := range m.Histogram.Bucket {
			if e := b.Exemplar; e != nil {
				exemplars = append(exemplars, e.Label[0].GetName()+"="+e.Label[0].GetValue())
			}
		}
	}
	if fmt.Sprint(exemplars) != "[thread=http-nio-8080-exec-1 thread=http-nio-8080-exec-2 thread=catalina-exec-17]" {
		t.Errorf("exemplars %v", exemplars)
	}
}

func TestExactCodes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Codes = "exact"
	_, s := observe(t, sampleMatcher(t), cfg, sample)
	if got := sums(s, "accesslog_requests_total", "code"); !maps.Equal(got, map[string]float64{"200": 2, "404": 1, "503": 1, "400": 1}) {
		t.Errorf("%v", got)
	}
}

func TestTraceExemplar(t *testing.T) {
	m := mustCompile(t, FormatTomcat, `%t %s %D "%{traceparent}i" %I`, Options{ServerVersion: "11"})
	_, s := observe(t, m, DefaultConfig(), `[30/Nov/2026:12:00:00 +0000] 200 5000 "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" exec-1`)
	for _, b := range s.Family("accesslog_request_duration_seconds").Metric[0].Histogram.Bucket {
		if e := b.Exemplar; e != nil {
			if e.Label[0].GetName() != "trace_id" || e.Label[0].GetValue() != "4bf92f3577b34da6a3ce929d0e0e4736" || e.Timestamp.Seconds != 1796040000 {
				t.Errorf("%v", e)
			}
			return
		}
	}
	t.Error("no exemplar")
}

// A restart goes on where the checkpoint was: counters, routes, the W3C fields.
func TestSaveLoad(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Routes.Fold = true
	half := strings.Index(sample, "\n10.0.0.1 - - [30/Nov/2026:12:00:01") + 1
	o, _ := observe(t, sampleMatcher(t), cfg, strings.TrimSuffix(sample[:half], "\n"))
	data, err := o.Save()
	if err != nil {
		t.Fatal(err)
	}
	set := metric.ForTarget("t")
	p := New(set, sampleMatcher(t), cfg)
	if err := p.Load(data); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines([]byte(sample[half:])) {
		p.Observe(l)
	}
	_, whole := observe(t, sampleMatcher(t), cfg, sample)
	a, _ := json.Marshal(snapshot(set).Families)
	b, _ := json.Marshal(whole.Families)
	if string(a) != string(b) {
		t.Errorf("in two parts:\n%s\nin one:\n%s", a, b)
	}

	m := mustCompile(t, FormatW3C, "", Options{})
	o, _ = observe(t, m, cfg, "#Fields: sc-status cs-method")
	if data, err = o.Save(); err != nil {
		t.Fatal(err)
	}
	set = metric.ForTarget("t")
	p = New(set, mustCompile(t, FormatW3C, "", Options{}), cfg)
	if err := p.Load(data); err != nil {
		t.Fatal(err)
	}
	p.Observe([]byte("503 GET"))
	if got := sums(snapshot(set), "accesslog_requests_total", "code"); got["5xx"] != 1 {
		t.Errorf("the fields are lost: %v", got)
	}
	if p.Load([]byte("{")) == nil {
		t.Error("broken state passed")
	}
}

// Routes restored may not exceed the cap, and the sum stays whole.
func TestRoutesAfterLoad(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Routes = Routes{Fold: true, Max: 3}
	m := func() *Matcher { return mustCompile(t, FormatTomcat, `"%r" %s`, Options{}) }
	o, _ := observe(t, m(), cfg, "\"GET /a HTTP/1.1\" 200\n\"GET /b HTTP/1.1\" 200\n\"GET /c HTTP/1.1\" 200\n\"GET /d HTTP/1.1\" 200")
	data, _ := o.Save()
	set := metric.ForTarget("t")
	p := New(set, m(), cfg)
	if err := p.Load(data); err != nil {
		t.Fatal(err)
	}
	p.Observe([]byte(`"GET /e HTTP/1.1" 200`))
	p.Observe([]byte(`"GET /c HTTP/1.1" 200`))
	if got := sums(snapshot(set), "accesslog_requests_total", "route"); !maps.Equal(got, map[string]float64{"/a": 1, "/b": 1, "/c": 2, "other": 2}) {
		t.Errorf("%v", got)
	}
}

// The budget of names.md: 1,500 series for one target, of which this room may
// take a third at its defaults, whatever the log holds.
func TestSeriesBudget(t *testing.T) {
	var b strings.Builder
	for _, m := range append(methodNames[1:], "PROPFIND") {
		for s := 100; s < 600; s += 37 {
			fmt.Fprintf(&b, "10.0.0.1 - - [30/Nov/2026:12:00:00 +0000] \"%s / HTTP/1.1\" %d 1 %d 1 http-nio-8080-exec-1 X\n", m, s, s*s)
		}
	}
	_, s := observe(t, sampleMatcher(t), DefaultConfig(), strings.TrimSuffix(b.String(), "\n"))
	n := 0
	for _, f := range s.Families {
		for _, m := range f.Metric {
			n++
			if h := m.Histogram; h != nil {
				n += len(h.Bucket) + 2
			}
		}
	}
	if n > 500 {
		t.Errorf("%d series", n)
	}
	t.Logf("%d series", n)
}

// A buffered valve writes in lumps of ten seconds: the lag shows it, the bins
// don't.
func TestLumps(t *testing.T) {
	set := metric.ForTarget("t")
	o := New(set, sampleMatcher(t), DefaultConfig())
	now := time.Unix(1796040000, 0)
	o.SetClock(func() time.Time { return now })
	lag := func() float64 {
		v, _ := set.Gauge(EventLag).Value()
		return v
	}
	for lump := range 12 {
		start := now
		now = now.Add(10 * time.Second)
		for s := range 10 {
			at := start.Add(time.Duration(s) * time.Second).UTC().Format(clfFormat)
			o.Observe(fmt.Appendf(nil, `h - - [%s] "GET / HTTP/1.1" 200 1 1 1 exec-1 +`, at))
		}
		if got := lag(); got != 10 {
			t.Fatalf("lump %d: lag %v", lump, got)
		}
	}
	if !o.Lumpy() {
		t.Error("twelve lumps are no lumps")
	}
	for _, s := range o.Recent(100) {
		if s.Requests != 1 {
			t.Errorf("second %d has %d requests", s.Unix, s.Requests)
		}
	}
	o.Idle(now.Add(time.Minute))
	if got := lag(); got != 0 {
		t.Errorf("a minute later the lag is %v", got)
	}
}

func TestObserveAllocates(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Routes.Fold = true
	for name, m := range map[string]*Matcher{
		"tomcat": sampleMatcher(t),
		"json":   mustCompile(t, FormatJSON, "", Options{ServerVersion: "10.1"}),
		"w3c":    mustCompile(t, FormatW3C, "sc-status cs-method cs-uri time-taken-us x-threadname", Options{}),
		"jetty":  mustCompile(t, FormatJetty, jettyExtended+" %D", Options{}),
	} {
		line := map[string]string{
			"tomcat": `10.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET /a;x=1/orders/1?a=b HTTP/1.1" 200 100 2000 1 http-nio-8080-exec-1 +`,
			"json":   `{"host":"127.0.0.1","time":"[30/Nov/2026:12:09:28 +0000]","request":"GET /a/1 HTTP/1.1","statusCode":"200","size":"43","elapsedTime":"386229","threadName":"exec-2"}`,
			"w3c":    `200 GET /a/1 1200 exec-1`,
			"jetty":  `10.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 100 "-" "x" 2000`,
		}[name]
		o := New(metric.ForTarget("t"), m, cfg)
		o.Observe([]byte(line))
		if n := sums(snapshot(o.set), "accesslog_requests_total", "code")["2xx"]; n != 1 {
			t.Errorf("%s: %v requests", name, n)
		}
		l := []byte(line)
		if n := testing.AllocsPerRun(100, func() { o.Observe(l) }); n != 0 {
			t.Errorf("%s: %v allocations a line", name, n)
		}
		bad := []byte("\x00\x00 no line")
		o.cfg.KeepRefused = 1
		for range 20 {
			o.Observe(bad)
		}
		if n := testing.AllocsPerRun(100, func() { o.Observe(bad) }); n != 0 {
			t.Errorf("%s: %v allocations a refused line", name, n)
		}
	}
}
