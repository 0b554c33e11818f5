//go:build darwin || freebsd || netbsd

package follow

import (
	"os"
	"syscall"
)

func sysStatPath(path string) (stat, error) {
	var x syscall.Stat_t
	if err := syscall.Stat(path, &x); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fromStat(&x), nil
}

func sysStatFile(f *os.File) (stat, error) {
	var x syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &x); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return fromStat(&x), nil
}

func fromStat(x *syscall.Stat_t) stat {
	return stat{
		id:      ident{Dev: uint64(x.Dev), Ino: uint64(x.Ino), Birth: x.Birthtimespec.Nano()},
		size:    x.Size,
		alloc:   x.Blocks * 512,
		mtime:   x.Mtimespec.Nano(),
		ctime:   x.Ctimespec.Nano(),
		links:   uint32(x.Nlink),
		regular: x.Mode&syscall.S_IFMT == syscall.S_IFREG,
		dir:     x.Mode&syscall.S_IFMT == syscall.S_IFDIR,
	}
}

// nextData is not tried here: a hole is read as the NULs it shows.
func nextData(*os.File, int64) (int64, bool) { return 0, false }
