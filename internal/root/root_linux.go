package root

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// hasOpenat2 asks once, with a path that anybody may open. A filter says EPERM
// more often than ENOSYS, and EPERM for some file would say nothing: for "/" it
// can only mean that the call itself is refused.
var hasOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
})

// HasOpenat2 says whether the kernel, and the seccomp filter that we may be under,
// have openat2.
func HasOpenat2() bool { return hasOpenat2() }

func open(dir, name string, folder bool) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if folder {
		flags |= unix.O_DIRECTORY
	}
	call, how := "openat2", openat2
	if !hasOpenat2() {
		if !WalkAllowed() {
			return nil, &fs.PathError{Op: "open", Path: path.Join(dir, name), Err: ErrNoOpenat2}
		}
		call, how = "openat", walk
	}
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(at)
	full := path.Join(dir, name)
	fd, err := how(at, name, flags)
	if err != nil {
		return nil, &fs.PathError{Op: call, Path: full, Err: err}
	}
	return os.NewFile(uintptr(fd), full), nil
}

// openat2 opens a name with the target's root as "/". EAGAIN is what the kernel
// answers when a rename or a mount raced with "..": asking again is its advice.
// First an O_PATH look is taken: opening a device can have effects of its own,
// and a pipe that is opened, even without a read, wakes its other end.
func openat2(at int, name string, flags int) (int, error) {
	look, err := openat2Raw(at, name, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(look)
	var st unix.Stat_t
	if err := unix.Fstat(look, &st); err != nil {
		return -1, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR:
	default:
		return -1, ErrNotRegular
	}
	// A swap between the look and the open is caught by the caller's fstat;
	// O_NONBLOCK keeps the open itself from waiting.
	return openat2Raw(at, name, flags)
}

func openat2Raw(at int, name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(at, name, &how)
		if err == unix.EINTR || (err == unix.EAGAIN && try < 8) {
			continue
		}
		return fd, err
	}
}

// kernelFS are file systems whose files are no logs, and where reading can mean
// something else than reading.
var kernelFS = map[int64]bool{
	unix.PROC_SUPER_MAGIC:    true,
	unix.SYSFS_MAGIC:         true,
	unix.CGROUP_SUPER_MAGIC:  true,
	unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEBUGFS_MAGIC:       true,
	unix.TRACEFS_MAGIC:       true,
	unix.SECURITYFS_MAGIC:    true,
	unix.BPF_FS_MAGIC:        true,
	unix.DEVPTS_SUPER_MAGIC:  true,
	unix.EFIVARFS_MAGIC:      true,
}

func checkKernel(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	if kernelFS[int64(st.Type)] {
		return ErrKernel
	}
	return nil
}

func checkRegular(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return ErrNotRegular
	}
	return checkKernel(f)
}

// OpenDescriptor opens a descriptor of a process for reading through its link
// /proc/PID/fd/N, but only when it is a regular file: reading from a pipe takes
// lines away from its real reader. The O_PATH handle that was looked at is the
// one that is then opened, so the descriptor can't change in between.
func OpenDescriptor(link string) (*os.File, error) {
	look, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: link, Err: err}
	}
	defer unix.Close(look)
	var st unix.Stat_t
	if err := unix.Fstat(look, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: link, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: link, Err: ErrNotRegular}
	}
	f, err := os.OpenFile(procSelfFD(look), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: link, Err: errors.Unwrap(err)}
	}
	if err := checkRegular(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: link, Err: err}
	}
	return f, nil
}

// StatDescriptor looks at what a descriptor link leads to without opening it.
func StatDescriptor(link string, st *unix.Stat_t) error {
	look, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: link, Err: err}
	}
	defer unix.Close(look)
	return unix.Fstat(look, st)
}

func procSelfFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Facts are what Open's callers ask of an opened file.
type Facts struct {
	Dev, Ino uint64
	UID, GID int
	Mode     fs.FileMode
}

// Look tells the facts of an opened file, where the system has them.
func Look(f *os.File) (Facts, bool) {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return Facts{}, false
	}
	return Facts{Dev: uint64(st.Dev), Ino: st.Ino, UID: int(st.Uid), GID: int(st.Gid), Mode: fs.FileMode(st.Mode & 0o777)}, true
}
