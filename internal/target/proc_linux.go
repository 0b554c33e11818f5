package target

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
	"golang.org/x/sys/unix"
)

// What one process is, read below /proc/PID with bounds: a stranger chose much
// of it.

func (s *reader) stat(pid int) (statLine, bool) {
	b, err := s.small(s.file(pid, "stat"))
	if err != nil {
		return statLine{}, false
	}
	return parseStat(b)
}

// small reads a small file of /proc into a buffer that the next call reuses.
func (s *reader) small(name string) ([]byte, error) {
	if s.buf == nil {
		s.buf = make([]byte, 16<<10)
	}
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, s.buf)
	if err != nil {
		return nil, err
	}
	return s.buf[:max(n, 0)], nil
}

// whole reads a file of /proc to its end: the kernel gives a page at a time.
func whole(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// started is when a process with this start time began, if the machine says when
// it was booted itself. USER_HZ is 100 on every Linux that runs a JVM today.
func (s *reader) started(ticks uint64) (at time.Time, ok bool) {
	if s.boot.IsZero() {
		return at, false
	}
	return s.boot.Add(time.Duration(ticks) * (time.Second / 100)), true
}

// read gathers all that the machine shows of a JVM. nil means that it is none,
// or is gone.
func (s *reader) read(pid int, st statLine, maps mapsFacts, mapLines int) *seen {
	v := &seen{pid: pid, nspid: pid, ppid: st.ppid, start: st.startTicks}
	v.started, _ = s.started(st.startTicks)
	exe, _ := os.Readlink(s.file(pid, "exe"))
	v.exe = strings.TrimSuffix(exe, " (deleted)")
	if b, err := s.small(s.file(pid, "status")); err == nil {
		v.status, _ = parseStatus(b)
		if n := len(v.status.nspid); n > 0 {
			v.nspid = v.status.nspid[n-1]
		}
	}
	v.w = &world{access: access{root: s.rootOf(pid, v.status.nspid), held: map[fileID]bool{},
		cred: root.Cred{UID: v.status.uid, GID: v.status.gid, Groups: v.status.groups}}}

	byName := st.comm == "java" || path.Base(v.exe) == "java" || path.Base(v.exe) == "javaw"
	if v.maps = maps; v.maps.libjvm == "" {
		switch {
		case mapLines > 0 && !(byName && mapLines < 20):
			return nil // it can be read, is complete, and has no JVM
		case byName:
		case s.gone(pid):
			return nil
		default:
			// The mappings can't be read, so hsperfdata must do.
			if s.perfdata(v); v.perf.path == "" {
				return nil
			}
		}
	}
	if b, err := whole(s.file(pid, "cmdline"), maxCmdline); err == nil {
		v.cmdline = splitNUL(b)
	}
	if b, err := whole(s.file(pid, "environ"), maxEnviron); err == nil {
		v.environ = environment(b)
	}
	v.cwd, _ = os.Readlink(s.file(pid, "cwd"))
	v.cwd = strings.TrimSuffix(v.cwd, " (deleted)")
	if top, err := os.Readlink(s.file(pid, "root")); err == nil && top != "/" {
		// A chroot: links are told from our own root.
		v.cwd = strings.TrimPrefix(v.cwd, top)
	}
	inodes := s.descriptors(pid, v)
	s.sockets(pid, v, inodes)
	if b, err := s.small(s.file(pid, "limits")); err == nil {
		v.maxFiles = limitOf(b, "Max open files")
		if v.status.uid != 0 { // root is not held to it
			v.maxThreads = limitOf(b, "Max processes")
		}
	}
	if v.perf.path == "" {
		s.perfdata(v)
	}
	return v
}

func (s *reader) gone(pid int) bool {
	_, err := os.Stat(s.file(pid, "stat"))
	return err != nil
}

// rootOf is the folder that is "/" for the process. In our own mount namespace,
// with no chroot, that is our "/", which stays when the process goes.
func (s *reader) rootOf(pid int, nspid []int) string {
	top, err := os.Readlink(s.file(pid, "root"))
	if err != nil {
		if len(nspid) > 1 {
			// Surely a container: its files are not ours, even when theirs can't
			// be read.
			return s.file(pid, "root")
		}
		return s.cfg.Root
	}
	ns, err := os.Readlink(s.file(pid, "ns/mnt"))
	if top == "/" && (err != nil || ns == s.own) {
		return s.cfg.Root
	}
	return s.file(pid, "root")
}

// maps reads the list of mappings, once for each JVM, and says how many lines
// there were. (smaps is never read: it stops the JVM for as long as the kernel
// counts pages.)
func (s *reader) maps(pid int, m *mapsFacts) (lines int) {
	f, err := os.Open(s.file(pid, "maps"))
	if err != nil {
		return 0
	}
	defer f.Close()
	if s.lines == nil {
		s.lines = bufio.NewReaderSize(nil, 32<<10)
	}
	r := s.lines
	r.Reset(f)
	for lines < 500_000 {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			m.add(line)
			lines++
		}
		if err != nil && err != bufio.ErrBufferFull {
			break
		}
	}
	return lines
}

// environment keeps those variables that discovery asks for: the rest is none
// of our business and may hold secrets.
func environment(b []byte) map[string]string {
	out := map[string]string{}
	for _, e := range splitNUL(b) {
		k, v, ok := strings.Cut(e, "=")
		if ok && len(out) < 1000 {
			out[k] = v
		}
	}
	return out
}

// limits compares the settings with what the kernel allows.
func (s *reader) limits(pid int, t *Target) {
	ours, err1 := os.Readlink(path.Join(s.cfg.Proc, "self/ns/net"))
	theirs, err2 := os.Readlink(s.file(pid, "ns/net"))
	if err1 != nil || err2 != nil || ours != theirs {
		return // the figure that can be read is ours, not theirs
	}
	b, err := s.small(path.Join(s.cfg.Proc, "sys/net/core/somaxconn"))
	if err != nil {
		return
	}
	most, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		return
	}
	for _, c := range t.Connectors {
		if c.AcceptCount > most {
			t.Findings = append(t.Findings, Finding{ID: "accept_count_above_somaxconn",
				Detail: fmt.Sprintf("the connector on port %d has acceptCount %d, which the kernel cuts to %d (net.core.somaxconn)", c.Port, c.AcceptCount, most)})
		}
	}
}
