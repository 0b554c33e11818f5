package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/root"
)

// A Scanner finds the JVMs of this machine. It is used by one goroutine.
//
// A look at a machine where nothing has changed costs one read of
// /proc/PID/stat for each process, and one stat for each settings file that was
// used: what a JVM is made of is read in full when it is new, when one of those
// files changes, and every half minute (new log files, ports that opened).
//
// All that can block (a file on a dead mount, /proc of a stuck process) is done
// in a goroutine of its own, of which there is at most one for each process, and
// is waited for no longer than patience.
type Scanner struct {
	*reader
	procs    map[int]*process
	blind    []Blind
	left     []*Target
	patience time.Duration
}

// reader reads what the machine shows of one process after the other. When one
// blocks, it is left to it, and the Scanner goes on with another reader.
type reader struct {
	cfg   Config
	boot  time.Time // when the machine started; worked out once
	own   string    // our mount namespace
	buf   []byte
	perf  []byte
	lines *bufio.Reader
}

// process is what is remembered of one pid.
type process struct {
	start   uint64
	comm    string
	ppid    int
	since   time.Time // when this process was first seen
	looks   int       // how often it was found to be no JVM
	next    time.Time // when to look again
	pending chan visit
	last    visit
}

// visit is what one reading of a process found.
type visit struct {
	target *Target // nil for what is no JVM, or a tool of the JDK
	read   []input
	perf   perfSeen
	tool   bool
	same   bool // nothing has changed since the visit before
	// maps are read when a JVM is found, and once more when it has settled:
	// reading them holds the lock that its page faults need.
	maps     mapsFacts
	mapLines int
	mapped   time.Time
}

// New makes a Scanner.
func New(cfg Config) *Scanner {
	cfg.Proc, cfg.Root = cmpOr(cfg.Proc, "/proc"), cmpOr(cfg.Root, "/")
	return &Scanner{reader: &reader{cfg: cfg}, procs: map[int]*process{}, patience: 2 * time.Second}
}

// Blind is what can't be seen of the machine as a whole.
func (s *Scanner) Blind() []Blind { return s.blind }

