package process

// states of the kernel that are told apart.
const (
	stateRunning = iota
	stateSleeping
	stateDisk
	stateOther
	stateCount
)

var stateNames = [stateCount]string{"running", "sleeping", "disk", "other"}

func stateOf(letter byte) int {
	switch letter {
	case 'R':
		return stateRunning
	case 'S', 'I':
		return stateSleeping
	case 'D':
		return stateDisk
	}
	return stateOther
}

// A thread is what is remembered of one between samples.
type thread struct {
	tid     int32
	pool    int32
	state   uint8
	commLen uint8
	comm    [commLen]byte
	start   uint64
	ticks   uint64
	// quiet says that it has not run for some samples: then a look at its
	// schedstat, which costs half of a stat, tells that nothing has changed.
	quiet bool
	// kept is the descriptor of its schedstat and one, or 0: see keepMost.
	kept int32
	// From schedstat, as last read: time on a core and waiting for one in
	// nanoseconds, and turns on a core.
	run, delay, slices uint64
	// The figures of the slow round, as last read, and what slices were then.
	voluntary, involuntary, counted uint64
}

// threadTable keeps the threads of one process, sorted by tid.
type threadTable struct {
	folder *folder
	list   []thread
	spare  []thread
	tids   []int32
	pools  []poolFigures // by pool number

	// Sums over threads, dead ones included.
	voluntary, involuntary, delay uint64
	// floor is what these were at the last checkpoint. After a restart of the
	// sidecar they are added up anew from the live threads, and shown when they
	// have come that far again: a counter must not fall.
	floor [3]uint64

	samples   uint32
	turn      int // where the next sample of a too long list begins
	slowTurn  int
	sampled   float64
	nameless  bool // all threads have one name: this JDK sets none
	restored  map[string]savedPool
	firstDone bool
}

// poolFigures are the figures of one pool in one sample, and its CPU time since
// the beginning.
type poolFigures struct {
	threads int
	states  [stateCount]int
	ticks   float64 // cumulative
	live    uint64  // ticks of the live threads together
}

// savedPool is what the checkpoint keeps of a pool: its CPU time, and that part
// of it which belongs to threads that were alive.
type savedPool struct {
	Ticks float64 `json:"ticks"`
	Live  uint64  `json:"live"`
}

// seen puts one stat of a thread in its place. fresh says that the thread was
// not there in the last sample.
func (t *threadTable) seen(th *thread, st *stat, fresh bool) {
	if !fresh && th.start != st.start {
		fresh = true // the tid was used again
	}
	if fresh {
		*th = thread{tid: th.tid, start: st.start, pool: -1}
	}
	name := st.comm
	if len(name) > commLen {
		name = name[:commLen]
	}
	// A new Java thread runs a moment under its parent's name, and any thread
	// may be renamed: the name costs nothing, as it stands in the same line.
	if th.pool < 0 || string(th.comm[:th.commLen]) != string(name) {
		th.commLen = uint8(copy(th.comm[:], name))
		th.pool = t.folder.pool(string(name))
		t.grow()
	}
	ticks := st.user + st.system
	if ticks > th.ticks {
		t.pools[th.pool].ticks += float64(ticks - th.ticks)
		th.ticks = ticks
	}
	th.state = uint8(stateOf(st.state))
}

func (t *threadTable) grow() {
	for len(t.pools) < len(t.folder.labels) {
		t.pools = append(t.pools, poolFigures{})
	}
}

// sum counts the list by pool.
func (t *threadTable) sum() {
	t.grow()
	for i := range t.pools {
		p := &t.pools[i]
		p.threads, p.states, p.live = 0, [stateCount]int{}, 0
	}
	same := len(t.list) > 8
	for i := range t.list {
		th := &t.list[i]
		p := &t.pools[th.pool]
		p.threads++
		p.states[th.state]++
		p.live += th.ticks
		if same && (th.commLen != t.list[0].commLen || th.comm != t.list[0].comm) {
			same = false
		}
	}
	t.nameless = same
	if !t.firstDone {
		t.firstDone = true
		// What a pool had at the last checkpoint, and what its threads that live
		// still have used since: so its counter does not fall across a restart of
		// the sidecar. Time of threads that ended meanwhile is lost.
		for label, s := range t.restored {
			n := t.folder.number(label)
			t.grow()
			if n == 0 && label != poolOther {
				continue
			}
			p := &t.pools[n]
			p.ticks = s.Ticks
			if p.live > s.Live {
				p.ticks += float64(p.live - s.Live)
			}
		}
		t.restored = nil
	}
}
