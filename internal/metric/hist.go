package metric

import (
	"math"
	"sort"
	"sync"
)

// nativeSchema gives native buckets whose bounds are powers of 2^(1/8): a value
// read from the middle of a bucket is within 4.5 % of the true one.
const nativeSchema = 3

// zeroThreshold is the width of the native zero bucket. A duration below a
// nanosecond is no duration of ours, and a negative one (a clock stepped back)
// counts as zero; the parsers refuse those before they come here.
const zeroThreshold = 1e-9

// maxNative bounds the native window: 64 octaves hold everything from a
// nanosecond to centuries.
const maxNative = 64 << nativeSchema

// bounds8 are 2^(k/8)/2 for k = 0..7: the lower bounds of the eight buckets of
// one octave as math.Frexp's fraction sees them. They are written out because
// math.Exp2 is off by a last bit in two of them, and Prometheus' own table is
// the measure for a value that stands exactly on a bound.
var bounds8 = [8]float64{0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711}

// Hist is one histogram: classic buckets and a native histogram beside them.
type Hist struct {
	upper    []float64    // classic bounds, the family's
	from     *classicFrom // shared by the histograms of one family
	classic  []uint64     // not cumulative; one more than upper, for +Inf
	sum      float64
	count    uint64
	zero     uint64
	low      int // native index of native[0]
	native   []uint64
	exemplar *Exemplar
}

// An Exemplar points from a bucket to one event in it.
type Exemplar struct {
	Label, ID string
	Value     float64
	// At is Unix time in seconds.
	At float64
}

func newHist(upper []float64) *Hist {
	return &Hist{upper: upper, from: classicOf(upper), classic: make([]uint64, len(upper)+1)}
}

// classicFrom says where in the classic bounds the walk for a value begins, by
// the value's native bucket: at the first bound that is not below the bucket.
// Most native buckets hold no classic bound, so the walk is no walk. Walking
// from the first bound instead costs more than all the rest of an observation,
// because no processor can foresee where it ends.
type classicFrom struct {
	upper []float64
	low   int // native index of first[0]
	first []uint8
}

// classics are the tables made so far, by the address of the bounds.
var classics sync.Map

func classicOf(upper []float64) *classicFrom {
	if len(upper) == 0 || len(upper) > 200 || upper[0] < zeroThreshold {
		return &classicFrom{}
	}
	if c, ok := classics.Load(&upper[0]); ok && len(c.(*classicFrom).upper) == len(upper) {
		return c.(*classicFrom)
	}
	c := newClassicFrom(upper)
	classics.Store(&upper[0], c)
	return c
}

func newClassicFrom(upper []float64) *classicFrom {
	c := &classicFrom{upper: upper, low: nativeIndex(upper[0])}
	high := nativeIndex(upper[len(upper)-1])
	if high-c.low > 1024 {
		return &classicFrom{upper: upper}
	}
	i := 0
	for n := c.low; n <= high; n++ {
		for i < len(upper) && nativeIndex(upper[i]) < n {
			i++
		}
		c.first = append(c.first, uint8(i))
	}
	return c
}

// bucket is the classic bucket of v, whose native bucket is native.
func (h *Hist) bucket(v float64, native int) int {
	i := 0
	if n := native - h.from.low; uint(n) < uint(len(h.from.first)) {
		i = int(h.from.first[n])
	} else if n >= 0 && len(h.from.first) > 0 {
		return len(h.upper)
	}
	for i < len(h.upper) && v > h.upper[i] {
		i++
	}
	return i
}

// Observe counts one value, in the family's unit.
func (h *Hist) Observe(v float64) { h.ObserveN(v, 1) }

