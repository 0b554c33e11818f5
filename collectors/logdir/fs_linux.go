package logdir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// linuxFS asks the kernel directly: names by getdents, one statx a name
// relative to the folder's descriptor. Through os.ReadDir and os.Lstat the same
// costs three allocations a name and a path walk from the root.
type linuxFS struct {
	proc string
	pid  int
}

func newFS(cfg Config) fsys { return linuxFS{cfg.Proc, cfg.PID} }

// linuxNode keeps the file beside its descriptor: the finaliser of a file that
// nobody keeps would close it.
type linuxNode struct {
	fd   int
	file *os.File
}

// open goes through internal/root, which keeps a server's links inside of the
// server's own root: seen from /proc/PID/root, a link to /data would lead into
// our /data.
func (linuxFS) open(dir, path string) (node, error) {
	dir, path = split(dir, path)
	f, err := root.OpenDir(dir, path)
	if err != nil {
		return nil, err
	}
	return linuxNode{int(f.Fd()), f}, nil
}

// split makes a path as the server sees it of one that was given with its root,
// as /proc/PID/root/srv/logs.
func split(dir, path string) (string, string) {
	if dir == "/" {
		return root.Split(path)
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")); ok && (rest == "" || rest[0] == '/') {
		path = rest
	}
	return dir, path
}

func retry(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if err != unix.EINTR && err != unix.EAGAIN {
			return n, err
		}
	}
}

func (l linuxFS) mount(n node) (mountRef, error) {
	fd := n.(linuxNode).fd
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID|unix.STATX_TYPE, &st); err != nil {
		return mountRef{}, fmt.Errorf("statx: %w", err)
	}
	dev := fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor)
	id := -1
	if st.Mask&unix.STATX_MNT_ID != 0 { // since Linux 5.8
		id = int(st.Mnt_id)
	}
	rows, err := l.mounts()
	if err != nil {
		return mountRef{}, err
	}
	m, ok := findMount(rows, id, dev)
	if !ok {
		// Mounted outside of what the server sees; the device still names it.
		return mountRef{key: dev, point: dev}, nil
	}
	return mountRef{key: dev + " " + m.point, point: m.point}, nil
}

// mounts are those that the server sees, or, when it is gone, those we see.
func (l linuxFS) mounts() ([]mountRow, error) {
	if l.pid > 0 {
		if table, err := os.ReadFile(l.proc + "/" + strconv.Itoa(l.pid) + "/mountinfo"); err == nil {
			return parseMountinfo(table), nil
		}
	}
	table, err := os.ReadFile(l.proc + "/self/mountinfo")
	return parseMountinfo(table), err
}

// guess takes the longest mount point that a path begins with. A link can lead
// elsewhere, most easily from the root's file system: there each path is a case
// of its own.
func (l linuxFS) guess(dir string) func(path string) string {
	rows, _ := l.mounts()
	return func(path string) string {
		_, inside := split(dir, path)
		best := ""
		for _, r := range rows {
			if len(r.point) > max(len(best), 1) && (inside == r.point || strings.HasPrefix(inside, r.point+"/")) {
				best = r.point
			}
		}
		if best == "" {
			return path
		}
		return best
	}
}

// statxMask leaves out what would make a network file system ask its server.
const statxMask = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_SIZE | unix.STATX_BLOCKS |
	unix.STATX_NLINK | unix.STATX_CTIME | unix.STATX_BTIME

const statxFlags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT

// statx takes a name that ends in a zero byte, so that a name from getdents
// can be used where it lies.
func statx(fd int, name *byte, flags int, st *unix.Statx_t) error {
	for {
		_, _, e := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)),
			uintptr(flags), statxMask, uintptr(unsafe.Pointer(st)), 0)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

func fill(m *meta, st *unix.Statx_t) {
	*m = meta{
		dev:       uint64(st.Dev_major)<<32 | uint64(st.Dev_minor),
		ino:       st.Ino,
		size:      int64(st.Size),
		allocated: int64(st.Blocks) * 512,
		nlink:     st.Nlink,
		dir:       st.Mode&unix.S_IFMT == unix.S_IFDIR,
		regular:   st.Mode&unix.S_IFMT == unix.S_IFREG,
		changed:   st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		m.born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
}

var emptyName byte

func (n linuxNode) stat(m *meta) error {
	var st unix.Statx_t
	if err := statx(n.fd, &emptyName, unix.AT_EMPTY_PATH|statxFlags, &st); err != nil {
		return err
	}
	fill(m, &st)
	return nil
}

func (n linuxNode) statAt(name string, m *meta) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	var st unix.Statx_t
	if err := statx(n.fd, p, statxFlags, &st); err != nil {
		return err
	}
	fill(m, &st)
	return nil
}

// Layout of struct linux_dirent64: d_ino 8, d_off 8, d_reclen 2, d_type 1, name.
const direntReclen, direntName = 16, 19

func (n linuxNode) each(buf []byte, do func(name []byte, m *meta)) (eof bool, bad int, err error) {
	got, err := retry(func() (int, error) { return unix.Getdents(n.fd, buf) })
	switch {
	case errors.Is(err, unix.ENOENT): // removed while open
		return true, 0, nil
	case err != nil:
		return true, 0, err
	case got == 0:
		return true, 0, nil
	}
	var st unix.Statx_t
	var m meta
	for at := 0; at+direntName < got; {
		length := int(binary.NativeEndian.Uint16(buf[at+direntReclen:]))
		if length <= direntName || at+length > got {
			return true, bad, fmt.Errorf("getdents: record of %d bytes", length)
		}
		name := buf[at+direntName : at+length]
		at += length
		end := 0
		for end < len(name) && name[end] != 0 {
			end++
		}
		if end == len(name) {
			return true, bad, errors.New("getdents: a name without end")
		}
		if end == 1 && name[0] == '.' || end == 2 && name[0] == '.' && name[1] == '.' {
			continue
		}
		switch err := statx(n.fd, &name[0], statxFlags, &st); err {
		case nil:
			fill(&m, &st)
			do(name[:end], &m)
		case unix.ENOENT: // gone between the two calls: no error
		default:
			bad++
		}
	}
	return false, bad, nil
}

func (n linuxNode) sub(name string) (node, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(n.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return linuxNode{fd: fd}, nil
}

func (n linuxNode) space() (space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(n.fd, &st); err != nil {
		return space{}, err
	}
	return fromStatfs(&st), nil
}

// The magics of file systems that may compress what is written.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// fromStatfs counts in fragments, which is the unit of the block figures; the
// block size is only the size of transfer the file system likes.
func fromStatfs(st *unix.Statfs_t) space {
	unit := int64(st.Frsize)
	if unit == 0 {
		unit = int64(st.Bsize)
	}
	s := space{
		size:       int64(st.Blocks) * unit,
		free:       int64(st.Bfree) * unit,
		avail:      int64(st.Bavail) * unit,
		inodes:     st.Files,
		inodesFree: st.Ffree,
		hasInodes:  st.Files > 0,
		readonly:   st.Flags&unix.ST_RDONLY != 0,
	}
	switch uint32(st.Type) {
	case unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfsMagic, bcachefsMagic:
		s.compressing = true
	}
	return s
}

func (n linuxNode) close() {
	if n.file != nil {
		n.file.Close()
		return
	}
	unix.Close(n.fd)
}
