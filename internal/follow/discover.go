package follow

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// found is a file under one of the stream's names.
type found struct {
	path string
	stat
}

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
	why := blindness(err)
	return why == "permission" || why == "refused"
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

// copyOf says whether s holds the same bytes as our part, as far as both go: a
// copy that a backup or copytruncate made, and no part of the stream. The ends
// and the heads of what both have are compared; a few equal bytes at our place
// alone would prove nothing (all our logs begin with a date).
func (f *Follower) copyOf(s found, p *part) bool {
	if s.size == 0 || p.read == 0 {
		return false
	}
	file, err := f.open(s.path)
	if err != nil {
		return false
	}
	defer file.Close()
	if st, err := p.statOpen(); err == nil && st.size >= p.read && p.holdsOurs(p.file) {
		end := min(s.size, st.size)
		return sameBytes(file, p.file, max(0, end-window), end) && sameBytes(file, p.file, 0, min(end, window))
	}
	// Ours was truncated, or is gone: what we know of it is the bytes before our
	// place.
	return p.holdsOurs(file)
}

// holdsOurs says whether the file has before our place the bytes that we read.
func (p *part) holdsOurs(file io.ReaderAt) bool {
	a := make([]byte, min(p.read, window))
	if _, err := file.ReadAt(a, p.read-int64(len(a))); err != nil {
		return false
	}
	return bytes.Equal(a, p.tail) || p.sum != 0 && checksum(a) == p.sum
}

func sameBytes(x, y io.ReaderAt, from, to int64) bool {
	a, b := make([]byte, to-from), make([]byte, to-from)
	_, errA := x.ReadAt(a, from)
	_, errB := y.ReadAt(b, from)
	return (errA == nil || errA == io.EOF) && (errB == nil || errB == io.EOF) && bytes.Equal(a, b)
}

// findCopies finds the copy of a truncated part, and behind it the copies of
// generations that came and went between two looks.
func (f *Follower) findCopies(p *part) []*part {
	if p.read == 0 || len(p.tail) == 0 && p.sum == 0 {
		return nil
	}
	dir := cmp.Or(f.resolvedDir(p.path), p.dir)
	if dir == "" {
		return nil
	}
	base := filepath.Base(cmp.Or(f.spec.Path, p.path))
	all, _ := f.siblings(filepath.Join(dir, base), f.isCopy)
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.mtime, a.mtime) })
	var first *part
	var at found
	for _, s := range all {
		if s.id.same(p.id) || s.size < p.read || f.packed(s.path) {
			continue
		}
		if slices.ContainsFunc(f.parts, func(q *part) bool { return q.file != nil && q.id.same(s.id) }) {
			continue
		}
		c := &part{id: s.id, path: s.path, dir: dir, role: dead, read: p.read, tail: p.tail, sum: p.sum, last: s.stat, quiet: f.now}
		c.state.Begun = true
		if f.openPart(c) != nil {
			continue
		}
		if ok, err := c.recognise(held{}); err != nil || !ok {
			c.close()
			continue
		}
		if st, err := statFile(c.file); err == nil {
			c.last = st
		}
		first, at = c, s
		break
	}
	if first == nil {
		return nil
	}
	out := []*part{first}
	if st, err := statPath(cmp.Or(f.spec.Path, p.path)); err != nil || !st.id.same(p.id) {
		return out // it has lost its name since: what is younger may be no copy
	}
	// Copies of later generations, if there were several truncations.
	slices.Reverse(all) // oldest first
	for _, s := range all {
		if s.id.same(p.id) || s.id.same(at.id) || f.packed(s.path) || !f.isRotated(filepath.Base(s.path), base) {
			continue
		}
		if at.id.Birth != 0 && s.id.Birth > at.id.Birth && !f.known(s) {
			out = append(out, &part{id: s.id, path: s.path, dir: dir, role: dead, quiet: f.now, state: lineState{Enc: f.encoding()}})
		}
	}
	return out
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

// list is the files in Dir whose names match, each file once however many
// names it has.
func (f *Follower) list() ([]found, error) {
	began := time.Now()
	all := crowd{once: map[ident]bool{}}
	err := eachName(f.spec.Dir, func(name string) {
		if !f.spec.Pattern.MatchString(name) && !(f.spec.Rotated != nil && f.spec.Rotated.MatchString(name)) {
			return
		}
		path := filepath.Join(f.spec.Dir, name)
		if st, err := statPath(path); err == nil && st.regular && !packedName(path) {
			all.add(found{path, st})
		}
	})
	f.listTook = time.Since(began)
	if absent(err) {
		err = nil
	}
	f.crowded = f.crowded || all.cut
	return all.newest(), err
}

// siblings are the regular files beside path whose base names is accepts, oldest
// first.
func (f *Follower) siblings(path string, is func(name, base string) bool) ([]found, error) {
	dir, base := filepath.Split(path)
	var all crowd
	if err := eachName(dir, func(name string) {
		if !is(name, base) {
			return
		}
		p := filepath.Join(dir, name)
		if st, err := statPath(p); err == nil && st.regular {
			all.add(found{p, st})
		}
	}); err != nil {
		return nil, err
	}
	list := all.newest()
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(a.mtime, b.mtime), cmp.Compare(a.path, b.path)) })
	return list, nil
}

// A crowd is the files of a folder that may be ours. Somebody may have made a
// million of them, so only the newest are kept: what is live, and what was live a
// moment ago, is among them.
type crowd struct {
	files []found
	once  map[ident]bool // not nil: a file counts once, by whichever name
	cut   bool
}

func (c *crowd) add(f found) {
	if c.once != nil {
		if c.once[f.id] {
			return
		}
		c.once[f.id] = true
	}
	c.files = append(c.files, f)
	if len(c.files) >= 2*maxListed {
		c.newest()
	}
}

// newest cuts the crowd down to its bound.
func (c *crowd) newest() []found {
	if len(c.files) <= maxListed {
		return c.files
	}
	slices.SortFunc(c.files, func(a, b found) int {
		switch {
		case a.before(b.stat):
			return 1
		case b.before(a.stat):
			return -1
		}
		return cmp.Compare(b.path, a.path)
	})
	if c.once != nil {
		for _, f := range c.files[maxListed:] {
			delete(c.once, f.id)
		}
	}
	c.files, c.cut = c.files[:maxListed], true
	return c.files
}

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
