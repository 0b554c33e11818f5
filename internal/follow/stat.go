package follow

import "os"

// ident is what makes two sightings the same file. Birth is in Unix
// nanoseconds, 0 where the file system keeps none; an inode number alone is
// handed out again within milliseconds (ext4 gives a freed one straight back).
type ident struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Birth int64  `json:"birth,omitempty"`
}

func (a ident) same(b ident) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && (a.Birth == b.Birth || a.Birth == 0 || b.Birth == 0)
}

// stat is what a look at a file tells. Times are Unix nanoseconds of the file
// system's clock and are compared with each other only.
type stat struct {
	id           ident
	size, alloc  int64
	mtime, ctime int64
	links        uint32
	regular, dir bool
}

// made orders files by their making: by birth where it is known on both sides,
// else by the last change.
func (a stat) before(b stat) bool {
	if a.id.Birth != 0 && b.id.Birth != 0 && a.id.Birth != b.id.Birth {
		return a.id.Birth < b.id.Birth
	}
	return a.mtime < b.mtime
}

// seen lets a test play a file system with other clocks, or with no birth
// times: a schedule of a second has dozens of files made within one tick of the
// real clock. It is nil but in tests.
var seen func(*stat)

// statFile looks at an open file.
func statFile(f *os.File) (stat, error) {
	s, err := sysStatFile(f)
	if err == nil && seen != nil {
		seen(&s)
	}
	return s, err
}
