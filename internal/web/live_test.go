package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// shoot keeps a picture of the page.
func shoot(t *testing.T, b *lab.Browser, name string) {
	t.Helper()
	if err := b.Screenshot(filepath.Join(shots(t), name+".png")); err != nil {
		t.Error(err)
	}
}

// axeFindsNothing holds the page as it is against axe-core.
func axeFindsNothing(t *testing.T, b *lab.Browser, name string) {
	t.Helper()
	axe, err := lab.Axe()
	lab.Need(t, err)
	found, err := b.Violations(axe)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s", name, f)
	}
}

// TestLivePageInABrowser shows the page to a real Chromium: with the engine's
// history, in the dark, on a phone.
func TestLivePageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b, page := openLive(t, closely(1), newHistory(), "")
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
	// An answer that failed and none at all stand in one chart.
	var reds []string
	if err := b.Eval(`import("/static/live/words.js").then((m) => ["5xx", "turned away"].map((n) => m.colour(n, 1)))`, &reds); err != nil || len(reds) != 2 || reds[0] == reds[1] {
		t.Errorf("5xx and turned away have the colours %v: %v", reds, err)
	}
	// What is written into a folder is counted by the one above it, too.
	var grow float64
	if err := b.Eval(`Promise.all([import("/static/live/head.js"), import("/static/live/series.js")]).then(([head, series]) => {
		const charts = ["answers", "latency", "pool", "cpu", "logs"].map((id) => ({ spec: { id }, grid: new series.Grid(60, 1000) }));
		const logs = charts.at(-1).grid;
		logs.set("/gone", 950, 500);
		for (const [dir, v] of [["/opt/tomcat", 7], ["/opt/tomcat/logs", 5], ["/opt/tomcat2", 20], ["/gone/logs", 100]]) logs.set(dir, 1000, v);
		return head.figuresOf(charts, null).logs;
	})`, &grow); err != nil || grow != 127 {
		t.Errorf("the logs grow by %v, want 127: %v", grow, err)
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
	if !b.Until(time.Second, `document.body.textContent.includes("<script>alert(2)</script>")`) {
		t.Error("the refused line is not shown as text")
	}
	if got := b.Words(`document.querySelector(".headline").textContent`); got != "tomcat-8080 turns requests away: 48 a second (and 1 more)" {
		t.Errorf("the headline: %q", got)
	}
	if got := b.Words(`document.querySelector(".next").textContent`); got != "Look at the pool's threads." {
		t.Errorf("what is next: %q", got)
	}
	// The heat map has cells of more than one shade.
	var shades int
	if err := b.Eval(`(() => {
		const canvas = document.querySelector("#chart-spread canvas");
		const px = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		const seen = new Map();
		for (let i = 0; i < px.length; i += 4) if (px[i + 2] - px[i] > 20 && px[i + 3] === 255) seen.set(px[i], (seen.get(px[i]) ?? 0) + 1);
		return [...seen.values()].filter((n) => n > 30).length;
	})()`, &shades); err != nil || shades < 5 {
		t.Errorf("the heat map has %d shades: %v", shades, err)
	}
	look := func(name string) {
		t.Helper()
		shoot(t, b, name)
		axeFindsNothing(t, b, name)
	}
	look("live-light")
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
	if !b.Until(5*time.Second, `[...document.querySelectorAll(".chart:has(.dot)")].every((e) => !e.chart.visible || e.chart.plot.series.slice(1).every((s) => !["#2563c9", "#c8102e", "#0f7a5a"].includes(s.stroke())))`) {
		t.Error("a chart keeps the colours of the light")
	}
	look("live-dark")
	if err := b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true}, nil); err != nil {
		t.Fatal(err)
	}
	if !b.Until(5*time.Second, `document.documentElement.scrollWidth <= 360`) {
		t.Error("on a phone the page is wider than the screen")
	}
	// Short words stay whole there, and a long name goes on behind its dots.
	var torn []string
	if err := b.Eval(`[...document.querySelectorAll("#live-alerts td:first-child, #live-alerts th, .scroll:not(.lines) th")].filter((e) => {
		const r = document.createRange();
		r.selectNodeContents(e);
		return !e.textContent.trim().includes(" ") && r.getClientRects().length > 1;
	}).map((e) => e.textContent)`, &torn); err != nil || len(torn) > 0 {
		t.Errorf("words on two lines: %v, %v", torn, err)
	}
	var breaks int
	if err := b.Eval(`document.querySelectorAll("#table-exceptions td wbr").length`, &breaks); err != nil || breaks != 2 {
		t.Errorf("java.lang.Error may be broken in %d places, want 2: %v", breaks, err)
	}
	look("live-phone")
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console says: %v", said)
	}
	if out := b.Outside(page); len(out) > 0 || len(b.Requests()) < 10 {
		t.Errorf("requests to elsewhere: %v (of %d)", out, len(b.Requests()))
	}
	// axe-core finds what is wrong, if something is.
	if err := b.Eval(`document.querySelector("main").prepend(Object.assign(new Image(), { src: "/static/icon.svg" })), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	axe, err := lab.Axe()
	lab.Need(t, err)
	if found, err := b.Violations(axe); err != nil || !strings.Contains(strings.Join(found, " "), "image-alt") {
		t.Errorf("axe-core takes a picture without words: %v, %v", found, err)
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
