package follow

import (
	"os"

	"golang.org/x/sys/unix"
)

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// sysStatPath looks at what the path leads to, links followed. statx is the one
// call that also tells the birth time, which is what makes a reused inode
// number visible.
func sysStatPath(path string) (stat, error) {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, statMask, &x); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fromStatx(&x), nil
}

// sysStatFile looks at an open file.
func sysStatFile(f *os.File) (stat, error) {
	var x unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, statMask, &x); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return fromStatx(&x), nil
}

func fromStatx(x *unix.Statx_t) stat {
	s := stat{
		id:      ident{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino},
		size:    int64(x.Size),
		alloc:   int64(x.Blocks) * 512,
		mtime:   x.Mtime.Sec*1e9 + int64(x.Mtime.Nsec),
		ctime:   x.Ctime.Sec*1e9 + int64(x.Ctime.Nsec),
		links:   x.Nlink,
		regular: x.Mode&unix.S_IFMT == unix.S_IFREG,
		dir:     x.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		s.id.Birth = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	return s
}

// nextData is the offset of the first byte at or after off that lies in no
// hole, so that a gigabyte that was never written costs no reading.
func nextData(f *os.File, off int64) (int64, bool) {
	n, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	return n, err == nil && n > off
}
