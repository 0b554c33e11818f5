package web

import (
	"strings"
	"testing"
	"time"
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
	axeFindsNothing(t, b, "explain")
	shoot(t, b, "live-explain")
	if said, out := b.Console(), b.Outside(page); len(said)+len(out) > 0 {
		t.Errorf("the console says %v; requests to elsewhere: %v", said, out)
	}
}

// TestLivePageWithoutEngine: no history is no reason to show nothing.
func TestLivePageWithoutEngine(t *testing.T) {
	b, page := openLive(t, closely(1), nil, "")
	if said := b.Words(`document.getElementById("live").textContent`); !strings.Contains(said, "The engine is off") {
		t.Errorf("the page does not say that the engine is off: %.300s", said)
	}
	for _, url := range b.Requests() {
		if strings.Contains(url, "/api/") {
			t.Errorf("the page asks %s, which is not there", url)
		}
	}
	axeFindsNothing(t, b, "off")
	if said, out := b.Console(), b.Outside(page); len(said)+len(out) > 0 {
		t.Errorf("the console says %v; requests to elsewhere: %v", said, out)
	}
}
