package metric

import (
	"cmp"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A Snapshot is what one tick saw of everything. It is not changed once it is
// published: /metrics, the page, the engine and the rules all read the same.
type Snapshot struct {
	// At is the time of the tick.
	At time.Time
	// Families are sorted by name, the metrics in them by label values.
	Families []*dto.MetricFamily
}

// Family finds a family by name, or nil.
func (s *Snapshot) Family(name string) *dto.MetricFamily {
	i, ok := slices.BinarySearchFunc(s.Families, name, func(f *dto.MetricFamily, n string) int {
		return cmp.Compare(f.GetName(), n)
	})
	if !ok {
		return nil
	}
	return s.Families[i]
}

// ForTarget keeps what belongs to one target: the series with its label.
func (s *Snapshot) ForTarget(name string) *Snapshot {
	out := &Snapshot{At: s.At}
	for _, f := range s.Families {
		var kept []*dto.Metric
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "target" && l.GetValue() == name {
					kept = append(kept, m)
				}
			}
		}
		if len(kept) > 0 {
			out.Families = append(out.Families, &dto.MetricFamily{
				Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit, Metric: kept})
		}
	}
	return out
}

// Targets lists the values of the label target.
func (s *Snapshot) Targets() []string {
	seen := map[string]bool{}
	for _, f := range s.Families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "target" {
					seen[l.GetValue()] = true
				}
			}
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// A Gathering joins Sets into a Snapshot. Series with the same name and labels
// become one.
type Gathering struct {
	families map[string]*gathered
}

type gathered struct {
	family *Family
	rows   map[string]*gatheredRow
}

type gatheredRow struct {
	labels []*dto.LabelPair
	series series
}

// NewGathering starts a snapshot.
func NewGathering() *Gathering { return &Gathering{families: map[string]*gathered{}} }

// Add copies a Set's present series. The caller holds the Set's lock.
func (g *Gathering) Add(s *Set) {
	prefix := make([]string, 0, 2)
	for _, l := range s.labels {
		prefix = append(prefix, l.Name+"="+l.Value)
	}
	head := keyOf(prefix)
	for f, r := range s.families {
		to := g.families[f.Name]
		if to == nil {
			to = &gathered{family: f, rows: make(map[string]*gatheredRow, len(r.byKey))}
			g.families[f.Name] = to
		}
		for key, row := range r.byKey {
			if (f.Kind == Counter || f.Kind == Gauge) && !row.num.set {
				continue
			}
			if have := to.rows[head+key]; have != nil {
				have.join(f, row)
				continue
			}
			to.rows[head+key] = newGatheredRow(s, f, row)
		}
	}
}

