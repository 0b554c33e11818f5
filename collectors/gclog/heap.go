package gclog

import "bytes"

// generation reads "80K(90K)->10K(90K) Eden: ..." of one generation.
func (d *decoder) generation(m []byte, g Generation, id int64) {
	t, n := transition(m)
	if n == 0 {
		return
	}
	if g == Old {
		d.OldID, d.OldGrew = id, t.After-t.Before
	}
	d.heap(g, t, false)
}

// regionLine reads "6->0(14)" of G1's region counts. Eden and survivors make
// the young generation, old and humongous regions the old one; the size of a
// region must be known.
func (d *decoder) regionLine(m []byte, id int64, bit uint8) {
	if d.RegionSize == 0 {
		return
	}
	t, n := transition(m)
	if n == 0 {
		return
	}
	r := &d.Regions
	if r.ID != id || r.Seen&bit != 0 {
		*r = regions{ID: id}
	}
	r.Seen |= bit
	if bit <= 2 {
		r.YoungFrom += t.Before
		r.YoungTo += t.After
		if r.Seen&3 == 3 && bit == 2 {
			d.heap(Young, Transition{Before: r.YoungFrom * d.RegionSize, After: r.YoungTo * d.RegionSize, Set: true}, false)
		}
		return
	}
	r.OldBefore += t.Before
	r.OldAfter += t.After
	if bit == 4 {
		d.OldID, d.OldGrew = id, (t.After-t.Before)*d.RegionSize
	}
	if r.Seen&12 == 12 {
		d.heap(Old, Transition{Before: r.OldBefore * d.RegionSize, After: r.OldAfter * d.RegionSize, Set: true}, false)
	}
}

// edenLine reads G1's sizes, from "Eden: " on:
//
//	Eden: 8.0M(9.0M)->0.0B(9.0M) Survivors: 0.0B->1024.0K Heap: 8.0M(64.0M)->3.0M(64.0M)
func (d *decoder) edenLine(b []byte) {
	b = b[:min(len(b), 512)]
	eden, n := transition(b[6:])
	if n == 0 {
		return
	}
	var surv Transition
	if i := bytes.Index(b, []byte("Survivors: ")); i > 0 {
		surv, _ = transition(b[i+11:])
	}
	i := bytes.Index(b, []byte("Heap: "))
	if i < 0 {
		return
	}
	// a(b)->c(d): the size after is d.
	heap, n := transition(b[i+6:])
	if n == 0 {
		return
	}
	d.Collector, d.Details = G1, true
	d.heap(Heap, heap, d.LastHeap)
	if surv.Set {
		y := Transition{Before: eden.Before + surv.Before, After: eden.After + surv.After, Set: true}
		d.heap(Young, y, false)
		o := Transition{Before: heap.Before - y.Before, After: heap.After - y.After, Set: true}
		if o.Before >= 0 && o.After >= 0 {
			d.heap(Old, o, false)
		}
		if p := o.After - o.Before; d.LastYoung && p > 0 {
			e := d.event(AllocatedEvent)
			e.Promoted = p
			d.out(e)
		}
	}
	d.LastHeap, d.LastYoung = false, false
	if i := bytes.Index(b, []byte("[Metaspace: ")); i > 0 {
		if t, n := transition(b[i+12:]); n > 0 {
			d.heap(Metaspace, t, false)
		}
	}
}
