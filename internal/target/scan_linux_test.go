package target

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

const smallServerXML = `<Server><Service name="Catalina">
<Executor name="p" namePrefix="catalina-exec-" maxThreads="10" maxQueueSize="10"/>
<Connector port="8080" executor="p"/>
<Engine name="Catalina"><Host name="localhost">
<Valve className="org.apache.catalina.valves.AccessLogValve" prefix="access" suffix=".log" pattern="common"/>
</Host></Engine></Service></Server>`

// tomcat is a process that runs a Tomcat in base.
func tomcat(pid int, start uint64, base string) proc {
	return proc{pid: pid, start: start, cwd: base, cmdline: []string{"java", "-Dcatalina.base=" + base, "-Dcatalina.home=" + base, "org.apache.catalina.startup.Bootstrap", "start"},
		fds: map[int]string{1: base + "/logs/catalina.out", 2: base + "/logs/catalina.out"}}
}

// perf makes an hsperfdata file.
func perf(begin time.Time, args, command string) string {
	le := binary.LittleEndian
	out := make([]byte, 32)
	copy(out, "\xca\xfe\xc0\xc0\x01\x02\x00\x01")
	n := uint32(0)
	entry := func(name string, kind byte, vector int, value []byte) {
		at := (20 + len(name) + 1 + 7) &^ 7
		e := make([]byte, (at+len(value)+7)&^7)
		le.PutUint32(e[0:], uint32(len(e)))
		le.PutUint32(e[4:], 20)
		le.PutUint32(e[8:], uint32(vector))
		e[12], e[14], e[15] = kind, 1, 1
		le.PutUint32(e[16:], uint32(at))
		copy(e[20:], name)
		copy(e[at:], value)
		out = append(out, e...)
		n++
	}
	num := make([]byte, 8)
	le.PutUint64(num, uint64(begin.UnixMilli()))
	entry("sun.rt.createVmBeginTime", 'J', 0, num)
	for k, v := range map[string]string{"java.rt.vmArgs": args, "sun.rt.javaCommand": command, "java.property.java.version": "17.0.1"} {
		entry(k, 'B', len(v)+1, append([]byte(v), 0))
	}
	le.PutUint32(out[8:], uint32(len(out)))
	le.PutUint32(out[24:], 32)
	le.PutUint32(out[28:], n)
	return string(out)
}

func TestConsoleIsAPipe(t *testing.T) {
	m := newMachine(t)
	p := tomcat(10, 5, "/srv/a")
	p.fds = map[int]string{1: "pipe:[7]", 2: "pipe:[7]"}
	m.add(p)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	x := one(t, m.scan())
	if len(x.AppLogs) == 0 || x.AppLogs[0].Name != "catalina.log" || x.AppLogs[0].Role != "primary" || !x.AppLogs[0].Incomplete {
		t.Errorf("%+v", x.AppLogs)
	}
	if !strings.Contains(blindTo(x, "stdout_is_pipe"), "a pipe") {
		t.Errorf("%+v", x.Blind)
	}
}

func TestFindingsGiveThePattern(t *testing.T) {
	m := newMachine(t)
	m.add(tomcat(10, 5, "/srv/a"))
	m.put(m.root, "/srv/a/conf/server.xml", strings.Replace(smallServerXML, `executor="p"`, `executor="p" protocol="org.apache.coyote.http11.Http11Nio2Protocol"`, 1))
	x := one(t, m.scan())
	if d := finding(x, "access_log_without_duration"); !strings.Contains(d, `pattern="%h %l %u %t &quot;%r&quot; %s %b %D %F %I"`) {
		t.Error(d)
	}
	for _, id := range []string{"nio2_bounded_executor", "access_log_buffered"} {
		if finding(x, id) == "" {
			t.Error("not found: ", id)
		}
	}
	if d := finding(x, "queue_unbounded"); d != "" {
		t.Error(d)
	}
}

