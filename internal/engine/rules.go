package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// A group is a rule group and when it is due.
type group struct {
	*rules.Group
	due   time.Time
	evals int
}

// restores is how many evaluations at the start are each followed by a look at
// what was pending or fired before. An alert on a level is there at the first,
// one on a rate, which needs two samples, at the second.
const restores = 2

// Alert is one alert that is pending, fires, or has ended.
type Alert struct {
	Labels, Annotations map[string]string
	State               string // pending, firing or inactive
	Value               float64
	Expr                string
	ActiveAt            time.Time
	FiredAt             time.Time
	ResolvedAt          time.Time // zero while it is active
	// ValidUntil is when a receiver may take it for resolved if it hears no more.
	ValidUntil time.Time
}

func newAlert(a *rules.Alert, expr string) Alert {
	return Alert{
		Labels: a.Labels.Map(), Annotations: a.Annotations.Map(), State: a.State.String(), Value: a.Value, Expr: expr,
		ActiveAt: a.ActiveAt, FiredAt: a.FiredAt, ResolvedAt: a.ResolvedAt, ValidUntil: a.ValidUntil,
	}
}

// loadRules reads the pack and the user's files. Groups that were there before
// keep their alerts.
func (e *Engine) loadRules(cfg Config) ([]*group, error) {
	files, err := e.ruleFiles(cfg)
	if err != nil {
		return nil, err
	}
	external := &url.URL{}
	if u, err := url.Parse(e.options.ExternalURL); err == nil {
		external = u
	}
	m := rules.NewManager(&rules.ManagerOptions{
		ExternalURL: external, Context: context.Background(), Logger: quiet(e.log),
		Appendable: e.store, Queryable: e.store, QueryFunc: rules.EngineQueryFunc(e.queries, e.store),
		NotifyFunc: e.notify, ResendDelay: ResendDelay,
		OutageTolerance: cfg.Outage, ForGracePeriod: 0,
		GroupLoader: loader(files), RestoreNewRuleGroups: true,
	})
	made, errs := m.LoadGroups(cfg.Evaluation, labels.EmptyLabels(), e.options.ExternalURL, nil, false, files.names()...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out []*group
	for key, g := range made {
		next := &group{Group: g}
		for _, old := range e.groups {
			if rules.GroupKey(old.File(), old.Name()) == key {
				g.CopyState(old.Group)
				next.evals = old.evals
				for _, r := range g.AlertingRules() {
					r.SetRestored(old.evals >= restores)
				}
			}
		}
		out = append(out, next)
	}
	// A fixed order: a topic's recording rules are before what others make of
	// them at the same instant, and each run is like the one before.
	slices.SortFunc(out, func(a, b *group) int {
		return strings.Compare(rules.GroupKey(a.File(), a.Name()), rules.GroupKey(b.File(), b.Name()))
	})
	return out, nil
}

// Reload puts other rules in force. On an error the old ones stay. What the
// store keeps, and for how long, changes at the next start.
func (e *Engine) Reload(cfg Config) error {
	groups, err := e.loadRules(cfg)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if cfg.Retention != e.cfg.Retention || cfg.Size != e.cfg.Size {
		e.log.Warn("engine: retention and size take effect at the next start")
	}
	e.cfg, e.groups = cfg, groups
	return nil
}

// evaluate runs the groups that are due at this instant.
func (e *Engine) evaluate(ctx context.Context, at time.Time) {
	for _, g := range e.current() {
		// Ticks come a little early or late; a group of one second is due at each.
		if at.Before(g.due.Add(-g.Interval() / 4)) {
			continue
		}
		if g.due = g.due.Add(g.Interval()); at.Sub(g.due) > 0 || g.evals == 0 {
			g.due = at.Add(g.Interval())
		}
		rules.DefaultEvalIterationFunc(ctx, g.Group, at)
		if g.evals++; g.evals <= restores {
			g.RestoreForState(at)
			// What fired before the restart fires again now, and not a whole
			// interval later. The samples of one instant may not be told twice,
			// hence the millisecond.
			g.Eval(ctx, at.Add(time.Millisecond))
			for _, r := range g.AlertingRules() {
				r.SetRestored(g.evals == restores)
			}
		}
	}
}

func (e *Engine) current() []*group {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.groups
}

func (e *Engine) notify(_ context.Context, expr string, alerts ...*rules.Alert) {
	if len(alerts) == 0 || e.options.Notify == nil {
		return
	}
	out := make([]Alert, len(alerts))
	for i, a := range alerts {
		out[i] = newAlert(a, expr)
	}
	e.options.Notify(out)
}

// Rules are the groups in force, sorted by file and name.
func (e *Engine) Rules() []*rules.Group {
	var out []*rules.Group
	for _, g := range e.current() {
		out = append(out, g.Group)
	}
	return out
}

// Alerts are those that are pending or firing.
func (e *Engine) Alerts() []Alert {
	var out []Alert
	for _, g := range e.current() {
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if a.ResolvedAt.IsZero() {
					out = append(out, newAlert(a, r.Query().String()))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Alert) int {
		return strings.Compare(labels.FromMap(a.Labels).String(), labels.FromMap(b.Labels).String())
	})
	return out
}

// ruleFile is a file that was read and checked.
type ruleFile struct {
	name   string
	groups *rulefmt.RuleGroups
}

type loaded []ruleFile

func (l loaded) names() (names []string) {
	for _, f := range l {
		names = append(names, f.name)
	}
	return names
}

// ruleFiles reads the pack's files and the user's. A recording rule of the
// user's takes the place of the pack's of that name.
func (e *Engine) ruleFiles(cfg Config) (loaded, error) {
	user, err := userFiles(cfg.RuleFiles)
	if err != nil {
		return nil, err
	}
	var all loaded
	theirs := map[string]bool{}
	for _, path := range user {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("rule file: %w", err)
		}
		groups, errs := ParseRules(data, cfg.Evaluation)
		if len(errs) > 0 {
			return nil, inFile(path, errs)
		}
		f := ruleFile{path, groups}
		all = append(all, f)
		for _, g := range f.groups.Groups {
			for _, r := range g.Rules {
				theirs[r.Record] = r.Record != ""
			}
		}
	}
	if e.options.Pack == nil || cfg.Pack == "none" {
		return all, nil
	}
	names, err := fs.Glob(e.options.Pack, cfg.Pack+"/*.yml")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("BUG: the rule pack has no %s rules", cfg.Pack)
	}
	for _, name := range names {
		data, err := fs.ReadFile(e.options.Pack, name)
		if err != nil {
			return nil, err
		}
		f, err := parseRules("pack/"+name, data)
		if err != nil {
			return nil, fmt.Errorf("BUG: %w", err)
		}
		for i := range f.groups.Groups {
			g := &f.groups.Groups[i]
			g.Rules = slices.DeleteFunc(g.Rules, func(r rulefmt.Rule) bool { return r.Record != "" && theirs[r.Record] })
		}
		all = append(all, f)
	}
	return all, nil
}

func parseRules(name string, data []byte) (ruleFile, error) {
	groups, errs := rulefmt.Parse(data, false)
	if len(errs) > 0 {
		return ruleFile{}, inFile(name, errs)
	}
	return ruleFile{name, groups}, nil
}

func inFile(name string, errs []error) error {
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(errs...)
}

// userFiles are the files that the patterns name. A pattern without a * must
// name a file that is there.
func userFiles(patterns []string) (files []string, err error) {
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if len(found) == 0 && !strings.ContainsAny(p, "*?[") {
			return nil, fmt.Errorf("%s: no such file", p)
		}
		files = append(files, found...)
	}
	return files, nil
}

// loader gives the rule manager what was read already.
type loader loaded

func (l loader) Load(name string, _ bool) (*rulefmt.RuleGroups, []error) {
	for _, f := range l {
		if f.name == name {
			return f.groups, nil
		}
	}
	return nil, []error{fmt.Errorf("BUG: rule file %s was not read", name)}
}

func (loader) Parse(expr string) (parser.Expr, error) { return parser.ParseExpr(expr) }
