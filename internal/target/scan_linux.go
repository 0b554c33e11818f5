package target

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// A Scanner finds the JVMs of this machine. It is used by one goroutine.
//
// A look at a machine where nothing has changed costs one read of
// /proc/PID/stat for each process that is none of the kernel's own threads (a
// large machine has a thousand of those), and one stat for each settings file
// that was used: what a JVM is made of is read in full when it is new, when one of
// those files changes, and every half minute (new log files, ports that opened).
//
// All that can block (a file on a dead mount, /proc of a stuck process) is done
// in a goroutine of its own, of which there is at most one for each process, and
// is waited for no longer than patience.
type Scanner struct {
	*reader
	procs    map[int]*process
	blind    []Blind
	left     []*Target
	missing  []Server
	patience time.Duration
	scanned  bool // the first Scan is over
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
	since   time.Time // when this process began to be what it is, as far as is known
	looks   int       // how often it was found to be no JVM
	next    time.Time // when to look again
	kernel  bool      // a thread of the kernel's: next is when to make sure of it
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
	// Whoever opens a target's files, the followers and logdir too, learnt of them
	// from a Scanner: so it is said here, before the first of them can be asked for.
	root.AllowWalk(cfg.WithoutOpenat2 == "walk")
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
	// kthreadd is the parent of the kernel's own threads.
	kthreadd = 2
	// maxProcesses bounds how many processes are looked at.
	maxProcesses = 200_000
)

// LeftOut are the targets of the last Scan that the settings leave out.
func (s *Scanner) LeftOut() []*Target { return s.left }

// Missing are the servers that the settings list and that the last Scan did not
// see run.
func (s *Scanner) Missing() []Server { return s.missing }

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
	s.scanned = true
	found = onePerfOwner(found, fresh)
	s.missing = missing(found, s.cfg, s.blind)
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
	if !root.HasOpenat2() {
		b := Blind{Source: "target", Reason: "no_openat2", Needs: "Linux 5.6, a seccomp filter that allows openat2, or targets.without_openat2: walk",
			Detail: "openat2 is not to be had here: no file that a target names is opened, neither settings nor logs nor hsperfdata"}
		if root.WalkAllowed() {
			b.Needs = "Linux 5.6, and a seccomp filter that allows openat2"
			b.Detail = "openat2 is not to be had here: the paths of targets are walked name by name, as targets.without_openat2 allows"
		}
		s.blind = append(s.blind, b)
	}
}

// file is a path beneath /proc/PID.
func (s *reader) file(pid int, name string) string {
	return s.cfg.Proc + "/" + strconv.Itoa(pid) + "/" + name
}

// look finds out what a pid is, from memory where nothing has changed. nil means
// that the process is gone.
func (s *Scanner) look(ctx context.Context, pid int, now time.Time) *process {
	if p := s.procs[pid]; p != nil && p.kernel && now.Before(p.next) {
		return p
	}
	st, ok := s.stat(pid)
	if !ok || st.state == 'Z' || st.state == 'X' {
		delete(s.procs, pid)
		return nil
	}
	p := s.procs[pid]
	// An exec keeps pid and start time: catalina.sh becomes java. It changes the
	// command's name, nearly always.
	if p == nil || p.start != st.startTicks || p.comm != st.comm {
		p = &process{start: st.startTicks, comm: st.comm, since: s.since(st.startTicks, now)}
		s.procs[pid] = p
	}
	p.ppid = st.ppid
	due := !now.Before(p.next)
	if p.kernel = st.vsize == 0 && st.ppid == kthreadd; p.kernel {
		p.next = now.Add(refresh) // its number may be a server's by then
	}
	if st.vsize == 0 || p.last.target == nil && !due && p.pending == nil {
		return p // it has no memory of its own (any more), or is surely no JVM
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

// since is when a process that is new to us began to be what it is: now, since
// an exec keeps the start time, but what was there when the first Scan came is
// as old as it says. A sidecar that starts beside a server of yesterday need not
// watch it as one that comes up.
func (s *Scanner) since(ticks uint64, now time.Time) time.Time {
	if started, ok := s.started(ticks); ok && !s.scanned && started.Before(now) {
		return started
	}
	return now
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
	if v.target != nil && p.last.target != nil {
		v.target = keepSettings(p.last.target, v.target)
	}
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

// keepSettings is for a server.xml that somebody is editing. Tomcat reads it at
// its start only, so a running one goes on as it was, whatever the file has come
// to: while it can't be read, what was read of it for this process stands, and
// the finding says so.
func keepSettings(old, now *Target) *Target {
	unreadable := func(f Finding) bool { return f.ID == findingUnreadable }
	i := slices.IndexFunc(now.Findings, unreadable)
	if i < 0 || len(old.Connectors) == 0 {
		return now
	}
	kept := *old
	kept.Findings = slices.DeleteFunc(slices.Clone(old.Findings), unreadable)
	kept.Findings = append(kept.Findings, Finding{ID: findingUnreadable,
		Detail: now.Findings[i].Detail + "; the server runs on with what it read at its start, and so does this"})
	kept.Blind, kept.access = now.Blind, now.access
	return &kept
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
