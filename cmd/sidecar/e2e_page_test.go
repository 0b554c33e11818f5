package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// pageShown is the page in a real browser, with what every test asks of it.
type pageShown struct {
	*lab.Browser
	t   *testing.T
	dir string // for screenshots
	axe string
}

func show(t *testing.T) *pageShown {
	t.Helper()
	dir := os.Getenv("SIDECAR_SCREENSHOTS") // CI keeps them
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	axe, err := lab.Axe()
	lab.Need(t, err)
	browser, err := lab.StartBrowser(t.TempDir(), 1280, 1700)
	lab.Need(t, err)
	t.Cleanup(browser.Stop)
	return &pageShown{browser, t, dir, axe}
}

// until fails the test when the page does not come to say it.
func (s *pageShown) until(limit time.Duration, what, js string) {
	s.t.Helper()
	if !s.Until(limit, js) {
		s.t.Errorf("not seen within %v: %s; console: %v", limit, what, s.Console())
	}
}

// look keeps a picture, and holds the page against axe-core.
func (s *pageShown) look(name string) {
	s.t.Helper()
	if err := s.Screenshot(filepath.Join(s.dir, name+".png")); err != nil {
		s.t.Error(err)
	}
	found, err := s.Violations(s.axe)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range found {
		s.t.Errorf("%s: %s", name, f)
	}
}

func (s *pageShown) label(chart string) string {
	return s.Words(`document.querySelector("#chart-` + chart + ` .plot")?.getAttribute("aria-label") ?? ""`)
}

// The live page in a real browser, against a sidecar beside a real Tomcat that
// turns requests away under ab.
func TestEndToEndPage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a browser and the sidecar")
	}
	p := show(t)
	lab.Need(t, lab.Tool("ab"))
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	b := startBeside(t, s, "tomcat")
	origin := "http://" + b.addr
	if err := p.Go(origin + "/#target=" + b.target); err != nil {
		t.Fatal(err)
	}
	p.until(20*time.Second, "9 charts", `document.querySelectorAll("#live-charts canvas").length === 9`)

	stop, over := make(chan struct{}), make(chan error, 1)
	go func() {
		for range 30 {
			select {
			case <-stop:
				over <- nil
				return
			default:
			}
			if _, err := lab.AB(s.URL("/slow?ms=300"), 400, 60, 20*time.Second); err != nil {
				over <- err
				return
			}
		}
		over <- nil
	}()
	p.until(40*time.Second, "the rejections", `/turned away (?!0 )[\d.]+/.test(document.querySelector("#chart-answers .plot").getAttribute("aria-label"))`)
	charts := []string{"answers", "latency", "spread", "pool", "door", "cpu", "heap", "pauses", "logs"}
	for _, c := range charts {
		p.until(20*time.Second, "points of "+c, `document.getElementById("chart-`+c+`").chart.grid.seen > 0 && !document.querySelector("#chart-`+c+` .plot").getAttribute("aria-label").endsWith("no data")`)
	}
	if !strings.Contains(p.label("pool"), "catalina-exec 10") {
		t.Errorf("the full pool does not show: %s", p.label("pool"))
	}
	p.until(20*time.Second, "the headline", `document.querySelector(".headline").textContent.includes("turns requests away")`)
	p.until(20*time.Second, "the alert in words", `document.querySelector("#live-alerts tr.firing.critical")?.textContent.includes("ExecutorRejectionStorm")`)
	// The band: a red stripe at the top of every plot, drawn on the canvas itself.
	p.until(20*time.Second, "the alert's band", `[...document.querySelectorAll(".chart")].every((e) => {
		// A copy is read: to read the canvas itself again and again is worth a warning.
		const u = e.chart.plot, row = new OffscreenCanvas(Math.round(u.bbox.width), 1).getContext("2d", { willReadFrequently: true });
		row.drawImage(u.ctx.canvas, -u.bbox.left, -Math.round(u.bbox.top));
		const px = row.getImageData(0, 0, row.canvas.width, 1).data;
		let n = 0;
		for (let i = 0; i < px.length; i += 4) n += px[i] > 170 && px[i + 1] < 90 && px[i + 2] < 90;
		return n > 3;
	})`)
	p.until(20*time.Second, "the event in its table", `document.getElementById("table-events").textContent.includes("executor_rejected")`)
	p.until(20*time.Second, "the exception in its table", `document.getElementById("table-exceptions").textContent.includes("RejectedExecutionException")`)
	p.until(20*time.Second, "the pattern in its table", `document.getElementById("table-patterns").textContent.includes("Executor rejected socket")`)
	p.until(5*time.Second, "how to turn routes on", `document.getElementById("table-routes").parentElement.textContent.includes("fold: true")`)
	t.Logf("%s | %s | %s", p.label("answers"), p.label("pool"), p.label("spread"))
	p.look("storm")
	p.zooms()
	close(stop)
	if err := <-over; err != nil {
		t.Error(err)
	}
	p.explains(b)
	p.lights()
	// A server that is gone is marked, and no line goes on at 0.
	s.Stop()
	p.until(20*time.Second, "the server's end on the charts", `document.querySelector("#chart-answers .stale").textContent.includes("server down")`)
	p.until(20*time.Second, "the server's end in the headline", `/down|gone|not there/.test(document.querySelector(".headline").textContent)`)
	p.until(5*time.Second, "a gap", `(() => { const c = document.getElementById("chart-answers").chart; return c.plot.data.slice(1).every((row) => row.at(-1) === null); })()`)
	if said := p.Console(); len(said) > 0 {
		t.Errorf("the console says: %v", said)
	}
	if out := p.Outside(origin); len(out) > 0 {
		t.Errorf("requests to elsewhere: %v", out)
	}
}