// Case 37: nothing that is matched is cut.
func TestLongCommandLine(t *testing.T) {
	m := newMachine(t)
	var cp []string
	for i := range 2500 {
		cp = append(cp, fmt.Sprintf("lib/very-long-artifact-name-%04d-1.2.3.jar", i))
	}
	p := tomcat(10, 5, "/srv/a")
	p.exe = "/usr/lib/jvm/java-17/bin/java (deleted)"
	p.cmdline = append([]string{"java", "-cp", strings.Join(cp, ":"), "-Dline=a\nb"}, p.cmdline[1:]...)
	m.add(p)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	x := one(t, m.scan())
	if x.Name != "tomcat-8080" || x.Base != "/srv/a" {
		t.Errorf("%s %s", x.Name, x.Base)
	}
	for _, a := range x.Process.Args {
		if len(a) > 256 || strings.ContainsAny(a, "\n") {
			t.Errorf("%d bytes: %q", len(a), a)
		}
	}
}

// Case 38: pid 1 in namespaces of their own.
func TestContainers(t *testing.T) {
	m := newMachine(t)
	begin := time.Unix(1764489600, 0) // the machine's boot
	a, b := filepath.Join(m.root, "../a"), filepath.Join(m.root, "../b")
	os.MkdirAll(filepath.Join(b, "tmp"), 0o755)
	m.put(a, "tmp/hsperfdata_app/1", perf(begin.Add(101*time.Second), "-Da=A", "A.Main"))
	m.add(proc{pid: 31337, start: 10_000, nspid: "31337\t17\t1", root: a, cmdline: []string{"java", "Main"}})
	m.add(proc{pid: 41000, start: 50_000, nspid: "41000\t1", root: a, cmdline: []string{"java", "Other"}}) // shares A's /tmp
	m.put(m.root, "tmp/hsperfdata_root/52000", perf(begin.Add(200*time.Second), "-Dc=C", "C.Main"))
	m.add(proc{pid: 52000, start: 20_000, cmdline: []string{"java", "C.Main"}})
	m.link(b, "tmp/hsperfdata_app", filepath.Join(a, "tmp/hsperfdata_app")) // leads out
	m.add(proc{pid: 66000, start: 10_050, nspid: "66000\t1", root: b, cmdline: []string{"java", "D.Main"}})
	got := map[int]*Target{}
	for _, x := range m.scan() {
		got[x.Process.PID] = x
	}
	if len(got) != 4 {
		t.Fatal(len(got))
	}
	if p := got[31337].PerfData.Path; p != filepath.Join(m.proc, "31337/root/tmp/hsperfdata_app/1") || got[31337].JDK.Major != 17 || got[31337].Process.NSPID != 1 {
		t.Errorf("31337: %s %+v", p, got[31337].JDK)
	}
	if p := got[41000].PerfData; p.Path != "" || p.Reason != "another_jvms" || got[41000].JDK.Version != "" {
		t.Errorf("41000: %+v %+v", p, got[41000].JDK)
	}
	if p := got[52000].PerfData; p.Path != filepath.Join(m.root, "tmp/hsperfdata_root/52000") {
		t.Errorf("52000: %+v", p)
	}
	if p := got[66000].PerfData; p.Path != "" {
		t.Errorf("66000: %+v", p)
	}
	if r := got[66000].Process.Root; r != filepath.Join(m.proc, "66000/root") {
		t.Error(r)
	}
}

// A container's own server.xml may be a link to an absolute path inside, and
// must not be one to the outside.
func TestLinksInsideOfARoot(t *testing.T) {
	m := newMachine(t)
	c := filepath.Join(m.root, "../c")
	m.put(c, "etc/tomcat/server.xml", smallServerXML)
	m.link(c, "srv/a/conf/server.xml", "/etc/tomcat/server.xml")
	p := tomcat(10, 5, "/srv/a")
	p.root, p.nspid = c, "10\t1"
	m.add(p)
	outside := filepath.Join(m.root, "../outside.xml")
	os.WriteFile(outside, []byte(smallServerXML), 0o644)
	m.link(c, "srv/b/conf/server.xml", outside)
	q := tomcat(11, 6, "/srv/b")
	q.root, q.nspid = c, "11\t7"
	m.add(q)
	for _, x := range m.scan() {
		if want := map[string]int{"/srv/a": 1, "/srv/b": 0}[x.Base]; len(x.Connectors) != want {
			t.Errorf("%s: %d connectors", x.Base, len(x.Connectors))
		}
	}
}

