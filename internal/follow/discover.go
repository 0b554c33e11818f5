package follow

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// found is a file under one of the stream's names.
type found struct {
	path string
	stat
}

// discover finds out which files make the stream by now.
func (f *Follower) discover() error {
	f.fresh = stat{}
	if f.spec.Path == "" {
		return f.discoverDir()
	}
	st, err := statPath(f.spec.Path)
	if err != nil {
		if absent(err) {
			return nil // what was live is drained and kept until the name is taken
		}
		return err
	}
	p := f.livePart()
	if p != nil && p.id.same(st.id) {
		if p.path != f.spec.Path {
			f.lock.Lock()
			p.path = f.spec.Path
			f.lock.Unlock()
		}
		f.fresh = st
		return nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.rotated(found{f.spec.Path, st})
	return nil
}

// rotated makes s the live file. Files that were live in between are put before
// it. The caller holds the lock.
func (f *Follower) rotated(s found) {
	if len(f.parts) > 0 || f.gone != nil {
		f.led.Rotations++
	}
	was := f.gone // that of the checkpoint, if it is nowhere to be found
	if n := len(f.parts); n > 0 {
		was = f.parts[n-1]
		if was.role == live {
			was.role, was.quiet = old, f.now
		}
	}
	f.gone = nil
	if i := slices.IndexFunc(f.parts, func(p *part) bool { return p.id.same(s.id) }); i >= 0 {
		// The old file came back to its name.
		p := f.parts[i]
		f.parts = append(slices.Delete(f.parts, i, i+1), p)
		p.role, p.path = live, s.path
		return
	}
	if p := f.recall(s); p != nil {
		p.role = live
		f.parts = append(f.parts, p)
		return
	}
	for _, m := range f.between(was, s) {
		if p := f.recall(m); p != nil {
			p.role = old
			f.parts = append(f.parts, p)
			continue
		}
		f.led.Rotations++
		f.add(m, old)
	}
	f.add(s, live)
}

// recall takes a finished file back, if it is the one that s shows: the same
// identity and not shorter than it was. Its place is where we left it; whether
// the bytes before it are the same is seen when it is read.
func (f *Follower) recall(s found) *part {
	i := f.past(s)
	if i < 0 {
		return nil
	}
	p := f.done[i]
	f.done = slices.Delete(f.done, i, i+1)
	p.path, p.quiet, p.last = s.path, f.now, stat{}
	return p
}

// known says whether the file is one of ours. An inode number alone is no
// proof, for a finished file may be gone and its number used again.
func (f *Follower) known(s found) bool {
	return f.isOpen(s.id) || f.past(s) >= 0
}

// past is the index in done of the file that s shows, or -1.
func (f *Follower) past(s found) int {
	return slices.IndexFunc(f.done, func(p *part) bool { return p.id.same(s.id) && f.still(p, s) })
}

// isOpen says whether the file is one of those being read.
func (f *Follower) isOpen(id ident) bool {
	return slices.ContainsFunc(f.parts, func(p *part) bool { return p.id.same(id) })
}

// placeIn is how far a finished file was read.
func (f *Follower) placeIn(s found) int64 {
	if i := f.past(s); i >= 0 {
		return f.done[i].read
	}
	return s.size
}

// still says whether a finished part is what s shows. With birth times that is
// certain already; without, the bytes before our place have to be the same.
func (f *Follower) still(p *part, s found) bool {
	if s.id.Birth != 0 && p.id.Birth != 0 {
		return true
	}
	if s.size < p.read {
		return false
	}
	if p.sum == 0 {
		return s.mtime == max(p.last.mtime, p.mtime) // it was empty, or could not be read
	}
	q := &part{id: s.id, path: s.path, read: p.read, sum: p.sum}
	defer q.close()
	if f.openPart(q) != nil {
		return true
	}
	ok, err := q.recognise(held{})
	return ok || err != nil
}

// between finds the files that took and lost the name after was and before
// now. Where the names tell that one is missing, that is a gap. was is nil when
// now is the first that we see under the name.
func (f *Follower) between(was *part, now found) []found {
	dir := f.resolvedDir(now.path)
	if dir == "" || was != nil && was.dir != dir {
		return nil // a link moved on: what lies beside its new end is not ours
	}
	var mid []found
	steps, packs, own := 0, 0, false
	first := was == nil
	if first {
		was = &part{} // whatever was not there at the first look is younger
	}
	mark := stat{id: was.id, mtime: max(was.last.mtime, was.mtime)}
	beside, err := f.siblings(filepath.Join(dir, filepath.Base(now.path)), f.isRotated)
	if err != nil {
		// A folder that may be entered and not listed: whatever was live between
		// two looks stays unseen.
		f.split.gap(GapRotated)
		return nil
	}
	for _, s := range beside {
		switch {
		case s.id.same(was.id) && (was.file != nil || f.still(was, s)):
			steps = number(filepath.Base(s.path))
		case s.id.same(now.id) || f.isOpen(s.id):
		case f.known(s):
			if s.size > f.placeIn(s) {
				mid = append(mid, s) // late lines in a file that we had finished with
			}
		case s.stat.before(mark) && !packedName(s.path):
			// An earlier rotation.
		case f.packed(s.path):
			// It keeps the time of what it holds, but not the birth.
			if s.id.Birth == 0 || s.id.Birth >= mark.mtime {
				packs++
				own = own || f.mayHold(s.path, was)
			}
		case s.id.Birth > now.id.Birth || f.copyOf(s, was):
			// Made since the name was taken, or by a backup.
		default:
			mid = append(mid, s)
		}
	}
	slices.SortFunc(mid, func(a, b found) int {
		if a.before(b.stat) {
			return -1
		}
		return 1
	})
	st, err := was.statOpen()
	switch {
	case first && packs == 0:
	case err != nil || st.links == 0:
		// Deleted, or packed and deleted. One new packed file is the old one's
		// own; none, and nobody can say how often the name changed hands.
		if packs != 1 || !own || len(mid) > 0 {
			f.split.gap(GapRotated)
		}
	case packs > 0 || steps > len(mid)+1:
		f.split.gap(GapRotated)
	}
	return mid
}

// statOpen is statFile of a part that may not be open.
func (p *part) statOpen() (stat, error) {
	if p.file == nil {
		return stat{}, os.ErrClosed
	}
	return statFile(p.file)
}

// resolvedDir is the folder in which the name's file really lies.
func (f *Follower) resolvedDir(path string) string {
	real, err := resolve(path)
	if err != nil {
		return ""
	}
	return filepath.Dir(real)
}

// discoverDir looks for new files under the pattern. The folder is listed when
// its change time moved, and now and then all the same.
func (f *Follower) discoverDir() error {
	d, err := statPath(f.spec.Dir)
	if err != nil {
		if absent(err) {
			f.dirMtime = 0
			return nil
		}
		return err
	}
	// A file made in the same tick of the clock as our listing does not move the
	// change time again, hence one listing more after each change.
	if d.mtime == f.dirMtime && f.dirStable && f.now.Sub(f.scanned) < rescan {
		return f.glance()
	}
	// Of a folder with a million files a listing takes seconds, and somebody may
	// change it each second.
	if f.now.Sub(f.scanned) < listShare*f.listTook {
		return f.glance()
	}
	f.dirStable = d.mtime == f.dirMtime
	f.dirMtime = d.mtime
	f.scanned = f.now
	all, err := f.list()
	slices.SortStableFunc(all, func(a, b found) int {
		switch {
		case a.before(b.stat):
			return -1
		case b.before(a.stat):
			return 1
		}
		return cmp.Compare(a.path, b.path)
	})
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, s := range all {
		f.meet(s)
	}
	return err
}

// meet takes in one file that matches. The caller holds the lock.
func (f *Follower) meet(s found) {
	if i := slices.IndexFunc(f.parts, func(p *part) bool { return p.id.same(s.id) }); i >= 0 {
		f.parts[i].path = s.path
		return
	}
	if i := f.past(s); i >= 0 {
		p := f.done[i]
		p.path = s.path
		if s.size == p.read && (s.mtime == p.last.mtime || s.size == 0) {
			return
		}
		if p = f.recall(s); p != nil {
			again := s.size < p.read
			n := len(f.parts)
			if n > 0 && !again {
				// Late lines in an old one do not make it the live one.
				p.role = old
				f.parts = slices.Insert(f.parts, n-1, p)
				return
			}
			f.supersede()
			p.role = live
			f.parts = append(f.parts, p)
			return
		}
	}
	if f.packed(s.path) {
		return
	}
	if (f.restored || f.crowded) && f.earlier(s) {
		f.finished(s)
		return
	}
	if len(f.parts)+len(f.done) > 0 {
		f.led.Rotations++
	}
	f.supersede()
	f.add(s, live)
}

// earlier says that a file which the checkpoint does not name, or which did not
// get into a crowd before, is older than those that are read: it was dropped from
// the list of finished ones.
func (f *Follower) earlier(s found) bool {
	for _, p := range f.parts {
		if s.stat.before(stat{id: p.id, mtime: p.mtime}) {
			return true
		}
	}
	return false
}

func (f *Follower) supersede() {
	if p := f.livePart(); p != nil {
		p.role, p.quiet = old, f.now
	}
}

// glance looks at the finished files that were written last, which may have
// got late lines or been begun anew without any change to the folder.
func (f *Follower) glance() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	for i := len(f.done) - 1; i >= max(0, len(f.done)-4); i-- {
		p := f.done[i]
		if st, err := statPath(p.path); err == nil && st.id.same(p.id) && st.size != p.read {
			f.meet(found{p.path, st})
			return nil
		}
	}
	return nil
}
