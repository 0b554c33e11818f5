package web

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// TestExplainInABrowser: a source that is opened shows its account, its lines with
// what was made of them and its settings, and markup out of a log stays text.
func TestExplainInABrowser(t *testing.T) {
	b, page := openLive(t, closely(1), newHistory(), "")
	if !b.Until(10*time.Second, `document.querySelectorAll("details.source").length === 3`) {
		t.Fatalf("not three sources; console %v", b.Console())
	}
	if err := b.Eval(`document.querySelectorAll("details").forEach((d) => (d.open = true)), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	text := `document.querySelector('details.source[data-source="accesslog"]').textContent`
	if !b.Until(10*time.Second, text+`.includes("Settings in force")`) {
		t.Fatalf("the source says: %s", b.Words(text))
	}
	said := b.Words(text)
	for _, want := range []string{"code 2xx", "path /a", "refused: mismatch", markup, "codes: class", "1000 B behind", "for 3 s"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in: %s", want, said)
		}
	}
	if !strings.Contains(b.Words(`document.querySelector('details.source[data-source="process"]').textContent`), "sockets can't be seen") {
		t.Error("what can't be seen is not said")
	}
	if !b.Until(10*time.Second, `document.getElementById("table-patterns").textContent.includes("<script>")`) {
		t.Error("the pattern is not in its table as text")
	}
	var foreign int
	if err := b.Eval(`document.querySelectorAll("main img, main script").length`, &foreign); err != nil || foreign != 0 {
		t.Errorf("%d elements out of a log: %v", foreign, err)
	}
	// The query is copied, or marked for the hand where the browser does not allow it.
	if err := b.Eval(`document.querySelector("#chart-heap details button").click(), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if !b.Until(5*time.Second, `(() => {
		const said = document.querySelector("#chart-heap details button").textContent;
		return said === "Copied" || said.startsWith("Selected") && getSelection().toString().includes('jvm_memory_max_bytes{target="tomcat-8080",area="heap"}');
	})()`) {
		t.Errorf("the PromQL is not copied: %s", b.Words(`document.querySelector("#chart-heap details button").textContent`))
	}
	axeFindsNothing(t, b, "explain")
	shoot(t, b, "live-explain")
	if said, out := b.Console(), b.Outside(page); len(said)+len(out) > 0 {
		t.Errorf("the console says %v; requests to elsewhere: %v", said, out)
	}
}

// moving is a sidecar without an engine: each look finds 5 requests more.
type moving struct {
	fake
	set *metric.Set
	of  map[string]*metric.Family
	mu  sync.Mutex
}

func newMoving() *moving {
	m := &moving{fake: closely(1), set: metric.ForTarget("tomcat-8080"), of: map[string]*metric.Family{}}
	for _, f := range collectors.Catalogue() {
		m.of[f.Name] = f
	}
	process := &m.st.Targets[0].Sources[2]
	process.Blind = append(process.Blind, target.Blind{Source: "process", Reason: "thread_names_merged", Detail: "the names of the pool are cut"})
	return m
}

func (m *moving) Snapshot() *metric.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set.Gauge(m.of["target_up"]).Set(1)
	m.set.Gauge(m.of["jvm_threadpool_threads"], "catalina-exec").Set(7)
	m.set.Gauge(m.of["jvm_threadpool_max_threads"], "catalina-exec").Set(10)
	m.set.Gauge(m.of["jvm_threadpool_max_threads"], "http-nio-18080-exec").Set(200)
	m.set.Gauge(m.of["jvm_memory_used_bytes"], "heap").Set(1 << 20)
	m.set.Counter(m.of["accesslog_requests_total"], "GET", "2xx", "").Add(5)
	for range 5 {
		m.set.Histogram(m.of["accesslog_request_duration_seconds"], "2xx", "").Observe(0.03)
	}
	g := metric.NewGathering()
	g.Add(m.set)
	return g.Snapshot(time.Now())
}

// TestLivePageWithoutEngine: no history is no reason to show nothing.
func TestLivePageWithoutEngine(t *testing.T) {
	b, page := openLive(t, newMoving(), nil, "")
	if said := b.Words(`document.getElementById("live").textContent`); !strings.Contains(said, "The engine is off") {
		t.Errorf("the page does not say that the engine is off: %.300s", said)
	}
	for _, url := range b.Requests() {
		if strings.Contains(url, "/api/") {
			t.Errorf("the page asks %s, which is not there", url)
		}
	}
	// Current values, and rates between two looks.
	for chart, want := range map[string]string{"pool": "catalina-exec 7", "answers": "2xx ", "latency": "p99 ", "spread": "25 ms to 50 ms", "heap": "in use "} {
		label := `document.querySelector("#chart-` + chart + ` .plot").getAttribute("aria-label")`
		if !b.Until(15*time.Second, label+`.includes("`+want+`")`) {
			t.Errorf("%s says %q, want %q", chart, b.Words(label), want)
		}
	}
	// A pool whose threads can't be counted has a limit alone, and the reason.
	if stale := `document.querySelector("#chart-pool .stale").textContent`; !b.Until(10*time.Second, stale+` === "No data but the limit: the names of the pool are cut"`) {
		t.Errorf("the pool's chart says %q", b.Words(stale))
	}
	if got := b.Words(`document.querySelector(".headline").textContent`); !strings.Contains(got, "is up") {
		t.Errorf("the headline: %q", got)
	}
	axeFindsNothing(t, b, "off")
	if said, out := b.Console(), b.Outside(page); len(said)+len(out) > 0 {
		t.Errorf("the console says %v; requests to elsewhere: %v", said, out)
	}
}
