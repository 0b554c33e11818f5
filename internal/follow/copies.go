package follow

import (
	"bytes"
	"cmp"
	"io"
	"path/filepath"
	"slices"
)

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
