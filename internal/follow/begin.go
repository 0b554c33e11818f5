package follow

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
)

// begin is the first look: what is there now was there before we were.
func (f *Follower) begin() error {
	if f.encErr != nil {
		return f.encErr
	}
	if f.spec.Path == "" && f.spec.Pattern == nil {
		return errors.New("a stream needs a path, or a folder and a pattern")
	}
	f.begun = true
	var err error
	if f.restored {
		f.locate()
		err = f.discover()
	} else {
		f.lock.Lock()
		if f.spec.Path != "" {
			err = f.beginPath()
		} else {
			err = f.beginDir()
		}
		f.lock.Unlock()
	}
	// What was there is the backlog; it is not news, and its series wait for it.
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, p := range f.parts {
		if p.file == nil && f.refuses(p) {
			continue // not even its size is ours to tell
		}
		if p.fresh {
			// From the checkpoint: if it was truncated, its size now says nothing of
			// what came behind our place.
			if ok, e := p.recognise(held{}); e != nil || !ok {
				continue
			}
		}
		if st, e := statPath(p.path); e == nil && st.id.same(p.id) && st.size > p.seen {
			f.led.Written += st.size - p.seen
			p.seen = st.size
		}
	}
	f.backlog = f.led.Written
	return err
}

// refuses says whether the file may not be opened.
func (f *Follower) refuses(p *part) bool {
	err := f.openPart(p)
	p.close()
	switch blindness(err) {
	case "permission", "not_the_targets", "refused":
		return true
	}
	return false
}

// beginPath and beginDir are called with the lock held.
func (f *Follower) beginPath() error {
	st, err := statPath(f.spec.Path)
	if err != nil && !absent(err) {
		return err
	}
	// What lies beside it has had its day, and is kept in mind so that it is not
	// taken later for a file that came and went between two looks.
	back := f.spec.From == Start && !f.spec.Since.IsZero()
	beside, _ := f.siblings(f.besides(f.spec.Path), f.isRotated)
	for _, s := range beside {
		switch {
		case err == nil && s.id.same(st.id):
		case back && s.mtime >= f.spec.Since.UnixNano() && !f.packed(s.path):
			f.add(s, old)
		default:
			f.finished(s)
		}
	}
	if err != nil {
		return nil
	}
	p := f.add(found{f.spec.Path, st}, live)
	if f.spec.From == End {
		return f.toEnd(p, st.size)
	}
	return nil
}

func (f *Follower) beginDir() error {
	all, err := f.list()
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.mtime, b.mtime) })
	last := -1
	for i, s := range all {
		if f.spec.Pattern.MatchString(filepath.Base(s.path)) {
			last = i
		}
	}
	for i, s := range all {
		newest := i == last
		back := f.spec.From == Start && !f.spec.Since.IsZero() && s.mtime >= f.spec.Since.UnixNano()
		switch {
		case newest && f.spec.From == End:
			err = errors.Join(err, f.toEnd(f.add(s, live), s.size))
		case newest:
			f.add(s, live)
		case back:
			f.add(s, old)
		default:
			f.finished(s)
		}
	}
	return err
}

// finished keeps a file in mind that is not read.
func (f *Follower) finished(s found) {
	p := &part{id: s.id, path: s.path, role: old, kept: s.size, read: s.size, seen: s.size, last: s.stat}
	if s.id.Birth == 0 && s.size > 0 && f.openPart(p) == nil {
		// Without a birth time its bytes will have to tell that it is the same.
		if p.attend(held{}) == nil {
			p.sum = checksum(p.tail)
		}
		p.close()
		p.tail = nil
	}
	f.remember(p)
}

// besides is the path with the links of its folder resolved, or as it is.
func (f *Follower) besides(path string) string {
	if real, err := resolve(path); err == nil {
		return filepath.Join(filepath.Dir(real), filepath.Base(path))
	}
	return path
}

// add makes a part of a file that is not known.
func (f *Follower) add(s found, r role) *part {
	p := &part{id: s.id, path: s.path, dir: f.resolvedDir(s.path), role: r, quiet: f.now, state: lineState{Enc: f.encoding()}}
	if s.stat.id == (ident{}) {
		panic("BUG: part without identity")
	}
	f.parts = append(f.parts, p)
	return p
}

// toEnd puts a new part's place at size. If that is in the middle of a line,
// the rest of that line is not one. The caller holds the lock.
func (f *Follower) toEnd(p *part, size int64) error {
	p.kept, p.read, p.seen = size, size, size
	err := f.openPart(p)
	if err != nil || size == 0 {
		if absent(err) {
			err = nil
		}
		return err // not readable yet: the place stands, and opening is tried again
	}
	if err := p.attend(held{}); err != nil {
		p.close()
		return err
	}
	p.state.Cut = !p.atLineEnd()
	return nil
}
