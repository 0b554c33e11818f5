package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// TestUPlotIsAsItCame: what is vendored is the package's own file, to the byte.
func TestUPlotIsAsItCame(t *testing.T) {
	for file, want := range map[string]string{
		"static/uplot/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"static/uplot/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		text, err := fs.ReadFile(static, file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: sum %s, want %s", file, got, want)
		}
	}
}

// TestPageHasNoInlineScript: the policy would refuse it, and the page would be
// dead without a word.
func TestPageHasNoInlineScript(t *testing.T) {
	page := body(t, get(t, running(), Options{}, "/"))
	for _, part := range strings.Split(page, "<script")[1:] {
		tag, rest, _ := strings.Cut(part, ">")
		text, _, _ := strings.Cut(rest, "</script>")
		if !strings.Contains(tag, `src="/static/`) || strings.TrimSpace(text) != "" {
			t.Errorf("a script that is not a file of ours: <script%s>%s", tag, text)
		}
	}
	if strings.Contains(page, " style=") || strings.Contains(page, " onclick=") {
		t.Error("an inline style or handler")
	}
}

// history answers the query API the way the engine does: each series of the
// page has a wave over all of the span, and an alert fires in the middle of it.
type history struct {
	now    float64
	behind bool // whether the access log is read late just now
	mu      sync.Mutex
	heights map[string]float64
}

// height is another one for each query, so that no line hides another.
func (h *history) height(query string) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heights == nil {
		h.heights = map[string]float64{}
	}
	if _, ok := h.heights[query]; !ok {
		h.heights[query] = 3 * float64(len(h.heights))
	}
	return h.heights[query]
}

func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type series struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values,omitempty"`
		Value  *[2]any           `json:"value,omitempty"`
	}
	var result []series
	q := r.FormValue("query")
	labels := map[string]string{"code": "2xx", "pool": "catalina-exec", "port": "8080", "dir": "/logs", "event": "<img src=x onerror=alert(1)>", "class": "java.lang.Error", "route": "/slow"}
	if strings.HasPrefix(r.URL.Path, "/api/v1/query_range") {
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		for i, expr := range strings.Split(strings.TrimPrefix(q, "label_replace("), " or label_replace(") {
			height := h.height(expr)
			add := func(value func(at float64) float64, more ...string) {
				of := maps.Clone(labels)
				of["line"] = strconv.Itoa(i)
				for m := 0; m+1 < len(more); m += 2 {
					of[more[m]] = more[m+1]
				}
				var values [][2]any
				for at := from; at <= to; at++ {
					if v := value(at); !math.IsNaN(v) {
						values = append(values, [2]any{at, fmt.Sprint(v)})
					}
				}
				if len(values) > 0 {
					result = append(result, series{Metric: of, Values: values})
				}
			}
			wave := func(at float64) float64 { return 1.5 + math.Sin(at/20) + height }
			when := func(lies bool, v float64) float64 {
				if !lies {
					return math.NaN()
				}
				return v
			}
			ago := h.now - 900
			switch {
			case strings.HasPrefix(expr, "ALERTS"):
				add(func(at float64) float64 { return when(at >= h.now-400 && at <= h.now-300, 1) }, "alertname", "ExecutorRejectionStorm", "severity", "critical")
			case strings.HasPrefix(expr, "target_up"):
				add(func(at float64) float64 { return when(at < ago+100 || at > ago+140, 1) })
			case strings.HasPrefix(expr, "sidecar_source_up"):
				add(func(at float64) float64 { return when(at > ago+200 && at < ago+240, 0) }, "source", "accesslog")
			case strings.HasPrefix(expr, "logfile_lag_seconds"):
				add(func(at float64) float64 { return when(h.behind && at > h.now-30, at-h.now+31) }, "file", "access.log")
			case strings.Contains(expr, "sum by (le)") && !strings.HasPrefix(expr, "histogram"):
				for b, le := range []string{"0.005", "0.01", "0.025", "0.05", "0.1", "+Inf"} {
					add(func(at float64) float64 { return float64(b*b) * (1.5 + math.Sin(at/20)) }, "le", le)
				}
			default:
				add(wave)
			}
		}
	} else {
		result = append(result, series{Metric: labels, Value: &[2]any{1, "2"}})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
}

// shots is where the screenshots go: kept when SIDECAR_SCREENSHOTS names a
// folder, as CI does.
func shots(t *testing.T) string {
	if dir := os.Getenv("SIDECAR_SCREENSHOTS"); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	return t.TempDir()
}