// ObserveN counts one value n times.
func (h *Hist) ObserveN(v float64, n uint64) {
	if v != v { // not a number is no observation
		return
	}
	h.sum += v * float64(n)
	h.count += n
	if v < zeroThreshold {
		h.zero += n
		h.classic[h.bucket(v, math.MinInt32)] += n
		return
	}
	index := nativeIndex(v)
	h.classic[h.bucket(v, index)] += n
	if i := index - h.low; uint(i) < uint(len(h.native)) {
		h.native[i] += n // nearly always
		return
	}
	h.nativeAdd(index, n)
}

// SetExemplar remembers one event; the newest stays.
func (h *Hist) SetExemplar(e Exemplar) { h.exemplar = &e }

// nativeIndex is the index of the bucket (bound(i-1), bound(i)] that holds v,
// where bound(i) = 2^(i/8).
func nativeIndex(v float64) int {
	v = min(v, math.MaxFloat64) // an infinite one
	// v = m * 2^e with m in [1, 2), as its bits say: no call, and one compare,
	// since no two bounds share a 32nd of an octave. This is the hot path of
	// every log with a duration in it. Values too small for a normal number
	// don't come here.
	bits := math.Float64bits(v)
	e := int(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	k := int(first8[bits>>47&31])
	if k < 8 && 2*bounds8[k] < m {
		k++
	}
	return e*8 + k
}

// first8 is, for each 32nd of an octave, the first bound that is not below its
// beginning.
var first8 = func() (t [32]uint8) {
	for i := range t {
		low := 1 + float64(i)/32
		for t[i] < 8 && 2*bounds8[t[i]] < low {
			t[i]++
		}
	}
	return t
}()

// NativeBound is the upper bound of a native bucket.
func NativeBound(index int) float64 { return math.Exp2(float64(index) / 8) }

func (h *Hist) nativeAdd(index int, n uint64) {
	if len(h.native) == 0 {
		h.low = index
		h.native = append(make([]uint64, 0, 32), 0)
	}
	switch i := index - h.low; {
	case i >= 0 && i < len(h.native):
	case i >= maxNative || h.low+len(h.native)-index > maxNative:
		// Outside of the window: keep the observation at its nearer edge.
		if i < 0 {
			index = h.low
		} else {
			index = h.low + len(h.native) - 1
		}
	case i >= len(h.native):
		h.native = append(h.native, make([]uint64, i+1-len(h.native))...)
	default:
		h.native = append(make([]uint64, -i, -i+len(h.native)), h.native...)
		h.low = index
	}
	h.native[index-h.low] += n
}

// Count is how many values were observed; Sum is their sum.
func (h *Hist) Count() uint64 { return h.count }

// Sum is the sum of the observed values.
func (h *Hist) Sum() float64 { return h.sum }

// Merge adds another histogram with the same buckets.
func (h *Hist) Merge(o *Hist) {
	for i, n := range o.classic {
		h.classic[i] += n
	}
	h.sum += o.sum
	h.count += o.count
	h.zero += o.zero
	for i, n := range o.native {
		if n > 0 {
			h.nativeAdd(o.low+i, n)
		}
	}
	if o.exemplar != nil && (h.exemplar == nil || o.exemplar.At > h.exemplar.At) {
		h.exemplar = o.exemplar
	}
}

// Quantile reads a quantile (0 to 1) from the native histogram: the geometric
// middle of the bucket in which it falls, so within 4.5 % of the true value.
// It is NaN when nothing was observed.
func (h *Hist) Quantile(q float64) float64 {
	if h.count == 0 {
		return math.NaN()
	}
	rank := uint64(math.Ceil(q * float64(h.count)))
	rank = max(rank, 1)
	if rank <= h.zero {
		return 0
	}
	seen := h.zero
	for i, n := range h.native {
		if seen += n; seen >= rank {
			return math.Exp2((float64(h.low+i) - 0.5) / 8)
		}
	}
	return NativeBound(h.low + len(h.native) - 1)
}

// NewHist makes a histogram that stands in no Set, for reports.
func NewHist(upper []float64) *Hist {
	if !sort.Float64sAreSorted(upper) {
		panic("BUG: buckets out of order")
	}
	return newHist(upper)
}
