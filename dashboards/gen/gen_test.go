package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboardsAreGenerated holds the committed JSON against the boards here.
func TestDashboardsAreGenerated(t *testing.T) {
	built := map[string]bool{}
	for _, b := range boards {
		file := b.name + ".json"
		built[file] = true
		want, err := b.json()
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		have, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(have) != string(want) {
			t.Errorf("dashboards/%s is not what gen builds: run go generate ./dashboards", file)
		}
	}
	there, err := filepath.Glob("../*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if !built[filepath.Base(path)] {
			t.Errorf("dashboards/%s is of no board", filepath.Base(path))
		}
	}
}

// TestDashboardsAreOfGrafanasSchema reads the JSON back, strictly: a field that
// Grafana doesn't know, or a missing one, is an error.
func TestDashboardsAreOfGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, b := range boards {
		text, err := b.json()
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard
		// The SDK returns a list of errors, also when it is empty.
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", b.name, err)
		}
		again, err := json.Marshal(d)
		if err != nil || !strings.Contains(string(again), `"uid":"sidecar-`+b.name+`"`) {
			t.Errorf("%s does not survive being read: %v", b.name, err)
		}
	}
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict([]byte(`{"schemaVersion":42,"colour":"red"}`)); err == nil || err.Error() == "" {
		t.Error("the strict reader takes anything")
	}
}

// TestPanels: a panel is a question with an answer that somebody can use.
func TestPanels(t *testing.T) {
	names := map[string]bool{}
	for _, b := range boards {
		names[b.name] = true
	}
	for _, b := range boards {
		titles := map[string]bool{}
		for _, r := range b.rows {
			width := uint32(0)
			for _, p := range r.panels {
				if !strings.HasSuffix(p.title, "?") {
					t.Errorf("%s: %q is no question", b.name, p.title)
				}
				if titles[p.title] {
					t.Errorf("%s: %q is asked twice", b.name, p.title)
				}
				titles[p.title] = true
				if p.unit == "" && p.kind != rows && p.kind != texts {
					t.Errorf("%s: %q has no unit", b.name, p.title)
				}
				if p.kind == states && p.words == nil {
					t.Errorf("%s: %q has no words for its states", b.name, p.title)
				}
				if p.kind == texts && !p.loki {
					t.Errorf("%s: %q wants lines from Prometheus", b.name, p.title)
				}
				if p.more != "" && !names[p.more] {
					t.Errorf("%s: %q leads to %s, which is no board", b.name, p.title, p.more)
				}
				for _, q := range p.queries {
					if q.legend == "" && p.kind != rows && p.kind != number && p.kind != texts {
						t.Errorf("%s: %q has a query without a legend: %s", b.name, p.title, q.expr)
					}
				}
				if width += p.w; width > 24 {
					width = p.w
				}
			}
			if width != 24 {
				t.Errorf("%s, %q: the last line of panels is %d wide, not 24", b.name, r.title, width)
			}
		}
	}
}

func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		of   panel
		want string
	}{
		{panel{}, "text"},
		{panel{bad: 1}, "green red>1"},
		{panel{warn: 1, bad: 2}, "green #EAB839>1 red>2"},
		{panel{warn: 10, bad: 5, low: true}, "red #EAB839>5 green>10"},
		{panel{bad: 1, low: true}, "red green>1"},
	} {
		got, err := c.of.thresholds().Build()
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, s := range got.Steps {
			word := s.Color
			if s.Value != nil {
				text, _ := json.Marshal(*s.Value)
				word += ">" + string(text)
			}
			said = append(said, word)
		}
		if have := strings.Join(said, " "); have != c.want {
			t.Errorf("%+v: %s, want %s", c.of, have, c.want)
		}
	}
}
