package sidecar

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/dashboards"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A panelQuery is one query of a dashboard, as the JSON has it.
type panelQuery struct {
	board, panel, ref, expr string
	instant                 bool
	loki                    bool // it is LogQL
}

func (q panelQuery) String() string { return q.board + ", " + q.panel + " " + q.ref }

// everyBoard is the board of the annotations, which all boards share.
const everyBoard = "Every board"

// filled is the query as Grafana sends it.
func (q panelQuery) filled(vars ...string) string {
	return strings.NewReplacer(vars...).Replace(q.expr)
}

// panelQueries are all queries of all dashboards that Prometheus answers: the
// panels' and those of the annotations.
func panelQueries(t *testing.T) []panelQuery {
	t.Helper()
	return slices.DeleteFunc(boardQueries(t), func(q panelQuery) bool { return q.loki })
}

// lineQueries are those that Loki answers: the panels' and those of the variables.
func lineQueries(t *testing.T) []panelQuery {
	t.Helper()
	return slices.DeleteFunc(boardQueries(t), func(q panelQuery) bool { return !q.loki })
}

func boardQueries(t *testing.T) (all []panelQuery) {
	t.Helper()
	files, err := fs.Glob(dashboards.Files, "*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(dashboards.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		type source struct{ Type string }
		var d struct {
			Title  string
			Panels []struct {
				Title, Type string
				Datasource  source
				Targets     []struct {
					RefID, Expr string
					Instant     bool
					Datasource  source
				}
			}
			Annotations struct {
				List []struct{ Name, Expr string }
			}
			Templating struct {
				List []struct {
					Name       string
					Query      json.RawMessage
					Datasource source
				}
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: %q asks for nothing", file, p.Title)
			}
			for _, q := range p.Targets {
				if q.Datasource != p.Datasource {
					t.Errorf("%s: %q asks %s on a panel of %s", file, p.Title, q.Datasource.Type, p.Datasource.Type)
				}
				all = append(all, panelQuery{d.Title, p.Title, q.RefID, q.Expr, q.Instant, q.Datasource.Type == "loki"})
			}
		}
		for _, a := range d.Annotations.List {
			q := panelQuery{everyBoard, "annotation", a.Name, a.Expr, false, false}
			if !slices.Contains(all, q) {
				all = append(all, q)
			}
		}
		for _, v := range d.Templating.List {
			if v.Datasource.Type != "loki" {
				continue
			}
			var q struct{ Stream, Label string }
			if err := json.Unmarshal(v.Query, &q); err != nil {
				t.Fatalf("%s: %s: %v", file, v.Name, err)
			}
			// Which values a label has is a question like that for the sum by it.
			all = append(all, panelQuery{d.Title, "variable", v.Name, fmt.Sprintf("sum by (%s) (%s)", q.Label, q.Stream), false, true})
		}
	}
	return all
}

// foreign are the series that Prometheus makes itself.
var foreign = []string{"ALERTS", "scrape_samples_scraped"}

// emitted are the names of the series that the sidecar can emit.
func emitted() map[string]*metric.Family {
	families := map[string]*metric.Family{}
	for _, f := range collectors.Catalogue() {
		families[f.Name] = f
		switch f.Kind {
		case metric.Histogram:
			families[f.Name+"_bucket"] = f
			fallthrough
		case metric.Summary:
			families[f.Name+"_sum"], families[f.Name+"_count"] = f, f
		}
	}
	return families
}

// TestPanelsNameOnlyOurMetrics parses every query of every panel. A metric or a
// label that no room declares makes a panel that stays empty for ever.
func TestPanelsNameOnlyOurMetrics(t *testing.T) {
	families := emitted()
	for _, q := range panelQueries(t) {
		if why := notOurs(families, q); why != "" {
			t.Errorf("%v: %s in %s", q, why, q.expr)
		}
	}
	for expr, want := range map[string]string{
		`rate(`:                             "parse error",
		`sum(rate(no_such_total[1m]))`:      "no_such_total",
		`sum by (colour) (target_up)`:       "colour",
		`target_up{colour="red"}`:           "colour",
		`target_up / on (colour) target_up`: "colour",
	} {
		if why := notOurs(families, panelQuery{expr: expr}); !strings.Contains(why, want) {
			t.Errorf("%s: %q, want something about %s", expr, why, want)
		}
	}
}

