package logdir

import "time"

// A holder is a process whose deleted files are counted.
type holder struct {
	task
	name   string
	pid    int // 0 is the sidecar itself
	next   time.Time
	ok     bool
	bytes  int64
	denied bool
}

func holders(cfg Config) []*holder {
	hs := []*holder{{name: "sidecar"}}
	if cfg.PID > 0 {
		hs = append(hs, &holder{name: "server", pid: cfg.PID})
	}
	return hs
}

// deletedFactor keeps the search of a process with very many descriptors to a
// thousandth of a core.
const deletedFactor = 1000

// begin starts a search when it is due.
func (h *holder) begin(cfg Config, now time.Time, clock func() time.Time) bool {
	if h.busy() || now.Before(h.next) {
		return false
	}
	h.start(now, func() {
		begin := clock()
		h.search(cfg.Proc)
		h.next = now.Add(max(cfg.DeletedEvery, deletedFactor*clock().Sub(begin)))
	})
	return true
}

func (p *Poller) writeHolder(h *holder, now time.Time) {
	switch {
	case p.stuck(&h.task, now):
		p.blindTo(h.name, MountStuck, "a file that the process holds open lies on a file system that has not answered for "+p.cfg.StuckAfter.String(), "")
	case h.busy():
		p.set.Gauge(deletedOpen, h.name) // the one before
	case h.denied:
		p.blindTo(h.name, NoPermission, "the descriptors of the process can't be read: space held by deleted files is not known", "CAP_SYS_PTRACE")
	case h.ok:
		p.set.Gauge(deletedOpen, h.name).Set(float64(h.bytes))
	}
}
