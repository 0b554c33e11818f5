package engine

import (
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/prometheus/promql"
)

// begin is when the tests' time starts.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a made-up sidecar: one Set, and an engine that takes its snapshots.
type world struct {
	t    *testing.T
	set  *metric.Set
	e    *Engine
	now  time.Time
	sent []Alert
}

var (
	testCounter = &metric.Family{Name: "test_events_total", Kind: metric.Counter, Labels: []string{"kind"}, Help: "h"}
	testGauge   = &metric.Family{Name: "test_level_bytes", Kind: metric.Gauge, Help: "h"}
	testHist    = &metric.Family{Name: "test_seconds", Kind: metric.Histogram, Buckets: []float64{.1, 1}, Help: "h"}
)

// testRules: one alert on a level that holds for ten seconds, one on a rate.
const testRules = `
groups:
  - name: test
    interval: 1s
    rules:
      - {record: limit:level, expr: vector(100)}
      - {alert: High, expr: test_level_bytes > scalar(limit:level), for: 10s, labels: {severity: warning}, annotations: {summary: "{{ $labels.target }} at {{ $value }}"}}
      - {alert: Events, expr: 'sum without (kind) (rate(test_events_total[10s])) > 0', labels: {severity: critical}}
`

func pack(text string) fstest.MapFS {
	return fstest.MapFS{"load/test.yml": {Data: []byte(text)}, "steady/test.yml": {Data: []byte(text)}}
}

func newWorld(t *testing.T, dir string, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, set: metric.ForTarget("tomcat-8080"), now: begin}
	w.open(dir, change)
	return w
}

