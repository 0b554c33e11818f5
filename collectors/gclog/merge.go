package gclog

import (
	"math"
)

// merge makes one of all files, in the order in which they were read.
func merge(files []*fileStats) *fileStats {
	if len(files) == 1 {
		return files[0]
	}
	m := &fileStats{operations: map[string]*causeStats{}, concurrent: map[string]*causeStats{}, cycles: map[string]uint64{}}
	addNamed := func(to, from map[string]*causeStats) {
		for n, c := range from {
			t := named(to, []byte(n))
			t.count += c.count
			t.sum += c.sum
			t.max = math.Max(t.max, c.max)
		}
	}
	for _, f := range files {
		if f.collector != CollectorUnknown {
			m.collector = f.collector
		}
		if f.jdk != "" {
			m.jdk = f.jdk
		}
		m.unified = f.unified
		m.bytes += f.bytes
		m.lines += f.lines
		m.pauses += f.pauses
		m.nested += f.nested
		m.seconds += f.seconds
		m.max = math.Max(m.max, f.max)
		for k := range f.byKind {
			m.byKind[k].merge(&f.byKind[k])
		}
		for i, c := range f.byCause {
			m.byCause[i].count += c.count
			m.byCause[i].sum += c.sum
			m.byCause[i].max = math.Max(m.byCause[i].max, c.max)
		}
		for i, n := range f.failures {
			m.failures[i] += n
		}
		for i, n := range f.cycleCauses {
			m.cycleCauses[i] += n
		}
		for n, c := range f.cycles {
			m.cycles[n] += c
		}
		m.concStarts += f.concStarts
		m.stalls.merge(&f.stalls)
		m.relocStalls.merge(&f.relocStalls)
		m.stopped.merge(&f.stopped)
		m.sync += f.sync
		addNamed(m.operations, f.operations)
		addNamed(m.concurrent, f.concurrent)
		for _, l := range f.longest {
			m.longest = longer(m.longest, l)
		}
		for _, l := range f.longestStops {
			m.longestStops = longer(m.longestStops, l)
		}
		if f.hasHeap {
			m.heapAfter, m.hasHeap = f.heapAfter, true
		}
		if f.hasSize {
			m.committed, m.hasSize = f.committed, true
		}
		m.heapMax = math.Max(m.heapMax, f.heapMax)
		m.afterFull.join(&f.afterFull)
		m.afterAny.join(&f.afterAny)
		m.allocated += f.allocated
		m.promoted += f.promoted
		m.dropped += f.dropped
		m.incomplete += f.incomplete
		m.unrecognised += f.unrecognised
		for _, e := range f.examples {
			if len(m.examples) < maxExamples {
				m.examples = append(m.examples, e)
			}
		}
		if f.firstSet {
			if !m.firstSet {
				m.first, m.firstSet = f.first, true
			}
			m.last, m.written = f.last, f.written
		}
		for g, t := range f.generatns {
			if t.Set {
				m.generatns[g] = t
			}
		}
		m.bins.join(&f.bins)
	}
	return m
}

func (t *trend) join(o *trend) {
	if o.n == 0 {
		return
	}
	if t.n == 0 {
		*t = *o
		return
	}
	// Shift the other's sums to this one's origin.
	d := o.first - t.first
	t.n += o.n
	t.sxx += o.sxx + 2*d*o.sx + o.n*d*d
	t.sxy += o.sxy + d*o.sy
	t.sx += o.sx + o.n*d
	t.sy += o.sy
	t.syy += o.syy
	t.last = o.last
}

func (t *timeBins) join(o *timeBins) {
	for i := 0; i < o.used; i++ {
		if b := o.bins[i]; b.pauses > 0 || b.heapCount > 0 {
			t.at(o.start + (float64(i)+.5)*o.width).merge(b)
		}
	}
}

func (f *fileStats) cyclesInAll() (n uint64) {
	for _, c := range f.cycles {
		n += c
	}
	return n
}
