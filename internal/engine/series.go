package engine

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// series remembers what the last snapshot held, so that a series costs a look
// into a map each tick, and not a sorted label set, and so that one that is
// gone is told to the store.
type series struct {
	job, instance string
	known         map[string]*known
	epoch         uint64
	key           []byte // reused
	up            *known

	// Samples counts what was appended, Refused what the store would not take
	// (a sample that is older than the last of its series).
	samples, refused float64
}

type known struct {
	ref    storage.SeriesRef
	labels labels.Labels
	epoch  uint64
}

func newSeries(job, instance string) *series {
	s := &series{job: job, instance: instance, known: map[string]*known{}}
	s.up = &known{labels: labels.FromStrings("__name__", "up", "instance", instance, "job", job)}
	return s
}

// append writes a snapshot in one commit: all of it, or on an error nothing. An
// error means that the WAL can't be written.
func (s *series) append(ctx context.Context, to storage.Appendable, t int64, snap *metric.Snapshot) error {
	s.epoch++
	a := &adding{series: s, app: to.Appender(ctx), t: t}
	a.float(s.up, 1)
	for _, f := range snap.Families {
		for _, m := range f.Metric {
			a.metric(f, m)
		}
	}
	var gone []string
	for key, k := range s.known {
		if k.epoch != s.epoch {
			// Without the marker the last value would be taken for current for
			// five minutes more.
			a.float(k, math.Float64frombits(value.StaleNaN))
			gone = append(gone, key)
		}
	}
	if err := a.app.Commit(); err != nil {
		return err
	}
	for _, key := range gone {
		delete(s.known, key)
	}
	s.samples += a.samples
	s.refused += a.refused
	return nil
}

// adding is one snapshot on its way.
type adding struct {
	*series
	app              storage.Appender
	t                int64
	samples, refused float64
}

func (a *adding) metric(f *dto.MetricFamily, m *dto.Metric) {
	name := f.GetName()
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		a.float(a.find(name, m.Label, "", ""), m.GetCounter().GetValue())
	case dto.MetricType_GAUGE:
		a.float(a.find(name, m.Label, "", ""), m.GetGauge().GetValue())
	case dto.MetricType_SUMMARY:
		a.float(a.find(name+"_count", m.Label, "", ""), float64(m.GetSummary().GetSampleCount()))
		a.float(a.find(name+"_sum", m.Label, "", ""), m.GetSummary().GetSampleSum())
	case dto.MetricType_HISTOGRAM:
		a.histogram(name, m.Label, m.GetHistogram())
	}
}

// histogram keeps both forms: rules that must also load in a Prometheus without
// native histograms read the classic buckets.
func (a *adding) histogram(name string, l []*dto.LabelPair, h *dto.Histogram) {
	a.float(a.find(name+"_count", l, "", ""), float64(h.GetSampleCount()))
	a.float(a.find(name+"_sum", l, "", ""), h.GetSampleSum())
	for _, b := range h.Bucket {
		a.float(a.find(name+"_bucket", l, "le", number(b.GetUpperBound())), float64(b.GetCumulativeCount()))
	}
	if len(h.Bucket) > 0 {
		a.float(a.find(name+"_bucket", l, "le", "+Inf"), float64(h.GetSampleCount()))
	}
	if len(h.PositiveSpan) == 0 && len(h.NegativeSpan) == 0 {
		return
	}
	k := a.find(name, l, "", "")
	ref, err := a.app.AppendHistogram(k.ref, k.labels, a.t, native(h), nil)
	a.note(k, ref, err)
}

func (a *adding) float(k *known, v float64) {
	ref, err := a.app.Append(k.ref, k.labels, a.t, v)
	a.note(k, ref, err)
}

func (a *adding) note(k *known, ref storage.SeriesRef, err error) {
	switch {
	case err == nil:
		k.ref = ref
		a.samples++
	case errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, storage.ErrOutOfBounds),
		errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		a.refused++
	default:
		k.ref = 0 // the store may have let the series go
		a.refused++
	}
}

// forget drops the references into a head that is no longer appended to.
func (s *series) forget() {
	s.up.ref = 0
	for _, k := range s.known {
		k.ref = 0
	}
}

// find is the series with this name and these labels, and one more.
func (a *adding) find(name string, l []*dto.LabelPair, extra, extraValue string) *known {
	key := append(a.key[:0], name...)
	for _, p := range l {
		key = append(append(append(key, 0xff), p.GetName()...), 0xfe)
		key = append(key, p.GetValue()...)
	}
	key = append(append(key, 0xff), extraValue...)
	a.key = key
	if k := a.known[string(key)]; k != nil {
		k.epoch = a.epoch
		return k
	}
	b := labels.NewScratchBuilder(len(l) + 4)
	b.Add(labels.MetricName, name)
	taken := map[string]bool{}
	for _, p := range l {
		n := p.GetName()
		if n == "job" || n == "instance" {
			n = "exported_" + n // as a scrape does with labels that are its own
		}
		taken[n] = true
		b.Add(n, p.GetValue())
	}
	b.Add("job", a.job)
	b.Add("instance", a.instance)
	if extra != "" && !taken[extra] {
		b.Add(extra, extraValue)
	}
	b.Sort()
	k := &known{labels: b.Labels(), epoch: a.epoch}
	a.known[string(key)] = k
	return k
}

// number is a bucket's bound as Prometheus writes it: 1 is "1.0".
func number(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	for _, c := range text {
		if c < '0' || c > '9' {
			return text
		}
	}
	return text + ".0"
}

// native is the histogram in the store's form.
func native(h *dto.Histogram) *histogram.Histogram {
	out := &histogram.Histogram{
		Schema: h.GetSchema(), ZeroThreshold: h.GetZeroThreshold(), ZeroCount: h.GetZeroCount(),
		Count: h.GetSampleCount(), Sum: h.GetSampleSum(),
		PositiveBuckets: h.PositiveDelta, NegativeBuckets: h.NegativeDelta,
	}
	for _, s := range h.PositiveSpan {
		out.PositiveSpans = append(out.PositiveSpans, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
	}
	for _, s := range h.NegativeSpan {
		out.NegativeSpans = append(out.NegativeSpans, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
	}
	return out.Compact(0)
}
