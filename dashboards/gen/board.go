package main

import (
	"bytes"
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// A board is one dashboard.
type board struct {
	name  string // of the file, and after "sidecar-" the uid that links name
	title string
	about string
	rows  []row
}

// A row is a line of panels under a heading, or without one where all of the
// board should stay on one screen.
type row struct {
	title  string
	panels []panel
}

func (b board) uid() string { return "sidecar-" + b.name }

// The Prometheus and the Loki that the viewer chose.
var (
	source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
	loki   = common.DataSourceRef{Type: cog.ToPtr("loki"), Uid: cog.ToPtr("${loki}")}
)

// asksLoki says whether any panel of a board shows lines.
func (b board) asksLoki() bool {
	for _, r := range b.rows {
		for _, p := range r.panels {
			if p.loki {
				return true
			}
		}
	}
	return false
}

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).
		Uid(b.uid()).
		Description(b.about).
		Tags([]string{"sidecar"}).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-15m", "now").
		Refresh("5s").
		Editable()
	for _, v := range variables() {
		d.WithVariable(v)
	}
	// Elsewhere they would be three choices without an effect, and errors where
	// there is no Loki.
	if b.asksLoki() {
		for _, v := range lokiVariables() {
			d.WithVariable(v)
		}
	}
	for _, a := range annotations() {
		d.Annotation(a)
	}
	// The other boards, with the same server and the same time.
	d.Link(dashboard.NewDashboardLinkBuilder("Boards").
		Type(dashboard.DashboardLinkTypeDashboards).
		Tags([]string{"sidecar"}).
		IncludeVars(true).
		KeepTime(true))
	id := uint32(1)
	for _, r := range b.rows {
		if r.title != "" {
			d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
			id++
		}
		for _, p := range r.panels {
			d.WithPanel(fixed{p, id})
			id++
		}
	}
	built, err := d.Build()
	if err != nil {
		return built, err
	}
	// The SDK has but one placement and always sets it: out of sight, in a menu.
	// Grafana's own default, no placement, is on the board.
	for i := range built.Links {
		built.Links[i].Placement = nil
	}
	for i := range built.Annotations.List {
		built.Annotations.List[i].Placement = nil
	}
	for _, p := range built.Panels {
		if p.Panel != nil {
			for i := range p.Panel.Links {
				p.Panel.Links[i].Placement = nil
			}
		}
	}
	return built, nil
}

// json is the dashboard as Grafana imports it. The SDK checks it against its
// schema on the way.
func (b board) json() ([]byte, error) {
	d, err := b.build()
	if err != nil {
		return nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // else PromQL's > reads \u003e
	err = enc.Encode(d)
	return text.Bytes(), err
}

// variables choose one server. It is one on purpose: names in the legends stay
// short, and a limit in a panel is the limit of what is shown. Two servers are
// compared in two tabs.
func variables() []cog.Builder[dashboard.VariableModel] {
	values := func(name, label, query string) cog.Builder[dashboard.VariableModel] {
		return dashboard.NewQueryVariableBuilder(name).
			Label(label).
			Datasource(source).
			Definition(query).
			Query(dashboard.StringOrMap{Map: map[string]any{"query": query, "refId": "StandardVariableQuery"}}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortNaturalAsc)
	}
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"),
		values("job", "Job", `label_values(sidecar_build_info, job)`),
		values("instance", "Sidecar", `label_values(sidecar_build_info{job="$job"}, instance)`),
		values("target", "Server", `label_values(target_up{job="$job",instance="$instance"}, target)`),
	}
}

// lokiVariables choose among the lines of the server. All of them is the regular
// expression .*, since a line without an event or a level has no such label, and
// a list of the known values would leave it out.
func lokiVariables() []cog.Builder[dashboard.VariableModel] {
	values := func(name, label string) cog.Builder[dashboard.VariableModel] {
		return dashboard.NewQueryVariableBuilder(name).
			Label(label).
			Datasource(loki).
			// Type 1 asks for a label's values.
			Query(dashboard.StringOrMap{Map: map[string]any{"type": 1, "label": name, "stream": `{target="$target"}`, "refId": "LokiVariableQueryEditor-VariableQuery"}}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortNaturalAsc).
			Multi(true).IncludeAll(true).AllValue(".*").
			Current(dashboard.VariableOption{
				Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
				Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
			})
	}
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("loki").Label("Loki").Type("loki"),
		// Prometheus knows a sidecar by its instance and Loki by its host: of two
		// hosts with a server of the same name, the viewer says which.
		values("host", "Host of lines"),
		values("level", "Level of lines"),
		values("event", "Event of lines"),
	}
}

// alerts are those that fire for the chosen server, or for its sidecar. A rule
// may aggregate the job away, so it is not asked for. The dead man's switch, of
// severity none, fires always.
const alerts = `ALERTS{alertstate="firing",severity!="none",instance="$instance",target=~"$target|"}`

func annotations() []cog.Builder[dashboard.AnnotationQuery] {
	mark := func(name, color, expr, title, text string) *dashboard.AnnotationQueryBuilder {
		return dashboard.NewAnnotationQueryBuilder().
			Name(name).
			Datasource(source).
			Enable(true).
			IconColor(color).
			Expr(selectors(expr)).
			TitleFormat(title).
			TextFormat(text)
	}
	return []cog.Builder[dashboard.AnnotationQuery]{
		mark("Alerts firing", red, alerts, "{{alertname}}", "{{severity}}").Step("1s"),
		// The value is the time itself, so the mark stands at the second of the start.
		mark("Restarts", "purple", `process_start_time_seconds{} * 1000`, "{{target}} started", "").UseValueForTime(true),
		// A minute holds two samples at any usual scrape interval.
		mark("Log rotations", "blue", `increase(logfile_rotations_total{}[1m]) > 0`, "{{file}} rotated", ""),
		mark("GC failures", orange, `increase(gclog_failures_total{}[1m]) > 0`, "GC failure: {{kind}}", ""),
	}
}
