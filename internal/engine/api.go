package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Compatible is the Prometheus whose packages these are.
const Compatible = "3.4.2"

// maxPoints is how many points a query_range may give for a series, as in
// Prometheus.
const maxPoints = 11_000

// Handler serves the read-only part of Prometheus' HTTP API below /api/v1, so
// that Grafana takes the sidecar for a Prometheus and promtool queries it.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, do := range map[string]func(*http.Request) (any, annotations.Annotations, error){
		"query":               e.apiQuery,
		"query_range":         e.apiRange,
		"series":              e.apiSeries,
		"labels":              e.apiLabels,
		"label/{name}/values": e.apiValues,
		"metadata":            e.apiMetadata,
		"rules":               e.apiRules,
		"alerts":              e.apiAlerts,
		"status/buildinfo":    e.apiBuild,
		"format_query":        e.apiFormat,
	} {
		h := func(w http.ResponseWriter, r *http.Request) {
			data, notes, err := do(r)
			answer(w, data, notes, err, r.FormValue("query"))
		}
		mux.HandleFunc("GET /api/v1/"+path, h)
		switch path {
		case "query", "query_range", "series", "labels", "format_query":
			// The form of a long query, and what Grafana sends by default.
			mux.HandleFunc("POST /api/v1/"+path, h)
		}
	}
	return mux
}

// apiError is an error with Prometheus' word for its kind.
type apiError struct {
	kind string
	error
}

func bad(format string, a ...any) error { return apiError{"bad_data", fmt.Errorf(format, a...)} }

func (e apiError) status() int {
	switch e.kind {
	case "bad_data":
		return http.StatusBadRequest
	case "execution":
		return http.StatusUnprocessableEntity
	case "timeout", "canceled":
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// queryError names what went wrong in PromQL's engine.
func queryError(err error) error {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		stored   promql.ErrStorage
	)
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return apiError{"canceled", err}
	case errors.As(err, &timeout):
		return apiError{"timeout", err}
	case errors.As(err, &stored):
		return apiError{"internal", err}
	}
	return apiError{"execution", err}
}

