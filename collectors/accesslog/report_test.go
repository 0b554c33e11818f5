package accesslog

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func reportOf(t testing.TB, m *Matcher, opt ReportOptions, text string) *Report {
	t.Helper()
	r := NewReport(m, opt)
	for _, l := range lines([]byte(text)) {
		r.Observe(l)
	}
	return r
}

// fields decodes what --json prints.
func fields(t testing.TB, r *Report) map[string]any {
	t.Helper()
	b, err := json.Marshal(r.JSON())
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReportJSON(t *testing.T) {
	got := fields(t, reportOf(t, sampleMatcher(t), ReportOptions{}, sample))
	want := map[string]any{
		"kind": "accesslog", "pattern": samplePattern, "duration_unit": "us", "lines": 6., "requests": 5.,
		"refused": map[string]any{"truncated": 1.}, "by_status": map[string]any{"200": 2., "404": 1., "503": 1., "400": 1.},
		"by_method": map[string]any{"GET": 3., "POST": 1., "other": 1.}, "response_bytes": 157., "aborted": 1., "negative_durations": 1.,
	}
	for k, v := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(v) {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
	d := got["duration_seconds"].(map[string]any)
	if d["sum"] != .903 || d["max"] != .9 || d["count"] != 4. || math.Abs(d["p99"].(float64)-.9) > .045 {
		t.Errorf("durations %v", d)
	}
	// What is not logged is null, never 0.
	got = fields(t, reportOf(t, mustCompile(t, FormatTomcat, `%t %s`, Options{}), ReportOptions{}, "[30/Nov/2026:12:00:00 +0000] 200"))
	for _, k := range []string{"duration_seconds", "aborted", "response_bytes"} {
		if v, ok := got[k]; !ok || v != nil {
			t.Errorf("%s: %v", k, v)
		}
	}
}

func TestReportCorpus(t *testing.T) {
	data, err := os.ReadFile(shared(t, "corpus", "accesslog", "tomcat10-mixedA-localhost_access_log.log"))
	if err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, FormatTomcat, longPattern, Options{ServerVersion: "10.1.60"})
	got := fields(t, reportOf(t, m, ReportOptions{}, strings.TrimSuffix(string(data), "\n")))
	for k, v := range map[string]any{"lines": 617., "requests": 617., "response_bytes": 2156375., "aborted": 10., "refused": map[string]any{},
		"by_method": map[string]any{"GET": 605., "POST": 12.}, "by_status": map[string]any{"200": 442., "304": 30., "400": 5., "404": 60., "500": 40., "503": 40.}} {
		if fmt.Sprint(got[k]) != fmt.Sprint(v) {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
	d := got["duration_seconds"].(map[string]any)
	if d["sum"] != 36.977084 || d["max"] != .859589 {
		t.Errorf("durations %v", d)
	}
	c := got["concurrency"].(map[string]any)
	if c["exact"] != true || c["peak"].(float64) < 1 {
		t.Errorf("concurrency %v", c)
	}
}

func TestReportText(t *testing.T) {
	var b strings.Builder
	g := Guess{Why: "the shape of its fields", Confidence: .81}
	if err := reportOf(t, sampleMatcher(t), ReportOptions{Guess: &g}, sample).WriteText(&b, 90); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s(go test -run ReportText -update rewrites it)", b.String(), want)
	}
	// An empty file is a report too.
	b.Reset()
	if err := NewReport(sampleMatcher(t), ReportOptions{}).WriteText(&b, 0); err != nil || !strings.Contains(b.String(), "requests             0") {
		t.Errorf("%v %s", err, b.String())
	}
}

func TestReportRange(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 30, 12, 0, s, 0, time.UTC) }
	r := reportOf(t, sampleMatcher(t), ReportOptions{From: at(1), To: at(3)}, sample)
	if r.requests != 2 || r.outside != 3 {
		t.Errorf("%d within, %d outside", r.requests, r.outside)
	}
}

// Percentiles are within 5 % of the true ones at any value.
func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rep := NewReport(mustCompile(t, FormatTomcat, `%s %D`, Options{ServerVersion: "11"}), ReportOptions{})
	var all []float64
	for range 50000 {
		us := int64(4000 * math.Exp(1.4*r.NormFloat64()))
		all = append(all, float64(us)/1e6)
		rep.Observe(fmt.Appendf(nil, "200 %d", us))
	}
	slices.Sort(all)
	got := rep.figures(rep.durations.Count(), rep.sum, rep.max, rep.durations.Quantile)
	for q, v := range map[float64]float64{.5: got.P50, .66: got.P66, .75: got.P75, .8: got.P80, .9: got.P90, .95: got.P95, .98: got.P98, .99: got.P99} {
		want := all[int(math.Ceil(q*float64(len(all))))-1]
		if math.Abs(v-want)/want > .05 {
			t.Errorf("p%v: %v, want %v", q*100, v, want)
		}
	}
}

// The sweep against a count by hand, lines out of order and over a long time.
func TestConcurrency(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		type span struct{ b, e int64 }
		var spans []span
		var s sweep
		at := int64(1_700_000_000_000)
		for range 500 {
			at += r.Int64N(50) * r.Int64N(80)
			spans = append(spans, span{at, at + r.Int64N(3000)})
		}
		slices.SortFunc(spans, func(a, b span) int { return int(a.e - b.e) })
		for _, x := range spans {
			s.add(&Record{Has: HasBegin | HasDuration, MillisBegin: true, Begin: x.b, Duration: float64(x.e-x.b) / 1e3})
		}
		want := int64(0)
		for _, x := range spans {
			n := int64(0)
			for _, y := range spans {
				if y.b <= x.b && x.b < y.e {
					n++
				}
			}
			want = max(want, n)
		}
		if peak, _, exact := s.finish(); peak != want || !exact {
			t.Fatalf("seed %d: peak %d (exact %t), want %d", seed, peak, exact, want)
		}
	}
}

// However long the log is, the bins are bounded and lose nothing.
func TestSecondsAreBounded(t *testing.T) {
	var s seconds
	s.init()
	r := rand.New(rand.NewPCG(1, 1))
	at, n := int64(1_700_000_000), int64(0)
	for range 200000 {
		at += r.Int64N(200)
		s.add(at-r.Int64N(3000), false)
		n++
	}
	for range 7 {
		s.add(at, true)
		n++
	}
	d := s.done()
	total, failed := int64(0), int64(0)
	for _, b := range d.bins {
		total += b.requests
		failed += b.errors
	}
	if total != n || failed != 7 || len(d.bins) > maxBins {
		t.Errorf("%d of %d requests, %d errors, %d bins of %d s", total, n, failed, len(d.bins), d.width)
	}
	if d.busiest[0].unix != at || d.busiest[0].requests < 7 {
		t.Errorf("busiest %+v", d.busiest[0])
	}
}
