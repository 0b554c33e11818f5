package logdir

import (
	"errors"
	"io/fs"
	"time"
)

// A whole read of a folder costs what it costs; how often it is made follows
// from that, so that ten folders at rest take a small part of a thousandth of a
// core for it, a thousandth while somebody else fills their disk, and a folder
// under change at most a fiftieth.
const (
	restFactor    = 100000 // nothing seems to have changed
	suspectFactor = 10000  // the file system fills and no file we watch explains it
	changeFactor  = 50     // the folder says that it has changed
)

// At rest the stats of single files are what a poll costs. The few files that
// changed last are looked at each poll; of the others those that did not change
// since the last look take turns.
const (
	alwaysWatched = 4
	quietTurns    = 4
)

// A folder is one watched Dir. It belongs to the task of its mount while that
// runs, to Poll otherwise.
type folder struct {
	dir     Dir
	tracker *tracker
	scan    *scan // under way, or nil
	suspect bool

	// The last whole read, kept up to date by the looks after it.
	have      bool
	allocated int64
	files     int64
	readAt    time.Time // when the read that the figures rest on began
	cost      time.Duration
	ino       uint64
	recent    []watch
	glances   int
	dirs      []watch

	written float64 // not yet handed to the counter
	err     error   // of the last look
	partly  scanMisses
}

// scanMisses is what a whole read had to leave out.
type scanMisses struct{ bad, denied, deep int }

// look brings the folder's figures up to date, within the limits. It owns root
// from here on; err says why there is none.
func (f *folder) look(root node, err error, cfg *Config, now time.Time, l limits) {
	if err != nil {
		f.lost(err)
		return
	}
	f.err = nil
	if f.scan == nil {
		changed := true
		if f.have {
			if f.dir.Kind == Base && now.Sub(f.readAt) < cfg.BaseEvery {
				root.close()
				return
			}
			changed = f.glance(root)
		}
		if !f.due(cfg, now, changed) {
			root.close()
			return
		}
		if f.scan, err = newScan(root, f.tracker, now); err != nil {
			f.lost(err)
			return
		}
	} else {
		if f.have {
			f.glance(root)
		}
		root.close()
	}
	done, err := f.scan.step(l)
	switch {
	case err != nil:
		f.lost(err)
	case done:
		f.take()
	}
}

// lost drops what is known: the folder can't be read. A folder that is not
// there (yet, or any more) is waited for; files that appear in it later are
// new, all of them.
func (f *folder) lost(err error) {
	if f.scan != nil {
		f.scan.abandon()
		f.scan = nil
	}
	f.have, f.err = false, err
	if errors.Is(err, fs.ErrNotExist) {
		clear(f.tracker.known)
		f.tracker.first, f.tracker.marked = false, 0
	}
}

// glance looks at the files that change and at the folders, by name and
// without reading any folder, and says whether a whole read is called for.
func (f *folder) glance(root node) (changed bool) {
	var m meta
	for i := range f.dirs {
		d := &f.dirs[i]
		var err error
		if d.path == "" {
			err = root.stat(&m)
		} else {
			err = root.statAt(d.path, &m)
		}
		if err != nil || m.ino != d.ino || m.changed != d.changed {
			changed = true
		}
	}
	f.glances++
	for i := range f.recent {
		w := &f.recent[i]
		if i >= alwaysWatched && w.quiet && (i+f.glances)%quietTurns != 0 {
			continue
		}
		if err := root.statAt(w.path, &m); err != nil || m.ino != w.ino || !m.regular {
			changed = true
			continue
		}
		if m.changed == w.last.changed && m.size == w.last.size && m.allocated == w.last.allocated {
			w.quiet = true
			continue
		}
		w.quiet = false
		f.written += f.tracker.see(&m)
		f.allocated += m.allocated - w.last.allocated
		w.last = m
	}
	return changed
}

// due says whether it is time for a whole read.
func (f *folder) due(cfg *Config, now time.Time, changed bool) bool {
	if !f.have {
		return true
	}
	factor := time.Duration(restFactor)
	switch {
	case changed:
		factor = changeFactor
	case f.suspect:
		factor = suspectFactor
	}
	return now.Sub(f.readAt) >= min(f.cost*factor, cfg.RestEvery)
}

// take makes a finished scan the folder's figures.
func (f *folder) take() {
	s := f.scan
	f.scan, f.suspect, f.have = nil, false, true
	f.allocated, f.files, f.readAt, f.cost, f.ino = s.allocated, s.files, s.began, s.cost, s.rootIno
	f.written += s.written
	f.recent = append(f.recent[:0], s.recent[:s.recentN]...)
	f.dirs = s.dirs
	f.partly = scanMisses{s.bad, s.denied, s.tooDeep}
}
