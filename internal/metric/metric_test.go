package metric

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/testing/protocmp"
)

var (
	requests = &Family{Name: "test_requests_total", Help: "Requests.", Kind: Counter, Labels: []string{"code", "route"}, Open: []string{"route"}, Limit: 3}
	latency  = &Family{Name: "test_duration_seconds", Help: "Durations.", Kind: Histogram, Labels: []string{"code"}, Buckets: LatencyBuckets}
	depth    = &Family{Name: "test_depth", Help: "Depth.", Kind: Gauge, Labels: []string{"pool"}}
	peak     = &Family{Name: "test_peak", Help: "Peak.", Kind: Gauge, Merge: Max}
	pauses   = &Family{Name: "test_pause_seconds", Help: "Pauses.", Kind: Summary, Labels: []string{"gc"}}
	all      = []*Family{requests, latency, depth, peak, pauses}
)

func text(t *testing.T, sets ...*Set) string {
	t.Helper()
	g := NewGathering()
	for _, s := range sets {
		g.Add(s)
	}
	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range g.Snapshot(time.Time{}).Families {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func wantLines(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains("\n"+got, "\n"+w+"\n") {
			t.Errorf("no line %q in\n%s", w, got)
		}
	}
}

// TestNativeBucketsAgreeWithClientGolang holds our histogram against the
// library's own, bucket by bucket, in both forms.
func TestNativeBucketsAgreeWithClientGolang(t *testing.T) {
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Buckets: LatencyBuckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: zeroThreshold,
	})
	ours := NewHist(LatencyBuckets)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		v := math.Exp(r.NormFloat64()*4 - 5)
		switch i % 100 {
		case 0:
			v = 0
		case 1:
			v = math.Exp2(float64(r.IntN(40)-20) / 8) // on a bound
		}
		ours.Observe(v)
		theirs.Observe(v)
	}
	var want dto.Metric
	if err := theirs.Write(&want); err != nil {
		t.Fatal(err)
	}
	// The library joins spans over small holes by writing empty buckets; the
	// expanded counts are what must agree.
	got := ours.dto()
	if *want.Histogram.Schema != nativeSchema {
		t.Fatalf("the library chose schema %d", *want.Histogram.Schema)
	}
	if d := cmp.Diff(expand(want.Histogram), expand(got)); d != "" {
		t.Errorf("native buckets (-theirs +ours):\n%s", d)
	}
	if d := cmp.Diff(want.Histogram.Bucket, got.Bucket, protocmp.Transform()); d != "" {
		t.Errorf("classic buckets (-theirs +ours):\n%s", d)
	}
	if *want.Histogram.ZeroCount != *got.ZeroCount || *want.Histogram.SampleCount != *got.SampleCount {
		t.Errorf("zero %d count %d, want %d %d", *got.ZeroCount, *got.SampleCount, *want.Histogram.ZeroCount, *want.Histogram.SampleCount)
	}
}

func expand(h *dto.Histogram) map[int]int64 {
	out := map[int]int64{}
	index, n, d := 0, int64(0), 0
	for _, s := range h.PositiveSpan {
		index += int(*s.Offset)
		for range *s.Length {
			n += h.PositiveDelta[d]
			d++
			if n != 0 {
				out[index] = n
			}
			index++
		}
	}
	return out
}

func TestQuantileIsWithinFivePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	h := NewHist(LatencyBuckets)
	var values []float64
	for range 10000 {
		v := math.Exp(r.NormFloat64()*2 - 4)
		values = append(values, v)
		h.Observe(v)
	}
	sort.Float64s(values)
	for _, q := range []float64{0.001, 0.5, 0.66, 0.9, 0.95, 0.99, 1} {
		want := values[int(math.Ceil(q*float64(len(values))))-1]
		if got := h.Quantile(q); math.Abs(got-want)/want > 0.05 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(NewHist(nil).Quantile(0.5)) {
		t.Error("an empty histogram has a median")
	}
}

