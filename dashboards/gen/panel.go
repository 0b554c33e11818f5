package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	logpanel "github.com/grafana/grafana-foundation-sdk/go/logs"
	lokiquery "github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// kind is how a panel draws its answer.
type kind int

const (
	lines  kind = iota
	stacks      // lines upon each other: parts of a whole
	number      // the last value
	heat        // a histogram over time
	states      // bands, a colour each state
	rows        // a table of labels
	bars        // upon each other: what comes now and then, and has no value between
	texts       // lines of a log, the newest first
)

// A panel answers one question.
type panel struct {
	title string // the question
	what  string // what the figure is
	next  string // what to do when the answer is bad
	none  string // what it means that there is nothing to show

	loki    bool // its queries are LogQL, and Loki answers them
	kind    kind
	unit    string // Grafana's id of a unit
	w, h    uint32 // of 24 columns; rows of 30 pixels
	queries []query

	// warn and bad colour the figure from there on; where low is set, from there
	// down: bad below its value, warn below its own. 0 is none.
	warn, bad float64
	low       bool
	max       float64 // of the axis; 0 is none
	words     []word  // the states' names
	more      string  // the board with the details
}

// A query is PromQL with the selector of the chosen server left out: {} stands
// for it, {,event="x"} for it and more, {own} and {own,...} for the sidecar's
// own series, which have no target. In LogQL {} stands for the lines of the
// server from the chosen hosts, and there is no {own}.
type query struct {
	expr, legend string
	right        string // a unit: draw on an axis at the right
	dashed       bool   // a limit
}

// A word is the name and the colour of a state.
type word struct {
	value       string
	name, color string
}

const (
	green  = "green"
	yellow = "#EAB839"
	orange = "orange"
	red    = "red"
	text   = "text"
)

const ownLabels = `job="$job",instance="$instance"`

// streams puts the chosen server into a query in LogQL.
func streams(expr string) string {
	const of = `target="$target",host=~"$host"`
	return strings.NewReplacer("{}", "{"+of+"}", "{,", "{"+of+",").Replace(expr)
}

// selectors puts the chosen server into a query.
func selectors(expr string) string {
	const of = ownLabels + `,target="$target"`
	return strings.NewReplacer("{}", "{"+of+"}", "{,", "{"+of+",", "{own}", "{"+ownLabels+"}", "{own,", "{"+ownLabels+",").Replace(expr)
}

// fixed is a panel with its number.
type fixed struct {
	panel
	id uint32
}

// A maker is what the builders of all kinds of panel have in common: the SDK has
// a builder type for each kind and no interface over them.
type maker[B any] interface {
	Id(uint32) B
	Title(string) B
	Description(string) B
	Datasource(common.DataSourceRef) B
	Height(uint32) B
	Span(uint32) B
	Unit(string) B
	NoValue(string) B
	Thresholds(cog.Builder[dashboard.ThresholdsConfig]) B
	Mappings([]dashboard.ValueMapping) B
	Links([]cog.Builder[dashboard.DashboardLink]) B
	WithTarget(cog.Builder[variants.Dataquery]) B
}

