package collectors

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
)

// machine is a made-up /proc with one Tomcat in it, whose files are real.
type machine struct {
	t       *testing.T
	proc    string
	base    string
	storage string
	cfg     Config
}

const pid = 4711

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, proc: filepath.Join(dir, "proc"), base: filepath.Join(dir, "base"), storage: filepath.Join(dir, "state"), cfg: Defaults()}
	m.put(m.proc+"/stat", "cpu  1 2 3 4 5 6 7 8 9 10\nbtime 1764489600\n")
	m.put(m.base+"/conf/server.xml", `<Server><Service name="Catalina">
<Executor name="pool" namePrefix="catalina-exec-" maxThreads="10" maxQueueSize="10"/>
<Connector port="8080" executor="pool" protocol="org.apache.coyote.http11.Http11NioProtocol"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost">
<Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs" prefix="access" suffix=".log" rotatable="false" buffered="false" pattern="%h %l %u %t &quot;%r&quot; %s %b %D"/>
</Host></Engine></Service></Server>`)
	m.put(m.base+"/logs/catalina.out", "")
	m.put(m.base+"/logs/access.log", "")
	m.start(pid, 1000)
	return m
}

func (m *machine) put(path, content string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) link(path, to string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		m.t.Fatal(err)
	}
}

// start puts the process into /proc, end takes it away.
func (m *machine) start(pid int, ticks uint64) {
	dir := fmt.Sprintf("%s/%d", m.proc, pid)
	m.put(dir+"/stat", fmt.Sprintf("%d (java) S 1 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 54 0 %d 2808832000 44257 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pid, ticks))
	m.put(dir+"/status", fmt.Sprintf("Name:\tjava\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%d\t%[2]d\t%[2]d\t%[2]d\nGroups:\t\nNSpid:\t%d\n", os.Getuid(), os.Getgid(), pid))
	m.put(dir+"/cmdline", strings.Join([]string{"java", "-Dcatalina.base=" + m.base, "-Dcatalina.home=" + m.base, "org.apache.catalina.startup.Bootstrap", "start"}, "\x00")+"\x00")
	m.put(dir+"/environ", "")
	m.put(dir+"/maps", "7f00-7f01 r-xp 00000000 08:01 123    /usr/lib/jvm/java-17/lib/server/libjvm.so\n")
	m.put(dir+"/comm", "java\n")
	m.link(dir+"/cwd", m.base)
	m.link(dir+"/exe", "/usr/lib/jvm/java-17/bin/java")
	m.link(dir+"/root", "/")
	m.link(dir+"/fd/1", m.base+"/logs/catalina.out")
	m.link(dir+"/fd/2", m.base+"/logs/catalina.out")
}

func (m *machine) end(pid int) {
	if err := os.RemoveAll(fmt.Sprintf("%s/%d", m.proc, pid)); err != nil {
		m.t.Fatal(err)
	}
}

// append writes to one of the server's logs as the server does.
func (m *machine) append(name, text string) {
	m.t.Helper()
	f, err := os.OpenFile(filepath.Join(m.base, "logs", name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		m.t.Fatal(err)
	}
}

// running is a Monitor that the test ticks by hand.
type running struct {
	*Monitor
	m    *machine
	ctx  context.Context
	kill context.CancelFunc
	now  time.Time
}

// run starts a sidecar. It ends with the test, as by kill -9 unless stop is
// called.
func (m *machine) run() *running {
	m.t.Helper()
	mon, err := New(m.cfg, Options{Procfs: m.proc, Storage: m.storage, Version: "test", Log: slog.New(slog.NewTextHandler(m.t.Output(), nil))})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, kill := context.WithCancel(context.Background())
	r := &running{mon, m, ctx, kill, time.Now()}
	m.t.Cleanup(func() {
		kill()
		mon.mu.Lock()
		s := mon.ship
		mon.mu.Unlock()
		if s != nil { // it would write to the log of a test that is over
			s.Stop(context.Background())
		}
	})
	r.look()
	return r
}

// look scans and ticks once.
func (r *running) look() {
	r.scan(r.ctx, time.Now())
	r.tick(r.ctx, time.Now(), false)
}

// die is kill -9: nothing is saved that was not.
func (r *running) die() {
	r.kill()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.servers {
		for _, st := range s.streams {
			st.halt()
		}
	}
}

// value is one sample of the last snapshot, by its text.
func (r *running) value(series string) (float64, bool) {
	v, ok := values(r.text())[series]
	return v, ok
}

func (r *running) text() string {
	var b strings.Builder
	enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range r.Snapshot().Families {
		enc.Encode(f)
	}
	return b.String()
}

func values(text string) map[string]float64 {
	out := map[string]float64{}
	for _, line := range strings.Split(text, "\n") {
		var v float64
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			fmt.Sscan(line[i+1:], &v)
			out[line[:i]] = v
		}
	}
	return out
}

// until ticks until a sample has the value.
func (r *running) until(series string, want float64) {
	r.m.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		r.tick(r.ctx, time.Now(), false)
		if got, ok := r.value(series); ok && got == want {
			return
		}
		if time.Now().After(deadline) {
			got, ok := r.value(series)
			r.m.t.Fatalf("%s is %v (there: %v), want %v", series, got, ok, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// asNobody makes the target another user's than the sidecar's, which has more
// rights. Without root the two are the same, and there is nothing to gain.
func (m *machine) asNobody() {
	m.put(fmt.Sprintf("%s/%d/status", m.proc, pid), "Name:\tjava\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t\nNSpid:\t4711\n")
}

// untilSome is until for a series whose labels depend on what could be learnt.
func (r *running) untilSome(name, label string) {
	r.m.t.Helper()
	for range 300 {
		for series, v := range values(r.text()) {
			if strings.HasPrefix(series, name+"{") && strings.Contains(series, label) && v >= 1 {
				return
			}
		}
		time.Sleep(20 * time.Millisecond) // the streams read by themselves
		r.tick(r.ctx, time.Now(), false)
	}
	r.m.t.Fatalf("no %s{%s}:\n%s", name, label, r.text())
}
