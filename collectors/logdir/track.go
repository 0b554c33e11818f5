package logdir

// A tracker knows the files of one tree by inode, so that what was written can
// be told from what is there: a truncated or rotated log makes the folder
// smaller, and the bytes were written all the same.
//
//	size grew            the difference
//	size fell            truncated: what stands there now was written since
//	same inode, new birth the number was used again: a new file, all of it
//	not known, born since all of it
//	not known, older     moved in from elsewhere: nothing was written
//
// What is written and truncated between two looks is not seen: the figure is a
// lower bound.
type tracker struct {
	limit       int
	compressing bool
	known       map[uint64]tracked
	round       uint32
	first       bool // no scan has ended yet: everything is the past
	partial     bool // some files did not fit
	count       int
	newest      int64
	// marked is the newest change that the last scan had seen after its first
	// batch: a time of the file system's own clock at or before that scan. What
	// was born later is new.
	marked, next int64
	hasMark      bool
}

type tracked struct {
	size, allocated int64
	born            int64
	round           uint32
}

func newTracker(limit int) *tracker {
	return &tracker{limit: limit, known: map[uint64]tracked{}, first: true}
}

// begin starts a scan of a root that last changed at the given time.
func (t *tracker) begin(changed int64) {
	t.round++
	t.count = 0
	t.newest, t.next, t.hasMark = changed, changed, false
}

func (t *tracker) mark() {
	if !t.hasMark {
		t.next, t.hasMark = t.newest, true
	}
}

func (t *tracker) end() {
	for ino, f := range t.known {
		if f.round != t.round {
			delete(t.known, ino)
		}
	}
	t.marked = t.next
	t.first = false
	t.partial = t.count > t.limit
}

// see takes one file and returns the bytes written to it since it was last
// seen.
func (t *tracker) see(m *meta) float64 {
	t.newest = max(t.newest, m.changed)
	t.count++
	was, ok := t.known[m.ino]
	var grown float64
	switch {
	case ok && was.born == m.born && m.size >= was.size:
		grown = t.grown(m, was.size, was.allocated)
	case ok:
		grown = t.grown(m, 0, 0)
	case t.first:
	case t.partial && m.changed <= t.marked:
		return 0 // one of those that were not kept, and it has not changed
	case m.born != 0 && m.born < t.marked:
	case m.born == 0 && t.partial:
	default:
		grown = t.grown(m, 0, 0)
	}
	if len(t.known) >= t.limit {
		t.partial = true
	}
	if t.partial && (!ok && len(t.known) >= t.limit || !t.first && m.changed <= t.marked) {
		return grown // no room, or cold: the room is for those that change
	}
	t.known[m.ino] = tracked{size: m.size, allocated: m.allocated, born: m.born, round: t.round}
	return grown
}

// holeSlack is what the blocks of a file may lag behind its size before the
// difference is a hole.
const holeSlack = 1 << 20

// grown is the growth from an earlier size. A writer that does not append, after
// a truncation by someone else, goes on at its old place: the size jumps over a
// hole that nobody wrote, and the blocks know it.
func (t *tracker) grown(m *meta, size, allocated int64) float64 {
	if !t.compressing && m.allocated < min(size, allocated) {
		// It is longer and holds less than what was there: truncated and
		// written past its old end since. (XFS gives back blocks it had taken
		// ahead, but never those within the old size.)
		size, allocated = 0, 0
	}
	d := m.size - size
	if d > holeSlack && !t.compressing {
		if blocks := max(m.allocated-allocated, 0); d-blocks > holeSlack {
			d = blocks
		}
	}
	return float64(d)
}
