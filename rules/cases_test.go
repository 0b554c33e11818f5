package rules

import (
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// A scenario is one test of a file in tests, as far as it speaks of alerts.
type scenario struct {
	file, name string
	series     map[string][][]parser.SequenceValue // by metric
	says       []saying
}

// A saying is what a scenario expects of some alerts at one time: none of them,
// or these.
type saying struct {
	about *parser.VectorSelector // the ALERTS of its expression
	at    time.Duration
	want  []labels.Labels
}

// scenarios are the tests of one rule file.
func scenarios(t *testing.T, pack, topic string) (out []scenario) {
	t.Helper()
	files, err := filepath.Glob("tests/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			RuleFiles []string `yaml:"rule_files"`
			Tests     []struct {
				Name    string
				Input   []struct{ Series, Values string } `yaml:"input_series"`
				Queries []struct {
					Expr    string
					At      model.Duration            `yaml:"eval_time"`
					Samples []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !slices.Contains(f.RuleFiles, "../"+pack+"/"+topic+".yml") {
			continue
		}
		for _, one := range f.Tests {
			s := scenario{file: file, name: one.Name, series: map[string][][]parser.SequenceValue{}}
			for _, in := range one.Input {
				l, values, err := parser.ParseSeriesDesc(in.Series + " " + in.Values)
				if err != nil {
					t.Fatalf("%s: %s: %v", file, in.Series, err)
				}
				s.series[l.Get(labels.MetricName)] = append(s.series[l.Get(labels.MetricName)], values)
			}
			for _, q := range one.Queries {
				expr, err := parser.ParseExpr(q.Expr)
				if err != nil {
					t.Fatalf("%s: %s: %v", file, q.Expr, err)
				}
				say := saying{at: time.Duration(q.At)}
				for _, v := range selectors(expr) {
					if v.Name == "ALERTS" {
						say.about = v
					}
				}
				for _, w := range q.Samples {
					l, err := parser.ParseMetric(w.Labels)
					if err != nil {
						t.Fatalf("%s: %s: %v", file, w.Labels, err)
					}
					say.want = append(say.want, l)
				}
				if say.about != nil {
					s.says = append(s.says, say)
				}
			}
			out = append(out, s)
		}
	}
	return out
}

func selectors(expr parser.Expr) (out []*parser.VectorSelector) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			out = append(out, v)
		}
		return nil
	})
	return out
}

// of says whether it speaks of this alert, in whatever state and severity where
// all is set, in some state or severity where not.
func (s *saying) of(alert string, all bool) bool {
	for _, m := range s.about.LabelMatchers {
		switch m.Name {
		case labels.AlertName:
			if !m.Matches(alert) {
				return false
			}
		case "alertstate", "severity":
			if all {
				return false
			}
		}
	}
	return true
}

// silent says that none of this alert is there.
func (s *saying) silent(alert string) bool {
	if !s.of(alert, true) {
		return false
	}
	for _, w := range s.want {
		if name := w.Get(labels.AlertName); name == "" || name == alert {
			return false
		}
	}
	return true
}

// state says that the alert is there in this state.
func (s *saying) state(alert, state string) bool {
	if !s.of(alert, false) {
		return false
	}
	named := slices.ContainsFunc(s.about.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == labels.AlertName && m.Type == labels.MatchEqual
	})
	for _, w := range s.want {
		name := w.Get(labels.AlertName)
		if w.Get("alertstate") == state && (name == alert || name == "" && named) {
			return true
		}
	}
	return false
}

// reads are the metrics that an alert looks at, through the recording rules of
// its file; those of its limits and of its dead-man's switch are none.
func reads(groups *rulefmt.RuleGroups, exprs []string) []string {
	recorded := map[string]string{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				recorded[r.Record] = r.Expr
			}
		}
	}
	seen := map[string]bool{}
	for len(exprs) > 0 {
		expr, err := parser.ParseExpr(exprs[0])
		exprs = exprs[1:]
		if err != nil {
			panic(err)
		}
		for _, v := range selectors(expr) {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			if e, ok := recorded[v.Name]; ok {
				exprs = append(exprs, e)
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(name string) bool { return recorded[name] != "" })
}

func isCounter(metric string) bool {
	for _, end := range []string{"_total", "_seconds_count", "_seconds_sum", "_seconds_bucket"} {
		if strings.HasSuffix(metric, end) {
			return true
		}
	}
	return false
}

// falls says that a sequence has a value below the one before it.
func falls(values []parser.SequenceValue) bool {
	last := -1.0
	for _, v := range values {
		if v.Omitted {
			continue
		}
		if v.Value < last {
			return true
		}
		last = v.Value
	}
	return false
}

// late says that a sequence begins after the others with a value that is not 0:
// somebody counted before the first look.
func late(metric string, values []parser.SequenceValue) bool {
	for i, v := range values {
		if !v.Omitted {
			return i > 0 && (v.Value > 0 || !isCounter(metric))
		}
	}
	return true // not there at all
}

// packFiles yields the rule files of a pack (* for both), of which there are at
// least so many, in the order of their names.
func packFiles(t *testing.T, pack string, least int) iter.Seq2[string, *rulefmt.RuleGroups] {
	t.Helper()
	files, err := fs.Glob(Files, pack+"/*.yml")
	if err != nil || len(files) < least {
		t.Fatalf("%d rule files: %v", len(files), err)
	}
	return func(yield func(string, *rulefmt.RuleGroups) bool) {
		for _, file := range files {
			data, err := fs.ReadFile(Files, file)
			if err != nil {
				t.Fatal(err)
			}
			groups, errs := rulefmt.Parse(data, false)
			if len(errs) > 0 {
				t.Fatalf("%s: %v", file, errs)
			}
			if !yield(file, groups) {
				return
			}
		}
	}
}

// Each alert of both packs has all its cases: quiet, pending, firing, resolved,
// through a counter reset, without its series, and beside a JVM that was there
// before the sidecar. What a case is called is not enough: its series have to be
// those that the alert reads.
func TestEveryAlertHasItsCases(t *testing.T) {
	for file, groups := range packFiles(t, "*", 20) {
		pack, topic := path.Dir(file), strings.TrimSuffix(path.Base(file), ".yml")
		all := scenarios(t, pack, topic)
		alerts, holds := map[string][]string{}, map[string]bool{}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerts[r.Alert] = append(alerts[r.Alert], r.Expr)
					holds[r.Alert] = holds[r.Alert] || r.For > 0
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(alerts)) {
			for _, missing := range lacks(name, reads(groups, alerts[name]), holds[name], all) {
				t.Errorf("%s: %s has no case: %s", file, name, missing)
			}
		}
	}
}

