package logdir

import (
	"errors"
	"io/fs"
	"time"
)

// maxDepth bounds the folders a scan holds open, one a level. What lies deeper
// is left out and told.
const maxDepth = 100

// listBuffer takes some thousand names a call; more of it only makes the steps
// between two looks at the clock longer.
const listBuffer = 32 << 10

// watched is how many files and folders of a tree are looked at one by one
// between two whole reads.
const (
	watchedFiles = 16
	watchedDirs  = 32
)

// A scan is one whole read of a tree, in as many steps as the budget asks for.
// It counts as du -sx does: allocated bytes, folders included, an inode with
// several names once, nothing beyond the file system of the root.
type scan struct {
	stack   []frame
	dev     uint64
	links   map[uint64]uint32 // names still to come of inodes with several
	tracker *tracker

	allocated int64
	files     int64
	written   float64 // growth found against what the tracker knew
	bad       int     // names and folders that could not be read
	denied    int     // those of them for lack of rights
	tooDeep   int
	cost      time.Duration
	began     time.Time
	rootTime  int64 // when the root had changed, before its names were read
	rootIno   uint64

	recent  [watchedFiles]watch // the files with the newest changes
	recentN int
	dirs    []watch // the first folders, the root before all
}

// limits are what one look may take, and with what.
type limits struct {
	clock  func() time.Time
	budget time.Duration
	buf    []byte // for names
}

// watch is one file or folder that is looked at between two whole reads.
type watch struct {
	path    string // beneath the root; "" is the root
	ino     uint64
	changed int64
	last    meta
	quiet   bool // it had not changed when it was last looked at
}

type frame struct {
	node    node
	ino     uint64
	path    string
	pending []string // folders of the last batch, not entered yet
	eof     bool
}

// newScan starts at an open root, which it owns from here on.
func newScan(root node, t *tracker, began time.Time) (*scan, error) {
	var m meta
	if err := root.stat(&m); err != nil {
		root.close()
		return nil, err
	}
	s := &scan{
		dev: m.dev, tracker: t, began: began, rootTime: m.changed, rootIno: m.ino,
	}
	t.begin(m.changed)
	s.allocated += m.allocated
	s.push(root, "", &m)
	return s, nil
}

func (s *scan) push(n node, path string, m *meta) {
	s.stack = append(s.stack, frame{node: n, ino: m.ino, path: path})
	if len(s.dirs) < watchedDirs {
		s.dirs = append(s.dirs, watch{path: path, ino: m.ino, changed: m.changed})
	}
}

// step reads on until the budget is used up, one batch of names at the least,
// and says whether the tree is done. An error ends the scan: the root itself
// can't be read.
func (s *scan) step(l limits) (done bool, err error) {
	start := l.clock()
	defer func() { s.cost += l.clock().Sub(start) }()
	for len(s.stack) > 0 {
		f := &s.stack[len(s.stack)-1]
		switch {
		case len(f.pending) > 0:
			name := f.pending[len(f.pending)-1]
			f.pending = f.pending[:len(f.pending)-1]
			s.enter(f, name)
		case f.eof:
			f.node.close()
			s.stack = s.stack[:len(s.stack)-1]
		default:
			if err := s.list(f, l.buf); err != nil && len(s.stack) == 1 {
				s.abandon()
				return true, err
			}
			s.tracker.mark() // the first batch of each scan sets the mark
			if l.clock().Sub(start) >= l.budget {
				return false, nil
			}
		}
	}
	s.tracker.end()
	return true, nil
}

// list reads one batch of names of the innermost folder.
func (s *scan) list(f *frame, buf []byte) error {
	eof, bad, err := f.node.each(buf, func(name []byte, m *meta) { s.add(f, name, m) })
	f.eof = eof
	s.bad += bad
	if err != nil {
		s.miss(err)
	}
	return err
}

func (s *scan) add(f *frame, name []byte, m *meta) {
	if m.dir {
		if m.dev == s.dev { // else another file system is mounted there
			f.pending = append(f.pending, string(name))
		}
		return
	}
	s.files++
	if m.nlink > 1 && !s.firstName(m) {
		return
	}
	s.allocated += m.allocated
	if !m.regular {
		return
	}
	s.written += s.tracker.see(m)
	if s.recentN < watchedFiles || m.changed > s.recent[s.recentN-1].changed {
		s.remember(f.path, name, m)
	}
}

// firstName says whether an inode with several names has not been seen yet. It
// is forgotten again when all its names were, so that the map stays small
// where the links of a file lie together.
func (s *scan) firstName(m *meta) bool {
	left, seen := s.links[m.ino]
	switch {
	case !seen:
		if s.links == nil {
			s.links = map[uint64]uint32{}
		}
		s.links[m.ino] = m.nlink - 1
	case left <= 1:
		delete(s.links, m.ino)
	default:
		s.links[m.ino] = left - 1
	}
	return !seen
}

// remember keeps the newest files in the order of their changes.
func (s *scan) remember(dir string, name []byte, m *meta) {
	i := s.recentN
	if i < watchedFiles {
		s.recentN++
	} else {
		i--
	}
	for ; i > 0 && s.recent[i-1].changed < m.changed; i-- {
		s.recent[i] = s.recent[i-1]
	}
	s.recent[i] = watch{path: join(dir, string(name)), ino: m.ino, changed: m.changed, last: *m}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (s *scan) enter(f *frame, name string) {
	if len(s.stack) >= maxDepth {
		s.tooDeep++
		return
	}
	n, err := f.node.sub(name)
	if err != nil {
		s.miss(err)
		return
	}
	var m meta
	if err := n.stat(&m); err != nil {
		s.miss(err)
		n.close()
		return
	}
	for i := range s.stack {
		if s.stack[i].ino == m.ino { // a bind mount of a folder into itself
			n.close()
			return
		}
	}
	if m.dev != s.dev {
		n.close()
		return
	}
	s.allocated += m.allocated
	s.push(n, join(f.path, name), &m)
}

func (s *scan) miss(err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone in the middle: no error
	case errors.Is(err, fs.ErrPermission):
		s.denied++
		s.bad++
	default:
		s.bad++
	}
}

// abandon closes what the scan holds open.
func (s *scan) abandon() {
	for i := range s.stack {
		s.stack[i].node.close()
	}
	s.stack = nil
}
