package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The live page in a real browser, against a sidecar beside a real Tomcat that
// turns requests away.
func TestEndToEndPage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a browser and the sidecar")
	}
	dir := os.Getenv("SIDECAR_SCREENSHOTS") // CI keeps them
	if dir == "" {
		dir = t.TempDir()
	}
	browser, err := lab.StartBrowser(t.TempDir(), 1280, 1700)
	lab.Need(t, err)
	t.Cleanup(browser.Stop)
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	b := startBeside(t, s, "tomcat")
	page := "http://" + b.addr
	if err := browser.Go(page + "/#target=" + b.target); err != nil {
		t.Fatal(err)
	}
	label := func(chart string) string {
		var said string
		if err := browser.Eval(`document.querySelector("#chart-`+chart+` .plot")?.getAttribute("aria-label") ?? ""`, &said); err != nil {
			t.Fatal(err)
		}
		return said
	}
	if !browser.Until(20*time.Second, `document.querySelectorAll("#live-charts canvas").length === 8`) {
		t.Fatalf("not 8 charts; console: %v", browser.Console())
	}

	// Two storms: a rate needs a tick before and one within.
	storm := `/turned away (?!0 )[\d.]+/.test(document.querySelector("#chart-answers .plot").getAttribute("aria-label"))`
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for range 40 {
			select {
			case <-stop:
				return
			default:
				lab.Burst(s.Addr, "/slow?ms=300", 60, 20*time.Second)
			}
		}
	}()
	if !browser.Until(30*time.Second, storm) {
		t.Errorf("the rejections don't show: %s; console: %v", label("answers"), browser.Console())
	}
	t.Logf("%s | %s", label("answers"), label("pool"))
	if !browser.Until(20*time.Second, `["answers", "latency", "pool", "door", "cpu", "heap", "logs"].every((c) => !document.querySelector("#chart-" + c + " .plot").getAttribute("aria-label").endsWith("no data"))`) {
		for _, c := range []string{"answers", "latency", "pool", "door", "cpu", "heap", "logs"} {
			t.Errorf("chart without data? %s", label(c))
		}
	}
	if !strings.Contains(label("pool"), "catalina-exec 10") {
		t.Errorf("the full pool does not show: %s", label("pool"))
	}
	var engine bool
	if err := browser.Eval(`"engine" in document.getElementById("live").dataset`, &engine); err != nil {
		t.Fatal(err)
	}
	if engine && !browser.Until(20*time.Second, `document.getElementById("live-alerts").textContent.includes("ExecutorRejectionStorm (firing)")`) {
		t.Error("the alert's band does not appear")
	}
	close(stop)
	<-over
	if err := browser.Screenshot(filepath.Join(dir, "storm.png")); err != nil {
		t.Error(err)
	}

	// A line that is no request, with markup in it, is shown as what it is.
	logs, _ := filepath.Glob(filepath.Join(s.LogDir, "localhost_access_log*"))
	if len(logs) != 1 {
		t.Fatalf("access logs: %v", logs)
	}
	f, err := os.OpenFile(logs[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("<img src=x onerror=alert(1)> is no request\n")
	f.Close()
	b.until(15*time.Second, "the refused line", func(m lab.Scrape) bool {
		n, _ := m.Sum("accesslog_parse_errors_total", "target", b.target)
		return n == 1
	})
	if err := browser.Go(page + "/"); err != nil {
		t.Fatal(err)
	}
	if !browser.Until(10*time.Second, `document.body.textContent.includes("<img src=x onerror=alert(1)> is no request") && !document.querySelector("main img")`) {
		t.Error("the refused line is not shown as text")
	}
	if said := browser.Console(); len(said) > 0 {
		t.Errorf("the console says: %v", said)
	}
	if out := browser.Outside(page); len(out) > 0 {
		t.Errorf("requests to elsewhere: %v", out)
	}
}
