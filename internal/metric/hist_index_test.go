package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNativeIndex holds the index made of a float's bits against the meaning of
// a bucket: (bound(i-1), bound(i)], on the bounds themselves and beside them.
func TestNativeIndex(t *testing.T) {
	slow := func(v float64) int {
		frac, exp := math.Frexp(v)
		k := 0
		for k < 8 && bounds8[k] < frac {
			k++
		}
		return (exp-1)*8 + k
	}
	check := func(v float64) {
		if got, want := nativeIndex(v), slow(v); got != want {
			t.Errorf("%v: %d, want %d", v, got, want)
		}
	}
	for e := -40; e < 40; e++ {
		for k := range bounds8 {
			v := math.Ldexp(bounds8[k], e)
			check(v)
			check(math.Nextafter(v, 0))
			check(math.Nextafter(v, math.Inf(1)))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100000 {
		check(math.Exp(r.Float64()*60 - 20))
	}
	check(math.MaxFloat64)
}

func BenchmarkObserve(b *testing.B) {
	h := NewHist(LatencyBuckets)
	r := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, 4096)
	for i := range values {
		values[i] = .004 * math.Exp(1.1*r.NormFloat64())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(values[i&4095])
	}
}
