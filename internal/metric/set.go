package metric

import (
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
)

// A Set holds the series of one source of one target, or of one followed file.
//
// Whoever changes or gathers it holds its lock. The loops in collectors lock it
// around each piece of a log; a poller reads the world first and locks only
// while it writes the figures down, so that a scrape never waits for /proc.
type Set struct {
	sync.Mutex
	labels   []Label
	families map[*Family]*rows
	epoch    uint64
	key      []byte // reused for look-ups
	loading  bool   // saved series are put back: the limit has been kept already
}

// A Label is one name and value.
type Label struct{ Name, Value string }

// rows are the series of one family.
type rows struct {
	family  *Family
	byKey   map[string]*series
	list    []*series // the same, sorted by labels once they are gathered
	sorted  bool
	refused float64 // look-ups that ended in "other"
}

// series is one row; exactly one of its three figures is in use, by kind.
type series struct {
	values []string
	epoch  uint64
	num    Number
	hist   *Hist
	sum    Sums
	labels []*dto.LabelPair // made when it is first gathered, then shared by all snapshots
}

// Number is the figure of a counter or a gauge.
type Number struct {
	v   float64
	set bool
}

// Inc adds one.
func (n *Number) Inc() { n.v++; n.set = true }

// Add adds d. For a counter d is never negative.
func (n *Number) Add(d float64) { n.v += d; n.set = true }

// Set puts the value in place: a gauge's, or a counter's that somebody else
// counts, such as the kernel.
func (n *Number) Set(v float64) { n.v = v; n.set = true }

// Clear makes the sample absent, until it is set again.
func (n *Number) Clear() { n.v, n.set = 0, false }

// Value is the figure, and whether there is one.
func (n *Number) Value() (float64, bool) { return n.v, n.set }

// Sums is the figure of a summary: how many, and how much in all.
type Sums struct {
	Count uint64
	Sum   float64
}

// NewSet makes an empty Set whose series all carry the given labels.
func NewSet(labels ...Label) *Set {
	return &Set{labels: labels, families: map[*Family]*rows{}}
}

// ForTarget is NewSet with the one label that every series of a server carries.
func ForTarget(name string) *Set { return NewSet(Label{"target", name}) }

// Counter finds or makes the series with these label values, in the order of
// f.Labels. The result stays valid until Sweep removes the series; keep it
// where lines are counted. A new series past the family's limit is "other".
func (s *Set) Counter(f *Family, values ...string) *Number { return &s.find(f, Counter, values).num }

// Gauge is Counter for gauges. A new one is absent until it is set.
func (s *Set) Gauge(f *Family, values ...string) *Number { return &s.find(f, Gauge, values).num }

// Histogram is Counter for histograms.
func (s *Set) Histogram(f *Family, values ...string) *Hist {
	r := s.find(f, Histogram, values)
	if r.hist == nil {
		r.hist = newHist(f.Buckets)
	}
	return r.hist
}

// Summary is Counter for summaries.
func (s *Set) Summary(f *Family, values ...string) *Sums { return &s.find(f, Summary, values).sum }

// Start makes closed counters visible at 0 before their first event, so that
// rate() sees the first step. Only for label sets that are known beforehand.
func (s *Set) Start(f *Family, values ...string) *Number {
	n := s.Counter(f, values...)
	n.set = true
	return n
}

func (s *Set) find(f *Family, kind Kind, values []string) *series {
	if f.Kind != kind || len(values) != len(f.Labels) {
		panic("BUG: metric " + f.Name + " used as a " + kind.String() + " with labels " + strings.Join(values, ","))
	}
	r := s.families[f]
	if r == nil {
		r = &rows{family: f, byKey: map[string]*series{}}
		s.families[f] = r
	}
	s.key = s.key[:0]
	for _, v := range values {
		s.key = append(s.key, v...)
		s.key = append(s.key, 0xff) // never part of valid UTF-8
	}
	if row := r.byKey[string(s.key)]; row != nil {
		row.epoch = s.epoch
		return row
	}
	return s.add(r, values)
}

// add makes a series, under "other" where the family is full.
func (s *Set) add(r *rows, values []string) *series {
	f := r.family
	clean := make([]string, len(values))
	for i, v := range values {
		clean[i] = strings.ToValidUTF8(strings.Clone(v), "\uFFFD")
	}
	if limit := f.limit(); limit > 0 && len(r.byKey) >= limit && !s.loading {
		r.refused++
		for i, l := range f.Labels {
			if slices.Contains(f.Open, l) {
				clean[i] = OtherValue
			}
		}
	}
	key := keyOf(clean)
	if row := r.byKey[key]; row != nil {
		row.epoch = s.epoch
		return row
	}
	row := &series{values: clean, epoch: s.epoch}
	r.byKey[key] = row
	r.list, r.sorted = append(r.list, row), false
	return row
}

func keyOf(values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(v)
		b.WriteByte(0xff)
	}
	return b.String()
}

// Begin starts a round of a poller that names each series anew. Series that
// the round does not name are removed by Sweep.
func (s *Set) Begin() { s.epoch++ }

// Sweep ends the round: what was not named since Begin is gone from the next
// snapshot, as it is gone from the world.
func (s *Set) Sweep() {
	for f, r := range s.families {
		before := len(r.byKey)
		for k, row := range r.byKey {
			if row.epoch != s.epoch {
				delete(r.byKey, k)
			}
		}
		if len(r.byKey) < before {
			r.list = slices.DeleteFunc(r.list, func(row *series) bool { return row.epoch != s.epoch })
		}
		if len(r.byKey) == 0 && r.refused == 0 {
			delete(s.families, f)
		}
	}
}

// Remove drops all series of one family.
func (s *Set) Remove(f *Family) { delete(s.families, f) }

// Len is the number of series in the Set.
func (s *Set) Len() int {
	n := 0
	for _, r := range s.families {
		n += len(r.byKey)
	}
	return n
}

// Each calls do with every present series of a counter or gauge. values are the
// Set's own and not to be changed.
func (s *Set) Each(f *Family, do func(values []string, v float64)) {
	if r := s.families[f]; r != nil {
		for _, row := range r.byKey {
			if row.num.set {
				do(row.values, row.num.v)
			}
		}
	}
}

// Refused calls do with each family that had to send series to "other", and
// with how many look-ups did.
func (s *Set) Refused(do func(f *Family, lookups float64)) {
	for f, r := range s.families {
		if r.refused > 0 {
			do(f, r.refused)
		}
	}
}

// Refuse counts a look-up that a room has sent to "other" itself, because the
// cap on its labels is its own (routes), so that it shows among the refused.
func (s *Set) Refuse(f *Family) {
	r := s.families[f]
	if r == nil {
		r = &rows{family: f, byKey: map[string]*series{}}
		s.families[f] = r
	}
	r.refused++
}
