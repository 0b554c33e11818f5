package target

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A machine is a made-up /proc and file tree.
type machine struct {
	t    testing.TB
	proc string
	root string
}

func newMachine(t testing.TB) *machine {
	dir := t.TempDir()
	m := &machine{t: t, proc: filepath.Join(dir, "proc"), root: filepath.Join(dir, "root")}
	for _, d := range []string{m.proc, filepath.Join(m.root, "tmp")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.put(m.proc, "stat", "cpu  1 2 3\nbtime 1764489600\nprocesses 1\n")
	return m
}

func (m *machine) put(dir, name, content string) {
	m.t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) link(dir, name, to string) {
	m.t.Helper()
	p := filepath.Join(dir, name)
	os.MkdirAll(filepath.Dir(p), 0o755)
	os.Remove(p)
	if err := os.Symlink(to, p); err != nil {
		m.t.Fatal(err)
	}
}

// proc describes one process of a machine.
type proc struct {
	pid, ppid int
	start     uint64
	comm      string
	cmdline   []string
	environ   []string
	cwd, exe  string
	nspid     string // "4711 1", our own first; empty for none of its own
	root      string // a folder of the machine; empty for its root
	maps      string
	fds       map[int]string
	tcp6      string
}

const noMaps = "-"

func (m *machine) add(p proc) string {
	m.t.Helper()
	dir := filepath.Join(m.proc, fmt.Sprint(p.pid))
	comm := cmpOr(p.comm, "java")
	m.put(dir, "stat", fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 54 0 %d 2808832000 44257 0\n", p.pid, comm, p.ppid, p.start))
	m.put(dir, "status", fmt.Sprintf("Name:\tjava\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%d\t%[2]d\t%[2]d\t%[2]d\nGroups:\t\nNSpid:\t%s\n", os.Getuid(), os.Getgid(), cmpOr(p.nspid, fmt.Sprint(p.pid))))
	m.put(dir, "cmdline", strings.Join(p.cmdline, "\x00")+"\x00")
	m.put(dir, "environ", strings.Join(p.environ, "\x00")+"\x00")
	switch p.maps {
	case noMaps:
	case "":
		m.put(dir, "maps", strings.Repeat("7f00-7f01 r-xp 00000000 08:01 123   /usr/lib/libc.so\n", 20)+"7f00-7f01 r-xp 00000000 08:01 123                        /usr/lib/jvm/java-17/lib/server/libjvm.so\n")
	default:
		m.put(dir, "maps", p.maps)
	}
	m.link(dir, "cwd", cmpOr(p.cwd, "/"))
	m.link(dir, "exe", cmpOr(p.exe, "/usr/lib/jvm/java-17/bin/java"))
	m.link(dir, "root", cmpOr(p.root, "/"))
	os.MkdirAll(filepath.Join(dir, "fd"), 0o755)
	for n, to := range p.fds {
		m.link(dir, "fd/"+fmt.Sprint(n), to)
	}
	if p.tcp6 != "" {
		m.put(dir, "net/tcp6", p.tcp6)
	}
	return dir
}

func (m *machine) scanner() *Scanner {
	cfg := DefaultConfig()
	cfg.Proc, cfg.Root = m.proc, m.root
	return New(cfg)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (m *machine) scan() []*Target {
	m.t.Helper()
	ts, err := m.scanner().Scan(context.Background(), noon)
	if err != nil {
		m.t.Fatal(err)
	}
	return ts
}

func one(t testing.TB, ts []*Target) *Target {
	t.Helper()
	if len(ts) != 1 {
		var names []string
		for _, x := range ts {
			names = append(names, x.Name)
		}
		t.Fatalf("%d targets: %v", len(ts), names)
	}
	return ts[0]
}

func finding(t *Target, id string) string {
	for _, f := range t.Findings {
		if f.ID == id {
			return f.Detail
		}
	}
	return ""
}

func blindTo(t *Target, reason string) string {
	for _, b := range t.Blind {
		if b.Reason == reason {
			return b.Source + ": " + b.Detail
		}
	}
	return ""
}

// corpusCase puts one folder of the corpus into the machine.
func (m *machine) corpusCase(shared, name string) {
	m.t.Helper()
	dir := filepath.Join(shared, "corpus/discovery", name)
	read := func(f string) string { b, _ := os.ReadFile(filepath.Join(dir, f)); return string(b) }
	line := func(f string) string { return strings.TrimSpace(read(f)) }
	st, ok := parseStat([]byte(read("stat")))
	if !ok {
		m.t.Fatal("stat of ", name)
	}
	var pid int
	fmt.Sscan(read("stat"), &pid)
	p := proc{pid: pid, ppid: st.ppid, start: st.startTicks, comm: st.comm, cmdline: splitNUL([]byte(read("cmdline"))),
		environ: splitNUL([]byte(read("environ"))), cwd: line("cwd.link"), exe: line("exe.link"), fds: map[int]string{}, tcp6: read("net-listen.txt")}
	status, _ := parseStatus([]byte(read("status")))
	nspid := pid
	var ns []string
	for _, n := range status.nspid {
		ns, nspid = append(ns, fmt.Sprint(n)), n
	}
	p.nspid = strings.Join(ns, "\t")
	for l := range strings.Lines(read("fd.links")) {
		n, to, _ := strings.Cut(strings.TrimSpace(l), " ")
		var i int
		fmt.Sscan(n, &i)
		p.fds[i] = to
	}
	// The corpus joins tcp and tcp6; the heading stands twice.
	if i := strings.LastIndex(p.tcp6, "  sl"); i > 0 {
		p.tcp6 = p.tcp6[i:]
	}
	m.add(p)
	if perf := read("hsperfdata"); perf != "" {
		m.put(m.root, fmt.Sprintf("tmp/hsperfdata_root/%d", nspid), perf)
	}
	base := p.cwd
	for _, f := range []string{"server.xml", "logging.properties"} {
		if s := read(f); s != "" {
			m.put(m.root, base+"/conf/"+f, s)
		}
	}
	if s := read("start.ini"); s != "" {
		m.put(m.root, base+"/start.ini", s)
	}
	if s := read("start.properties"); s != "" {
		for _, a := range p.cmdline {
			if strings.HasSuffix(a, ".properties") {
				m.put(m.root, a, s)
			}
		}
	}
}

// sharedDir is the shared folder beside the checkout.
func sharedDir(t testing.TB) string {
	dir, _ := os.Getwd()
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == "/" {
			t.Fatal("no go.mod above")
		}
	}
	shared := filepath.Join(dir, "../shared")
	if _, err := os.Stat(shared); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no shared folder: ", err)
		}
		t.Skip("no shared folder beside the checkout")
	}
	return shared
}