func newGatheredRow(s *Set, f *Family, row *series) *gatheredRow {
	g := &gatheredRow{series: series{num: row.num, sum: row.sum}}
	if row.hist != nil {
		g.series.hist = row.hist.clone()
	}
	g.labels = make([]*dto.LabelPair, 0, len(s.labels)+len(f.Labels))
	for _, l := range s.labels {
		g.labels = append(g.labels, &dto.LabelPair{Name: proto.String(l.Name), Value: proto.String(l.Value)})
	}
	for i, name := range f.Labels {
		g.labels = append(g.labels, &dto.LabelPair{Name: proto.String(name), Value: proto.String(row.values[i])})
	}
	slices.SortFunc(g.labels, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
	return g
}

func (g *gatheredRow) join(f *Family, row *series) {
	switch {
	case f.Kind == Histogram:
		if row.hist != nil {
			g.series.hist.Merge(row.hist)
		}
	case f.Kind == Summary:
		g.series.sum.Count += row.sum.Count
		g.series.sum.Sum += row.sum.Sum
	case f.Kind == Gauge && f.Merge == Max:
		g.series.num.v = max(g.series.num.v, row.num.v)
	default:
		g.series.num.v += row.num.v
	}
}

// Snapshot ends the gathering.
func (g *Gathering) Snapshot(at time.Time) *Snapshot {
	out := &Snapshot{At: at}
	for name, fam := range g.families {
		if len(fam.rows) == 0 {
			continue
		}
		mf := &dto.MetricFamily{Name: proto.String(name), Help: proto.String(fam.family.Help), Type: dtoType(fam.family.Kind)}
		if u := fam.family.Unit(); u != "" {
			mf.Unit = proto.String(u)
		}
		for _, row := range fam.rows {
			mf.Metric = append(mf.Metric, row.metric(fam.family.Kind))
		}
		slices.SortFunc(mf.Metric, compareLabels)
		out.Families = append(out.Families, mf)
	}
	slices.SortFunc(out.Families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

func compareLabels(a, b *dto.Metric) int {
	return slices.CompareFunc(a.Label, b.Label, func(x, y *dto.LabelPair) int {
		return cmp.Or(cmp.Compare(*x.Name, *y.Name), cmp.Compare(*x.Value, *y.Value))
	})
}

func dtoType(k Kind) *dto.MetricType {
	switch k {
	case Counter:
		return dto.MetricType_COUNTER.Enum()
	case Gauge:
		return dto.MetricType_GAUGE.Enum()
	case Histogram:
		return dto.MetricType_HISTOGRAM.Enum()
	}
	return dto.MetricType_SUMMARY.Enum()
}

func (g *gatheredRow) metric(k Kind) *dto.Metric {
	m := &dto.Metric{Label: g.labels}
	switch k {
	case Counter:
		m.Counter = &dto.Counter{Value: proto.Float64(g.series.num.v)}
	case Gauge:
		m.Gauge = &dto.Gauge{Value: proto.Float64(g.series.num.v)}
	case Histogram:
		m.Histogram = g.series.hist.dto()
	case Summary:
		m.Summary = &dto.Summary{SampleCount: proto.Uint64(g.series.sum.Count), SampleSum: proto.Float64(g.series.sum.Sum)}
	}
	return m
}

func (h *Hist) clone() *Hist {
	c := *h
	c.classic = slices.Clone(h.classic)
	c.native = slices.Clone(h.native)
	return &c
}

// dto is the histogram in client_golang's model, classic buckets cumulative and
// native buckets as spans and deltas.
func (h *Hist) dto() *dto.Histogram {
	out := &dto.Histogram{
		SampleCount:   proto.Uint64(h.count),
		SampleSum:     proto.Float64(h.sum),
		Schema:        proto.Int32(nativeSchema),
		ZeroThreshold: proto.Float64(zeroThreshold),
		ZeroCount:     proto.Uint64(h.zero),
	}
	var cumulative uint64
	placed := h.exemplar == nil
	for i, u := range h.upper {
		cumulative += h.classic[i]
		b := &dto.Bucket{UpperBound: proto.Float64(u), CumulativeCount: proto.Uint64(cumulative)}
		if !placed && h.exemplar.Value <= u {
			b.Exemplar, placed = h.exemplar.dto(), true
		}
		out.Bucket = append(out.Bucket, b)
	}
	var previous int64
	next := 0 // index behind the last span
	for i, n := range h.native {
		if n == 0 {
			continue
		}
		index := h.low + i
		switch {
		case len(out.PositiveSpan) == 0:
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(index)), Length: proto.Uint32(1)})
		case index == next:
			*out.PositiveSpan[len(out.PositiveSpan)-1].Length++
		default:
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(index - next)), Length: proto.Uint32(1)})
		}
		next = index + 1
		out.PositiveDelta = append(out.PositiveDelta, int64(n)-previous)
		previous = int64(n)
	}
	if len(out.PositiveSpan) == 0 {
		// An empty span marks a native histogram without observations.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	return out
}

func (e *Exemplar) dto() *dto.Exemplar {
	return &dto.Exemplar{
		Label:     []*dto.LabelPair{{Name: proto.String(e.Label), Value: proto.String(e.ID)}},
		Value:     proto.Float64(e.Value),
		Timestamp: timestamppb.New(time.UnixMicro(int64(e.At * 1e6))),
	}
}