// TestLivePageInABrowser shows the page to a real Chromium: with the engine's
// history, in the dark, on a phone.
func TestLivePageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	server := httptest.NewServer(Handler(running(), Options{API: &history{now: float64(time.Now().Unix()), behind: true}, Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	b, err := lab.StartBrowser(t.TempDir(), 1280, 1700)
	lab.Need(t, err)
	t.Cleanup(b.Stop)
	if err := b.Go(server.URL + "/"); err != nil {
		t.Fatal(err)
	}
	if !b.Until(20*time.Second, `document.querySelectorAll("#live-charts canvas").length === 9`) {
		t.Fatalf("not 8 charts; console: %v", b.Console())
	}
	var points []int
	if !b.Until(10*time.Second, `[...document.querySelectorAll(".chart .plot")].every((p) => !p.getAttribute("aria-label").endsWith("no data"))`) {
		t.Errorf("charts without data; console: %v", b.Console())
	}
	// A canvas holds what was drawn: pixels of a line's own colour.
	if err := b.Eval(`[...document.querySelectorAll(".chart:has(.dot)")].map((c) => {
		const canvas = c.querySelector("canvas"), dot = c.querySelector(".dot");
		const want = getComputedStyle(dot).backgroundColor.match(/\d+/g).map(Number);
		const px = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		let n = 0;
		for (let i = 0; i < px.length; i += 4) n += want.every((v, k) => Math.abs(px[i + k] - v) < 30) && px[i + 3] > 100;
		return n;
	})`, &points); err != nil {
		t.Fatal(err)
	}
	for i, n := range points {
		if n < 100 {
			t.Errorf("chart %d has %d points of its line drawn", i, n)
		}
	}
	t.Logf("pixels of the first line of each chart: %v", points)
	var words []string
	if err := b.Eval(`import("/static/live/words.js").then((m) => [[0.996, "percentunit"], [0.0042, "s"], [12.3, "s"], [0, "s"], [1536, "bytes"], [2.5e6, "Bps"], [0.25, "reqps"], [998, "reqps"], [10, "none"], [null, "s"]].map(([v, u]) => m.format(v, u)))`, &words); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(words, ", "), "100 %, 4.2 ms, 12 s, 0 s, 1.5 KiB, 2.5 MB/s, 0.25 /s, 998 /s, 10, –"; got != want {
		t.Errorf("values in words: %s, want %s", got, want)
	}
	var alerts string
	if err := b.Eval(`document.getElementById("live-alerts").textContent`, &alerts); err != nil || !strings.Contains(alerts, "ExecutorRejectionStorm") {
		t.Errorf("alerts: %q, %v", alerts, err)
	}
	// What a stranger wrote into a log is text, in the page's own part and in the tables.
	if !b.Until(10*time.Second, `document.querySelector("#table-events td")?.textContent.includes("<img src=x")`) {
		t.Error("the event's name is not in the table as text")
	}
	var foreign int
	if err := b.Eval(`document.querySelectorAll("main img, main script").length`, &foreign); err != nil || foreign != 0 {
		t.Errorf("%d elements out of a log: %v", foreign, err)
	}
	if !b.Until(time.Second, `document.body.textContent.includes("<script>alert(1)</script>")`) {
		t.Error("the refused line is not shown as text")
	}
	dir := shots(t)
	if err := b.Screenshot(filepath.Join(dir, "live-light.png")); err != nil {
		t.Error(err)
	}
	// Each control is reached by the keyboard and has a name.
	var nameless []string
	if err := b.Eval(`[...document.querySelectorAll("a, button, select, summary")].filter((e) => e.tabIndex < 0 || !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML)`, &nameless); err != nil || len(nameless) > 0 {
		t.Errorf("controls without a name: %v, %v", nameless, err)
	}
	if err := b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil); err != nil {
		t.Fatal(err)
	}
	if !b.Until(5*time.Second, `getComputedStyle(document.body).backgroundColor === "rgb(13, 17, 23)"`) {
		t.Error("the page is not dark in the dark")
	}
	if err := b.Screenshot(filepath.Join(dir, "live-dark.png")); err != nil {
		t.Error(err)
	}
	if err := b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true}, nil); err != nil {
		t.Fatal(err)
	}
	if !b.Until(5*time.Second, `document.documentElement.scrollWidth <= 360`) {
		t.Error("on a phone the page is wider than the screen")
	}
	if err := b.Screenshot(filepath.Join(dir, "live-phone.png")); err != nil {
		t.Error(err)
	}
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console says: %v", said)
	}
	if out := b.Outside(server.URL); len(out) > 0 || len(b.Requests()) < 10 {
		t.Errorf("requests to elsewhere: %v (of %d)", out, len(b.Requests()))
	}
	// What is held against nothing proves nothing: an error and a request outside
	// are seen, and the policy stops the request.
	if err := b.Eval(`fetch("http://127.0.0.2:9/").catch(() => console.error("stopped"))`, nil); err != nil && !strings.Contains(err.Error(), "no value") {
		t.Fatal(err)
	}
	if !lab.Until(5*time.Second, func() bool { return strings.Contains(strings.Join(b.Console(), " "), "stopped") }) {
		t.Error("the console's errors are not seen")
	}
	if said := strings.Join(b.Console(), " "); !strings.Contains(said, "Content Security Policy") {
		t.Errorf("the policy did not stop a request to elsewhere: %s", said)
	}
}