// Build makes Grafana's panel.
func (p fixed) Build() (dashboard.Panel, error) {
	for what, said := range map[string]string{"a question": p.title, "what it is": p.what, "what to do next": p.next, "what no data means": p.none, "queries": p.first()} {
		if said == "" {
			return dashboard.Panel{}, cog.MakeBuildErrors(p.title, fmt.Errorf("%s is missing", what))
		}
	}
	switch p.kind {
	case number:
		b := stat.NewPanelBuilder().GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
		return shared(b, p).Build()
	case heat:
		b := heatmap.NewPanelBuilder().Calculate(false).ShowLegend().CellGap(1).
			Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Turbo").Steps(64)).
			YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.unit).AxisPlacement(common.AxisPlacementLeft)).
			Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true))
		return shared(b, p).Build()
	case states:
		b := statetimeline.NewPanelBuilder().ShowValue(common.VisibilityModeAuto).MergeValues(true).RowHeight(0.8).FillOpacity(80).
			Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
			Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone))
		return shared(b, p).Build()
	case rows:
		b := table.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).Filterable(true).
			// The schema wants a reducer even where no footer is shown.
			Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{})).
			// What Prometheus adds to each row says nothing here, nor does the one
			// server that was chosen.
			WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true, "Value": true, "__name__": true, "job": true, "instance": true, "target": p.unit == ""},
			}})
		return shared(b, p).Build()
	case texts:
		b := logpanel.NewPanelBuilder().ShowTime(true).ShowLabels(false).ShowCommonLabels(false).
			WrapLogMessage(true).PrettifyLogMessage(false).EnableLogDetails(true).
			SortOrder(common.LogsSortOrderDescending).DedupStrategy(common.LogsDedupStrategyNone)
		return shared(b, p).Build()
	}
	b := timeseries.NewPanelBuilder().
		DrawStyle(common.GraphDrawStyleLine).LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		// A gap in the data is a gap on the screen: a frozen source must not look
		// like a steady one.
		SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)}).
		Min(0).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.max > 0 {
		b.Max(p.max)
	}
	if p.kind == bars {
		// A line would hide a value with nothing beside it.
		b.DrawStyle(common.GraphDrawStyleBars).
			Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(80)
	}
	if p.kind == stacks {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(40)
	}
	if p.warn != 0 || p.bad != 0 {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for i, q := range p.queries {
		var look []dashboard.DynamicConfigValue
		if q.right != "" {
			look = append(look, dashboard.DynamicConfigValue{Id: "custom.axisPlacement", Value: "right"}, dashboard.DynamicConfigValue{Id: "unit", Value: q.right})
		}
		if q.dashed {
			look = append(look, dashboard.DynamicConfigValue{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 6}}}, dashboard.DynamicConfigValue{Id: "custom.fillOpacity", Value: 0})
		}
		if p.kind == stacks && (q.right != "" || q.dashed) {
			look = append(look, dashboard.DynamicConfigValue{Id: "custom.stacking", Value: map[string]any{"mode": "none"}})
		}
		if look != nil {
			b.OverrideByQuery(letter(i), look)
		}
	}
	return shared(b, p).Build()
}

func (p panel) first() string {
	if len(p.queries) == 0 {
		return ""
	}
	return p.queries[0].expr
}

// letter is the name of the i-th query of a panel.
func letter(i int) string { return string(rune('A' + i)) }

// shared sets what every kind of panel has.
func shared[B maker[B]](b B, p fixed) B {
	b.Id(p.id).Title(p.title).Description(p.what + "\n\n**Next:** " + p.next).
		Datasource(p.source()).Span(p.w).Height(p.h).NoValue(p.none).
		Thresholds(p.thresholds())
	if p.unit != "" {
		b.Unit(p.unit)
	}
	if p.words != nil {
		options := map[string]dashboard.ValueMappingResult{}
		for i, w := range p.words {
			options[w.value] = dashboard.ValueMappingResult{Text: cog.ToPtr(w.name), Color: cog.ToPtr(w.color), Index: cog.ToPtr(int32(i))}
		}
		b.Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}})
	}
	if p.more != "" {
		b.Links([]cog.Builder[dashboard.DashboardLink]{
			dashboard.NewDashboardLinkBuilder("In detail").Type(dashboard.DashboardLinkTypeLink).
				Url("/d/sidecar-" + p.more + "?${__url_time_range}&${__all_variables}"),
		})
	}
	for i, q := range p.queries {
		if p.loki {
			t := lokiquery.NewDataqueryBuilder().RefId(letter(i)).Expr(streams(q.expr)).Datasource(loki).QueryType("range")
			if p.kind == texts {
				t.MaxLines(500).Direction(lokiquery.LokiQueryDirectionBackward)
			} else {
				t.LegendFormat(q.legend)
			}
			b.WithTarget(t)
			continue
		}
		t := prometheus.NewDataqueryBuilder().RefId(letter(i)).Expr(selectors(q.expr)).LegendFormat(q.legend).Datasource(source)
		switch p.kind {
		case rows:
			t.Instant().Format(prometheus.PromQueryFormatTable)
		case heat:
			t.Range().Format(prometheus.PromQueryFormatHeatmap)
		default:
			t.Range().Format(prometheus.PromQueryFormatTimeSeries)
		}
		b.WithTarget(t)
	}
	return b
}

func (p panel) source() common.DataSourceRef {
	if p.loki {
		return loki
	}
	return source
}

func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Value: nil, Color: green}}
	add := func(v float64, color string) {
		steps = append(steps, dashboard.Threshold{Value: &v, Color: color})
	}
	switch {
	case p.warn == 0 && p.bad == 0:
		steps[0].Color = text
	case p.low:
		steps[0].Color = red
		if p.bad == 0 {
			steps[0].Color = yellow
		} else if p.warn != 0 {
			add(p.bad, yellow)
		}
		add(max(p.warn, p.bad), green)
	default:
		if p.warn != 0 {
			add(p.warn, yellow)
		}
		if p.bad != 0 {
			add(p.bad, red)
		}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
