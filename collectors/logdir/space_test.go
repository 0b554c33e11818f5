package logdir

import (
	"math"
	"testing"
	"time"
)

func TestForecast(t *testing.T) {
	const mb = 1 << 20
	start := time.Unix(1000, 0)
	fill := func(n int, avail func(i int) int64) *forecast {
		f := &forecast{}
		for i := range n {
			f.add(start.Add(time.Duration(i)*time.Second), avail(i))
		}
		return f
	}
	absent := math.NaN()
	for _, c := range []struct {
		name          string
		f             *forecast
		s10, s60, m10 float64
	}{
		{"nothing seen", fill(0, nil), absent, absent, absent},
		{"one look", fill(1, func(int) int64 { return mb }), absent, absent, absent},
		{"at rest", fill(700, func(int) int64 { return 100 * mb }), absent, absent, absent},
		{"space comes back", fill(700, func(i int) int64 { return int64(i) * mb }), absent, absent, absent},
		{"steady, the end in 50 s", fill(700, func(i int) int64 { return int64(749-i) * mb }), 50, 50, 50},
		{"steady, the end in 5 min: beyond ten times 10 s", fill(700, func(i int) int64 { return int64(999-i) * mb }), absent, 300, 300},
		{"steady, the end in 1 h", fill(700, func(i int) int64 { return int64(4299-i) * mb }), absent, absent, 3600},
		{"steady, the end in 2 h: for the rules on hours", fill(700, func(i int) int64 { return int64(7899-i) * mb }), absent, absent, absent},
		{"a storm 4 s old, of 100 MB/s", fill(100, func(i int) int64 { return (1000 - 100*max(int64(i)-95, 0)) * mb }), 15, 90, absent},
		{"too few looks for the longer windows", fill(8, func(i int) int64 { return int64(57-i) * mb }), 50, absent, absent},
		{"full", fill(20, func(i int) int64 { return max(15-int64(i), 0) * mb }), 0, absent, absent},
		{"full for long", fill(100, func(i int) int64 { return 0 }), absent, absent, absent},
	} {
		for i, want := range []float64{c.s10, c.s60, c.m10} {
			got, ok := c.f.full(windows[i].span)
			if !ok {
				got = absent
			}
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: window %s says %v, want %v", c.name, windows[i].name, got, want)
			}
		}
	}

	// The clock stepped back: what was seen before it measures nothing, and
	// does not mix with what is seen after.
	f := fill(20, func(i int) int64 { return int64(100-i) * mb })
	for i := range 11 {
		f.add(start.Add(time.Duration(i)*time.Second), (40-2*int64(i))*mb)
		if got, ok := f.full(10 * time.Second); ok != (i >= 5) || ok && got != float64(20-i) {
			t.Errorf("%d s after a step of the clock: %v %v", i, got, ok)
		}
	}
}

// A sawtooth of rotation: free space falls and comes back with no net loss. No
// window may speak of an end that rotation will have put off by then, except
// where the fall within the window alone would reach it.
func TestForecastSawtooth(t *testing.T) {
	f := &forecast{}
	start := time.Unix(0, 0)
	avail := int64(5120)
	for minute := range 240 {
		for range 60 {
			avail = int64(5120 - 10*(minute%60))
			f.add(start, avail<<20)
			start = start.Add(time.Second)
			for _, w := range windows {
				if left, ok := f.full(w.span); ok {
					t.Fatalf("minute %d: window %s says %v s", minute, w.name, left)
				}
			}
		}
	}
}
