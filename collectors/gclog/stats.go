package gclog

import (
	"math"
	"slices"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

type kindStats struct {
	count   uint64
	sum     float64
	max     float64
	timed   uint64
	exact   []float64
	hist    *metric.Hist
	nesting uint64
}

func (k *kindStats) add(v float64) {
	k.count++
	k.timed++
	k.sum += v
	k.max = math.Max(k.max, v)
	if k.hist != nil {
		k.hist.Observe(v)
		return
	}
	k.exact = append(k.exact, v)
	if len(k.exact) == maxExact {
		k.spill()
	}
}

// spill trades exactness for bounded memory.
func (k *kindStats) spill() {
	if k.hist == nil {
		k.hist = metric.NewHist(PauseBuckets)
	}
	for _, v := range k.exact {
		k.hist.Observe(v)
	}
	k.exact = nil
}

func (k *kindStats) merge(o *kindStats) {
	k.count += o.count
	k.timed += o.timed
	k.sum += o.sum
	k.nesting += o.nesting
	k.max = math.Max(k.max, o.max)
	if k.hist == nil && o.hist == nil && len(k.exact)+len(o.exact) < maxExact {
		k.exact = append(k.exact, o.exact...)
		return
	}
	k.spill()
	if o.hist != nil {
		k.hist.Merge(o.hist)
	}
	for _, v := range o.exact {
		k.hist.Observe(v)
	}
}

func (k *kindStats) quantile(q float64) float64 {
	if k.timed == 0 {
		return math.NaN()
	}
	if k.hist != nil {
		return math.Min(k.hist.Quantile(q), k.max)
	}
	s := slices.Clone(k.exact)
	slices.Sort(s)
	i := int(math.Ceil(q*float64(len(s)))) - 1
	return s[max(0, min(i, len(s)-1))]
}

type causeStats struct {
	count uint64
	sum   float64
	max   float64
}

func (c *causeStats) add(v float64) {
	c.count++
	c.sum += v
	c.max = math.Max(c.max, v)
}

type longPause struct {
	seconds, sync float64
	kind          string
	cause         string
	at            Stamp
}

func longer(list []longPause, p longPause) []longPause {
	if len(list) == maxLongest && p.seconds <= list[len(list)-1].seconds {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, p, func(a, b longPause) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return -1 // the earlier stays in front
	})
	list = slices.Insert(list, i, p)
	return list[:min(len(list), maxLongest)]
}

// cover adds up the time that a log covers, the time between one JVM and the
// next left out.
type cover struct {
	sum, start float64
	// seen is the greatest stamp, end where its event ended, which may be later.
	seen, end float64
	open      bool
	restarts  int
}

// to moves the end to v and says whether another run began there.
func (c *cover) to(v, after float64, uptime bool) (again bool) {
	switch {
	case !c.open:
		c.start, c.seen, c.end, c.open = v, v, v, true
	case v < c.seen-1:
		// Uptime that falls is another JVM; a wall clock that falls was set back.
		c.sum += c.end - c.start
		c.start, c.seen, c.end = v, v, v
		if uptime {
			c.restarts++
		}
		again = true
	}
	c.seen = math.Max(c.seen, v)
	c.end = math.Max(c.end, v+after)
	return again
}

// seconds is the time covered so far.
func (c *cover) seconds() float64 { return c.sum + c.end - c.start }

// trend is a line of least squares through heap sizes over time.
type trend struct {
	n, sx, sy, sxx, sxy, syy float64
	first, last              float64
}

func (t *trend) add(x, y float64) {
	if t.n == 0 {
		t.first = x
	}
	t.last = x
	x -= t.first // keeps the sums small
	t.n++
	t.sx += x
	t.sy += y
	t.sxx += x * x
	t.sxy += x * y
	t.syy += y * y
}

// slope is in bytes a second, fit is r squared.
func (t *trend) slope() (perSecond, fit float64, ok bool) {
	d := t.n*t.sxx - t.sx*t.sx
	if t.n < 5 || d <= 0 {
		return 0, 0, false
	}
	perSecond = (t.n*t.sxy - t.sx*t.sy) / d
	if v := t.n*t.syy - t.sy*t.sy; v > 0 {
		c := t.n*t.sxy - t.sx*t.sy
		fit = c * c / (d * v)
	}
	return perSecond, fit, true
}

// timeBins keeps a plot of fixed width over a span that is not known
// beforehand: when time runs past the end, two bins become one.
type timeBins struct {
	start, width float64
	set          bool
	bins         [plotBins]bin
	used         int
}

type bin struct {
	pauses    uint64
	pauseSum  float64
	pauseMax  float64
	heapMin   float64
	heapMax   float64
	heapCount uint64
}

func (b *bin) merge(o bin) {
	b.pauses += o.pauses
	b.pauseSum += o.pauseSum
	b.pauseMax = math.Max(b.pauseMax, o.pauseMax)
	if o.heapCount > 0 {
		if b.heapCount == 0 || o.heapMin < b.heapMin {
			b.heapMin = o.heapMin
		}
		b.heapMax = math.Max(b.heapMax, o.heapMax)
		b.heapCount += o.heapCount
	}
}

func (t *timeBins) at(x float64) *bin {
	if !t.set {
		t.start, t.width, t.set = x, .05, true
	}
	if x < t.start {
		x = t.start
	}
	for x >= t.start+t.width*plotBins {
		for i := 0; i < plotBins/2; i++ {
			n := t.bins[2*i]
			n.merge(t.bins[2*i+1])
			t.bins[i] = n
		}
		clear(t.bins[plotBins/2:])
		t.width *= 2
		t.used = (t.used + 1) / 2
		if t.width > 1e12 {
			t.start = x // a clock that makes no sense
		}
	}
	i := min(int((x-t.start)/t.width), plotBins-1)
	t.used = max(t.used, i+1)
	return &t.bins[i]
}
