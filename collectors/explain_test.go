package collectors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// TestExplained: each kind of log shows its lines with what was made of them,
// nothing that looks like a secret is among them, and who may not see lines gets
// the settings alone.
func TestExplained(t *testing.T) {
	cfg := Defaults()
	cfg.Loki.Masks = []ship.Mask{{Match: `card=(\d+)`}}
	matcher, err := accesslog.Compile(accesslog.FormatTomcat, `%h "%r" %s`, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	access := &stream{room: "accesslog", set: metric.ForTarget("t")}
	o := accesslog.New(access.set, matcher, cfg.AccessLog)
	access.observer, access.explain = o, func(out *status.Explained) { explainAccess(o, out) }
	app := &stream{room: "applog", set: metric.ForTarget("t")}
	a := applog.New(app.set, cfg.AppLog)
	app.observer, app.explain = a, func(out *status.Explained) { explainApp(a, out) }
	gc := &stream{room: "gclog", set: metric.ForTarget("t")}
	g := gclog.New(gc.set, cfg.GCLog)
	gc.observer, gc.explain = g, func(out *status.Explained) { explainGC(g, out) }

	for _, c := range []struct {
		st    *stream
		lines []string
		want  []string
	}{
		{access, []string{`h "GET /pay?password=hunter2&card=4111 HTTP/1.1" 200`, `nothing, token=hunter2`},
			[]string{`path=/pay`, `code=2xx`, `password=*****&card=*****`, `refused mismatch`, `codes: class`, `lag_age`}},
		{app, []string{`30-Nov-2026 12:00:00.000 SEVERE [exec-1] com.example.Login.check password=hunter2 refused`, `a raw line, secret=hunter2`},
			[]string{`level=SEVERE`, `logger=com.example.Login`, `password=*****`, `raw`, `pattern `, `role: `}},
		{gc, []string{`[1.0s][info][gc] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(64M) 5.123ms`, `something else, password=hunter2`},
			[]string{`counted=pause`, `unrecognised`, `max_record_lines`}},
	} {
		c.st.set.Lock()
		if k, ok := c.st.observer.(keeper); ok {
			k.Keep(keptPerSecond)
		}
		for _, l := range c.lines {
			c.st.observer.Observe([]byte(l))
		}
		c.st.set.Unlock()
		x := c.st.explainer(&cfg)(true)
		said := x.Settings
		for _, e := range x.Entries {
			said += fmt.Sprintf("\n%s refused %s", e.Line, e.Refused)
			for _, f := range e.Made {
				said += fmt.Sprintf(" %s=%s", f.Name, f.Value)
			}
		}
		for _, r := range x.Refused {
			said += "\n" + r.Reason + " " + r.Line
		}
		for _, p := range x.Patterns {
			said += "\npattern " + p.Text
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in:\n%s", c.st.room, want, said)
			}
		}
		if strings.Contains(said, "hunter2") || strings.Contains(said, "4111") {
			t.Errorf("%s: a secret is shown:\n%s", c.st.room, said)
		}
		if x := c.st.explainer(&cfg)(false); x.Settings == "" || x.Entries != nil || x.Refused != nil || x.Patterns != nil {
			t.Errorf("%s: to a stranger: %+v", c.st.room, x)
		}
	}
}