// Files that the target itself may not read are not read for it.
func TestNotItsFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to make files of another user")
	}
	m := newMachine(t)
	dir := m.add(tomcat(10, 5, "/srv/a"))
	m.put(dir, "status", "Uid:\t4711\t4711\t4711\t4711\nGid:\t4711\t4711\t4711\t4711\nNSpid:\t10\n")
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	os.Chmod(filepath.Join(m.root, "/srv/a/conf/server.xml"), 0o600)
	x := one(t, m.scan())
	if len(x.Connectors) != 0 || blindTo(x, "not_the_targets") == "" {
		t.Errorf("%+v %+v", x.Connectors, x.Blind)
	}
}

func TestBrokenServerXML(t *testing.T) {
	for name, text := range map[string]string{"syntax": "<Server><Service>", "empty": "", "binary": "\x00\x01"} {
		m := newMachine(t)
		m.add(tomcat(10, 5, "/srv/a"))
		m.put(m.root, "/srv/a/conf/server.xml", text)
		x := one(t, m.scan())
		if finding(x, "no_access_log") != "" {
			t.Error("settings that can't be read don't say that there is no access log")
		}
		if finding(x, "server_xml_unreadable") == "" || x.Kind != Tomcat || x.Name != "tomcat-a" || len(x.AppLogs) == 0 {
			t.Errorf("%s: %s %+v", name, x.Name, x.Findings)
		}
	}
	m := newMachine(t)
	m.add(tomcat(10, 5, "/srv/a"))
	m.put(m.root, "/srv/a/conf/server.xml", "")
	if err := os.Truncate(filepath.Join(m.root, "/srv/a/conf/server.xml"), 1<<30); err != nil {
		t.Fatal(err)
	}
	if x := one(t, m.scan()); !strings.Contains(finding(x, "server_xml_unreadable"), "larger") {
		t.Errorf("%+v", x.Findings)
	}
}

