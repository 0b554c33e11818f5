package metric

import (
	"encoding/json"
	"fmt"
	"slices"
)

// savedFamily is the form of a family's series in the checkpoint. JSON is not
// the shortest form, but a person can read it, and Go prints floats so that
// they come back bit for bit.
type savedFamily struct {
	Labels  []string      `json:"labels,omitempty"`
	Refused float64       `json:"refused,omitempty"`
	Series  []savedSeries `json:"series"`
}

type savedSeries struct {
	Values  []string  `json:"l,omitempty"`
	Value   *float64  `json:"v,omitempty"`
	Count   uint64    `json:"n,omitempty"`
	Sum     float64   `json:"s,omitempty"`
	Upper   []float64 `json:"le,omitempty"`
	Classic []uint64  `json:"b,omitempty"`
	Zero    uint64    `json:"z,omitempty"`
	Low     int       `json:"o,omitempty"`
	Native  []uint64  `json:"x,omitempty"`
	Last    *Exemplar `json:"e,omitempty"`
}

// Save writes down every counter, histogram and summary, and the gauges that
// are present. The caller holds the lock.
func (s *Set) Save() ([]byte, error) {
	out := make(map[string]savedFamily, len(s.families))
	for f, r := range s.families {
		sf := savedFamily{Labels: f.Labels, Refused: r.refused}
		for _, row := range r.byKey {
			ss := savedSeries{Values: row.values}
			switch f.Kind {
			case Counter, Gauge:
				if !row.num.set {
					continue
				}
				v := row.num.v
				ss.Value = &v
			case Summary:
				ss.Count, ss.Sum = row.sum.Count, row.sum.Sum
			case Histogram:
				if row.hist == nil {
					continue
				}
				h := row.hist
				ss.Count, ss.Sum, ss.Zero, ss.Low, ss.Last = h.count, h.sum, h.zero, h.low, h.exemplar
				ss.Upper, ss.Classic, ss.Native = h.upper, h.classic, h.native
			}
			sf.Series = append(sf.Series, ss)
		}
		out[f.Name] = sf
	}
	return json.Marshal(out)
}

// Load puts the figures of an earlier Save back into an empty Set. families is
// the room's list: a family that is gone, or has other labels or buckets by
// now, starts anew, which is no error. The caller holds the lock.
func (s *Set) Load(data []byte, families []*Family) error {
	var in map[string]savedFamily
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("load saved figures: %w", err)
	}
	s.loading = true
	defer func() { s.loading = false }()
	for _, f := range families {
		sf, ok := in[f.Name]
		if !ok || !slices.Equal(sf.Labels, f.Labels) {
			continue
		}
		for _, ss := range sf.Series {
			if len(ss.Values) != len(f.Labels) {
				continue
			}
			s.restore(f, ss)
		}
		if r := s.families[f]; r != nil {
			r.refused = sf.Refused
		}
	}
	return nil
}

func (s *Set) restore(f *Family, ss savedSeries) {
	switch f.Kind {
	case Counter, Gauge:
		if ss.Value != nil {
			s.find(f, f.Kind, ss.Values).num.Set(*ss.Value)
		}
	case Summary:
		*s.Summary(f, ss.Values...) = Sums{Count: ss.Count, Sum: ss.Sum}
	case Histogram:
		if !slices.Equal(ss.Upper, f.Buckets) || len(ss.Classic) != len(f.Buckets)+1 || len(ss.Native) > maxNative {
			return
		}
		h := s.Histogram(f, ss.Values...)
		h.count, h.sum, h.zero, h.low = ss.Count, ss.Sum, ss.Zero, ss.Low
		h.classic, h.native, h.exemplar = ss.Classic, ss.Native, ss.Last
	}
}