// lacks are the cases that an alert does not have.
func lacks(alert string, metrics []string, holds bool, all []scenario) (missing []string) {
	var quiet, pending, firing, resolved, absent bool
	reset, hour := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		silent := slices.ContainsFunc(s.says, func(one saying) bool { return one.silent(alert) })
		lastFiring := time.Duration(-1)
		for _, one := range s.says {
			pending = pending || one.state(alert, "pending")
			if one.state(alert, "firing") {
				firing, lastFiring = true, max(lastFiring, one.at)
			}
		}
		for _, one := range s.says {
			resolved = resolved || lastFiring >= 0 && one.at > lastFiring && one.silent(alert)
		}
		has := func(test func(metric string, values []parser.SequenceValue) bool, into map[string]bool) {
			for _, m := range metrics {
				for _, values := range s.series[m] {
					if test(m, values) {
						into[m] = true
					}
				}
			}
		}
		switch {
		case !silent:
		case strings.HasPrefix(s.name, "quiet"):
			there := map[string]bool{}
			has(func(string, []parser.SequenceValue) bool { return true }, there)
			quiet = quiet || len(there) == len(metrics)
		case strings.HasPrefix(s.name, "counter reset"):
			has(func(_ string, v []parser.SequenceValue) bool { return falls(v) }, reset)
		case strings.HasPrefix(s.name, "series absent"):
			absent = absent || !slices.ContainsFunc(metrics, func(m string) bool { return m != "target_up" && len(s.series[m]) > 0 })
		case strings.HasPrefix(s.name, "the sidecar starts beside a JVM that has run for an hour"):
			has(late, hour)
		}
	}
	if len(metrics) == 0 { // it always fires
		if !firing {
			return []string{"firing"}
		}
		return nil
	}
	for _, c := range []struct {
		name string
		has  bool
	}{{"quiet, with " + strings.Join(metrics, ", "), quiet}, {"pending", pending || !holds}, {"firing", firing}, {"resolved", resolved}, {"series absent", absent}} {
		if !c.has {
			missing = append(missing, c.name)
		}
	}
	for _, m := range metrics {
		if isCounter(m) && !reset[m] {
			missing = append(missing, fmt.Sprintf("counter reset, of %s", m))
		}
		if !hour[m] {
			missing = append(missing, fmt.Sprintf("the sidecar starts beside a JVM that has run for an hour, with %s", m))
		}
	}
	return missing
}

// What both packs are said to have. A name that users route by does not go away
// unnoticed.
func TestAlertsOfBothPacks(t *testing.T) {
	for _, pack := range []string{"load", "steady"} {
		has := map[string]bool{}
		for _, groups := range packFiles(t, pack, 10) {
			for _, g := range groups.Groups {
				for _, r := range g.Rules {
					has[r.Alert] = true
				}
			}
		}
		for name := range strings.FieldsSeq(`
			ExecutorRejectionStorm ExecutorRejected ExecutorQueueSaturated ThreadsExhausted PoolAtCeiling JettyQueueGrowing
			AcceptBacklogHigh ListenOverflow BacklogCapped ConnectionsAtLimit ConnectorStalled
			ErrorRatioHigh ErrorBurnFast ThroughputCollapse LatencyHigh TailDetached AccessLogSilent
			GCOverhead LongPause FullGC ConcurrentModeFailure AllocationStall HeapAfterGCRising HeapAfterGCHigh SafepointSyncSlow
			ThreadsBlocked Deadlock StuckThreads FdExhaustion CPUThrottled TargetDown TargetRestarted OOMKilled
			SidecarBehind SidecarLosesLines SidecarBlind SidecarOverBudget SidecarForgets ShippingFails NotifyFails RulesFail DeadMansSwitch
			LogGrowthRunaway LogDiskFullSoon LogDiskLow LogDiskReadOnly LogInodesLow LogDirOverBudget DeletedOpenLogs
			OnePatternFloods ErrorLinesBurst NewException LoggerDropsRecords`) {
			if !has[name] {
				t.Errorf("%s has no %s", pack, name)
			}
		}
		if has["LoadRulesScrapedTooSlowly"] != (pack == "load") {
			t.Errorf("LoadRulesScrapedTooSlowly in %s: %v", pack, has["LoadRulesScrapedTooSlowly"])
		}
	}
}
