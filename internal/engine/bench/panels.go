//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/dashboards"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/prometheus/prometheus/promql/parser"
)

// tablePanels asks for fifteen minutes of each panel, as Grafana does when a board
// is opened and then refreshed, and of each chart of the page, as the page does
// when it is opened.
func tablePanels() error {
	dir, err := os.MkdirTemp("", "engine-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, err := newWorld(*series)
	if err != nil {
		return err
	}
	// Forty minutes: the span reaches over blocks and the head.
	at := time.Now().Add(-time.Duration(*minutes) * time.Minute)
	e, err := open(dir, at)
	if err != nil {
		return err
	}
	defer e.Close()
	second := 0
	tick := func() {
		second++
		at = at.Add(time.Second)
		e.Append(w.snapshot(second, at))
	}
	for range *minutes * 60 {
		tick()
	}
	if stop, err := profileInto("panels.prof"); err != nil {
		return err
	} else {
		defer stop()
	}
	h := e.Handler()
	for _, setting := range []struct {
		name  string
		step  time.Duration
		rate  string
		exprs func(target, rate string) ([]string, error)
	}{
		// Grafana's $__rate_interval is the greater of four scrapes and of the step
		// and a scrape more.
		{"dashboards, a point each second", time.Second, "4s", boards},
		{"dashboards, a point each 5 s", 5 * time.Second, "6s", boards},
		{"dashboards, scraped each 15 s", 15 * time.Second, "1m", boards},
		{"the page's charts", time.Second, "10s", charts},
	} {
		exprs, err := setting.exprs(target, setting.rate)
		if err != nil {
			return err
		}
		exprs = slices.DeleteFunc(exprs, func(expr string) bool { return !strings.Contains(setting.name+expr, *match) })
		if len(exprs) == 0 {
			continue
		}
		var all []took
		for _, expr := range exprs {
			for refresh := range 20 {
				// A refresh some seconds later, its ends on whole steps as Grafana has them.
				end := at.Add(time.Duration(refresh-20) * 5 * time.Second).Truncate(setting.step)
				t, err := ask(h, expr, end, setting.step)
				if err != nil {
					return err
				}
				all = append(all, t)
			}
		}
		head(fmt.Sprintf("query_range of 15 min: %s, %d queries of %d", setting.name, len(all), len(exprs)))
		slices.SortFunc(all, func(a, b took) int { return int(a.cpu - b.cpu) })
		row("CPU time", fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, at most %.1f ms", ms(all[len(all)/2].cpu), ms(all[len(all)*99/100].cpu), ms(all[len(all)-1].cpu)), "", true)
		slices.SortFunc(all, func(a, b took) int { return int(a.wall - b.wall) })
		p99 := all[len(all)*99/100].wall
		row("time", fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, at most %.1f ms", ms(all[len(all)/2].wall), ms(p99), ms(all[len(all)-1].wall)), "p99 50 ms", p99 <= 50*time.Millisecond)
		slices.SortFunc(all, func(a, b took) int { return int(b.cpu - a.cpu) })
		row("the dearest", fmt.Sprintf("`%.110s`", all[0].expr), "", true)
	}
	return nil
}

type took struct {
	expr      string
	wall, cpu time.Duration
}

func ask(h http.Handler, expr string, end time.Time, step time.Duration) (took, error) {
	stamp := func(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1e3) }
	q := url.Values{"query": {expr}, "start": {stamp(end.Add(-15 * time.Minute))}, "end": {stamp(end)}, "step": {fmt.Sprint(step.Seconds())}}
	r := httptest.NewRequest("POST", "/api/v1/query_range", strings.NewReader(q.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	began, used := time.Now(), cpu()
	h.ServeHTTP(w, r)
	t := took{expr, time.Since(began), cpu() - used}
	if w.Code != http.StatusOK {
		return t, fmt.Errorf("%s: %s", expr, w.Body)
	}
	return t, nil
}

// boards are the queries of all panels, their variables filled in.
func boards(target, rate string) (exprs []string, err error) {
	names, err := fs.Glob(dashboards.Files, "*.json")
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("$job", "sidecar", "$instance", "here:10404", "$target", target, "$__rate_interval", rate, "$__interval", rate, "$__range", "15m")
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			if text, ok := x["expr"].(string); ok {
				expr := fill.Replace(text)
				if _, err := parser.ParseExpr(expr); err == nil && !strings.Contains(expr, "$") { // else it is Loki's
					exprs = append(exprs, expr)
				}
			}
			for _, one := range x {
				walk(one)
			}
		case []any:
			for _, one := range x {
				walk(one)
			}
		}
	}
	for _, name := range names {
		data, err := dashboards.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var board any
		if err := json.Unmarshal(data, &board); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		walk(board)
	}
	slices.Sort(exprs)
	return slices.Compact(exprs), nil
}

// charts are the page's, whose lines are asked for in one query.
func charts(target, rate string) (exprs []string, err error) {
	root, err := lab.ModuleRoot()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(root, "internal/web/static/live/charts.json"))
	if err != nil {
		return nil, err
	}
	var page struct {
		Charts []struct {
			Series []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("$target", target, "$__rate_interval", rate)
	for _, c := range page.Charts {
		var lines []string
		for i, s := range c.Series {
			lines = append(lines, fmt.Sprintf(`label_replace(%s, "line", "%d", "", "")`, fill.Replace(s.Expr), i))
		}
		exprs = append(exprs, anyOf(lines))
	}
	return exprs, nil
}

// anyOf joins lines as the page does, by halves of halves.
func anyOf(lines []string) string {
	if n := len(lines); n > 2 {
		return "(" + anyOf(lines[:n/2]) + ") or (" + anyOf(lines[n/2:]) + ")"
	}
	return strings.Join(lines, " or ")
}
