package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gops "github.com/shirou/gopsutil/v3/process"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// jdks finds the JDKs of this machine by their major version.
func jdks(t testing.TB) map[string]string {
	found := map[string]string{}
	homes, _ := filepath.Glob("/usr/lib/jvm/*")
	if j := os.Getenv("JAVA_HOME"); j != "" {
		homes = append(homes, j)
	}
	for _, home := range homes {
		b, err := os.ReadFile(filepath.Join(home, "release"))
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(home, "bin/javac")); err != nil {
			continue
		}
		_, rest, ok := strings.Cut(string(b), `JAVA_VERSION="`)
		if major, _, _ := strings.Cut(rest, "."); ok {
			found[major] = home
		}
	}
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no JDK on this machine")
		}
		t.Skip("no JDK on this machine")
	}
	return found
}

// compiled keeps the class files by JDK for the whole run.
var compiled sync.Map

// classes compiles the programs in testdata once for each JDK.
func classes(t testing.TB, home string) string {
	t.Helper()
	v, _ := compiled.LoadOrStore(home, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "pools")
		if err != nil {
			return "", err
		}
		out, err := exec.Command(filepath.Join(home, "bin/javac"), "-d", dir, "testdata/Pools.java", "testdata/Silent.java").CombinedOutput()
		if err != nil {
			return dir, fmt.Errorf("javac: %v\n%s", err, out)
		}
		return dir, nil
	}))
	dir, err := v.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A program is a running JVM of testdata.
type program struct {
	pid int
	in  io.WriteCloser
	out *bufio.Scanner
}

// run starts a program and stops it when the test ends.
func run(t testing.TB, home string, args ...string) *program {
	t.Helper()
	cmd := exec.Command(filepath.Join(home, "bin/java"), append([]string{"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes(t, home)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &program{cmd.Process.Pid, in, bufio.NewScanner(out)}
}

// line waits for the program's next line.
func (p *program) line(t testing.TB) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the JVM has ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// startPools starts a JVM with threads of these names and returns its pid.
func startPools(t testing.TB, home string, pools ...string) int {
	t.Helper()
	p := run(t, home, append([]string{"Pools"}, pools...)...)
	if line := p.line(t); line != "READY" {
		t.Fatalf("the JVM says %q", line)
	}
	return p.pid
}

func TestMain(m *testing.M) {
	code := m.Run()
	compiled.Range(func(_, v any) bool {
		if dir, _ := v.(func() (string, error))(); dir != "" {
			os.RemoveAll(dir)
		}
		return true
	})
	os.Exit(code)
}

func configOf(t testing.TB, pid int) Config {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var st stat
	if !st.parse(b) {
		t.Fatalf("stat of %d: %q", pid, b)
	}
	return Config{PID: pid, StartTicks: st.start}
}

// Threads by pool must be what jstack counts by full names, in JDKs of this machine.
func TestPoolsAgainstJstack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	for major, home := range jdks(t) {
		t.Run(major, func(t *testing.T) {
			pid := startPools(t, home, "catalina-exec-=37", "http-nio-8080-exec-=25", "http-nio-8080-Poller=0", "http-nio-8080-Acceptor=0",
				"http-nio-127.0.0.1-8443-exec-=12", "http-nio-127.0.0.1-8443-Poller=0", "qtp1589683045-=19", "pool-3-thread-=7", "pool-4-thread-=5", "my (odd) name\n)=0")
			dump, err := exec.Command(filepath.Join(home, "bin/jstack"), strconv.Itoa(pid)).Output()
			if err != nil {
				t.Fatal(err)
			}
			count := func(prefix string) float64 {
				return float64(strings.Count(string(dump), "\n\""+prefix))
			}
			cfg := configOf(t, pid)
			cfg.Connectors = []Connector{{Port: 8080, Protocol: "nio"}, {Port: 8443, Address: "127.0.0.1", Protocol: "nio"}}
			cfg.Pools = []Pool{
				{Prefix: "catalina-exec-", Max: 500},
				{Prefix: "http-nio-8080-exec-", Max: 200, Ports: []int{8080}},
				{Prefix: "http-nio-127.0.0.1-8443-exec-", Max: 200, Ports: []int{8443}},
				{Prefix: "idle-exec-", Max: 3},
			}
			set := metric.ForTarget("t")
			p := New(set, cfg)
			defer p.Close()
			if err := p.Poll(context.Background(), time.Now()); err != nil {
				t.Fatal(err)
			}
			have := values(set)
			exact := func(pool string, n float64) {
				t.Helper()
				want(t, have, "jvm_threadpool_threads pool="+pool, n, n)
			}
			exact("catalina-exec", count("catalina-exec-"))
			exact("http-nio-8080-exec", count("http-nio-8080-exec-"))
			exact("http-nio-8080-Poller", 1)
			exact("http-nio-8080-Acceptor", 1)
			exact("http-nio-127.0.0.1-8443", count("http-nio-127.0.0.1-8443-"))
			exact("qtp", count("qtp1589683045-"))
			exact("pool-N-thread", count("pool-3-thread-")+count("pool-4-thread-"))
			exact("idle-exec", 0)
			exact("my (odd) name )", 1)
			exact("main", 2)
			want(t, have, "jvm_threadpool_max_threads pool=catalina-exec", 500, 500)
			want(t, have, "jvm_threadpool_thread_states pool=catalina-exec state=sleeping", 37, 37)
			want(t, have, "jvm_threadpool_cpu_seconds_total pool=jvm-vm", 0, 10)
			if _, ok := have["jvm_threadpool_threads pool=http-nio-127.0.0.1-8443-exec"]; ok {
				t.Error("the merged pool has a count of its own")
			}
			if b := p.Blind(); len(b) != 1 || b[0].Reason != BlindMerged || !strings.Contains(b[0].Detail, "8443-exec") {
				t.Errorf("blind: %+v", b)
			}
			var all float64
			for name, v := range have {
				if strings.HasPrefix(name, "jvm_threadpool_threads") {
					all += v
				}
			}
			if all != have["process_threads"] {
				t.Errorf("pools hold %v threads, the process has %v", all, have["process_threads"])
			}
		})
	}
}

// cpuOf reports user and system time of this process for each operation: what a
// server beside us would miss, whatever else the machine does.
func cpuOf(b *testing.B) func() {
	var from syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &from)
	return func() {
		var to syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &to)
		ns := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
		b.ReportMetric(float64(ns)/1e6/float64(b.N), "cpu-ms/op")
	}
}

