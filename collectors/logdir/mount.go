package logdir

import "time"

// mountTask is one mount with the folders on it.
type mountTask struct {
	task
	ref     mountRef
	folders []*folder

	// What the last finished task left.
	ok       bool
	space    space
	avail    int64
	forecast forecast
	lastFree int64
	// unexplained is what free space fell by and no file we watch grew by.
	unexplained float64
	err         error

	buf   []byte // reused by each task
	roots []opened
}

// opened is one folder, opened for a task, or why it could not be.
type opened struct {
	node node
	err  error
}

// suspicious is the fall of free space that calls for whole reads when the files
// we watch don't explain it.
const suspicious = 4 << 20

// work is what the task of a mount does: the space first, because its time is
// now, then the folders within the budget.
func (m *mountTask) work(sys fsys, cfg *Config, now time.Time, clock func() time.Time) {
	m.ok, m.err = false, nil
	if m.buf == nil {
		m.buf = make([]byte, listBuffer)
	}
	begin := clock()
	m.roots = m.roots[:0]
	for _, f := range m.folders {
		n, err := sys.open(cfg.Root, f.dir.Path)
		m.roots = append(m.roots, opened{n, err})
		if err == nil {
			m.ask(n, cfg.UID)
		}
	}
	if m.ok {
		m.forecast.add(now, m.avail)
	}
	explained := 0.0
	for i, f := range m.folders {
		f.tracker.compressing = m.space.compressing
		before := f.written
		f.look(m.roots[i].node, m.roots[i].err, cfg, now, limits{clock, max(cfg.ScanBudget-clock().Sub(begin), 0), m.buf})
		explained += f.written - before
	}
	if m.ok {
		if m.lastFree > 0 {
			m.unexplained = max(m.unexplained+float64(m.lastFree-m.space.free)-explained, 0)
		}
		if m.unexplained > suspicious {
			m.unexplained = 0
			for _, f := range m.folders {
				f.suspect = true // the next look may read it
			}
		}
		m.lastFree = m.space.free
	}
}

// ask takes the space as it is in one folder. A project quota answers for its
// folder alone: of several on one mount the narrowest binds.
func (m *mountTask) ask(n node, uid int) {
	s, err := n.space()
	if err != nil {
		m.err = err
		return
	}
	avail := s.avail
	if uid == 0 {
		avail = s.free // neither reserves nor quotas bind root
	} else if q, ok := n.userQuota(uid); ok {
		s.bind(q)
		avail = s.avail
	}
	if avail = max(avail, 0); !m.ok || avail < m.avail {
		m.ok, m.space, m.avail = true, s, avail
	}
}
