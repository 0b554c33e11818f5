package engine

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/prometheus/promql/parser"
)

// peerConfig evaluates as often as the engine does, which is also the default
// step of a subquery.
const peerConfig = "global: {evaluation_interval: 5s}\n"

// runBoth is the made-up run in an engine without rules and in a Prometheus.
func runBoth(t *testing.T) (*world, *peer) {
	t.Helper()
	p := startPeer(t, peerConfig)
	w := &world{t: t, set: metric.ForTarget("tomcat-8080"), now: begin}
	cfg := DefaultConfig()
	cfg.Pack = "none"
	e, err := Open(cfg, Options{Dir: t.TempDir(), Job: "sidecar", Instance: "here:10404", Start: w.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.e = e
	t.Cleanup(func() { e.Close() })
	made(t, w, p)
	return w, p
}

// A thousand random expressions over the same samples have the same answers, or
// the same errors, in the engine and in the Prometheus whose packages it is made
// of. The samples came to the one by our way of a snapshot, to the other by its own
// parser; what is compared is the JSON.
func TestRandomExpressions(t *testing.T) {
	w, p := runBoth(t)
	h := w.e.Handler()
	e := expressions{rand.New(rand.NewPCG(1, 2026))}
	full, refused, loose, wrong := 0, 0, 0, 0
	for n := range 1000 {
		expr := e.expression()
		at := begin.Add(time.Duration((30_000 + e.Int64N(int64(runSeconds+60)*1000))) * time.Millisecond)
		path, q := "query", url.Values{"query": {expr}, "time": {stamp(at)}}
		if n%2 == 1 {
			path = "query_range"
			q = url.Values{"query": {expr}, "start": {stamp(at)}, "end": {stamp(at.Add(time.Duration(e.IntN(600)) * time.Second))}, "step": {pick(e, "1s", "5", "7.5", "15s", "1m")}}
		}
		ours, theirs := p.both(h, path, q, n%3 == 0)
		normal(ours, expr)
		normal(theirs, expr)
		if d := same(ours.body, theirs.body, &loose); d != "" || ours.status != theirs.status {
			t.Errorf("%s?%s\n%s\nengine %d, Prometheus %d: %.1500s", path, q.Encode(), expr, ours.status, theirs.status, d)
			if wrong++; wrong > 10 {
				t.Fatal("and so on")
			}
		}
		switch data, _ := theirs.body["data"].(map[string]any); {
		case data == nil:
			refused++
		case fmt.Sprint(data["result"]) != "[]":
			full++
		}
	}
	t.Logf("1000 expressions: %d with samples, %d refused; %d values differ in the last bits", full, refused, loose)
	// A generator that asks for nothing that is there would agree as well.
	if full < 500 || refused < 50 {
		t.Errorf("%d with samples and %d refused are too few to tell", full, refused)
	}
}

func stamp(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }

// normal puts an answer into the one order in which it can be compared: that of
// an instant vector is left to chance by Prometheus, and with it which series an
// error names first.
func normal(r reply, expr string) {
	for _, list := range []string{"warnings", "infos"} {
		if l, ok := r.body[list].([]any); ok {
			slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	if text, ok := r.body["error"].(string); ok {
		before, _, _ := strings.Cut(text, " for the match group")
		r.body["error"] = before
		return
	}
	data, ok := r.body["data"].(map[string]any)
	if !ok {
		return
	}
	list, ok := data["result"].([]any)
	if !ok || data["resultType"] == string(parser.ValueTypeScalar) || data["resultType"] == string(parser.ValueTypeString) {
		return
	}
	slices.SortFunc(list, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["metric"]), fmt.Sprint(b.(map[string]any)["metric"]))
	})
	// Of equal values, topk takes those that come first: which is left open, too. The
	// times and values alone are compared.
	if strings.HasPrefix(expr, "topk(") || strings.HasPrefix(expr, "bottomk(") {
		var points []any
		for _, one := range list {
			m := one.(map[string]any)
			if many, ok := m["values"].([]any); ok {
				points = append(points, many...)
			} else {
				points = append(points, m["value"])
			}
		}
		slices.SortFunc(points, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		data["result"] = points
	}
}

// Each endpoint's answer, errors included, is that of Prometheus over the same
// samples: by GET, and by POST where that is taken.
func TestAPIOfPrometheus(t *testing.T) {
	w, p := runBoth(t)
	h := w.e.Handler()
	at := stamp(begin.Add(10 * time.Minute))
	first, last := stamp(begin.Add(2*time.Minute)), stamp(begin.Add(6*time.Minute))
	for path, queries := range map[string][]string{
		"query": {
			"query=up&time=" + at, "query=up&time=2026-03-01T12:05:00Z", "query=up&time=2026-03-01T12:05:00.5%2B01:00", "query=up&time=never", "query=up&time=",
			"query=", "", "query=up&time=1&limit=x", "query=up&limit=-1&time=" + at, "query=jvm_threadpool_threads&limit=2&time=" + at,
			"query=up&timeout=5s&time=" + at, "query=up&timeout=soon&time=" + at, "query=up&timeout=1e300&time=" + at, "query=up&lookback_delta=1s&time=" + stamp(begin.Add(705*time.Second)),
			"query=up&lookback_delta=x&time=" + at, "query=up%5B5s%5D&time=" + at, `query="a%20string"&time=` + at, "query=1%2F0&time=" + at, "query=accesslog_request_duration_seconds&time=" + at,
			"query=rate(jvm_threadpool_threads[1m])&time=" + at, "query=histogram_quantile(0.9,jvm_threadpool_threads)&time=" + at,
			"query=quantile(7,up)&time=" + at, "query=up%20*%20on(job)%20jvm_threadpool_threads&time=" + at, "query=%ff&time=" + at,
		},
		"query_range": {
			"query=up&start=" + first + "&end=" + last + "&step=15", "query=up&start=" + first + "&end=" + last + "&step=15s", "query=up&start=2026-03-01T12:05:00Z&end=2026-03-01T12:06:00Z&step=7.5",
			"query=up&start=" + last + "&end=" + first + "&step=15", "query=up&end=" + last + "&step=15", "query=up&start=" + first + "&step=15", "query=up&start=" + first + "&end=" + last,
			"query=up&start=" + first + "&end=" + last + "&step=0", "query=up&start=" + first + "&end=" + last + "&step=-5", "query=up&start=" + first + "&end=" + last + "&step=x", "query=up&start=0&end=" + last + "&step=1",
			"query=up&start=" + first + "&end=" + last + "&step=1e30", "query=nothing&start=" + first + "&end=" + last + "&step=15", "query=up[1m]&start=" + first + "&end=" + last + "&step=15",
			"query=jvm_threadpool_threads&limit=1&start=" + first + "&end=" + last + "&step=15", "query=jvm_memory_pool_used_bytes&start=" + first + "&end=" + last + "&step=1",
			"query=1&start=" + first + "&end=" + last + "&step=1m", "query=&start=" + first + "&end=" + last + "&step=1m", "query=rate(up[1m])&start=" + first + "&end=" + last + "&step=1m",
		},
		"series": {
			"match[]=up", "match[]=up&match[]=jvm_threadpool_threads", "match[]={code=\"5xx\"}&match[]=accesslog_requests_total", "", "match[]=", "match[]={}", "match[]=up{", "match[]={x=\"\"}",
			"match[]={job=\"sidecar\"}&limit=0", "match[]=up&limit=-2", "match[]=up&limit=a", "match[]=up&start=" + first + "&end=" + last, "match[]=up&start=1&end=2", "match[]=up&start=x", "match[]=up&end=x",
			"match[]=accesslog_requests_total&start=" + stamp(begin.Add(15*time.Minute)), "match[]=up&start=-292273086-05-16T16:47:06Z&end=292277025-08-18T07:12:54.999999999Z",
		},
		"labels": {
			"", "limit=3", "limit=-1", "match[]=up", "match[]=up&match[]=accesslog_requests_total", "match[]={", "match[]=&limit=2", "match[]={code=~\".*\"}", "start=" + first + "&end=" + last, "start=1&end=2", "start=x", "end=x",
			"match[]=nothing",
		},
		"label/code/values":     {"", "limit=1", "limit=100", "limit=a", "match[]=up", "match[]=accesslog_requests_total{code!=\"5xx\"}", "match[]={", "start=" + first + "&end=" + last, "start=1&end=2", "start=x"},
		"label/__name__/values": {"", "limit=2", "match[]={code=\"5xx\"}", "match[]=up&match[]={pool=\"GC task\"}"},
		"label/nosuch/values":   {"", "match[]=up&match[]=nothing"},
		"label/a-b/values":      {""},
		"label/U__code/values":  {""},
		"label/route/values":    {""},
		"format_query":          {"query=sum(up)by(job)", "query=sum(", ""},
	} {
		for _, text := range queries {
			q, err := url.ParseQuery(strings.NewReplacer("+", "%2B").Replace(text))
			if err != nil {
				t.Fatal(err)
			}
			if q.Get("time") == "" && path == "query" {
				q.Set("time", at) // the engine's now is that of its samples
			}
			for _, post := range []bool{false, true} {
				if post && strings.HasPrefix(path, "label/") {
					continue
				}
				ours, theirs := p.both(h, path, q, post)
				normal(ours, q.Get("query"))
				normal(theirs, q.Get("query"))
				for _, r := range []reply{ours, theirs} {
					if l, ok := r.body["data"].([]any); ok && path == "series" { // in no order
						slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
					}
				}
				loose := 0
				if d := same(ours.body, theirs.body, &loose); d != "" || loose > 0 || ours.status != theirs.status {
					t.Errorf("%s?%s (post %v)\nengine %d, Prometheus %d: %.1500s", path, text, post, ours.status, theirs.status, d)
				}
			}
		}
	}
}