// zooms drags across a chart and goes back.
func (s *pageShown) zooms() {
	s.t.Helper()
	const wide = `(() => { const x = document.getElementById("chart-heap").chart.plot.scales.x; return x.max - x.min; })()`
	var before, after float64
	if err := s.Eval(wide, &before); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Drag("#chart-answers .u-over", 0.5, 0.9); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Eval(wide, &after); err != nil || after > 0.6*before || after < 4 {
		s.t.Errorf("a drag over 0.4 of %v s shows %v s: %v", before, after, err)
	}
	if err := s.Eval(`document.getElementById("zoom-reset").click(), true`, new(bool)); err != nil {
		s.t.Fatal(err)
	}
}

// explains writes a line that is no request, with markup in it, and looks at the
// source: it is shown as what it is, and so are the good ones.
func (s *pageShown) explains(b *beside) {
	s.t.Helper()
	const evil = "<img src=x onerror=alert(1)><script>alert(2)</script> is no request"
	logs, _ := filepath.Glob(filepath.Join(b.server.LogDir, "localhost_access_log*"))
	if len(logs) != 1 {
		s.t.Fatalf("access logs: %v", logs)
	}
	f, err := os.OpenFile(logs[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintln(f, evil)
	defer f.Close()
	b.until(15*time.Second, "the refused line", func(m lab.Scrape) bool {
		n, _ := m.Sum("accesslog_parse_errors_total", "target", b.target)
		return n == 1
	})
	// Only now: in the second of the load's end others have taken the places.
	fmt.Fprintln(f, `10.0.0.9 - - [30/Nov/2026:16:00:00 +0000] "GET /pay?password=hunter2&x=1 HTTP/1.1" 200 5 77`)
	if err := s.Eval(`document.querySelectorAll("details.source").forEach((d) => (d.open = true)), true`, new(bool)); err != nil {
		s.t.Fatal(err)
	}
	source := func(name string) string {
		return `[...document.querySelectorAll('details.source[data-source="` + name + `"]')].map((d) => d.textContent).join(" ")`
	}
	for _, want := range []string{evil, "refused: ", "code 2xx", "path /slow", "duration ", "Settings in force", "duration_unit", "lag_age", "password=*****"} {
		s.until(15*time.Second, want+" in the access log", source("accesslog")+`.includes(`+fmt.Sprintf("%q", want)+`)`)
	}
	for _, want := range []string{"Executor rejected socket", "event executor_rejected", "logger org.apache", "Settings in force"} {
		s.until(15*time.Second, want+" in the application log", source("applog")+`.includes(`+fmt.Sprintf("%q", want)+`)`)
	}
	if said := s.Words(`document.body.textContent`); strings.Contains(said, "hunter2") {
		s.t.Error("a password out of the log is shown")
	}
	s.until(time.Second, "no element out of a log", `!document.querySelector("main img, main script")`)
	s.look("explain")
	if err := s.Eval(`document.querySelectorAll("details.source").forEach((d) => (d.open = false)), true`, new(bool)); err != nil {
		s.t.Fatal(err)
	}
}

// lights looks at the page in the dark and on a phone.
func (s *pageShown) lights() {
	s.t.Helper()
	if err := s.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil); err != nil {
		s.t.Fatal(err)
	}
	s.until(5*time.Second, "a dark page", `getComputedStyle(document.body).backgroundColor === "rgb(13, 17, 23)"`)
	s.look("storm-dark")
	if err := s.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true}, nil); err != nil {
		s.t.Fatal(err)
	}
	s.until(5*time.Second, "a page as wide as a phone", `document.documentElement.scrollWidth <= 360`)
	s.look("storm-phone")
}
