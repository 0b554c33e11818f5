package engine

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
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

// apiAlertingRule and apiRecordingRule are a rule as the API shows it. Which
// fields are there when empty differs between the two, and clients may rely on it.
type apiAlertingRule struct {
	State          string           `json:"state"`
	Name           string           `json:"name"`
	Query          string           `json:"query"`
	Duration       float64          `json:"duration"`
	KeepFiringFor  float64          `json:"keepFiringFor"`
	Labels         labels.Labels    `json:"labels"`
	Annotations    labels.Labels    `json:"annotations"`
	Alerts         []apiAlert       `json:"alerts"`
	Health         rules.RuleHealth `json:"health"`
	LastError      string           `json:"lastError,omitempty"`
	EvaluationTime float64          `json:"evaluationTime"`
	LastEvaluation time.Time        `json:"lastEvaluation"`
	Type           string           `json:"type"`
}

type apiRecordingRule struct {
	Name           string           `json:"name"`
	Query          string           `json:"query"`
	Labels         labels.Labels    `json:"labels,omitempty"`
	Health         rules.RuleHealth `json:"health"`
	LastError      string           `json:"lastError,omitempty"`
	EvaluationTime float64          `json:"evaluationTime"`
	LastEvaluation time.Time        `json:"lastEvaluation"`
	Type           string           `json:"type"`
}

type apiGroup struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []any     `json:"rules"`
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
// and rule_name[], rule_group[], file[] and match[] choose. A group of which
// nothing is left is left out.
func (e *Engine) apiRules(r *http.Request) (any, annotations.Annotations, error) {
	if err := r.ParseForm(); err != nil {
		return nil, nil, bad("error parsing form values: %w", err)
	}
	sets, err := matcherSets(r)
	if err != nil {
		return nil, nil, err
	}
	kind := strings.ToLower(r.FormValue("type"))
	if kind != "" && kind != "alert" && kind != "record" {
		return nil, nil, parameter("type", fmt.Errorf("not supported value %q", kind))
	}
	without := false
	if text := strings.ToLower(r.FormValue("exclude_alerts")); text != "" {
		if without, err = strconv.ParseBool(text); err != nil {
			return nil, nil, parameter("exclude_alerts", fmt.Errorf("error converting exclude_alerts: %w", err))
		}
	}
	page, err := pageOf(r)
	if err != nil {
		return nil, nil, err
	}
	chosen := func(key, value string) bool {
		return len(r.Form[key]) == 0 || slices.Contains(r.Form[key], value)
	}
	out := struct {
		Groups []apiGroup `json:"groups"`
		Next   string     `json:"groupNextToken,omitempty"`
	}{Groups: []apiGroup{}}
	for _, g := range e.current() {
		token := groupToken(g.File(), g.Name())
		if !page.reached(token) || !chosen("rule_group[]", g.Name()) || !chosen("file[]", g.File()) {
			continue
		}
		v := apiGroup{
			Name: g.Name(), File: g.File(), Rules: []any{}, Interval: g.Interval().Seconds(), Limit: g.Limit(),
			EvaluationTime: g.GetEvaluationTime().Seconds(), LastEvaluation: g.GetLastEvaluation(),
		}
		for _, rule := range g.Group.Rules(sets...) {
			if !chosen("rule_name[]", rule.Name()) {
				continue
			}
			if w := describe(rule, kind, !without); w != nil {
				v.Rules = append(v.Rules, w)
			}
		}
		if len(v.Rules) == 0 {
			continue
		}
		if page.limit > 0 && len(out.Groups) == page.limit {
			out.Next = token
			break
		}
		out.Groups = append(out.Groups, v)
	}
	if page.from != "" && !page.found {
		return nil, nil, parameter("group_next_token", fmt.Errorf("invalid group_next_token '%v'. were rule groups changed?", page.from))
	}
	return out, nil, nil
}

// rulePage is the part of the groups that was asked for.
type rulePage struct {
	limit int
	from  string // the token of the first group
	found bool
}

func pageOf(r *http.Request) (*rulePage, error) {
	limit, from := r.FormValue("group_limit"), r.FormValue("group_next_token")
	switch {
	case limit == "" && from != "":
		return nil, parameter("group_next_token", errors.New("group_limit needs to be present in order to paginate over the groups"))
	case limit == "":
		return &rulePage{}, nil
	}
	n, err := strconv.ParseInt(limit, 10, 32)
	if err != nil {
		return nil, parameter("group_limit", fmt.Errorf("group_limit needs to be a valid number: %w", err))
	}
	if n <= 0 {
		return nil, parameter("group_limit", errors.New("group_limit needs to be greater than 0"))
	}
	return &rulePage{limit: int(n), from: from}, nil
}

func (p *rulePage) reached(token string) bool {
	p.found = p.found || p.from == "" || p.from == token
	return p.found
}

// groupToken is Prometheus' name of a group between two pages.
func groupToken(file, group string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(file+";"+group)))
}

// describe is nil for a rule of the other kind.
func describe(rule rules.Rule, kind string, withAlerts bool) any {
	problem := ""
	if err := rule.LastError(); err != nil {
		problem = err.Error()
	}
	took, when := rule.GetEvaluationDuration().Seconds(), rule.GetEvaluationTimestamp()
	a, ok := rule.(*rules.AlertingRule)
	switch {
	case !ok && kind != "alert":
		return apiRecordingRule{
			Name: rule.Name(), Query: rule.Query().String(), Labels: rule.Labels(), Health: rule.Health(), LastError: problem,
			EvaluationTime: took, LastEvaluation: when, Type: "recording",
		}
	case !ok || kind == "record":
		return nil
	}
	v := apiAlertingRule{
		State: a.State().String(), Name: a.Name(), Query: a.Query().String(), Duration: a.HoldDuration().Seconds(), KeepFiringFor: a.KeepFiringFor().Seconds(),
		Labels: a.Labels(), Annotations: a.Annotations(), Health: a.Health(), LastError: problem, EvaluationTime: took, LastEvaluation: when, Type: "alerting",
	}
	if withAlerts {
		v.Alerts = activeAlerts(a)
	}
	return v
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
	if text := r.FormValue("limit_per_metric"); text != "" {
		// Here each metric has one entry in any case.
		if _, err := strconv.Atoi(text); err != nil {
			return nil, nil, bad("limit_per_metric must be a number")
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
