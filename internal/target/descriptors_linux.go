package target

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/root"
	"golang.org/x/sys/unix"
)

// What a process holds open, and where it listens.

// descriptors lists the open files. It opens none of them: an O_PATH handle and
// an fstat tell what each is.
func (s *reader) descriptors(pid int, v *seen) map[uint64]bool {
	dir := s.file(pid, "fd")
	d, err := os.Open(dir)
	if err != nil {
		v.fdsDenied = errors.Is(err, fs.ErrPermission)
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(maxDescriptors)
	if err != nil && err != io.EOF && len(names) == 0 {
		v.fdsDenied = errors.Is(err, fs.ErrPermission)
		return nil
	}
	top, _ := os.Readlink(s.file(pid, "root"))
	numbers := make([]int, 0, len(names))
	for _, n := range names {
		if i, err := strconv.Atoi(n); err == nil {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	inodes := map[uint64]bool{}
	for _, n := range numbers {
		link := dir + "/" + strconv.Itoa(n)
		to, err := os.Readlink(link)
		if err != nil {
			v.fdsDenied = v.fdsDenied || errors.Is(err, fs.ErrPermission)
			continue
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			if i, err := strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64); err == nil {
				inodes[i] = true
			}
			if n > 2 {
				continue
			}
		}
		if strings.HasPrefix(to, "/") && !interesting(to) && n > 2 {
			continue
		}
		fd := descriptor{number: n, path: to}
		if strings.HasPrefix(to, "/") {
			s.examine(pid, link, top, &fd, v.w)
		}
		v.fds = append(v.fds, fd)
	}
	return inodes
}

// interesting leaves out what is surely neither a log nor a jar we look for:
// libraries, class files, devices.
func interesting(p string) bool {
	if strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/") {
		return false
	}
	p = strings.TrimSuffix(p, " (deleted)")
	if base := path.Base(p); strings.HasSuffix(base, ".jar") {
		for _, k := range []string{"catalina", "tomcat", "tomee", "bootstrap", "jetty", "start"} {
			if strings.Contains(base, k) {
				return true
			}
		}
		return false
	}
	return !strings.HasSuffix(p, ".so") && !strings.HasSuffix(p, "/lib/modules") && !strings.HasSuffix(p, ".war")
}

// examine tells what a descriptor is. Its name can't be trusted: a descriptor
// from another mount namespace shows a path that means another file here.
func (s *reader) examine(pid int, link, top string, fd *descriptor, w *world) {
	var st unix.Stat_t
	err := root.StatDescriptor(link, &st)
	fd.regular = err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
	fd.unknown = err != nil
	if p, ok := strings.CutSuffix(fd.path, " (deleted)"); ok && (err != nil || st.Nlink == 0) {
		fd.path, fd.deleted = p, true
	}
	if top != "/" && top != "" {
		fd.path = strings.TrimPrefix(fd.path, top)
	}
	fd.writes = true
	if !fd.regular {
		return
	}
	w.held[fileID{uint64(st.Dev), st.Ino}] = true
	if !fd.deleted {
		var named unix.Stat_t
		err := unix.Stat(path.Join(w.root, fd.path), &named)
		fd.outside = err != nil || named.Dev != st.Dev || named.Ino != st.Ino
	}
	if b, err := s.small(s.file(pid, "fdinfo/"+strconv.Itoa(fd.number))); err == nil {
		if flags, ok := fdFlags(b); ok {
			fd.writes = flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
}

func fdFlags(b []byte) (int64, bool) {
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 8, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// maxNet bounds the socket table: a busy server has tens of thousands of rows.
const maxNet = 32 << 20

// sockets finds what the process listens on, in its own network namespace.
func (s *reader) sockets(pid int, v *seen, inodes map[uint64]bool) {
	if len(inodes) == 0 && !v.fdsDenied {
		return
	}
	for _, n := range []string{"net/tcp", "net/tcp6"} {
		f, err := os.Open(s.file(pid, n))
		if err != nil {
			v.listenersDenied = v.listenersDenied || errors.Is(err, fs.ErrPermission)
			continue
		}
		// The kernel lists LISTEN rows first in both tables, so reading stops at
		// the first other row: a busy server has tens of thousands of those.
		r := bufio.NewReaderSize(io.LimitReader(f, maxNet), 16<<10)
		r.ReadSlice('\n') // the heading
		for more := true; more; {
			line, err := r.ReadSlice('\n')
			more = err == nil && parseListener(line, func(l listener) {
				if inodes[l.inode] && len(v.listeners) < 256 {
					v.listeners = append(v.listeners, l)
				}
			})
		}
		f.Close()
	}
}

// limitOf is the soft limit of /proc/PID/limits, 0 for unlimited or unknown.
func limitOf(b []byte, name string) int {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				n, _ := strconv.Atoi(string(f[0]))
				return n
			}
		}
	}
	return 0
}
