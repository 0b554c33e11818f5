package engine

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/annotations"
)

// parameter names the parameter that an error is about.
func parameter(name string, err error) error {
	return apiError{"bad_data", fmt.Errorf("invalid parameter %q: %w", name, err)}
}

// The bounds of time that Prometheus' API has and clients send back to it. They
// have too many digits for the standard library.
var (
	minTime = time.Unix(math.MinInt64/1000+62135596801, 0).UTC()
	maxTime = time.Unix(math.MaxInt64/1000-62135596801, 999999999).UTC()
)

// timeOf reads a time as Prometheus' API writes it: Unix seconds or RFC 3339.
func timeOf(text string) (time.Time, error) {
	if t, err := strconv.ParseFloat(text, 64); err == nil {
		s, ns := math.Modf(t)
		return time.Unix(int64(s), int64(math.Round(ns*1000)/1000*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	switch text {
	case minTime.Format(time.RFC3339Nano):
		return minTime, nil
	case maxTime.Format(time.RFC3339Nano):
		return maxTime, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
}

// optionalTime is a time that may be left out.
func optionalTime(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	t, err := timeOf(text)
	if err != nil {
		return t, parameter(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t, nil
}

func durationOf(text string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(text, 64); err == nil {
		if d *= float64(time.Second); d > math.MaxInt64 || d < math.MinInt64 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", text)
		}
		return time.Duration(d), nil
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
	if err == nil && n < 0 {
		err = errors.New("limit must be non-negative")
	}
	if err != nil {
		return 0, parameter("limit", err)
	}
	return n, nil
}

// cut keeps as many as were asked for, and says so.
func cut[T any](all []T, limit int, notes annotations.Annotations) ([]T, annotations.Annotations) {
	if limit > 0 && len(all) > limit {
		return all[:limit], notes.Add(errors.New("results truncated due to limit"))
	}
	return all, notes
}
