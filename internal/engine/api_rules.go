package engine

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/annotations"
)

// apiAlert is an alert as Prometheus' API shows it.
type apiAlert struct {
	Labels          labels.Labels `json:"labels"`
	Annotations     labels.Labels `json:"annotations"`
	State           string        `json:"state"`
	ActiveAt        *time.Time    `json:"activeAt,omitempty"`
	KeepFiringSince *time.Time    `json:"keepFiringSince,omitempty"`
	Value           string        `json:"value"`
}

type apiRule struct {
	State          string        `json:"state,omitempty"`
	Name           string        `json:"name"`
	Query          string        `json:"query"`
	Duration       *float64      `json:"duration,omitempty"`
	KeepFiringFor  *float64      `json:"keepFiringFor,omitempty"`
	Labels         labels.Labels `json:"labels,omitempty"`
	Annotations    any           `json:"annotations,omitempty"`
	Alerts         any           `json:"alerts,omitempty"`
	Health         string        `json:"health"`
	LastError      string        `json:"lastError,omitempty"`
	EvaluationTime float64       `json:"evaluationTime"`
	LastEvaluation time.Time     `json:"lastEvaluation"`
	Type           string        `json:"type"`
}

type apiGroup struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []apiRule `json:"rules"`
	Interval       float64   `json:"interval"`
	Limit          int       `json:"limit"`
	EvaluationTime float64   `json:"evaluationTime"`
	LastEvaluation time.Time `json:"lastEvaluation"`
}

func activeAlerts(r *rules.AlertingRule) []apiAlert {
	out := []apiAlert{}
	for _, a := range r.ActiveAlerts() {
		v := apiAlert{
			Labels: a.Labels, Annotations: a.Annotations, State: a.State.String(), ActiveAt: &a.ActiveAt,
			Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
		}
		if !a.KeepFiringSince.IsZero() {
			v.KeepFiringSince = &a.KeepFiringSince
		}
		out = append(out, v)
	}
	return out
}

func (e *Engine) apiAlerts(*http.Request) (any, annotations.Annotations, error) {
	out := []apiAlert{}
	for _, g := range e.current() {
		for _, r := range g.AlertingRules() {
			out = append(out, activeAlerts(r)...)
		}
	}
	return map[string]any{"alerts": out}, nil, nil
}

// apiRules lists the groups; type=alert or type=record keeps one kind of rule,
// and rule_name[], rule_group[] and file[] choose.
func (e *Engine) apiRules(r *http.Request) (any, annotations.Annotations, error) {
	if err := r.ParseForm(); err != nil {
		return nil, nil, bad("%w", err)
	}
	kind := strings.ToLower(r.FormValue("type"))
	if kind != "" && kind != "alert" && kind != "record" {
		return nil, nil, bad("not supported value %q", kind)
	}
	withAlerts := r.FormValue("exclude_alerts") != "true"
	chosen := func(key, value string) bool {
		for _, want := range r.Form[key] {
			if want == value {
				return true
			}
		}
		return len(r.Form[key]) == 0
	}
	out := []apiGroup{}
	for _, g := range e.current() {
		if !chosen("rule_group[]", g.Name()) || !chosen("file[]", g.File()) {
			continue
		}
		v := apiGroup{
			Name: g.Name(), File: g.File(), Rules: []apiRule{}, Interval: g.Interval().Seconds(), Limit: g.Limit(),
			EvaluationTime: g.GetEvaluationTime().Seconds(), LastEvaluation: g.GetLastEvaluation(),
		}
		for _, rule := range g.Group.Rules() {
			if !chosen("rule_name[]", rule.Name()) {
				continue
			}
			if w, ok := describe(rule, kind, withAlerts); ok {
				v.Rules = append(v.Rules, w)
			}
		}
		if len(v.Rules) > 0 || len(r.Form["rule_name[]"]) == 0 {
			out = append(out, v)
		}
	}
	return map[string]any{"groups": out}, nil, nil
}

func describe(rule rules.Rule, kind string, withAlerts bool) (apiRule, bool) {
	v := apiRule{
		Name: rule.Name(), Query: rule.Query().String(), Labels: rule.Labels(), Health: string(rule.Health()),
		EvaluationTime: rule.GetEvaluationDuration().Seconds(), LastEvaluation: rule.GetEvaluationTimestamp(),
	}
	if err := rule.LastError(); err != nil {
		v.LastError = err.Error()
	}
	a, ok := rule.(*rules.AlertingRule)
	if !ok {
		v.Type = "recording"
		return v, kind != "alert"
	}
	hold, keep := a.HoldDuration().Seconds(), a.KeepFiringFor().Seconds()
	v.Type, v.State, v.Duration, v.KeepFiringFor, v.Annotations = "alerting", a.State().String(), &hold, &keep, a.Annotations()
	v.Alerts = []apiAlert{}
	if withAlerts {
		v.Alerts = activeAlerts(a)
	}
	return v, kind != "record"
}

// apiMetadata is type, unit and help of each metric in the last snapshot.
func (e *Engine) apiMetadata(r *http.Request) (any, annotations.Annotations, error) {
	type entry struct {
		Type string `json:"type"`
		Help string `json:"help"`
		Unit string `json:"unit"`
	}
	limit := -1
	if text := r.FormValue("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil {
			return nil, nil, bad("limit must be a number")
		}
	}
	only := r.FormValue("metric")
	out := map[string][]entry{}
	e.mu.RLock()
	snap := e.snap
	e.mu.RUnlock()
	if snap == nil {
		return out, nil, nil
	}
	for _, f := range snap.Families {
		if only != "" && f.GetName() != only {
			continue
		}
		if limit >= 0 && len(out) >= limit {
			break
		}
		out[f.GetName()] = []entry{{strings.ToLower(f.GetType().String()), f.GetHelp(), f.GetUnit()}}
	}
	return out, nil, nil
}

// apiBuild tells Grafana which Prometheus' features to expect.
func (e *Engine) apiBuild(*http.Request) (any, annotations.Annotations, error) {
	return map[string]string{
		"version": Compatible, "revision": "sidecar " + version.Version, "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(),
	}, nil, nil
}
