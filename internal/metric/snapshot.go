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

// A Gathering joins Sets into Snapshots, one after the other. Series with the
// same name and labels become one. It keeps its own memory from one Snapshot to
// the next, since the second after this one looks nearly the same.
type Gathering struct {
	families map[string]*gathered
}

// gathered is one family on its way into a snapshot.
type gathered struct {
	family *Family
	kind   *dto.MetricType
	unit   *string
	rows   []gatheredRow
	shared bool           // several Sets have added rows
	byID   map[string]int // where each row is, if so
	id     []byte
}

type gatheredRow struct {
	labels []*dto.LabelPair
	num    float64
	sum    Sums
	hist   Hist
}

// NewGathering starts a snapshot.
func NewGathering() *Gathering { return &Gathering{families: map[string]*gathered{}} }

// Add copies a Set's present series. The caller holds the Set's lock.
func (g *Gathering) Add(s *Set) {
	for f, r := range s.families {
		to := g.families[f.Name]
		if to == nil {
			to = &gathered{family: f, kind: dtoType(f.Kind)}
			if u := f.Unit(); u != "" {
				to.unit = proto.String(u)
			}
			g.families[f.Name] = to
		}
		to.add(s, r)
	}
}

func (g *gathered) add(s *Set, r *rows) {
	r.sort(s)
	alone := len(g.rows) == 0
	if !alone && !g.shared {
		g.shared = true
		if g.byID == nil {
			g.byID = make(map[string]int, len(g.rows)+len(r.list))
		}
		clear(g.byID)
		for i := range g.rows {
			g.byID[string(g.idOf(g.rows[i].labels))] = i
		}
	}
	for _, row := range r.list {
		if (r.family.Kind == Counter || r.family.Kind == Gauge) && !row.num.set {
			continue
		}
		if !alone {
			if i, ok := g.byID[string(g.idOf(row.labels))]; ok {
				g.rows[i].join(r.family, row)
				continue
			}
			g.byID[string(g.id)] = len(g.rows)
		}
		g.put(row)
	}
}

// idOf is one key of all labels, valid until it is asked for the next.
func (g *gathered) idOf(labels []*dto.LabelPair) []byte {
	g.id = g.id[:0]
	for _, l := range labels {
		g.id = append(g.id, *l.Name...)
		g.id = append(g.id, 0xff) // never part of valid UTF-8
		g.id = append(g.id, *l.Value...)
		g.id = append(g.id, 0xff)
	}
	return g.id
}

// put copies a series into the next row, into the memory that the row of the
// snapshot before had there.
func (g *gathered) put(s *series) {
	if n := len(g.rows); n < cap(g.rows) {
		g.rows = g.rows[:n+1]
	} else {
		g.rows = append(g.rows, gatheredRow{})
	}
	row := &g.rows[len(g.rows)-1]
	row.labels, row.num, row.sum = s.labels, s.num.v, s.sum
	if s.hist != nil {
		row.hist.copy(s.hist)
	}
}

// sort gives the series their labels and their order.
func (r *rows) sort(s *Set) {
	if r.sorted {
		return
	}
	for _, row := range r.list {
		if row.labels == nil {
			row.labels = labelPairs(s, r.family, row)
		}
	}
	slices.SortFunc(r.list, func(a, b *series) int { return compareLabels(a.labels, b.labels) })
	r.sorted = true
}