func TestNativeWindowIsBounded(t *testing.T) {
	h := NewHist(nil)
	for _, v := range []float64{1, 1e-8, math.MaxFloat64, math.Inf(1), 1e-300, math.NaN()} {
		h.Observe(v)
	}
	if h.Count() != 5 {
		t.Errorf("count %d, want 5: only NaN is no observation", h.Count())
	}
	if len(h.native) > maxNative {
		t.Errorf("%d native buckets", len(h.native))
	}
}

func TestLimitSendsTheRestToOther(t *testing.T) {
	s := ForTarget("t")
	for _, route := range []string{"/a", "/b", "/c", "/d", "/e", "/d"} {
		s.Counter(requests, "2xx", route).Inc()
	}
	wantLines(t, text(t, s),
		`test_requests_total{code="2xx",route="/a",target="t"} 1`,
		`test_requests_total{code="2xx",route="other",target="t"} 3`)
	var refused float64
	s.Refused(func(f *Family, n float64) {
		if f == requests {
			refused = n
		}
	})
	if refused != 3 {
		t.Errorf("refused %v, want 3", refused)
	}
}

func TestAbsentIsNotZero(t *testing.T) {
	s := ForTarget("t")
	s.Gauge(depth, "p")
	if got := text(t, s); got != "" {
		t.Errorf("a gauge that was never set is shown: %s", got)
	}
	s.Gauge(depth, "p").Set(0)
	wantLines(t, text(t, s), `test_depth{pool="p",target="t"} 0`)
	s.Gauge(depth, "p").Clear()
	if got := text(t, s); got != "" {
		t.Errorf("a cleared gauge is shown: %s", got)
	}
}

func TestSweepRemovesWhatTheWorldNoLongerHas(t *testing.T) {
	s := ForTarget("t")
	s.Gauge(depth, "old").Set(1)
	s.Begin()
	s.Gauge(depth, "new").Set(2)
	s.Sweep()
	got := text(t, s)
	wantLines(t, got, `test_depth{pool="new",target="t"} 2`)
	if strings.Contains(got, "old") {
		t.Errorf("swept series is still there:\n%s", got)
	}
}

func TestSetsOfOneTargetJoin(t *testing.T) {
	a, b := ForTarget("t"), ForTarget("t")
	a.Counter(requests, "2xx", "").Add(3)
	b.Counter(requests, "2xx", "").Add(4)
	a.Gauge(peak).Set(5)
	b.Gauge(peak).Set(2)
	a.Histogram(latency, "2xx").Observe(0.01)
	b.Histogram(latency, "2xx").Observe(7)
	b.Summary(pauses, "Copy").Count = 2
	wantLines(t, text(t, a, b),
		`test_requests_total{code="2xx",route="",target="t"} 7`,
		`test_peak{target="t"} 5`,
		`test_duration_seconds_count{code="2xx",target="t"} 2`,
		`test_duration_seconds_sum{code="2xx",target="t"} 7.01`,
		`test_pause_seconds_count{gc="Copy",target="t"} 2`)
	if a.Histogram(latency, "2xx").Count() != 1 {
		t.Error("gathering changed the Set")
	}
}

// TestRestoredEqualsSaved is the promise to the checkpoint: whatever was
// published comes back, bit for bit.
func TestRestoredEqualsSaved(t *testing.T) {
	s := ForTarget("t")
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		s.Counter(requests, "2xx", string(rune('a'+r.IntN(8)))).Add(r.Float64())
		s.Histogram(latency, "5xx").Observe(r.ExpFloat64())
	}
	s.Gauge(depth, "p").Set(0.1)
	s.Summary(pauses, "G1").Sum = 0.3
	data, err := s.Save()
	if err != nil {
		t.Fatal(err)
	}
	back := ForTarget("t")
	if err := back.Load(data, all); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text(t, s), text(t, back)); d != "" {
		t.Errorf("(-saved +restored)\n%s", d)
	}
	s.Counter(requests, "2xx", "zz").Inc()
	back.Counter(requests, "2xx", "zz").Inc()
	if d := cmp.Diff(text(t, s), text(t, back)); d != "" {
		t.Errorf("after one more (-saved +restored)\n%s", d)
	}
}