// One sample of 5,000 threads, beside gopsutil's Threads(), which gives their
// CPU times without names and states. Both in one run; the bar is a third.
func BenchmarkThreads(b *testing.B) {
	var home string
	for _, home = range jdks(b) {
	}
	pid := startPools(b, home, "catalina-exec-=1000", "http-nio-8080-exec-=3500", "qtp12345678-=500")
	b.Run("pools", func(b *testing.B) {
		cfg := configOf(b, pid)
		p := New(metric.ForTarget("t"), cfg)
		defer p.Close()
		var s sample
		if alive, err := p.identity(&s.stat); !alive {
			b.Fatal(err)
		}
		if err := p.readThreads(&s); err != nil {
			b.Fatal(err)
		}
		// The steady state: what sleeps has been seen to sleep.
		for range 2 * quietAfter {
			if err := p.world.threads.sample(&p.world.task, p.cfg.MaxThreadReads); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		defer cpuOf(b)()
		for b.Loop() {
			if err := p.world.threads.sample(&p.world.task, p.cfg.MaxThreadReads); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(p.world.threads.list)), "threads")
	})
	b.Run("whole-poll", func(b *testing.B) {
		cfg := configOf(b, pid)
		p := New(metric.ForTarget("t"), cfg)
		defer p.Close()
		for range 2 * quietAfter {
			if err := p.Poll(context.Background(), time.Now()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		defer cpuOf(b)()
		for b.Loop() {
			if err := p.Poll(context.Background(), time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gopsutil", func(b *testing.B) {
		proc := &gops.Process{Pid: int32(pid)}
		b.ReportAllocs()
		defer cpuOf(b)()
		for b.Loop() {
			if _, err := proc.Threads(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Ten thousand connections of one port by state, queues and unread bytes,
// beside gopsutil's Connections() of the same process. The bar is a fifth.
func BenchmarkConnections(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "PROCESS_TEST_CHILD=accept")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr = strings.TrimSpace(addr)
	n := 0
	for ; n < 10_000; n++ {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Logf("only %d connections: %v", n, err)
			break
		}
		defer c.Close()
	}
	_, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	b.Run("sock_diag", func(b *testing.B) {
		d := sockDiag{fd: -1}
		defer d.close()
		list := []uint16{uint16(port)}
		figures := &portFigures{}
		ports := map[uint16]*portFigures{uint16(port): figures}
		b.ReportAllocs()
		defer cpuOf(b)()
		for b.Loop() {
			*figures = portFigures{}
			if err := d.listening(list, ports); err != nil {
				b.Fatal(err)
			}
			if _, err := d.walk(list, otherStates, ports, rememberMost); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(figures.states[tcpEstablished]), "connections")
	})
	b.Run("gopsutil", func(b *testing.B) {
		proc := &gops.Process{Pid: int32(cmd.Process.Pid)}
		b.ReportAllocs()
		defer cpuOf(b)()
		for b.Loop() {
			if _, err := proc.Connections(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
