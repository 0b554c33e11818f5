package logdir

// meta is what the room wants to know of one file or folder.
type meta struct {
	dev, ino  uint64
	size      int64 // st_size, bytes
	allocated int64 // bytes on disk, what du counts
	nlink     uint32
	dir       bool
	regular   bool
	// changed is the time of the last change (ctime, which nobody can set), in
	// nanoseconds of the file system's clock. It is compared with its like only.
	changed int64
	born    int64 // when it was made, on the same clock; 0 where nobody tells
}

// space is what a file system says of itself, in bytes and inodes.
type space struct {
	size        int64
	avail       int64 // to everybody
	free        int64 // to root
	inodes      uint64
	inodesFree  uint64
	hasInodes   bool // btrfs and many network file systems have none to count
	readonly    bool
	compressing bool // blocks say nothing about bytes written there
}

// A mountRef says on which mount a folder lies.
type mountRef struct {
	key   string // the same for two folders on one mount
	point string // as the server sees it
}

// quota is what one user may take of a file system; 0 is no limit.
type quota struct {
	bytes, used        int64
	inodes, usedInodes uint64
}

// bind narrows a file system's figures to what the quota leaves of them.
func (s *space) bind(q quota) {
	if q.bytes > 0 {
		s.size = min(s.size, q.bytes)
		s.avail = min(s.avail, max(q.bytes-q.used, 0))
	}
	if q.inodes > 0 {
		s.inodes = min(s.inodes, q.inodes)
		s.inodesFree = min(s.inodesFree, q.inodes-min(q.usedInodes, q.inodes))
	}
}

// fsys is the part of the operating system that this room stands on. Any call
// of it but guess may block for ever, when the mount beneath is gone: it is
// called from tasks only.
type fsys interface {
	// open opens a folder beneath root, following the links in its path.
	open(root, path string) (node, error)
	// guess gives a function that tells which mount a path leads to by its text
	// alone, without asking any file system. Two paths with one answer are
	// looked up one after the other.
	guess(root string) func(path string) string
	// mount says where an open folder lies.
	mount(n node) (mountRef, error)
}

// node is one open folder.
type node interface {
	stat(m *meta) error
	// statAt asks for a path beneath the folder and follows no link at its end.
	statAt(name string, m *meta) error
	// each reads the next names and calls do with each that is still there. The
	// name belongs to do until it returns. bad counts names that can't be asked
	// about. At the end of the folder eof is true.
	each(buf []byte, do func(name []byte, m *meta)) (eof bool, bad int, err error)
	// sub opens a folder in this one, never through a link.
	sub(name string) (node, error)
	// space asks for the figures of the file system as they hold in this
	// folder: with project quotas they are the project's.
	space() (space, error)
	// userQuota asks for a user's limits there, if there are any to be known.
	userQuota(uid int) (quota, bool)
	close()
}