func answer(w http.ResponseWriter, data any, notes annotations.Annotations, err error, query string) {
	out := struct {
		Status    string   `json:"status"`
		Data      any      `json:"data,omitempty"`
		ErrorType string   `json:"errorType,omitempty"`
		Error     string   `json:"error,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
		Infos     []string `json:"infos,omitempty"`
	}{Status: "success", Data: data}
	out.Warnings, out.Infos = notes.AsStrings(query, 10, 10)
	status := http.StatusOK
	if err != nil {
		var known apiError
		if !errors.As(err, &known) {
			known = apiError{"internal", err}
		}
		out.Status, out.Data, out.ErrorType, out.Error = "error", nil, known.kind, err.Error()
		status = known.status()
	}
	body, err := json.Marshal(out)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"status":"error","errorType":"internal","error":"BUG: the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

// timeOf reads a time as Prometheus' API writes it: Unix seconds or RFC 3339.
func timeOf(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	if t, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(t) || math.Abs(t) > math.MaxInt64/1e9 {
			return time.Time{}, bad("invalid parameter %q: %s is out of bounds", name, text)
		}
		s, ns := math.Modf(t)
		return time.Unix(int64(s), int64(math.Round(ns*1000)/1000*1e9)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, bad("invalid parameter %q: cannot parse %q to a valid timestamp", name, text)
	}
	return t, nil
}

func durationOf(text string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(d) || math.Abs(d) > math.MaxInt64/1e9 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
		}
		return time.Duration(d * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
	}
	return time.Duration(d), nil
}

func limitOf(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, bad("invalid parameter \"limit\": %q", text)
	}
	return n, nil
}

func cut[T any](all []T, limit int) []T {
	if limit > 0 && len(all) > limit {
		return all[:limit]
	}
	return all
}

// result is the data of a query's answer; PromQL's values know their JSON form.
type result struct {
	Type   parser.ValueType `json:"resultType"`
	Result parser.Value     `json:"result"`
}

func (e *Engine) run(r *http.Request, q promql.Query) (any, annotations.Annotations, error) {
	ctx := r.Context()
	if text := r.FormValue("timeout"); text != "" {
		d, err := durationOf(text)
		if err != nil {
			return nil, nil, bad("invalid parameter \"timeout\": %w", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Warnings, queryError(res.Err)
	}
	// The value is of the query and may be used again when it is closed, so the
	// JSON is made here.
	text, err := json.Marshal(result{res.Value.Type(), res.Value})
	q.Close()
	if err != nil {
		return nil, nil, apiError{"internal", err}
	}
	return json.RawMessage(text), res.Warnings, nil
}

func (e *Engine) apiQuery(r *http.Request) (any, annotations.Annotations, error) {
	at, err := timeOf(r, "time", e.Now())
	if err != nil {
		return nil, nil, err
	}
	q, err := e.queries.NewInstantQuery(r.Context(), e.store, options(r), r.FormValue("query"), at)
	if err != nil {
		return nil, nil, bad("invalid parameter \"query\": %w", err)
	}
	return e.run(r, q)
}

func options(r *http.Request) promql.QueryOpts {
	if d, err := durationOf(r.FormValue("lookback_delta")); err == nil && d > 0 {
		return promql.NewPrometheusQueryOpts(false, d)
	}
	return nil
}

func (e *Engine) apiRange(r *http.Request) (any, annotations.Annotations, error) {
	if r.FormValue("start") == "" || r.FormValue("end") == "" {
		return nil, nil, bad("invalid parameter: start and end are needed")
	}
	start, err := timeOf(r, "start", time.Time{})
	if err != nil {
		return nil, nil, err
	}
	end, err := timeOf(r, "end", time.Time{})
	if err != nil {
		return nil, nil, err
	}
	if end.Before(start) {
		return nil, nil, bad("invalid parameter \"end\": end timestamp must not be before start time")
	}
	step, err := durationOf(r.FormValue("step"))
	if err != nil {
		return nil, nil, bad("invalid parameter \"step\": %w", err)
	}
	if step <= 0 {
		return nil, nil, bad("invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer")
	}
	if end.Sub(start)/step > maxPoints {
		return nil, nil, bad("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	q, err := e.queries.NewRangeQuery(r.Context(), e.store, options(r), r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, nil, bad("invalid parameter \"query\": %w", err)
	}
	return e.run(r, q)
}

func (e *Engine) apiFormat(r *http.Request) (any, annotations.Annotations, error) {
	expr, err := parser.ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, nil, bad("invalid parameter \"query\": %w", err)
	}
	return expr.Pretty(0), nil, nil
}

// choice is what series, labels and label values have in common.
type choice struct {
	from, to time.Time
	sets     [][]*labels.Matcher
	limit    int
}

func (e *Engine) choice(r *http.Request) (c choice, err error) {
	if c.from, err = timeOf(r, "start", time.UnixMilli(0)); err != nil {
		return c, err
	}
	if c.to, err = timeOf(r, "end", e.Now().Add(time.Hour)); err != nil {
		return c, err
	}
	if c.to.Before(c.from) {
		return c, bad("invalid parameter \"end\": end timestamp must not be before start timestamp")
	}
	if c.limit, err = limitOf(r); err != nil {
		return c, err
	}
	for _, text := range r.Form["match[]"] {
		set, err := parser.ParseMetricSelector(text)
		if err != nil {
			return c, bad("invalid parameter \"match[]\": %w", err)
		}
		c.sets = append(c.sets, set)
	}
	return c, nil
}

// each calls do with a querier and each set of matchers, or once without any.
func (e *Engine) each(c choice, do func(storage.Querier, []*labels.Matcher) error) error {
	q, err := e.store.Querier(c.from.UnixMilli(), c.to.UnixMilli())
	if err != nil {
		return apiError{"internal", err}
	}
	defer q.Close()
	sets := c.sets
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	for _, set := range sets {
		if err := do(q, set); err != nil {
			return apiError{"execution", err}
		}
	}
	return nil
}

func (e *Engine) apiSeries(r *http.Request) (any, annotations.Annotations, error) {
	c, err := e.choice(r)
	if err != nil {
		return nil, nil, err
	}
	if len(c.sets) == 0 {
		return nil, nil, bad("no match[] parameter provided")
	}
	found := map[string]labels.Labels{}
	hints := &storage.SelectHints{Start: c.from.UnixMilli(), End: c.to.UnixMilli(), Func: "series"}
	err = e.each(c, func(q storage.Querier, set []*labels.Matcher) error {
		s := q.Select(r.Context(), true, hints, set...)
		for s.Next() {
			l := s.At().Labels()
			found[l.String()] = l
		}
		return s.Err()
	})
	if err != nil {
		return nil, nil, err
	}
	out := make([]labels.Labels, 0, len(found))
	for _, l := range found {
		out = append(out, l)
	}
	slices.SortFunc(out, labels.Compare)
	return cut(out, c.limit), nil, nil
}

func (e *Engine) apiLabels(r *http.Request) (any, annotations.Annotations, error) {
	return e.names(r, func(q storage.Querier, set []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelNames(r.Context(), nil, set...)
	})
}

func (e *Engine) apiValues(r *http.Request) (any, annotations.Annotations, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.LabelName(name).IsValid() {
		return nil, nil, bad("invalid label name: %q", name)
	}
	return e.names(r, func(q storage.Querier, set []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelValues(r.Context(), name, nil, set...)
	})
}

func (e *Engine) names(r *http.Request, read func(storage.Querier, []*labels.Matcher) ([]string, annotations.Annotations, error)) (any, annotations.Annotations, error) {
	c, err := e.choice(r)
	if err != nil {
		return nil, nil, err
	}
	out := []string{}
	err = e.each(c, func(q storage.Querier, set []*labels.Matcher) error {
		some, _, err := read(q, set)
		out = append(out, some...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(out)
	return cut(slices.Compact(out), c.limit), nil, nil
}
