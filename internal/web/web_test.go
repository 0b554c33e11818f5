package web

import (
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

type fake struct {
	snap *metric.Snapshot
	st   *status.Status
}

func (f fake) Snapshot() *metric.Snapshot { return f.snap }
func (f fake) Status() *status.Status     { return f.st }

var busy = &metric.Family{Name: "test_busy_seconds_total", Help: "Busy time.", Kind: metric.Counter}

func running() fake {
	g := metric.NewGathering()
	for _, name := range []string{"tomcat-8080", "jetty-9090"} {
		s := metric.ForTarget(name)
		s.Counter(busy).Add(1.5)
		g.Add(s)
	}
	return fake{g.Snapshot(time.Unix(1, 0)), &status.Status{Ready: true, Version: "test", Targets: []status.Server{{
		Up: true, Target: &target.Target{Name: "tomcat-8080", Kind: target.Tomcat},
		Sources: []status.Source{{Name: "accesslog", Refused: []status.Refused{{Reason: "shape", Line: "<script>alert(1)</script>"}}}},
	}}}}
}

func get(t *testing.T, m Monitor, o Options, path string, change ...func(*http.Request)) *http.Response {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := httptest.NewRequest("GET", "http://localhost:10404"+path, nil)
	r.RemoteAddr = "127.0.0.1:5000"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	Handler(m, o).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMetricsServesTheSnapshot(t *testing.T) {
	got := body(t, get(t, running(), Options{}, "/metrics"))
	for _, want := range []string{`test_busy_seconds_total{target="tomcat-8080"} 1.5`, `test_busy_seconds_total{target="jetty-9090"} 1.5`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestMetricsOfOneTarget(t *testing.T) {
	got := body(t, get(t, running(), Options{}, "/metrics?target=jetty-9090"))
	if !strings.Contains(got, "jetty-9090") || strings.Contains(got, "tomcat-8080") {
		t.Errorf("not jetty-9090 alone:\n%s", got)
	}
	if r := get(t, running(), Options{}, "/metrics?target=nobody"); r.StatusCode != 404 {
		t.Errorf("unknown target: status %d", r.StatusCode)
	}
}

func TestOpenMetricsSaysTheUnit(t *testing.T) {
	got := body(t, get(t, running(), Options{}, "/metrics", func(r *http.Request) {
		r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	}))
	for _, want := range []string{"# UNIT test_busy_seconds seconds\n", `test_busy_seconds_total{target="tomcat-8080"} 1.5`, "# EOF\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A scrape is packed for whoever is far, and not for a neighbour on this machine.
func TestPackedForTheFar(t *testing.T) {
	for from, want := range map[string]string{"192.0.2.7:5000": "gzip", "[2001:db8::1]:5000": "gzip", "pipe": "gzip",
		"127.0.0.1:5000": "", "127.9.9.9:5000": "", "[::1]:5000": "", "[::ffff:127.0.0.1]:5000": ""} {
		r := get(t, running(), Options{}, "/metrics", func(r *http.Request) {
			r.RemoteAddr = from
			r.Header.Set("Accept-Encoding", "gzip")
		})
		if got := r.Header.Get("Content-Encoding"); got != want {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
		text := io.Reader(r.Body)
		if want != "" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Errorf("from %s: %v", from, err)
				continue
			}
			text = z
		}
		if b, err := io.ReadAll(text); err != nil || !strings.Contains(string(b), "test_busy_seconds_total") {
			t.Errorf("from %s: %q, %v", from, b, err)
		}
	}
}

// A proxy on this machine asks for somebody who may be far.
func TestPackedForAProxy(t *testing.T) {
	r := get(t, running(), Options{}, "/metrics", func(r *http.Request) {
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
	})
	if got := r.Header.Get("Content-Encoding"); got != "gzip" {
		t.Errorf("%q", got)
	}
}

func TestBeforeTheFirstTick(t *testing.T) {
	for path, want := range map[string]int{"/metrics": 503, "/-/ready": 503, "/-/healthy": 200, "/": 200} {
		if r := get(t, fake{}, Options{}, path); r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, want)
		}
	}
	if r := get(t, running(), Options{}, "/-/ready"); r.StatusCode != 200 {
		t.Errorf("ready: status %d", r.StatusCode)
	}
}

func yes() bool { return true }

// TestRawLinesStayOnLoopback: a log holds what strangers typed, passwords
// included, so only the machine itself may read raw lines unasked.
func TestRawLinesStayOnLoopback(t *testing.T) {
	away := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:5000" }
	proxied := func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }
	realIP := func(r *http.Request) { r.Header.Set("X-Real-IP", "192.0.2.7") }
	renamed := func(r *http.Request) { r.Host = "stranger.example:10404" }
	other := func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }
	sameSite := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }
	link := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	}
	for _, path := range []string{"/", "/status.json"} {
		if got := body(t, get(t, running(), Options{}, path)); !strings.Contains(got, "alert(1)") {
			t.Errorf("%s on loopback: no raw line", path)
		}
		for name, change := range map[string]func(*http.Request){
			"from away": away, "by a proxy": proxied, "by a proxy that names one address": realIP, "by a stranger's name": renamed,
			"for another origin": other, "for another port's page": sameSite,
		} {
			if got := body(t, get(t, running(), Options{}, path, change)); strings.Contains(got, "alert(1)") {
				t.Errorf("%s %s: a raw line is shown", path, name)
			}
		}
		if got := body(t, get(t, running(), Options{}, path, link)); !strings.Contains(got, "alert(1)") {
			t.Errorf("%s by a link that the user followed: no raw line", path)
		}
		if got := body(t, get(t, running(), Options{RawLines: yes}, path, away)); !strings.Contains(got, "alert(1)") {
			t.Errorf("%s to a configured user: no raw line", path)
		}
	}
}