func labelPairs(s *Set, f *Family, row *series) []*dto.LabelPair {
	pairs := make([]*dto.LabelPair, 0, len(s.labels)+len(f.Labels))
	for i := range s.labels {
		pairs = append(pairs, &dto.LabelPair{Name: &s.labels[i].Name, Value: &s.labels[i].Value})
	}
	for i := range f.Labels {
		pairs = append(pairs, &dto.LabelPair{Name: &f.Labels[i], Value: &row.values[i]})
	}
	slices.SortFunc(pairs, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
	return pairs
}

func (g *gatheredRow) join(f *Family, row *series) {
	switch {
	case f.Kind == Histogram:
		if row.hist != nil {
			g.hist.Merge(row.hist)
		}
	case f.Kind == Summary:
		g.sum.Count += row.sum.Count
		g.sum.Sum += row.sum.Sum
	case f.Kind == Gauge && f.Merge == Max:
		g.num = max(g.num, row.num.v)
	default:
		g.num += row.num.v
	}
}

// Snapshot ends the gathering; what is added then belongs to the next.
func (g *Gathering) Snapshot(at time.Time) *Snapshot {
	out := &Snapshot{At: at, Families: make([]*dto.MetricFamily, 0, len(g.families))}
	for _, fam := range g.families {
		if len(fam.rows) == 0 {
			continue
		}
		out.Families = append(out.Families, fam.dto())
		fam.rows, fam.shared = fam.rows[:0], false
	}
	slices.SortFunc(out.Families, func(a, b *dto.MetricFamily) int { return cmp.Compare(*a.Name, *b.Name) })
	return out
}

// dto is the family in client_golang's model. What all its metrics have of one
// kind is made in one piece: a snapshot of a thousand series is some hundred
// allocations and not ten thousand.
func (g *gathered) dto() *dto.MetricFamily {
	n := len(g.rows)
	mf := &dto.MetricFamily{Name: &g.family.Name, Help: &g.family.Help, Type: g.kind, Unit: g.unit, Metric: make([]*dto.Metric, n)}
	metrics := make([]dto.Metric, n)
	for i := range g.rows {
		metrics[i].Label = g.rows[i].labels
		mf.Metric[i] = &metrics[i]
	}
	switch g.family.Kind {
	case Counter:
		values, counters := g.values(), make([]dto.Counter, n)
		for i := range metrics {
			counters[i].Value = &values[i]
			metrics[i].Counter = &counters[i]
		}
	case Gauge:
		values, gauges := g.values(), make([]dto.Gauge, n)
		for i := range metrics {
			gauges[i].Value = &values[i]
			metrics[i].Gauge = &gauges[i]
		}
	case Histogram:
		for i := range metrics {
			metrics[i].Histogram = g.rows[i].hist.dto()
		}
	case Summary:
		for i := range metrics {
			s := g.rows[i].sum
			metrics[i].Summary = &dto.Summary{SampleCount: &s.Count, SampleSum: &s.Sum}
		}
	}
	byLabels := func(a, b *dto.Metric) int { return compareLabels(a.Label, b.Label) }
	if !slices.IsSortedFunc(mf.Metric, byLabels) { // of several Sets
		slices.SortFunc(mf.Metric, byLabels)
	}
	return mf
}

func (g *gathered) values() []float64 {
	values := make([]float64, len(g.rows))
	for i := range g.rows {
		values[i] = g.rows[i].num
	}
	return values
}

func compareLabels(a, b []*dto.LabelPair) int {
	return slices.CompareFunc(a, b, func(x, y *dto.LabelPair) int {
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

// copy makes h equal to o, in h's own memory.
func (h *Hist) copy(o *Hist) {
	classic, native := append(h.classic[:0], o.classic...), append(h.native[:0], o.native...)
	*h = *o
	h.classic, h.native = classic, native
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
	buckets, counts := make([]dto.Bucket, len(h.upper)), make([]uint64, len(h.upper))
	out.Bucket = make([]*dto.Bucket, len(h.upper))
	for i, u := range h.upper {
		cumulative += h.classic[i]
		counts[i] = cumulative
		b := &buckets[i]
		b.UpperBound, b.CumulativeCount = &h.upper[i], &counts[i] // the family's bounds, which nobody changes
		if !placed && h.exemplar.Value <= u {
			b.Exemplar, placed = h.exemplar.dto(), true
		}
		out.Bucket[i] = b
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
