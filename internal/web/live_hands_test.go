package web

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/status"
)

// view is the time that a chart shows, from and to.
func viewOf(t *testing.T, b interface{ Eval(string, any) error }, chart string) (v [2]float64) {
	t.Helper()
	if err := b.Eval(`(() => { const x = document.getElementById("chart-`+chart+`").chart.plot.scales.x; return [x.min, x.max]; })()`, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLivePageZooms: a drag across one chart zooms all, and keys, buttons and a
// double click do as they say.
func TestLivePageZooms(t *testing.T) {
	b, _ := openLive(t, closely(1), newHistory(), "")
	// Until there are data, the last minute is shown.
	if !b.Until(10*time.Second, `(() => { const c = document.getElementById("chart-answers").chart; return c.grid.seen && c.plot.scales.x.max - c.plot.scales.x.min > 60; })()`) {
		t.Fatalf("no data: %v", b.Console())
	}
	whole := viewOf(t, b, "answers")
	if wide := whole[1] - whole[0]; wide < 890 || wide > 900 {
		t.Errorf("at first %v s are shown, want 15 min", wide)
	}
	if err := b.Drag("#chart-answers .u-over", 0.25, 0.5); err != nil {
		t.Fatal(err)
	}
	zoomed := viewOf(t, b, "answers")
	if wide := zoomed[1] - zoomed[0]; wide < 200 || wide > 250 {
		t.Errorf("a quarter of the chart is %v s wide, was %v", wide, whole)
	}
	for _, other := range []string{"spread", "heap"} {
		if v := viewOf(t, b, other); v != zoomed {
			t.Errorf("%s shows %v, not %v", other, v, zoomed)
		}
	}
	if said := b.Words(`document.getElementById("live-state").textContent`); !strings.Contains(said, "Zoomed to") {
		t.Errorf("the page says: %s", said)
	}
	// It stays while time goes on.
	var end float64
	b.Eval(`document.getElementById("chart-answers").chart.grid.end`, &end)
	if !b.Until(5*time.Second, `document.getElementById("chart-answers").chart.grid.end >= `+strconv.FormatFloat(end+2, 'f', 0, 64)) {
		t.Error("the chart stands still while it is zoomed")
	}
	if v := viewOf(t, b, "answers"); v != zoomed {
		t.Errorf("after two seconds %v is shown, not %v", v, zoomed)
	}
	press := func(key string) {
		t.Helper()
		if err := b.Key(key); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Eval(`document.querySelector("#chart-answers .plot").focus(), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	press("+")
	if v := viewOf(t, b, "answers"); v[1]-v[0] > 0.6*(zoomed[1]-zoomed[0]) {
		t.Errorf("+ shows %v, was %v", v, zoomed)
	}
	press("Escape")
	if v := viewOf(t, b, "answers"); v[1]-v[0] < 890 {
		t.Errorf("Escape shows %v", v)
	}
	// The cursor goes over all charts by arrows, and the legend tells the second.
	press("ArrowLeft")
	press("ArrowLeft")
	if !b.Until(2*time.Second, `["heap", "pool", "spread"].every((c) => document.getElementById("chart-" + c).chart.plot.cursor.idx === document.getElementById("chart-answers").chart.plot.cursor.idx)`) {
		t.Error("the other charts' cursors stand elsewhere")
	}
	// Who does not see it hears it.
	if told := b.Words(`document.getElementById("live-told").textContent`); !regexp.MustCompile(`^\d\d:\d\d:\d\d: 2xx [\d.]+ /s, turned away [\d.]+ /s$`).MatchString(told) {
		t.Errorf("the second under the cursor is told as %q", told)
	}
	gone := `[...document.querySelectorAll(".chart")].every((e) => (e.chart.plot?.cursor.idx ?? null) === null)`
	press("Escape")
	if !b.Until(2*time.Second, gone) {
		t.Error("Escape leaves the cursor where it is")
	}
	press("ArrowLeft")
	if b.Until(0, gone) {
		t.Error("there is no cursor, the next test shows nothing")
	}
	press("+")
	if told := b.Words(`document.getElementById("live-told").textContent`); !regexp.MustCompile(`^[\d:]+ to [\d:]+$`).MatchString(told) {
		t.Errorf("the time that is shown is told as %q", told)
	}
	if err := b.Eval(`document.getElementById("live-pause").focus(), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if !b.Until(2*time.Second, gone) {
		t.Error("the cursor stays when the focus goes")
	}
	if err := b.Eval(`document.getElementById("zoom-reset").click(), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if err := b.Eval(`document.getElementById("zoom-in").click(), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if v := viewOf(t, b, "heap"); v[1]-v[0] > 460 {
		t.Errorf("the button zooms to %v", v)
	}
	if err := b.Eval(`document.querySelector("#chart-pool .u-over").dispatchEvent(new MouseEvent("dblclick", { bubbles: true })), true`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if v := viewOf(t, b, "heap"); v[1]-v[0] < 890 {
		t.Errorf("after a double click %v", v)
	}
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console says: %v", said)
	}
}

// TestLivePageComparesTwo: a question's two charts are beside each other, with the
// same axes, cursor and time.
func TestLivePageComparesTwo(t *testing.T) {
	b, page := openLive(t, closely(2), newHistory(), "#target=tomcat-8080&with=tomcat-8081")
	if !b.Until(10*time.Second, `document.querySelectorAll(".chart").length === 18 && [...document.querySelectorAll(".chart")].every((c) => !c.chart.visible || c.querySelector("canvas"))`) {
		t.Fatalf("not 18 charts: %v", b.Console())
	}
	if !b.Until(10*time.Second, `["answers", "heap"].every((c) => ["", "-2"].every((n) => document.getElementById("chart-" + c + n).chart.grid.seen > 0))`) {
		t.Fatal("a chart has no data")
	}
	var wrong []string
	if err := b.Eval(`[...document.querySelectorAll('.chart:not([id$="-2"])')].flatMap((e) => {
		const a = e.chart, b = document.getElementById(e.id + "-2").chart, out = [];
		const [ra, rb] = [a.root.getBoundingClientRect(), b.root.getBoundingClientRect()];
		if (ra.top !== rb.top || rb.left <= ra.right) out.push(e.id + " is not beside the other");
		if (a.visible && b.visible) {
			if (a.plot.scales.y.max !== b.plot.scales.y.max || a.plot.scales.y.min !== b.plot.scales.y.min) out.push(e.id + ": other values on the axis: " + a.plot.scales.y.max + ", " + b.plot.scales.y.max);
			if (a.plot.scales.x.max !== b.plot.scales.x.max) out.push(e.id + ": another time");
			if (a.own === b.own && e.id !== "chart-spread") out.push(e.id + ": both have the same values, the test shows nothing");
		}
		return out;
	})`, &wrong); err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if err := b.Drag("#chart-answers-2 .u-over", 0.5, 0.75); err != nil {
		t.Fatal(err)
	}
	if a, c := viewOf(t, b, "answers"), viewOf(t, b, "answers-2"); a != c || a[1]-a[0] > 300 {
		t.Errorf("a drag on one of the two: %v and %v", a, c)
	}
	shoot(t, b, "live-two")
	axeFindsNothing(t, b, "two")
	// Another choice takes the first one's place.
	if err := b.Eval(`(() => { const o = document.getElementById("live-other"); o.value = ""; o.dispatchEvent(new Event("change")); return true; })()`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if !b.Until(10*time.Second, `document.querySelectorAll(".chart").length === 9 && document.querySelectorAll(".head").length === 1`) {
		t.Error("the second server's charts stay")
	}
	// An address that somebody else sent works in the page that is open, too.
	if err := b.Eval(`(location.hash = "#target=tomcat-8081&with=tomcat-8080", true)`, new(bool)); err != nil {
		t.Fatal(err)
	}
	if !b.Until(10*time.Second, `[...document.querySelectorAll(".head h3")].map((h) => h.textContent).join() === "tomcat-8081,tomcat-8080"`) {
		t.Error("another address shows no other servers")
	}
	if said, out := b.Console(), b.Outside(page); len(said)+len(out) > 0 {
		t.Errorf("the console says %v; requests to elsewhere: %v", said, out)
	}
}

// TestLivePageMarksWhatStandsStill: what can't be seen is no zero. A log that is
// not read, or late, and a time in which nobody looked are hatched, and no line
// is drawn there.
func TestLivePageMarksWhatStandsStill(t *testing.T) {
	h := newHistory()
	h.behind = true
	b, _ := openLive(t, closely(1), h, "")
	if !b.Until(10*time.Second, `document.querySelector("#chart-answers .stale").textContent.includes("access.log is")`) {
		t.Errorf("nothing about the lag: %q", b.Words(`document.querySelector("#chart-answers .stale").textContent`))
	}
	if said := b.Words(`document.querySelector("#chart-heap .stale").textContent`); said != "" {
		t.Errorf("the heap is of another source, and yet: %s", said)
	}
	var whys map[string][]string
	if err := b.Eval(`Object.fromEntries(["answers", "heap"].map((c) => [c, document.getElementById("chart-" + c).chart.marks.map((m) => m.why)]))`, &whys); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(whys["answers"], "; "); !strings.Contains(got, "nobody looked") || !strings.Contains(got, "accesslog can't be read") || !strings.Contains(got, "behind") {
		t.Errorf("marks of the answers: %s", got)
	}
	if got := strings.Join(whys["heap"], "; "); got != "nobody looked" {
		t.Errorf("marks of the heap: %s", got)
	}
	var drawn int
	if err := b.Eval(`(() => {
		const c = document.getElementById("chart-answers").chart;
		const inside = (t) => c.marks.some((m) => t >= m.from && t < m.to);
		return c.plot.data[0].filter((t, i) => inside(t) && c.plot.data.slice(1).some((row) => row[i] !== null && row[i] !== undefined)).length;
	})()`, &drawn); err != nil || drawn != 0 {
		t.Errorf("%d marked seconds are drawn: %v", drawn, err)
	}
	// A sidecar that does not answer is no zero either.
	h.wrong.Store(true)
	if !b.Until(10*time.Second, `document.getElementById("live-state").textContent.includes("does not answer")`) {
		t.Error("the page does not say that it has no answer")
	}
	var last *float64
	if err := b.Eval(`document.getElementById("chart-heap").chart.grid.last("in use", 1)`, &last); err == nil && last != nil {
		t.Errorf("a second without an answer has the value %v", *last)
	}
}

// waking is a sidecar that reads the backlog of its start when the page is made.
type waking struct {
	fake
	looks atomic.Int32
}

func (w *waking) Status() *status.Status {
	st := *w.st
	st.Ready = w.looks.Add(1) > 2
	st.Started = time.Now().Add(-75 * time.Second)
	if !st.Ready {
		st.Problems = []string{"the disk is full"}
		return &st
	}
	// The server has begun anew, as another process.
	st.Targets = slices.Clone(st.Targets)
	anew := *st.Targets[0].Target
	anew.Process.PID += int(w.looks.Load() / 4)
	st.Targets[0].Target = &anew
	return &st
}

// TestLivePageTellsOfTheSidecar: what the page said of the sidecar when it was made
// is not said for ever.
func TestLivePageTellsOfTheSidecar(t *testing.T) {
	b, _ := openLive(t, &waking{fake: closely(1)}, newHistory(), "")
	if !b.Until(10*time.Second, `/up for 1 min [1-5]\d s\. The backlog of the start is read\./.test(document.querySelector("header").innerText)`) {
		t.Errorf("the header says: %s", b.Words(`document.querySelector("header").innerText`))
	}
	if said := b.Words(`document.querySelector("header").innerText`); strings.Contains(said, "disk is full") || strings.Contains(said, "Reading") {
		t.Errorf("what is over is still said: %s", said)
	}
	if !b.Until(15*time.Second, `!document.getElementById("live-changed").hidden && document.getElementById("live-changed").textContent.includes("began anew")`) {
		t.Error("nothing tells that the server is another process")
	}
}

// TestLivePageInSilence: a sidecar that hangs gives no error for a while. The last
// figures are not left standing as if they were now's, and none becomes 0.
func TestLivePageInSilence(t *testing.T) {
	h := newHistory()
	b, _ := openLive(t, closely(1), h, "")
	headline := `document.querySelector(".headline").textContent`
	if !b.Until(10*time.Second, headline+`.includes("turns requests away")`) {
		t.Fatalf("the headline: %s", b.Words(headline))
	}
	h.hangs.Store(true)
	if !b.Until(9*time.Second, `/has not answered for [4-9] s/.test(document.getElementById("live-state").textContent)`) {
		t.Errorf("the page says: %s", b.Words(`document.getElementById("live-state").textContent`))
	}
	if !b.Until(15*time.Second, headline+`.startsWith("Nothing is known of tomcat-8080 since ")`) {
		t.Errorf("the headline: %s", b.Words(headline))
	}
	if said := b.Words(`document.getElementById("live-said").textContent`); said != "Nothing is known of tomcat-8080." {
		t.Errorf("read aloud: %s", said)
	}
	if !b.Until(2*time.Second, `[...document.querySelectorAll(".tiles dd")].every((e) => e.textContent === "–")`) {
		t.Errorf("figures of nobody knows when: %s", b.Words(`document.querySelector(".tiles").innerText`))
	}
	if !b.Until(5*time.Second, `[...document.querySelectorAll(".chart")].every((e) => !e.chart.visible || e.querySelector(".stale").textContent.startsWith("Standing still"))`) {
		t.Error("a chart is not marked")
	}
	h.hangs.Store(false)
	if !b.Until(20*time.Second, headline+`.includes("turns requests away")`) {
		t.Errorf("with the answers back the headline is: %s", b.Words(headline))
	}
	// The key figures are read off charts that a small screen does not show.
	if err := b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true}, nil); err != nil {
		t.Fatal(err)
	}
	const out = `["pool", "cpu", "logs"].map((c) => document.getElementById("chart-" + c).chart)`
	if !b.Until(5*time.Second, out+`.every((c) => !c.visible)`) {
		t.Fatal("all charts are seen on a phone at once")
	}
	var before float64
	if err := b.Eval(`Math.max(...`+out+`.map((c) => c.grid.seen))`, &before); err != nil {
		t.Fatal(err)
	}
	if !b.Until(10*time.Second, out+`.every((c) => !c.visible && c.grid.seen >= `+strconv.FormatFloat(before+3, 'f', 0, 64)+`)`) {
		t.Error("the figures of charts that are out of sight stand still")
	}
}