func (w *world) open(dir string, change func(*Config)) {
	w.t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	e, err := Open(cfg, Options{
		Dir: dir, Job: "sidecar", Instance: "here:10404", Pack: pack(testRules), Start: w.now, Log: slog.New(slog.DiscardHandler),
		Notify: func(a []Alert) { w.sent = append(w.sent, a...) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.e = e
	w.t.Cleanup(func() { e.Close() })
}

func (w *world) snapshot() *metric.Snapshot {
	g := metric.NewGathering()
	w.set.Lock()
	g.Add(w.set)
	w.set.Unlock()
	return g.Snapshot(w.now)
}

// ticks lets n seconds pass.
func (w *world) ticks(n int) {
	for range n {
		w.now = w.now.Add(time.Second)
		w.e.Append(w.snapshot())
	}
}

// value is the one value of an expression now; absent is told from 0.
func (w *world) value(expr string) (float64, bool) {
	w.t.Helper()
	r, err := w.e.Query(w.t.Context(), expr, w.e.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := r.Vector()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(v) > 1 {
		w.t.Fatalf("%s gives %d series: %v", expr, len(v), v)
	}
	if len(v) == 0 {
		return 0, false
	}
	if v[0].H != nil {
		return v[0].H.Count, true
	}
	return v[0].F, true
}

func (w *world) want(expr string, want float64) {
	w.t.Helper()
	if got, ok := w.value(expr); !ok || got != want {
		w.t.Errorf("%s = %v, %v; want %v", expr, got, ok, want)
	}
}

func (w *world) absent(expr string) {
	w.t.Helper()
	if got, ok := w.value(expr); ok {
		w.t.Errorf("%s = %v; want nothing", expr, got)
	}
}

// state is the state of the one alert of this name, "" when there is none.
func (w *world) state(name string) string {
	for _, a := range w.e.Alerts() {
		if a.Labels["alertname"] == name {
			return a.State
		}
	}
	return ""
}

func TestSeries(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(7)
	w.set.Counter(testCounter, "a").Inc()
	w.set.Histogram(testHist).Observe(.5)
	w.set.Histogram(testHist).Observe(3)
	w.ticks(3)
	w.want(`up{job="sidecar",instance="here:10404"}`, 1)
	w.want(`test_level_bytes{target="tomcat-8080",job="sidecar",instance="here:10404"}`, 7)
	w.want(`test_events_total{kind="a"}`, 1)
	w.want(`test_seconds_count`, 2)
	w.want(`test_seconds_sum`, 3.5)
	w.want(`test_seconds_bucket{le="1.0"}`, 1)
	w.want(`test_seconds_bucket{le="0.1"}`, 0)
	w.want(`test_seconds_bucket{le="+Inf"}`, 2)
	// The native form is kept beside the classic buckets.
	w.want(`histogram_count(test_seconds)`, 2)
	w.want(`histogram_fraction(0, 1, test_seconds)`, .5)
	w.want(`count_over_time(test_level_bytes[10s])`, 3)
}

// A series that is gone from the snapshot is gone at once, and not after the
// five minutes for which a last value is looked back to.
func TestStaleMarker(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(7)
	w.set.Histogram(testHist).Observe(.5)
	w.ticks(3)
	w.set.Remove(testGauge)
	w.set.Remove(testHist)
	w.ticks(1)
	w.absent("test_level_bytes")
	w.absent("test_seconds_count")
	w.absent("histogram_count(test_seconds)")
	w.want("count_over_time(test_level_bytes[10s])", 3)
	w.set.Gauge(testGauge).Set(8)
	w.ticks(1)
	w.want("test_level_bytes", 8)
}

func TestAlert(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(7)
	w.ticks(5)
	if s := w.state("High"); s != "" {
		t.Errorf("quiet: %s", s)
	}
	w.set.Gauge(testGauge).Set(700)
	w.ticks(1)
	if s := w.state("High"); s != "pending" {
		t.Errorf("at once: %s", s)
	}
	w.ticks(10)
	if s := w.state("High"); s != "firing" {
		t.Errorf("after ten seconds: %s", s)
	}
	if len(w.sent) != 1 || w.sent[0].Annotations["summary"] != "tomcat-8080 at 700" || !w.sent[0].ResolvedAt.IsZero() {
		t.Errorf("sent: %+v", w.sent)
	}
	w.ticks(70)
	if len(w.sent) != 2 {
		t.Errorf("sent %d times in 70 s, want again once after %v", len(w.sent), ResendDelay)
	}
	w.set.Gauge(testGauge).Set(7)
	w.ticks(1)
	if s := w.state("High"); s != "" {
		t.Errorf("resolved: %s", s)
	}
	if len(w.sent) != 3 || w.sent[2].ResolvedAt.IsZero() {
		t.Errorf("sent: %+v", w.sent)
	}
}

// The clock is set back by an hour: the engine's time goes on, so a window
// keeps its length, no sample is refused, and a pending alert fires when it
// should.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(700)
	n := w.set.Counter(testCounter, "a")
	for range 5 {
		n.Add(10)
		w.ticks(1)
	}
	w.now = w.now.Add(-time.Hour)
	for range 8 {
		n.Add(10)
		w.ticks(1)
	}
	if s := w.state("High"); s != "firing" {
		t.Errorf("13 s above: %q", s)
	}
	if got, _ := w.value("rate(test_events_total[10s])"); got < 9.9 || got > 10.1 {
		t.Errorf("rate is %v, want 10", got)
	}
	if w.e.series.refused != 0 {
		t.Errorf("%v samples refused", w.e.series.refused)
	}
	// ntpd puts it right again.
	w.now = w.now.Add(time.Hour)
	w.ticks(2)
	if ahead := w.e.Now().Sub(w.now); ahead > 2*time.Second {
		t.Errorf("still %v ahead", ahead)
	}
}

// What cases/44 asks of a restart with `for` in the middle: 20 s away go on
// where they were, 10 minutes away begin anew.
func TestForOverRestart(t *testing.T) {
	for _, c := range []struct {
		away   time.Duration
		before int // seconds above the limit before
		after  int // seconds until it fires
	}{
		{20 * time.Second, 6, 6},
		{20 * time.Second, 14, 1},
		{10 * time.Minute, 6, 11},
	} {
		dir := t.TempDir()
		w := newWorld(t, dir, nil)
		w.set.Gauge(testGauge).Set(700)
		w.ticks(c.before)
		// Not closed: as after kill -9, the WAL is all that is left.
		w.now = w.now.Add(c.away)
		w.sent = nil
		w.open(dir, nil)
		for n := 1; n <= c.after; n++ {
			w.ticks(1)
			if s := w.state("High"); (s == "firing") != (n == c.after) {
				t.Errorf("%v away after %d s: %q %d s after the restart, want it to fire at %d s", c.away, c.before, s, n, c.after)
			}
		}
		for _, a := range w.sent {
			if !a.ResolvedAt.IsZero() {
				t.Errorf("%v away: told resolved in between", c.away)
			}
		}
	}
}

// A reload with the rule unchanged keeps its time.
func TestForOverReload(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(700)
	w.ticks(6)
	if err := w.e.Reload(w.e.cfg); err != nil {
		t.Fatal(err)
	}
	w.ticks(4)
	if s := w.state("High"); s != "pending" {
		t.Errorf("after 10 s: %q", s)
	}
	w.ticks(1)
	if s := w.state("High"); s != "firing" {
		t.Errorf("after 11 s: %q", s)
	}
}

// Hours of samples: blocks are made, old ones go, and a query reads across.
func TestBlocks(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(c *Config) { c.Retention = 40 * time.Minute })
	for range 6 {
		w.set.Counter(testCounter, "a").Add(1)
		for range 15 * 6 { // 15 minutes, a sample each 10 s
			w.now = w.now.Add(9 * time.Second)
			w.ticks(1)
			w.e.store.busy.Wait()
		}
	}
	s := w.e.store
	if n := len(s.blocks); n < 3 || n > 6 {
		t.Errorf("%d blocks after 90 minutes with 40 minutes kept", n)
	}
	if got, _ := w.value("count_over_time(test_events_total[35m])"); got < 208 || got > 211 {
		t.Errorf("%v samples in 35 minutes, want 210", got)
	}
	first := time.UnixMilli(s.blocks[0].MinTime())
	if age := w.now.Sub(first); age > 61*time.Minute {
		t.Errorf("the oldest block begins %v ago", age)
	}
	// Restart: the same, from disk.
	dir := s.dir
	w.e.Close()
	w.open(dir, func(c *Config) { c.Retention = 40 * time.Minute })
	w.ticks(1)
	if got, _ := w.value("count_over_time(test_events_total[35m])"); got < 208 || got > 212 {
		t.Errorf("%v samples in 35 minutes after a restart, want 210", got)
	}
}

// The clock was years ahead when the samples were written.
func TestSamplesOfTheFuture(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.now = begin.AddDate(5, 0, 0)
	w.set.Gauge(testGauge).Set(7)
	w.ticks(3)
	w.e.Close()
	w.now = begin
	w.open(dir, nil)
	w.ticks(2)
	if ahead := w.e.Now().Sub(w.now); ahead > 0 {
		t.Errorf("%v ahead", ahead)
	}
	w.want("test_level_bytes", 7)
}

var _ promql.Vector
