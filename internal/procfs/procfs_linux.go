package procfs

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Read reads a whole file of procfs or of a control group into buf. The content
// is valid until buf is used again; grown is buf, or a larger one to use from now on.
// An error names what was tried and on what, as os.ReadFile's does.
func Read(path string, buf []byte) (content, grown []byte, err error) {
	failed := func(op string, err error) ([]byte, []byte, error) {
		return nil, buf, &fs.PathError{Op: op, Path: path, Err: err}
	}
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0) })
	if err != nil {
		return failed("open", err)
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(buf) {
			if n >= 64<<20 {
				return nil, buf, fmt.Errorf("read %s: longer than 64 MiB", path)
			}
			buf = append(buf, make([]byte, max(len(buf), 4<<10))...)
		}
		m, err := retried(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil && n == 0 {
			return failed("read", err)
		}
		if m <= 0 || err != nil {
			return buf[:n], buf, nil
		}
		n += m
	}
}

// retried calls again what a signal has interrupted; Go's runtime sends itself
// some.
func retried(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}
