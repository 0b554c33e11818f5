package engine

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/expfmt"
)

// liveRules have an alert that fires, one that is pending, one that is quiet, a
// rule that fails, and recording rules.
const liveRules = `
groups:
  - name: alerts
    interval: 1s
    rules:
      - {alert: High, expr: jvm_threadpool_threads > 40, keep_firing_for: 1m, labels: {severity: critical}, annotations: {summary: "{{ $labels.pool }} at {{ $value }}"}}
      - {alert: Waits, expr: jvm_threadpool_threads > 40, for: 1h, labels: {severity: warning}}
      - {alert: Quiet, expr: jvm_threadpool_threads > 4000, for: 10s}
  - name: records
    interval: 1s
    limit: 10
    rules:
      - {record: pool:threads:sum, expr: sum by (pool) (jvm_threadpool_threads), labels: {severity: none}}
      - {record: up:count, expr: count(up)}
  - name: wrong
    interval: 1s
    rules:
      - {record: wrong:wrong, expr: up * on (job) group_left () jvm_threadpool_threads}
`

// scraped serves the snapshot that the engine was last given.
type scraped struct {
	sync.Mutex
	snap *metric.Snapshot
}

func (s *scraped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	format := expfmt.Negotiate(r.Header)
	w.Header().Set("Content-Type", string(format))
	enc := expfmt.NewEncoder(w, format)
	for _, f := range s.snap.Families {
		enc.Encode(f)
	}
}

// What is of now and not of samples: rules, alerts, metadata, and the version,
// beside a Prometheus that scrapes the same and has the same rules. promtool asks
// the engine.
func TestRulesOfPrometheus(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real Prometheus")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "live.yml")
	if err := os.WriteFile(file, []byte(liveRules), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, set: metric.ForTarget("tomcat-8080"), now: time.Now()}
	w.set.Gauge(runThreads, "http").Set(50)
	w.set.Gauge(runThreads, "ajp").Set(7)
	w.set.Counter(runRequests, "2xx", "GET").Add(1)
	w.set.Histogram(runDuration, "2xx", "/").Observe(1)
	w.set.Summary(runCollect, "G1").Count++
	source := &scraped{snap: w.snapshot()}
	server := httptest.NewServer(source)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")

	p := startPeer(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 5s}
rule_files: [%s]
scrape_configs:
  - {job_name: sidecar, static_configs: [{targets: ["%s"]}]}
`, file, address))
	cfg := DefaultConfig()
	cfg.Pack, cfg.RuleFiles = "none", []string{file}
	e, err := Open(cfg, Options{Dir: t.TempDir(), Job: "sidecar", Instance: address, Start: w.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	w.e = e
	w.ticks(5)
	// Groups begin at moments of their own: wait for the last.
	if !lab.Until(30*time.Second, func() bool {
		a, err := p.p.Alerts("")
		r, err2 := p.p.Query("up:count and on () pool:threads:sum")
		said, err3 := p.p.Get("/api/v1/rules")
		if err != nil || err2 != nil || err3 != nil {
			return false
		}
		defer said.Body.Close()
		body, _ := io.ReadAll(said.Body)
		return len(a) == 2 && len(r) == 1 && strings.Contains(string(body), `"health":"err"`) && !strings.Contains(string(body), `"health":"unknown"`)
	}) {
		t.Fatal("Prometheus' rules see nothing")
	}

	h := e.Handler()
	for path, queries := range map[string][]string{
		"rules": {
			"", "type=alert", "type=record", "type=nothing", "exclude_alerts=true", "exclude_alerts=x", "rule_name[]=High", "rule_name[]=High&rule_name[]=up:count", "rule_group[]=records",
			"file[]=" + file, "file[]=other.yml", "rule_name[]=none", `match[]={severity="none"}`, "match[]={", "group_limit=1", "group_limit=0", "group_limit=x", "group_next_token=x", "group_limit=1&group_next_token=x",
			"group_limit=2&group_next_token=" + groupToken(file, "records"),
		},
		"alerts":   {""},
		"metadata": {"", "metric=jvm_threadpool_threads", "metric=nothing", "metric=accesslog_requests_total", "metric=jvm_gc_collection_seconds", "limit=x", "limit=0", "limit_per_metric=x", "limit_per_metric=1"},
	} {
		for _, text := range queries {
			q, err := url.ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := p.both(h, path, q, false)
			masked(ours.body)
			masked(theirs.body)
			loose := 0
			if d := same(ours.body, theirs.body, &loose); d != "" || loose > 0 || ours.status != theirs.status {
				t.Errorf("%s?%s\nengine %d, Prometheus %d: %.1500s", path, text, ours.status, theirs.status, d)
			}
		}
	}
	ours, theirs := p.both(h, "status/buildinfo", nil, false)
	for _, key := range []string{"version", "revision", "branch", "buildUser", "buildDate", "goVersion"} {
		a, ok := ours.body["data"].(map[string]any)[key].(string)
		b := theirs.body["data"].(map[string]any)[key].(string)
		if !ok || key == "version" && a != b {
			t.Errorf("%s is %q, Prometheus %q", key, a, b)
		}
	}
	// Nothing that writes is there.
	for _, path := range []string{"write", "admin/tsdb/delete_series", "admin/tsdb/snapshot", "admin/tsdb/clean_tombstones", "otlp/v1/metrics", "rules", "alerts", "metadata"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			r := httptest.NewRecorder()
			h.ServeHTTP(r, httptest.NewRequest(method, "/api/v1/"+path, nil))
			if r.Code != http.StatusNotFound && r.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, r.Code)
			}
		}
	}

	api := httptest.NewServer(h)
	defer api.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instant", api.URL, "jvm_threadpool_threads > 40", "--time=" + stamp(e.Now())}, `jvm_threadpool_threads{instance="` + address + `", job="sidecar", pool="http", target="tomcat-8080"} => 50 @[`},
		{[]string{"range", api.URL, "count(up)", "--start=" + stamp(e.Now().Add(-2*time.Second)), "--end=" + stamp(e.Now()), "--step=1s"}, "{} =>\n1 @["},
		{[]string{"range", api.URL, "nothing", "--start=" + stamp(e.Now().Add(-2*time.Second)), "--end=" + stamp(e.Now()), "--step=1s"}, ""},
		{[]string{"series", api.URL, "--match=up"}, `{__name__="up", instance="` + address + `", job="sidecar"}`},
		{[]string{"labels", api.URL, "pool"}, "ajp\nhttp\n"},
	} {
		said, err := lab.PinnedPromtool(dir, append([]string{"query"}, c.args...)...)
		if err != nil || !strings.Contains(said, c.want) {
			t.Errorf("promtool query %s: %v\n%s\nwant %s", strings.Join(c.args, " "), err, said, c.want)
		}
	}
	if r, err := http.Get(api.URL + "/api/v1/query?query=sum("); err != nil || r.StatusCode != 400 {
		t.Errorf("%v %v", r, err)
	} else if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "bad_data") {
		t.Errorf("%s", body)
	}
}

// masked replaces what differs between two programs at two times: when and how
// long, and which series an error names first. The last evaluation must be there.
func masked(v any) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range []string{"evaluationTime", "lastEvaluation", "activeAt"} {
			if _, ok := x[key]; ok {
				x[key] = fmt.Sprintf("%T", x[key])
			}
		}
		if text, ok := x["lastError"].(string); ok {
			x["lastError"], _, _ = strings.Cut(text, " for the match group")
		}
		for _, one := range x {
			masked(one)
		}
	case []any:
		for _, one := range x {
			masked(one)
		}
	}
}
