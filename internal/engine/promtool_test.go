package engine

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// ruleTests is a file of promtool's rule tests.
type ruleTests struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []struct {
		Name     string
		Interval model.Duration
		Input    []struct{ Series, Values string } `yaml:"input_series"`
		Queries  []struct {
			Expr    string
			At      model.Duration `yaml:"eval_time"`
			Samples []struct {
				Labels string
				Value  float64
			} `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
		Alerts []struct {
			Name string         `yaml:"alertname"`
			At   model.Duration `yaml:"eval_time"`
			Want []struct {
				Labels      map[string]string `yaml:"exp_labels"`
				Annotations map[string]string `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// The rule tests that promtool runs say the same of the engine.
func TestRuleTests(t *testing.T) {
	files, err := filepath.Glob("../../rules/tests/*.yml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files of rule tests: %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yml")
		if testing.Short() && name != "executor" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f ruleTests
			if err := yaml.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			pack := fstest.MapFS{}
			for _, rel := range f.RuleFiles {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(path), rel))
				if err != nil {
					t.Fatal(err)
				}
				pack["load/"+filepath.Base(rel)] = &fstest.MapFile{Data: text}
			}
			for i := range f.Tests {
				t.Run(f.Tests[i].Name, func(t *testing.T) { runRuleTest(t, &f, i, pack) })
			}
		})
	}
}

func runRuleTest(t *testing.T, f *ruleTests, n int, pack fstest.MapFS) {
	one := &f.Tests[n]
	cfg := DefaultConfig()
	cfg.Evaluation = time.Duration(f.Interval)
	e, err := Open(cfg, Options{Job: "sidecar", Instance: "x", Pack: pack, Start: begin, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, g := range e.groups { // promtool knows of no restart
		g.evals = restores
		for _, r := range g.AlertingRules() {
			r.SetRestored(true)
		}
	}
	type input struct {
		labels labels.Labels
		values []parser.SequenceValue
	}
	var inputs []input
	for _, s := range one.Input {
		l, v, err := parser.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, input{l, v})
	}
	last := time.Duration(0)
	for _, q := range one.Queries {
		last = max(last, time.Duration(q.At))
	}
	for _, a := range one.Alerts {
		last = max(last, time.Duration(a.At))
	}
	step, interval := time.Duration(f.Interval), time.Duration(one.Interval)
	sample := 0
	for at := time.Duration(0); at <= last; at += step {
		for ; time.Duration(sample)*interval <= at; sample++ {
			app := e.store.Appender(t.Context())
			for _, in := range inputs {
				if sample >= len(in.values) || in.values[sample].Omitted {
					continue
				}
				when := begin.Add(time.Duration(sample) * interval).UnixMilli()
				if _, err := app.Append(0, in.labels, when, in.values[sample].Value); err != nil {
					t.Fatal(err)
				}
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		// promtool evaluates every group at each step, whatever its interval.
		for _, g := range e.groups {
			g.Eval(t.Context(), begin.Add(at))
		}
		for _, a := range one.Alerts {
			if d := time.Duration(a.At) - at; d >= 0 && d < step {
				var want []string
				for _, w := range a.Want {
					w.Labels["alertname"] = a.Name
					want = append(want, labels.FromMap(w.Labels).String()+labels.FromMap(w.Annotations).String())
				}
				var got []string
				for _, have := range e.Alerts() {
					if have.Labels["alertname"] == a.Name && have.State == "firing" {
						got = append(got, labels.FromMap(have.Labels).String()+labels.FromMap(have.Annotations).String())
					}
				}
				sort.Strings(want)
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%s at %v:\ngot  %s\nwant %s", a.Name, a.At, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
			}
		}
	}
	for _, q := range one.Queries {
		r, err := e.Query(t.Context(), q.Expr, begin.Add(time.Duration(q.At)))
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Vector()
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]float64{}
		for _, s := range v {
			have[s.Metric.String()] = s.F
		}
		good := len(have) == len(q.Samples)
		for _, w := range q.Samples {
			l, err := parser.ParseMetric(w.Labels)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := have[l.String()]
			good = good && ok && (math.Abs(got-w.Value) <= 1e-6*math.Abs(w.Value) || got == w.Value)
		}
		if !good {
			t.Errorf("%s at %v: %v, want %v", q.Expr, q.At, have, q.Samples)
		}
	}
}