func TestLoadSurvivesAnotherVersionsState(t *testing.T) {
	s := ForTarget("t")
	for _, data := range []string{
		`{"test_requests_total":{"labels":["code"],"series":[{"l":["x"],"v":1}]}}`,
		`{"test_requests_total":{"labels":["code","route"],"series":[{"l":["x"],"v":1}]}}`,
		`{"test_duration_seconds":{"labels":["code"],"series":[{"l":["x"],"n":1,"le":[1],"b":[1,0]}]}}`,
		`{"gone_total":{"series":[{"v":1}]}}`,
	} {
		if err := s.Load([]byte(data), all); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	if got := text(t, s); got != "" {
		t.Errorf("foreign state became figures:\n%s", got)
	}
	if err := s.Load([]byte(`{"test_re`), all); err == nil {
		t.Error("a torn state is no error")
	}
}

func TestInvalidUTF8InALabelIsReplaced(t *testing.T) {
	s := ForTarget("t")
	s.Counter(requests, "2xx", "/\xff\xfe").Inc()
	s.Counter(requests, "2xx", "/\xff\xfe").Inc()
	wantLines(t, text(t, s), `test_requests_total{code="2xx",route="/`+"\uFFFD"+`",target="t"} 2`)
}

func TestCheckFindsMistakes(t *testing.T) {
	if err := Check(all); err != nil {
		t.Errorf("sound families: %v", err)
	}
	h := "Help."
	for _, bad := range [][]*Family{
		{{Name: "a_total", Help: h, Kind: Counter}, {Name: "a_total", Help: h, Kind: Counter}},
		{{Name: "a", Help: h, Kind: Counter}},
		{{Name: "a_total", Help: h, Kind: Gauge}},
		{{Name: "a", Help: h, Kind: Gauge}, {Name: "a_total", Help: h, Kind: Counter}},
		{{Name: "a", Help: h, Kind: Histogram}, {Name: "a_count", Help: h, Kind: Gauge}},
		{{Name: "a", Kind: Gauge}},
		{{Name: "a", Help: h, Kind: Gauge, Labels: []string{"target"}}},
		{{Name: "a", Help: h, Kind: Gauge, Open: []string{"x"}}},
		{{Name: "a", Help: h, Kind: Histogram, Buckets: []float64{2, 1}}},
	} {
		if Check(bad) == nil {
			t.Errorf("no complaint about %+v", *bad[0])
		}
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	s := ForTarget("t")
	s.Counter(requests, "2xx", "/a")
	h := s.Histogram(latency, "2xx")
	h.Observe(1)
	if n := testing.AllocsPerRun(100, func() {
		s.Counter(requests, "2xx", "/a").Inc()
		h.Observe(1.05)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	h := NewHist(LatencyBuckets)
	for i := range 1000 {
		h.Observe(float64(i) / 1000)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(float64(i%1000) / 1000)
	}
}

func BenchmarkCounterLookup(b *testing.B) {
	s := ForTarget("t")
	b.ReportAllocs()
	for b.Loop() {
		s.Counter(requests, "2xx", "/a").Inc()
	}
}

// A Gathering that is used again gives what a new one would: series that two Sets
// share, series that are gone, and no figure of the snapshot before.
func TestGatheringAgain(t *testing.T) {
	one, two := ForTarget("t"), ForTarget("t")
	again := NewGathering()
	for round := range 4 {
		one.Begin()
		one.Gauge(depth, "b").Set(float64(round))
		if round%2 == 0 {
			one.Gauge(depth, "a").Set(7) // before the shared one
		}
		one.Sweep()
		two.Counter(requests, "200", "/x").Add(2)
		two.Histogram(latency, "200").Observe(0.01 * float64(round+1))
		if round != 1 {
			two.Gauge(depth, "b").Set(10)
		} else {
			two.Gauge(depth, "b").Clear()
		}
		fresh := NewGathering()
		for _, s := range []*Set{one, two} {
			again.Add(s)
			fresh.Add(s)
		}
		have, want := again.Snapshot(time.Time{}), fresh.Snapshot(time.Time{})
		if d := cmp.Diff(want.Families, have.Families, protocmp.Transform()); d != "" {
			t.Errorf("round %d: %s", round, d)
		}
	}
}