// Boot is the kernel's id of this boot: pids and start ticks begin anew with
// each. It is empty where the kernel does not say.
func (s *Scanner) Boot() string {
	b, err := s.small(path.Join(s.cfg.Proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

const (
	// settled is how old a JVM is when it is no longer expected to open new
	// files and ports each second.
	settled = time.Minute
	// refresh is how often a settled JVM is read again in full.
	refresh = 30 * time.Second
	// maxCmdline and maxEnviron bound what is read of a command line. Linux
	// allows 2 MiB for both together, unless the stack limit was raised.
	maxCmdline = 2 << 20
	maxEnviron = 2 << 20
	// maxDescriptors bounds how many of a process' descriptors are looked at.
	maxDescriptors = 100_000
	// maxProcesses bounds how many processes are looked at.
	maxProcesses = 200_000
)

// LeftOut are the targets of the last Scan that the settings leave out.
func (s *Scanner) LeftOut() []*Target { return s.left }

// Scan looks at the machine. The targets are sorted, have names that differ, and
// are not changed afterwards. An error means that nothing could be seen at all.
func (s *Scanner) Scan(ctx context.Context, now time.Time) ([]*Target, error) {
	pids, err := s.pids()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	if s.boot.IsZero() {
		if b, err := os.ReadFile(path.Join(s.cfg.Proc, "stat")); err == nil {
			if sec, ok := parseBtime(b); ok {
				s.boot = time.Unix(sec, 0)
			}
		}
		s.own, _ = os.Readlink(path.Join(s.cfg.Proc, "self/ns/mnt"))
	}
	s.machine()
	var found []*Target
	var fresh []*process
	parents := map[int]int{}
	alive := make(map[int]bool, len(pids))
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		alive[pid] = true
		p := s.look(ctx, pid, now)
		if p == nil {
			continue
		}
		if p.last.target != nil {
			found = append(found, p.last.target)
			fresh = append(fresh, p)
			parents[pid] = p.ppid
		}
	}
	for pid := range s.procs {
		if !alive[pid] {
			delete(s.procs, pid)
		}
	}
	found = onePerfOwner(found, fresh)
	found, s.left = settle(found, parents, s.cfg)
	return found, nil
}

func (s *Scanner) pids() ([]int, error) {
	d, err := os.Open(s.cfg.Proc)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxProcesses)
	if err != nil && err != io.EOF {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// machine says what is hidden from us as a whole.
func (s *Scanner) machine() {
	s.blind = s.blind[:0:0]
	if s.cfg.Proc == "/proc" {
		if _, err := os.Stat("/proc/1"); err != nil {
			s.blind = append(s.blind, Blind{Source: "target", Reason: "hidepid", Needs: "CAP_SYS_PTRACE, or the group of hidepid's gid=",
				Detail: "/proc is mounted with hidepid: processes of other users are not visible"})
		}
	}
	if root.Fallback() {
		s.blind = append(s.blind, Blind{Source: "target", Reason: "no_openat2", Needs: "Linux 5.6, and a seccomp filter that allows openat2",
			Detail: "the kernel has no openat2: links to absolute paths inside of a target's folders are not followed"})
	}
}

// file is a path beneath /proc/PID.
func (s *reader) file(pid int, name string) string {
	return s.cfg.Proc + "/" + strconv.Itoa(pid) + "/" + name
}

// look finds out what a pid is, from memory where nothing has changed. nil means
// that the process is gone.
func (s *Scanner) look(ctx context.Context, pid int, now time.Time) *process {
	st, ok := s.stat(pid)
	if !ok || st.state == 'Z' || st.state == 'X' {
		delete(s.procs, pid)
		return nil
	}
	p := s.procs[pid]
	// An exec keeps pid and start time: catalina.sh becomes java. It changes the
	// command's name, nearly always.
	if p == nil || p.start != st.startTicks || p.comm != st.comm {
		p = &process{start: st.startTicks, comm: st.comm, since: now}
		s.procs[pid] = p
	}
	p.ppid = st.ppid
	due := !now.Before(p.next)
	if st.vsize == 0 || p.last.target == nil && !due && p.pending == nil {
		return p // a kernel thread, or surely no JVM
	}
	patience := s.patience
	if p.pending != nil {
		patience = 0 // it did not answer the last time
	} else {
		p.pending = make(chan visit, 1)
		go func(r *reader, into chan visit, last visit, since time.Time) {
			if last.target != nil && !due && !changed(last.read) {
				last.same = true
				into <- last
				return
			}
			into <- r.visit(pid, st, last, since, now)
		}(s.reader, p.pending, p.last, p.since)
	}
	if v, ok := answer(ctx, p.pending, patience); ok {
		p.pending = nil
		if !v.same {
			p.take(v, now)
		}
		return p
	}
	if patience > 0 {
		// That reader is left to it.
		s.reader = &reader{cfg: s.cfg, boot: s.boot, own: s.own}
	}
	s.blind = append(s.blind, Blind{Source: "target", Reason: "stuck",
		Detail: fmt.Sprintf("process %d, or a file of it, does not answer: a mount that is gone, or a process that can't go on", pid)})
	return p
}

// answer waits for a visit for a while; with no patience it only looks.
func answer(ctx context.Context, from chan visit, patience time.Duration) (v visit, ok bool) {
	if patience == 0 {
		select {
		case v = <-from:
			return v, true
		default:
			return v, false
		}
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case v = <-from:
		return v, true
	case <-wait.C:
	case <-ctx.Done():
	}
	return v, false
}

// take keeps a visit, and sets the time for the next.
func (p *process) take(v visit, now time.Time) {
	p.last = v
	switch {
	case v.tool:
		p.next = now.Add(time.Minute)
	case v.target == nil:
		// No JVM, as far as can be told. One that loads the JVM later (jsvc, a
		// launcher of its own) does it in its first seconds. Afterwards it is
		// looked at once a minute.
		p.looks++
		p.next = now.Add(min(time.Duration(p.looks)*5*time.Second, time.Minute))
	case now.Sub(p.since) < settled:
		p.next = now.Add(4 * time.Second)
	default:
		p.next = now.Add(refresh)
	}
}

// visit reads one process in full.
func (s *reader) visit(pid int, st statLine, last visit, since, now time.Time) visit {
	v := visit{maps: last.maps, mapLines: last.mapLines, mapped: last.mapped}
	if last.target == nil || last.mapped.Sub(since) < settled && now.Sub(since) >= settled {
		v.maps, v.mapped = mapsFacts{}, now
		v.mapLines = s.maps(pid, &v.maps)
	}
	seen := s.read(pid, st, v.maps, v.mapLines)
	if seen == nil {
		return v
	}
	if isTool(seen.cmdline, seen.perf.javaCommand) || jdkTools[path.Base(seen.exe)] {
		v.tool = true
		return v
	}
	v.target = build(seen)
	s.limits(pid, v.target)
	v.read, v.perf = seen.w.read, seen.perf
	return v
}

var jdkTools = map[string]bool{"javac": true, "jps": true, "jstack": true, "jstat": true, "jcmd": true, "jmap": true, "jinfo": true, "jar": true, "javadoc": true, "jlink": true, "jshell": true, "keytool": true}

func changed(read []input) bool {
	for _, in := range read {
		if statInput(in.path) != in {
			return true
		}
	}
	return false
}

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

// read gathers all that the machine shows of a JVM. nil means that it is none,
// or is gone.
func (s *reader) read(pid int, st statLine, maps mapsFacts, mapLines int) *seen {
	v := &seen{pid: pid, nspid: pid, ppid: st.ppid, start: st.startTicks}
	if !s.boot.IsZero() {
		v.started = s.boot.Add(time.Duration(st.startTicks) * (time.Second / 100))
	}
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

// perfdata finds /tmp/hsperfdata_USER/NSPID beneath the target's root. The
// user's name may mean nothing outside of a container, so every such folder is
// looked at; the file must belong to the process' user and be no older than it.
func (s *reader) perfdata(v *seen) {
	v.perf.reason = "not_found"
	for _, n := range v.w.list("/tmp", 100_000) {
		if !strings.HasPrefix(n, "hsperfdata_") {
			continue
		}
		name := "/tmp/" + n + "/" + strconv.Itoa(v.nspid)
		f, err := root.Open(v.w.root, name)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				v.perf.reason = "no_permission"
			}
			continue
		}
		ok := s.perfFile(v, f)
		f.Close()
		if ok {
			v.perf.path, v.perf.reason = path.Join(v.w.root, name), ""
			return
		}
	}
}

func (s *reader) perfFile(v *seen, f *os.File) bool {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Size > hsperf.MaxSize {
		return false
	}
	if int(st.Uid) != v.status.uid {
		return false
	}
	data, err := hsperf.Read(f, int(st.Size), s.perf)
	if err != nil {
		v.perf.reason = "unreadable"
		return false
	}
	s.perf = data
	d, err := hsperf.Decode(data)
	if err != nil {
		v.perf.reason = "unreadable"
		return false
	}
	text := func(k string) string { t, _ := d.String(k); return strings.Clone(t) }
	p := &v.perf
	p.vmArgs, p.javaCommand = text("java.rt.vmArgs"), text("sun.rt.javaCommand")
	p.version, p.vendor, p.vm = text("java.property.java.version"), text("java.property.java.vm.vendor"), text("java.property.java.vm.name")
	p.dev, p.ino = uint64(st.Dev), st.Ino
	if ms, ok := d.Long("sun.rt.createVmBeginTime"); ok {
		p.begin = time.UnixMilli(ms)
	}
	p.mapped = v.maps.perfdata != ""
	return true
}

// onePerfOwner gives an hsperfdata file that several processes claim (two
// containers with a shared /tmp, pid 1 in both) to the one it is of: the one
// that maps such a file, else the one that began next before the counters did.
func onePerfOwner(ts []*Target, ps []*process) []*Target {
	type file struct{ dev, ino uint64 }
	owner := map[file]int{}
	for i, p := range ps {
		if p.last.target.PerfData.Path == "" {
			continue
		}
		f := file{p.last.perf.dev, p.last.perf.ino}
		j, taken := owner[f]
		if !taken || ownsMore(p, ps[j]) {
			owner[f] = i
		}
	}
	for i, p := range ps {
		if p.last.target.PerfData.Path == "" || owner[file{p.last.perf.dev, p.last.perf.ino}] == i {
			continue
		}
		c := *p.last.target
		c.PerfData = PerfData{Reason: "another_jvms"}
		c.JDK = JDK{}
		c.Blind = append(slices.Clone(c.Blind), Blind{Source: "jvm", Reason: "no_perfdata", Detail: perfReason("another_jvms")})
		ts[i] = &c
	}
	return ts
}

func ownsMore(a, b *process) bool {
	if a.last.perf.mapped != b.last.perf.mapped {
		return a.last.perf.mapped
	}
	return distance(a) < distance(b)
}

func distance(p *process) time.Duration {
	return p.last.perf.begin.Sub(p.last.target.Process.Started).Abs()
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
