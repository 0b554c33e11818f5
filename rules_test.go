package sidecar

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/rules"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// inTemplate finds the queries in an alert's text: printf "…" … | query.
var inTemplate = regexp.MustCompile(`printf "((?:[^"\\]|\\.)*)"[^|{}]*\| query`)

// names are the metric names that the catalogue makes, with the labels each has.
func names() map[string][]string {
	out := map[string][]string{"up": nil, "ALERTS": {"alertname", "alertstate"}}
	for _, f := range collectors.Catalogue() {
		l := append([]string{"target", "job", "instance"}, f.Labels...)
		out[f.Name] = l
		switch f.Kind {
		case metric.Histogram:
			out[f.Name+"_bucket"] = append(l, "le")
			fallthrough
		case metric.Summary:
			out[f.Name+"_count"], out[f.Name+"_sum"] = l, l
		}
	}
	return out
}

// unknown lists what an expression names that is not there: a metric, or a
// label that its metric does not have.
func unknown(t *testing.T, text string, known map[string][]string) (out []string) {
	t.Helper()
	expr, err := parser.ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return nil
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, there := known[v.Name]
		if !there {
			out = append(out, v.Name)
			return nil
		}
		for _, m := range v.LabelMatchers {
			if m.Name != labels.MetricName && has != nil && !contains(has, m.Name) {
				out = append(out, v.Name+"{"+m.Name+"}")
			}
		}
		return nil
	})
	return out
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// Every metric and label that a rule or its text names is in the catalogue, or
// is recorded by a rule of the same file: a file can be taken alone.
func TestRulesNameOnlyTheCatalogue(t *testing.T) {
	files, err := fs.Glob(rules.Files, "*/*.yml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d rule files: %v", len(files), err)
	}
	alerts, twice := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		data, err := fs.ReadFile(rules.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(data, false)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", file, errs)
		}
		known := names()
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					known[r.Record] = nil
				}
			}
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				for _, bad := range unknown(t, r.Expr, known) {
					t.Errorf("%s: %s%s names %s, which the catalogue does not have", file, r.Alert, r.Record, bad)
				}
				if r.Alert == "" {
					continue
				}
				alerts[r.Alert] = true
				if key := file + r.Alert + r.Labels["severity"]; twice[key] {
					t.Errorf("%s: %s is there twice", file, r.Alert)
				} else {
					twice[key] = true
				}
				for _, key := range []string{"summary", "description", "next"} {
					if r.Annotations[key] == "" {
						t.Errorf("%s: %s has no %s", file, r.Alert, key)
					}
				}
				if s := r.Labels["severity"]; s != "critical" && s != "warning" && s != "info" && s != "none" {
					t.Errorf("%s: %s has severity %q", file, r.Alert, s)
				}
				for _, text := range r.Annotations {
					for _, m := range inTemplate.FindAllStringSubmatch(text, -1) {
						query := strings.NewReplacer(`\"`, `"`, "%q", `"x"`).Replace(m[1])
						for _, bad := range unknown(t, query, known) {
							t.Errorf("%s: the text of %s asks for %s, which the catalogue does not have", file, r.Alert, bad)
						}
					}
				}
			}
		}
	}
	t.Logf("%d alerts", len(alerts))
}

func TestUnknownFinds(t *testing.T) {
	known := names()
	for text, want := range map[string]string{
		"rate(applog_events_total{event=\"x\"}[1m])": "",
		"applog_event_total":                         "applog_event_total",
		"applog_events_total{evnt=\"x\"}":            "applog_events_total{evnt}",
		"target_up and on (target) nothing_here":     "nothing_here",
	} {
		if got := strings.Join(unknown(t, text, known), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
