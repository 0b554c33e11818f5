package follow

import (
	"path/filepath"
)

// locate finds the files of the checkpoint again, under whatever name.
func (f *Follower) locate() {
	var kept []*part
	for _, p := range f.parts {
		if f.refind(p) {
			kept = append(kept, p)
			continue
		}
		// Perhaps its bytes are elsewhere: copied and truncated and renamed and
		// removed, all while nobody looked.
		copies := f.findCopies(p)
		f.lock.Lock()
		if len(copies) > 0 {
			f.inherit(copies[0], p)
			copies[0].role = old // the file that its half line goes on in is gone
			f.led.Gaps[GapGone]++
			kept = append(kept, copies...)
		} else {
			f.lose(p, GapGone)
			f.gone = p
		}
		f.lock.Unlock()
	}
	f.lock.Lock()
	f.parts = kept
	f.lock.Unlock()
}

func (f *Follower) refind(p *part) bool {
	p.quiet = f.now
	if p.role != live && p.id.Birth == 0 && p.sum == 0 {
		return false // nothing was read of it and nothing can tell it from another
	}
	if st, err := statPath(p.path); err == nil && st.id.same(p.id) && f.still(p, found{p.path, st}) && !f.packed(p.path) {
		f.reopen(p)
		return true
	}
	dir := filepath.Dir(p.path)
	if f.spec.Path != "" {
		if d := f.resolvedDir(f.spec.Path); d != "" {
			dir = d
		}
	}
	all, _ := f.siblings(filepath.Join(dir, filepath.Base(p.path)), f.isCopy)
	for _, s := range all {
		if s.id.same(p.id) && f.still(p, s) && !f.packed(s.path) {
			f.lock.Lock()
			p.path = s.path
			f.lock.Unlock()
			f.reopen(p)
			return true
		}
	}
	return false
}

// reopen opens a part of the checkpoint early, if it can be, so that it can be
// told how it lost its name. Its bytes are looked at when it is read.
func (f *Follower) reopen(p *part) {
	if f.openPart(p) != nil {
		return
	}
	p.fresh = true
}