// TestServerXMLBrokenWhileTheServerRuns: Tomcat reads its settings at its start,
// so an edit that is half saved changes nothing of the running server.
func TestServerXMLBrokenWhileTheServerRuns(t *testing.T) {
	m := newMachine(t)
	m.add(tomcat(10, 5, "/srv/a"))
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	s := m.scanner()
	scan := func(after time.Duration) *Target {
		t.Helper()
		ts, err := s.Scan(context.Background(), noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return one(t, ts)
	}
	good := scan(0)
	if len(good.Connectors) == 0 {
		t.Fatal("no connectors to begin with")
	}
	m.put(m.root, "/srv/a/conf/server.xml", "<Server><Service>")
	for i := range 2 {
		x := scan(time.Duration(i+1) * time.Minute)
		if x.Name != good.Name || len(x.Connectors) != len(good.Connectors) || len(x.AccessLogs) != len(good.AccessLogs) {
			t.Errorf("look %d: %s with %d connectors, want %s with %d", i, x.Name, len(x.Connectors), good.Name, len(good.Connectors))
		}
		if finding(x, "server_xml_unreadable") == "" {
			t.Errorf("look %d: nothing says that the file is broken", i)
		}
	}
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	if x := scan(5 * time.Minute); finding(x, "server_xml_unreadable") != "" || len(x.Connectors) != len(good.Connectors) {
		t.Errorf("mended: %+v", x.Findings)
	}
}

func TestNames(t *testing.T) {
	m := newMachine(t)
	m.add(tomcat(10, 5, "/srv/a"))
	m.add(tomcat(11, 6, "/srv/b"))
	m.add(tomcat(12, 7, "/opt/b"))
	for _, b := range []string{"/srv/a", "/srv/b", "/opt/b"} {
		m.put(m.root, b+"/conf/server.xml", smallServerXML)
	}
	m.add(proc{pid: 13, start: 8, cwd: "/w", cmdline: []string{"java", "-jar", "/opt/my\x1b app.jar"}})
	m.add(proc{pid: 14, start: 9, cwd: "/w", cmdline: []string{"java", "org.acme.Main\nx{a=\"b\"}"}})
	m.add(proc{pid: 15, start: 9, comm: "bash", cmdline: []string{"bash"}, maps: strings.Repeat("7f00-7f01 r-xp 0 08:01 1 /bin/bash\n", 30)})
	m.add(proc{pid: 16, start: 9, cmdline: []string{"jcmd", "-m", "jdk.jcmd/sun.tools.jcmd.JCmd"}, exe: "/usr/lib/jvm/x/bin/jcmd"})
	m.add(proc{pid: 17, start: 9, comm: "my launcher", exe: "/opt/launcher", cmdline: []string{"/opt/launcher", "Embedded"}})
	m.add(proc{pid: 18, start: 9, maps: noMaps, cmdline: []string{"java", "Hidden"}})
	m.add(proc{pid: 19, start: 9, comm: "sshd", exe: "/sbin/sshd", maps: noMaps, cmdline: []string{"sshd"}})
	var names []string
	for _, x := range m.scan() {
		names = append(names, x.Name)
	}
	if got := strings.Join(names, " "); got != "tomcat-8080-a tomcat-8080-b tomcat-8080-b-2 my__app Main_x_a__b__ Embedded Hidden" {
		t.Error(got)
	}
}

// Case 34: pid and start ticks are the identity; wall time plays no part.
func TestIdentity(t *testing.T) {
	m := newMachine(t)
	s, r := m.scanner(), NewRegistry()
	p := tomcat(4242, 8981900, "/srv/a")
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	var started []time.Time
	look := func(btime string, start uint64, now time.Time) *Entry {
		t.Helper()
		m.put(m.proc, "stat", "\nbtime "+btime+"\n")
		p.start = start
		m.add(p)
		ts, err := s.Scan(context.Background(), now)
		if err != nil {
			t.Fatal(err)
		}
		es := r.Update(ts, "boot", now)
		if len(es) != 1 {
			t.Fatal(len(es))
		}
		started = append(started, es[0].Target.Process.Started)
		return es[0]
	}
	for i, btime := range []string{"1719750000", "1719750001", "1719749999", "1719753600"} {
		e := look(btime, 8981900, noon.Add(time.Duration(i)*time.Minute))
		if e.Restarts != 0 || e.Changed != (i == 0) || !started[i].Equal(started[0]) {
			t.Errorf("look %d: %+v, started %v", i+1, e, started)
		}
	}
	if e := look("1719753600", 9100000, noon.Add(5*time.Minute)); e.Restarts != 1 || !e.Changed || e.Name != "tomcat-8080" {
		t.Errorf("%+v", e)
	}
}

// A shell that becomes a server by exec keeps its pid and its start time.
func TestExec(t *testing.T) {
	m := newMachine(t)
	s := m.scanner()
	p := tomcat(10, 5, "/srv/a")
	shell := p
	shell.comm, shell.exe, shell.maps = "catalina.sh", "/bin/sh", strings.Repeat("7f00-7f01 r-xp 0 08:01 1 /bin/sh\n", 30)
	m.add(shell)
	if ts, _ := s.Scan(context.Background(), noon); len(ts) != 0 {
		t.Fatal(ts)
	}
	m.add(p)
	if ts, _ := s.Scan(context.Background(), noon.Add(time.Second)); len(ts) != 1 {
		t.Fatal(ts)
	}
}

// The kernel's own threads are not read at each look, and when one of their
// numbers has become a server's, that is found within the half minute.
func TestKernelThreads(t *testing.T) {
	m := newMachine(t)
	s := m.scanner()
	scan := func(after time.Duration) int {
		ts, err := s.Scan(context.Background(), noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return len(ts)
	}
	put := func(pid, parent int) {
		m.put(filepath.Join(m.proc, fmt.Sprint(pid)), "stat", fmt.Sprintf("%d (kworker/0:1) I %d 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 0\n", pid, parent))
	}
	put(10, kthreadd)
	put(11, 1) // a process that ends has no memory either
	if scan(0) != 0 {
		t.Fatal("a kernel thread is taken for a server")
	}
	m.add(tomcat(10, 8, "/srv/a"))
	m.add(tomcat(11, 8, "/srv/b"))
	if n := scan(5 * time.Second); n != 1 {
		t.Errorf("%d servers: the kernel's thread was read again, or the other was not", n)
	}
	if n := scan(refresh); n != 2 {
		t.Errorf("%d servers after half a minute", n)
	}
}

// What did not change is not read again, and what did is.
func TestRereading(t *testing.T) {
	m := newMachine(t)
	s := m.scanner()
	p := tomcat(10, 5, "/srv/a")
	m.add(p)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	scan := func(now time.Time) *Target {
		ts, err := s.Scan(context.Background(), now)
		if err != nil {
			t.Fatal(err)
		}
		return one(t, ts)
	}
	first := scan(noon)
	if scan(noon.Add(time.Second)) != first {
		t.Error("read again without a reason")
	}
	m.put(m.root, "/srv/a/conf/server.xml", strings.Replace(smallServerXML, "8080", "8081", 1)+" ")
	second := scan(noon.Add(2 * time.Second))
	if second == first || second.Connectors[0].Port != 8081 || first.Connectors[0].Port != 8080 {
		t.Error("a changed server.xml was not read, or the old target was changed")
	}
	if scan(noon.Add(time.Hour)) == second {
		t.Error("not read again in an hour")
	}
	os.RemoveAll(filepath.Join(m.proc, "10"))
	if ts, _ := s.Scan(context.Background(), noon.Add(2*time.Hour)); len(ts) != 0 {
		t.Error("the dead are still seen")
	}
}

func TestManyTargets(t *testing.T) {
	m := newMachine(t)
	for i := range 80 {
		m.add(proc{pid: 100 + i, start: uint64(i), cwd: fmt.Sprintf("/w/%d", i), cmdline: []string{"java", fmt.Sprintf("Main%d", i)}})
	}
	p := tomcat(999, 5000, "/srv/a")
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	m.add(p)
	ts := m.scan()
	if len(ts) != MaxTargets || ts[0].Kind != Tomcat {
		t.Errorf("%d targets, first %s", len(ts), ts[0].Name)
	}
}

// The hostile: many open files, odd names, a log called like a file of ours.
func TestHostileDescriptors(t *testing.T) {
	m := newMachine(t)
	p := tomcat(10, 5, "/srv/a")
	for i := range 3000 {
		p.fds[10+i] = fmt.Sprintf("/srv/a/logs/x\x01%d.log", i)
	}
	p.fds[5000], p.fds[5001] = "/proc/1/environ.log", "/dev/shm.log"
	m.add(p)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	x := one(t, m.scan())
	if len(x.AppLogs) > maxLogs || blindTo(x, "too_many_logs") == "" {
		t.Errorf("%d logs", len(x.AppLogs))
	}
	for _, a := range x.AppLogs {
		if strings.ContainsAny(a.Name, "\x01") || strings.HasPrefix(a.Path, "/proc") || strings.HasPrefix(a.Path, "/dev") {
			t.Errorf("%+v", a.LogFile)
		}
	}
}

// A process that does not answer (here: a cmdline that is a pipe, which blocks
// whoever opens it) holds up neither the scan nor the others, and is taken when
// it answers.
func TestStuckProcess(t *testing.T) {
	m := newMachine(t)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	stuck := m.add(tomcat(10, 5, "/srv/a"))
	m.add(proc{pid: 11, start: 6, cmdline: []string{"java", "Fine"}})
	cmdline := filepath.Join(stuck, "cmdline")
	text, _ := os.ReadFile(cmdline)
	os.Remove(cmdline)
	if err := syscall.Mkfifo(cmdline, 0o600); err != nil {
		t.Fatal(err)
	}
	s := m.scanner()
	s.patience = 50 * time.Millisecond
	for range 2 { // the second look does not wait, and starts no second reading
		ts, err := s.Scan(t.Context(), noon)
		if err != nil || one(t, ts).Name != "Fine" {
			t.Fatal(ts, err)
		}
		if len(s.Blind()) != 1 || s.Blind()[0].Reason != "stuck" {
			t.Errorf("%+v", s.Blind())
		}
	}
	w, err := os.OpenFile(cmdline, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(text)
	w.Close()
	pending := s.procs[10].pending
	pending <- <-pending // wait for the answer, and leave it there
	ts, err := s.Scan(t.Context(), noon)
	if err != nil || len(ts) != 2 || ts[0].Name != "tomcat-8080" || len(s.Blind()) != 0 {
		t.Errorf("%v %v %+v", ts, err, s.Blind())
	}
}

// A log that the settings name is opened only if the target itself could, or
// holds it open.
func TestOpenForATarget(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to make files of another user")
	}
	for _, held := range []bool{false, true} {
		m := newMachine(t)
		secret := filepath.Join(m.root, "etc/shadow")
		m.put(m.root, "etc/shadow", "root:x")
		os.Chmod(secret, 0o600)
		m.put(m.root, "/srv/a/conf/server.xml", strings.Replace(smallServerXML, `prefix="access" suffix=".log"`, `directory="/etc" prefix="shadow" rotatable="false"`, 1))
		p := tomcat(10, 5, "/srv/a")
		if held {
			p.fds[9] = secret
		}
		dir := m.add(p)
		m.put(dir, "status", "Uid:\t4711\t4711\t4711\t4711\nGid:\t4711\t4711\t4711\t4711\nNSpid:\t10\n")
		x := one(t, m.scan())
		if len(x.AccessLogs) != 1 || x.AccessLogs[0].Path != "/etc/shadow" {
			t.Fatalf("%+v", x.AccessLogs)
		}
		f, err := x.Open(x.AccessLogs[0].Path)
		if err == nil {
			f.Close()
		}
		if held != (err == nil) || !held && !errors.Is(err, root.ErrNotTheirs) {
			t.Errorf("held %v: %v", held, err)
		}
	}
}

// A descriptor's name that means another file beneath the target's root.
func TestDescriptorFromOutside(t *testing.T) {
	m := newMachine(t)
	m.put(m.root, "/srv/a/conf/server.xml", smallServerXML)
	outside := filepath.Join(t.TempDir(), "console.out")
	os.WriteFile(outside, nil, 0o644)
	m.put(m.root, outside, "another file of the same name")
	p := tomcat(10, 5, "/srv/a")
	p.fds = map[int]string{1: outside, 2: outside}
	m.add(p)
	x := one(t, m.scan())
	if !strings.Contains(blindTo(x, "stdout_is_outside"), outside) || !x.AppLogs[0].Incomplete {
		t.Errorf("%+v %+v", x.Blind, x.AppLogs)
	}
}

// Two services have requests of their own each, and properties come from
// catalina.properties and, where it is told so, from the environment.
func TestServicesAndProperties(t *testing.T) {
	m := newMachine(t)
	p := tomcat(10, 5, "/srv/a")
	p.environ = []string{"SECOND=8082", "catalina.home=/wrong"}
	p.cmdline = append([]string{"java", "-Done=8081", "-XX:+HeapDumpOnOutOfMemoryError", "-XX:HeapDumpPath=dumps/%p"}, p.cmdline[1:]...)
	m.add(p)
	m.put(m.root, "/srv/a/conf/catalina.properties", "one=9999\nthird=8083\norg.apache.tomcat.util.digester.PROPERTY_SOURCE=org.apache.tomcat.util.digester.EnvironmentPropertySource\n")
	valve := `<Valve className="org.apache.catalina.valves.AccessLogValve" prefix="%s" pattern="%%D"/>`
	m.put(m.root, "/srv/a/conf/server.xml", `<Server><Service><Connector port="${one}"/><Connector port="${SECOND}"/><Engine name="A">`+fmt.Sprintf(valve, "a")+
		`</Engine></Service><Service><Connector port="${third}"/><Engine name="B"><Host name="h"/>`+fmt.Sprintf(valve, "b")+`</Engine></Service></Server>`)
	m.put(m.root, "/srv/a/conf/B/h/shop.xml", `<Context>`+fmt.Sprintf(valve, "shop")+`</Context>`)
	x := one(t, m.scan())
	var got []string
	for _, c := range x.Connectors {
		got = append(got, fmt.Sprint(c.Port))
	}
	for _, a := range x.AccessLogs {
		got = append(got, fmt.Sprintf("%s %s %v", a.Name, a.Scope, a.Counted))
	}
	if s := strings.Join(got, ","); s != "8081,8082,8083,a engine true,b engine true,shop context:/shop false" {
		t.Error(s)
	}
	if x.HeapDump != "/srv/a/dumps/10" {
		t.Error(x.HeapDump)
	}
}
