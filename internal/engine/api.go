package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	case "timeout":
		return http.StatusServiceUnavailable
	case "canceled":
		return 499 // nobody reads it; Prometheus' word for a client that went away
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
	ready, _ := out.Data.(encoded)
	if ready != nil {
		out.Data = nil // is put in below
	}
	body, err := json.Marshal(out)
	if ready != nil && err == nil {
		const before = `{"status":"success"`
		body = slices.Concat([]byte(before), []byte(`,"data":`), ready, body[len(before):])
	}
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"status":"error","errorType":"internal","error":"BUG: the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

// run executes a query and gives its answer the form that clients know.
func (e *Engine) run(r *http.Request, make func(context.Context, promql.QueryOpts) (promql.Query, error)) (any, annotations.Annotations, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, nil, err
	}
	patience := queryTimeout
	if text := r.FormValue("timeout"); text != "" {
		d, err := durationOf(text)
		if err != nil {
			return nil, nil, parameter("timeout", err)
		}
		patience = min(patience, d)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var lookback time.Duration
	if text := r.FormValue("lookback_delta"); text != "" {
		if lookback, err = durationOf(text); err != nil {
			return nil, nil, bad("error parsing lookback delta duration: %w", err)
		}
	}
	if err := tooLong(r.FormValue("query")); err != nil {
		return nil, nil, parameter("query", err)
	}
	// The sidecar is a guest: ten boards opened at once take a little longer, and
	// not ten times the memory.
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		if r.Context().Err() != nil {
			return nil, nil, queryError(promql.ErrQueryCanceled("query queue"))
		}
		return nil, nil, queryError(promql.ErrQueryTimeout("query queue"))
	}
	q, err := make(ctx, promql.NewPrometheusQueryOpts(false, lookback))
	if err != nil {
		return nil, nil, parameter("query", err)
	}
	// The value is of the query and may be used again when it is closed, so the
	// JSON is made before.
	defer q.Close()
	if err := e.tooMuch(q); err != nil {
		return nil, nil, parameter("query", err)
	}
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, nil, queryError(res.Err)
	}
	// Without a series the value may be nil, which JSON would call null: Grafana and
	// promtool want an empty list.
	notes := res.Warnings
	switch v := res.Value.(type) {
	case promql.Matrix:
		if v == nil {
			v = promql.Matrix{}
		}
		res.Value, notes = cutValue(v, limit, notes)
	case promql.Vector:
		if v == nil {
			v = promql.Vector{}
		}
		res.Value, notes = cutValue(v, limit, notes)
	}
	text, err := encodeValue(res.Value)
	if err != nil {
		return nil, nil, apiError{"internal", err}
	}
	return text, notes, nil
}

func cutValue[V interface {
	~[]T
	parser.Value
}, T any](v V, limit int, notes annotations.Annotations) (parser.Value, annotations.Annotations) {
	kept, notes := cut([]T(v), limit, notes)
	return V(kept), notes
}

func (e *Engine) apiQuery(r *http.Request) (any, annotations.Annotations, error) {
	at, err := optionalTime(r, "time", e.Now())
	if err != nil {
		return nil, nil, err
	}
	return e.run(r, func(ctx context.Context, o promql.QueryOpts) (promql.Query, error) {
		return e.queries.NewInstantQuery(ctx, e.store, o, r.FormValue("query"), at)
	})
}

func (e *Engine) apiRange(r *http.Request) (any, annotations.Annotations, error) {
	start, err := timeOf(r.FormValue("start"))
	if err != nil {
		return nil, nil, parameter("start", err)
	}
	end, err := timeOf(r.FormValue("end"))
	if err != nil {
		return nil, nil, parameter("end", err)
	}
	if end.Before(start) {
		return nil, nil, parameter("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := durationOf(r.FormValue("step"))
	if err != nil {
		return nil, nil, parameter("step", err)
	}
	if step <= 0 {
		return nil, nil, parameter("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	// PromQL counts in milliseconds and divides by the step.
	if step < time.Millisecond {
		return nil, nil, parameter("step", errors.New("less than a millisecond"))
	}
	// In milliseconds: the span of two far times is no time.Duration.
	if float64(end.UnixMilli())-float64(start.UnixMilli()) > maxPoints*float64(step.Milliseconds()) {
		return nil, nil, bad("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	return e.run(r, func(ctx context.Context, o promql.QueryOpts) (promql.Query, error) {
		return e.queries.NewRangeQuery(ctx, e.store, o, r.FormValue("query"), start, end, step)
	})
}

func (e *Engine) apiFormat(r *http.Request) (any, annotations.Annotations, error) {
	if err := tooLong(r.FormValue("query")); err != nil {
		return nil, nil, parameter("query", err)
	}
	expr, err := parser.ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, nil, parameter("query", err)
	}
	// Breaking a deep tree into lines takes longer than evaluating it.
	if _, err := (&bounds{step: time.Second}).walk(expr, window{points: 1}, 0); err != nil {
		return nil, nil, parameter("query", err)
	}
	return expr.Pretty(0), nil, nil
}

// choice is what series, labels and label values have in common.
type choice struct {
	from, to time.Time
	sets     [][]*labels.Matcher
	limit    int
	matchers bool // the error is in these; of series, Prometheus names the parameter
}

func (e *Engine) choice(r *http.Request) (c choice, err error) {
	if c.limit, err = limitOf(r); err != nil {
		return c, err
	}
	if c.from, err = optionalTime(r, "start", minTime); err != nil {
		return c, err
	}
	if c.to, err = optionalTime(r, "end", maxTime); err != nil {
		return c, err
	}
	c.matchers = true
	c.sets, err = matcherSets(r)
	return c, err
}

// matcherSets are what match[] says.
func matcherSets(r *http.Request) ([][]*labels.Matcher, error) {
	if err := tooLong(r.Form["match[]"]...); err != nil {
		return nil, bad("match[]: %w", err)
	}
	sets, err := parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, apiError{"bad_data", err}
	}
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return m != nil && !m.Matches("") }) {
			return nil, bad("match[] must contain at least one non-empty matcher")
		}
	}
	return sets, nil
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
	if err := r.ParseForm(); err != nil {
		return nil, nil, bad("error parsing form values: %w", err)
	}
	if len(r.Form["match[]"]) == 0 {
		return nil, nil, bad("no match[] parameter provided")
	}
	c, err := e.choice(r)
	if err != nil {
		if c.matchers {
			err = parameter("match[]", err)
		}
		return nil, nil, err
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
	out, notes := cut(out, c.limit, nil)
	return out, notes, nil
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
	out, notes := cut(slices.Compact(out), c.limit, nil)
	return out, notes, nil
}
