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

// TestClassicBucket holds the short way to a classic bucket against the walk.
func TestClassicBucket(t *testing.T) {
	for _, upper := range [][]float64{LatencyBuckets, {1}, {.5, .5000001, 1e6}, {}, {0, 1}, {-1, 0, 1}} {
		h := NewHist(upper)
		check := func(v float64) {
			want := 0
			for want < len(upper) && v > upper[want] {
				want++
			}
			clear(h.classic)
			h.Observe(v)
			if h.classic[want] != 1 {
				t.Errorf("%v in %v: %v, want bucket %d", v, upper, h.classic, want)
			}
		}
		for _, u := range upper {
			check(u)
			check(math.Nextafter(u, math.Inf(-1)))
			check(math.Nextafter(u, math.Inf(1)))
		}
		r := rand.New(rand.NewPCG(1, 1))
		for range 20000 {
			check(math.Exp(r.Float64()*60 - 30))
		}
		for _, v := range []float64{0, -1, 1e-12, math.Inf(1), math.MaxFloat64} {
			check(v)
		}
	}
}