func TestLogTextIsEscaped(t *testing.T) {
	r := get(t, running(), Options{}, "/")
	if got := body(t, r); strings.Contains(got, "<script>alert") {
		t.Error("a log line became markup")
	}
	if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
}

func TestReload(t *testing.T) {
	calls := 0
	post := func(r *http.Request) { r.Method = "POST" }
	reload := func() error { calls++; return nil }
	if r := get(t, running(), Options{}, "/-/reload", post); r.StatusCode != 403 {
		t.Errorf("reload that is off: status %d", r.StatusCode)
	}
	if r := get(t, running(), Options{Reload: reload}, "/-/reload"); r.StatusCode != 405 || calls != 0 {
		t.Errorf("GET: status %d, %d calls", r.StatusCode, calls)
	}
	if r := get(t, running(), Options{Reload: reload}, "/-/reload", post); r.StatusCode != 200 || calls != 1 {
		t.Errorf("POST: status %d, %d calls", r.StatusCode, calls)
	}
	for name, change := range map[string]func(*http.Request){
		"another machine":     func(r *http.Request) { r.RemoteAddr = "192.0.2.7:5000" },
		"a proxy":             func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") },
		"a stranger's name":   func(r *http.Request) { r.Host = "stranger.example:10404" },
		"another site's page": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port's page": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin":      func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"no origin at all":    func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another port":        func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") },
		"another scheme":      func(r *http.Request) { r.Header.Set("Origin", "https://localhost:10404") },
		"a proxy's real IP":   func(r *http.Request) { r.Header.Set("X-Real-IP", "192.0.2.7") },
		"a proxy's host":      func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "stranger.example") },
		"a proxy by the RFC":  func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.7") },
		"a proxy that passes": func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
		"an empty address":    func(r *http.Request) { r.Header.Set("X-Forwarded-For", "") },
	} {
		if r := get(t, running(), Options{Reload: reload}, "/-/reload", post, change); r.StatusCode != 403 || calls != 1 {
			t.Errorf("%s: status %d, %d calls", name, r.StatusCode, calls)
		}
	}
	fromAfar := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:5000" }
	if r := get(t, running(), Options{Reload: reload, RawLines: yes}, "/-/reload", post, fromAfar); r.StatusCode != 200 || calls != 2 {
		t.Errorf("a user of the web config: status %d, %d calls", r.StatusCode, calls)
	}
	// A user's browser sends his password along for whichever page asks.
	evil := func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }
	if r := get(t, running(), Options{Reload: reload, RawLines: yes}, "/-/reload", post, evil); r.StatusCode != 403 || calls != 2 {
		t.Errorf("another site's page with a user's password: status %d, %d calls", r.StatusCode, calls)
	}
	ours := func(r *http.Request) {
		r.Header.Set("Origin", "http://localhost:10404")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if r := get(t, running(), Options{Reload: reload}, "/-/reload", post, ours); r.StatusCode != 200 || calls != 3 {
		t.Errorf("our own page: status %d, %d calls", r.StatusCode, calls)
	}
	oursByTLS := func(r *http.Request) {
		r.TLS = &tls.ConnectionState{}
		r.Header.Set("Origin", "https://localhost:10404")
	}
	if r := get(t, running(), Options{Reload: reload}, "/-/reload", post, oursByTLS); r.StatusCode != 200 || calls != 4 {
		t.Errorf("our own page over TLS: status %d, %d calls", r.StatusCode, calls)
	}
	fails := func() error { return errors.New("sidecar.yml: limits.cpu: not a number") }
	if got := body(t, get(t, running(), Options{Reload: fails}, "/-/reload", post)); !strings.Contains(got, "limits.cpu") {
		t.Errorf("a failed reload does not say why: %s", got)
	}
}

func TestOurNames(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost:10404": true, "127.0.0.1:10404": true, "[::1]:10404": true, "::1": true, "192.0.2.7": true, "web7:10404": true, "a.localhost": true, "": true,
		"stranger.example:10404": false, "127.0.0.1.stranger.example": false, "localhost.stranger.example:1": false,
	} {
		if isOurName(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}

// A sidecar that publishes nothing any more must be found out by a liveness probe.
func TestHealthy(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		want int
	}{
		"just published":   {time.Now(), 200},
		"nothing yet":      {time.Time{}, 200},
		"slow":             {time.Now().Add(-stalledAfter / 2), 200},
		"hung for a while": {time.Now().Add(-2 * stalledAfter), 503},
	} {
		if r := get(t, fake{st: &status.Status{At: c.at}}, Options{}, "/-/healthy"); r.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", name, r.StatusCode, c.want)
		}
	}
}
