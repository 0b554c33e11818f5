package logdir

import "time"

// place is where one Dir lies, as far as that is known.
type place struct {
	search     *task // the last look-up of it
	folder     *folder
	mount      *mountTask
	found      mountRef
	err        error
	searchedAt time.Time
	searching  bool // a search is under way, or ended and not settled yet
	counter    bool // the counter has been shown
}

// counts says that the bytes written there are told. Of the base as a whole they
// are not: it is read once a minute, so that a counter would give a minute's bytes
// in one second, and a log folder that writes 300 kB a second looked like one that
// runs away. What the logs within it grow by, their own folders tell.
func (pl *place) counts() bool { return pl.folder.dir.Kind != Base }

// searchEvery is how often a folder's place is looked up anew: a link may be
// pointed elsewhere, a file system mounted over it.
const searchEvery = 30 * time.Second

// searches starts the look-ups of those folders for which it is time, one task
// for all whose paths lead to one mount.
func (p *Poller) searches(now time.Time) []*task {
	wanted := map[string][]*place{}
	for _, pl := range p.places {
		if pl.searching || pl.mount != nil && (pl.mount.busy() || now.Sub(pl.searchedAt) < searchEvery) {
			continue
		}
		if p.guess == nil || now.Sub(p.guessedAt) >= searchEvery {
			// Some machines have thousands of mounts: a folder that is not there is
			// searched each poll, their table is not read for it.
			p.guess, p.guessedAt = p.sys.guess(p.cfg.Root), now
		}
		key := p.guess(pl.folder.dir.Path)
		if t := p.search[key]; t == nil || !t.busy() {
			wanted[key] = append(wanted[key], pl)
		}
	}
	var started []*task
	for key, places := range wanted {
		t := &task{}
		for _, pl := range places {
			pl.search, pl.searchedAt, pl.searching = t, now, true
		}
		t.start(now, func() {
			for _, pl := range places {
				pl.find(p.sys, p.cfg.Root)
			}
		})
		p.search[key] = t
		started = append(started, t)
	}
	return started
}

// find looks up on which mount the folder lies.
func (pl *place) find(sys fsys, root string) {
	pl.found = mountRef{}
	n, err := sys.open(root, pl.folder.dir.Path)
	if err == nil {
		pl.found, err = sys.mount(n)
		n.close()
	}
	pl.err = err
}

// settle takes the end of a search: the folder joins the task of its mount.
func (p *Poller) settle(pl *place) {
	if !pl.searching || pl.search.busy() {
		return
	}
	to := p.mounts[pl.found.key]
	if pl.mount != nil && pl.mount.busy() || pl.err == nil && to != nil && to.busy() {
		return // a task has the folders: settle in the next poll
	}
	pl.searching = false
	if pl.err == nil && to != nil && to == pl.mount {
		return
	}
	p.leave(pl)
	if pl.err != nil {
		pl.folder.lost(pl.err)
		return
	}
	if to == nil {
		to = &mountTask{ref: pl.found}
		p.mounts[pl.found.key] = to
	}
	to.folders = append(to.folders, pl.folder)
	pl.mount = to
}

// leave takes a folder from its mount, and the mount away when it was the last.
func (p *Poller) leave(pl *place) {
	m := pl.mount
	if m == nil {
		return
	}
	pl.mount = nil
	for i, f := range m.folders {
		if f == pl.folder {
			m.folders = append(m.folders[:i], m.folders[i+1:]...)
			break
		}
	}
	if len(m.folders) == 0 {
		delete(p.mounts, m.ref.key)
	}
}