// notOurs says what a query names that the sidecar does not have.
func notOurs(families map[string]*metric.Family, q panelQuery) (why string) {
	expr, err := parser.ParseExpr(q.filled("$__rate_interval", "4s", "$job", "sidecar", "$instance", "here", "$target", "tomcat-8080"))
	if err != nil {
		return "parse error: " + err.Error()
	}
	// Labels that grouping and matching may name are those of the metrics in the
	// query.
	labels := []string{"job", "instance", "target", "le", "__name__"}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		v, ok := node.(*parser.VectorSelector)
		if !ok || why != "" {
			return nil
		}
		f := families[v.Name]
		if slices.Contains(foreign, v.Name) {
			labels = append(labels, "alertname", "alertstate", "severity")
			return nil
		}
		if f == nil {
			why = fmt.Sprintf("no metric %s", v.Name)
			return nil
		}
		labels = append(labels, f.Labels...)
		for _, m := range v.LabelMatchers {
			if !slices.Contains(f.Labels, m.Name) && !slices.Contains(labels[:5], m.Name) {
				why = fmt.Sprintf("%s has no label %s", f.Name, m.Name)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var named []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			named = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				named = n.VectorMatching.MatchingLabels
			}
		}
		for _, l := range named {
			if why == "" && !slices.Contains(labels, l) {
				why = fmt.Sprintf("no metric in it has a label %s", l)
			}
		}
		return nil
	})
	return why
}

// TestLinePanelsNameOnlyOurLabels: a stream is found by the labels that the
// shipper sends. What is structured metadata, such as thread or file, selects
// nothing there.
func TestLinePanelsNameOnlyOurLabels(t *testing.T) {
	queries := lineQueries(t)
	for _, q := range queries {
		if why := notSent(q); why != "" {
			t.Errorf("%v: %s in %s", q, why, q.expr)
		}
	}
	// Three variables, and four queries of the panels.
	if len(queries) < 7 {
		t.Errorf("only %d queries go to Loki", len(queries))
	}
	for expr, want := range map[string]string{
		`{target="x"`: "parse error",
		`sum by (thread) (count_over_time({target="x"}[1m]))`: "thread",
		`{target="x",file="catalina.out"}`:                    "file",
		`{target="x",instance="$instance"}`:                   "instance",
		`{event="x"}`:                                         "server",
		`{target=~".*x"}`:                                     "server",
		`target_up{target="x"}`:                               "target_up",
		`sum by (event) (count_over_time({target="$target",event!=""}[$__interval]))`: "",
		`{target="$target",level=~"$level"}`:                                          "",
	} {
		why := notSent(panelQuery{expr: expr})
		if (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want something about %q", expr, why, want)
		}
	}
}

// notSent says what a query names that the shipper does not send. LogQL's stream
// selectors, ranges and sums are written as PromQL's are; a query with a
// pipeline would need more than its parser.
func notSent(q panelQuery) (why string) {
	expr, err := parser.ParseExpr(q.filled("$__interval", "15s", "$target", "tomcat-8080", "$host", ".*", "$level", ".*", "$event", "(a|b)"))
	if err != nil {
		return "parse error: " + err.Error()
	}
	check := func(label string) {
		if why == "" && !slices.Contains(ship.Labels, label) {
			why = "no line is sent with a label " + label
		}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			for _, l := range n.Grouping {
				check(l)
			}
		case *parser.VectorSelector:
			if n.Name != "" {
				why = "a stream has no name: " + n.Name
				return nil
			}
			one := false
			for _, m := range n.LabelMatchers {
				check(m.Name)
				one = one || m.Name == "target" && m.Type == labels.MatchEqual
			}
			if why == "" && !one {
				why = "it is not of one server"
			}
		}
		return nil
	})
	return why
}

// TestLivePageAsksWhatTheBoardAsks: the charts of the live page are those of the
// board Load run, without the labels that only a Prometheus adds.
func TestLivePageAsksWhatTheBoardAsks(t *testing.T) {
	text, err := os.ReadFile("internal/web/static/live/charts.json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Charts []struct {
			Title  string
			Series []struct{ Expr string }
		}
		Tables []struct{ Title, Expr string }
		Marks  map[string]string
		Full   string
		Alerts string
	}
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	board := map[string]bool{}
	for _, q := range panelQueries(t) {
		if q.board == "Load run" {
			board[strings.NewReplacer(`job="$job",instance="$instance",`, "", `{job="$job",instance="$instance"}`, "").Replace(q.expr)] = true
		}
	}
	families := emitted()
	for _, c := range page.Charts {
		for _, s := range c.Series {
			if !board[s.Expr] {
				t.Errorf("%q asks what the board Load run does not: %s", c.Title, s.Expr)
			}
		}
	}
	exprs := append([]string{page.Alerts, page.Full}, slices.Collect(maps.Values(page.Marks))...)
	for _, table := range page.Tables {
		exprs = append(exprs, table.Expr)
	}
	for _, expr := range exprs {
		if why := notOurs(families, panelQuery{expr: expr}); why != "" {
			t.Errorf("%s in %s", why, expr)
		}
	}
	if len(page.Charts) < 9 || len(page.Marks) < 3 {
		t.Errorf("%d charts, %d marks", len(page.Charts), len(page.Marks))
	}
}
