package engine

import (
	"io/fs"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/rules"
)

// nested puts an expression n times into a form.
func nested(n int, form, inner string) string {
	for range n {
		inner = strings.ReplaceAll(form, "X", inner)
	}
	return inner
}

// Expressions that would burn a core or the memory are refused before anything
// of them is evaluated, and those just below the bounds are not.
func TestExpressionBounds(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(700)
	w.ticks(3)
	h := w.e.Handler()
	span := func(q string) url.Values {
		return url.Values{"query": {q}, "start": {"1772366000"}, "end": {"1772376000"}, "step": {"1"}}
	}
	one := func(q string) url.Values { return url.Values{"query": {q}} }
	// Of match[], the sum counts.
	many := url.Values{}
	for range 20 {
		many.Add("match[]", `{job="`+strings.Repeat("x", 1000)+`"}`)
	}
	for _, c := range []struct {
		path  string
		query url.Values
		want  string // in the error; "" when it is evaluated
	}{
		{"query", one("up[1y:1ms]"), "[1y:1ms] takes 31536000001 steps"},
		{"query", one("up[1y:1ms] offset 1d @ end()"), "steps"},
		{"query", one("sum(max_over_time(up[31h:1s]))"), "steps"},
		{"query", one("sum(max_over_time(up[7d]))"), ""},
		{"query", one("max_over_time(up[30h:1s])"), ""},
		// Without a step it is that of the engine, 5 s.
		{"query", one("max_over_time(up[150h:])"), ""},
		{"query", one("max_over_time(up[160h:])"), "[6d16h:5s] takes 115201 steps"},
		{"query", one("max_over_time(max_over_time(up[15h:1s])[15h:1s])"), "looks at more than 50000000 steps"},
		{"query", one("max_over_time(max_over_time(up[20h:1s])[20h:1s])"), "steps"},
		{"query", one("max_over_time(max_over_time(up[1h:1s])[1h:1s])"), ""},
		{"query_range", span("max_over_time(up[1h:1s])"), ""},
		{"query_range", span("max_over_time(up[2h:1s])"), "looks at more than"},
		{"query_range", span("up[30h:1s]"), "expression type"},
		{"query_range", url.Values{"query": {"up"}, "start": {"-9e15"}, "end": {"9e15"}, "step": {"9e8"}}, "11,000 points"},

		{"query", one(nested(5, `label_join(X, "a", "", "a", "a")`, "up")), ""},
		{"query", one(nested(9, `label_join(X, "a", "", "a", "a")`, "up")), "label_replace and label_join"},
		{"query", one(nested(9, `label_replace(X, "a", "$1$1", "a", "(.*)")`, "up")), "label_replace and label_join"},
		{"query", one(nested(2, `label_replace(X, "a", ("`+strings.Repeat("$1", 30)+`"), "a", "(.*)")`, "up")), "label_replace and label_join"},
		{"query", one(nested(30, `label_replace(X, "a", "x-$1", "b", "(.*)")`, "up")), ""},

		{"query", one("1" + strings.Repeat("+1", 20_000)), "40001 bytes long"},
		{"query_range", span("1" + strings.Repeat("+1", 20_000)), "40001 bytes long"},
		{"format_query", one("1" + strings.Repeat("+1", 20_000)), "40001 bytes long"},
		{"series", many, "bytes long"},
		{"labels", many, "bytes long"},
		{"label/job/values", many, "bytes long"},
		{"rules", many, "bytes long"},
		{"query", one(nested(8000, "(X)", "1")), "nested"},
		{"query", one("1" + strings.Repeat("+1", 500)), "nested"},
		{"format_query", one("1" + strings.Repeat("+1", 500)), "nested"},
		{"query", one("1" + strings.Repeat("+1", 250)), ""},
		{"query", one(nested(250, "(X)", "1")), ""},

		{"query", one(`{a=~"` + strings.Repeat("b{999}", 100) + `"}`), "regular expressions"},
		{"query", one(`{a=~"` + strings.Repeat(`b\x7b1,9\x399}`, 100) + `"}`), "regular expressions"},
		{"query", one(`{job=~"[0-9]{1,3}.{2}|sidecar"}`), ""},
	} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest("GET", "/api/v1/"+c.path+"?"+c.query.Encode(), nil))
		text := c.query.Encode()
		text = text[:min(120, len(text))]
		switch {
		case c.want == "" && r.Code != 200:
			t.Errorf("%s?%s: %d %.300s", c.path, text, r.Code, r.Body)
		case c.want != "" && (r.Code != 400 || !strings.Contains(r.Body.String(), c.want)):
			t.Errorf("%s?%s: %d %.300s\nwant 400 with %q", c.path, text, r.Code, r.Body, c.want)
		}
	}
}

// A rule file has the same bounds, told with file, group and rule when it is read.
func TestRuleBounds(t *testing.T) {
	for expr, want := range map[string]string{
		"max_over_time(up[1y:1ms]) > 0":                            "[1y:1ms] takes 31536000001 steps",
		"1" + strings.Repeat("+1", 20_000) + " > vector(1)":        "40013 bytes long",
		nested(9, `label_join(X, "a", "", "a", "a")`, "up") + ">0": "label_replace and label_join",
		"up == 0": "",
	} {
		file := filepath.Join(t.TempDir(), "mine.yml")
		text := "groups: [{name: mine, rules: [{alert: Mine, expr: '" + expr + "'}]}]"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.Pack, cfg.RuleFiles = "none", []string{file}
		e, err := Open(cfg, Options{Start: begin})
		if err == nil {
			e.Close()
		}
		full := file + `: group "mine", rule "Mine": `
		if want == "" {
			if err != nil && strings.Contains(err.Error(), full) {
				t.Errorf("%.80s: %v", expr, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), full) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %.300v\nwant %s %s", expr, err, full, want)
		}
	}
}

// The rules that come with the binary are within the bounds.
func TestPackBounds(t *testing.T) {
	files, err := fs.Glob(rules.Files, "*/*.yml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(rules.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, errs := ParseRules(data, 5*time.Second); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs)
		}
	}
}
