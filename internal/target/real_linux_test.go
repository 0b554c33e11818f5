package target

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// javaHomes are the JDKs of this machine. A machine without any skips, except
// where the tests must be whole.
func javaHomes(t testing.TB) []string {
	found, _ := filepath.Glob("/usr/lib/jvm/*/bin/javac")
	var homes []string
	for _, f := range found {
		real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(f)))
		if err == nil && !slices.Contains(homes, real) {
			homes = append(homes, real)
		}
	}
	if len(homes) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no JDK in /usr/lib/jvm")
		}
		t.Skip("no JDK in /usr/lib/jvm")
	}
	return homes
}

// listenSource listens on a port that the system chooses, writes to standard
// output and to a log file, and waits for its standard input to end.
const listenSource = `public class Listen {
	public static void main(String[] a) throws Exception {
		java.io.FileWriter w = new java.io.FileWriter(a[0], true);
		w.write("started\n"); w.flush();
		java.net.ServerSocket s = new java.net.ServerSocket(0, 7, java.net.InetAddress.getByName("127.0.0.1"));
		System.out.println(s.getLocalPort());
		while (System.in.read() >= 0) { }
	}
}`

// TestRealJVM starts a JVM of each JDK with options that the command line does
// not show, and holds what is found against what was asked for.
func TestRealJVM(t *testing.T) {
	for _, home := range javaHomes(t) {
		t.Run(filepath.Base(home), func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "Listen.java"), listenSource)
			write(t, filepath.Join(dir, "jvm.args"), "-Xmx40m -XX:+UseSerialGC\n-Dapi.token=s3cret\n-Xlog:gc*:file=gc-%p.log:time\n")
			if out, err := exec.Command(filepath.Join(home, "bin/javac"), "-d", dir, filepath.Join(dir, "Listen.java")).CombinedOutput(); err != nil {
				t.Fatalf("javac: %v\n%s", err, out)
			}
			out, err := os.Create(filepath.Join(dir, "console.out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd := exec.Command(filepath.Join(home, "bin/java"), "@jvm.args", "-cp", ".", "Listen", "app.log", "--password", "hunter2")
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
			cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Dfrom.tool=1")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer stdin.Close()
			port := waitForPort(t, out.Name())

			s := New(DefaultConfig())
			ts, err := s.Scan(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(ts, func(x *Target) bool { return x.Process.PID == cmd.Process.Pid })
			if i < 0 {
				t.Fatal("not found")
			}
			x := ts[i]
			if x.Kind != JVM || !strings.HasPrefix(x.Name, "Listen") || x.Process.MainClass != "Listen" || x.Process.Cwd != dir || x.Process.UID != os.Getuid() {
				t.Errorf("%+v", x)
			}
			if x.JDK.Major < 8 || !strings.Contains(x.JDK.VM, "VM") {
				t.Errorf("%+v", x.JDK)
			}
			args := strings.Join(x.Process.Args, " ")
			for _, want := range []string{"-Xmx40m", "-Dfrom.tool=1", "-Dapi.token=" + Mask, "--password " + Mask} {
				if !strings.Contains(args, want) {
					t.Errorf("no %q in %s", want, args)
				}
			}
			if strings.Contains(fmt.Sprintf("%+v", x), "s3cret") || strings.Contains(fmt.Sprintf("%+v", x), "hunter2") {
				t.Errorf("a secret is shown: %+v", x)
			}
			if len(x.GCLogs) != 1 || x.GCLogs[0].Path != filepath.Join(dir, fmt.Sprintf("gc-%d.log", cmd.Process.Pid)) || x.GCLogs[0].Name != "gc.log" {
				t.Errorf("%+v", x.GCLogs)
			}
			var logs []string
			for _, a := range x.AppLogs {
				logs = append(logs, a.Role+" "+a.Path)
			}
			if got, want := strings.Join(logs, ","), "primary "+out.Name()+",own "+filepath.Join(dir, "app.log"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if age := time.Since(x.Process.Started); age < 0 || age > time.Minute {
				t.Errorf("started %v ago", age)
			}
			if p := s.procs[cmd.Process.Pid]; !p.last.perf.mapped {
				t.Error("the mapped hsperfdata was not seen")
			}
			seen := s.read(cmd.Process.Pid, statLine{comm: "java", startTicks: x.Process.StartTicks}, mapsFacts{}, 0)
			if !slices.ContainsFunc(seen.listeners, func(l listener) bool { return fmt.Sprint(l.port) == port }) {
				t.Errorf("port %s is not among %v", port, seen.listeners)
			}
			if b, _ := os.ReadFile(out.Name()); strings.Count(string(b), "\n") > 2 {
				t.Errorf("the JVM said more than before: %s", b)
			}
		})
	}
}

func write(t testing.TB, name, text string) {
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// waitForPort reads the port that the program prints, as soon as it does.
func waitForPort(t *testing.T, name string) string {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(f)
		for sc.Scan() {
			if digits(sc.Text()) {
				f.Close()
				return sc.Text()
			}
		}
		f.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		<-ctx.Done()
		cancel()
	}
	t.Fatal("the JVM did not start")
	return ""
}

// TestOwnSockets finds a socket of this very process by its inode.
func TestOwnSockets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := New(DefaultConfig())
	v := &seen{pid: os.Getpid(), w: &world{access: access{root: "/", held: map[fileID]bool{}}}}
	s.sockets(v.pid, v, s.descriptors(v.pid, v))
	want := l.Addr().(*net.TCPAddr).Port
	if !slices.ContainsFunc(v.listeners, func(x listener) bool { return x.port == want && x.addr == "127.0.0.1" }) {
		t.Errorf("%d is not among %+v", want, v.listeners)
	}
}

// BenchmarkScanUnchanged is one look at this machine when nothing has changed.
func BenchmarkScanUnchanged(b *testing.B) {
	s := New(DefaultConfig())
	now := time.Now()
	if _, err := s.Scan(b.Context(), now); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Scan(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(s.procs)), "processes")
}

// BenchmarkScanThousand is the same on a made-up machine of 1,000 processes, of
// which 20 are Tomcats.
func BenchmarkScanThousand(b *testing.B) {
	m := newMachine(b)
	for i := range 980 {
		m.add(proc{pid: 1000 + i, start: 5, comm: "bash", maps: strings.Repeat("7f00-7f01 r-xp 0 08:01 1 /bin/bash\n", 30)})
	}
	for i := range 20 {
		base := fmt.Sprintf("/srv/%d", i)
		m.add(tomcat(3000+i, 6, base))
		m.put(m.root, base+"/conf/server.xml", smallServerXML)
	}
	s := m.scanner()
	if ts, err := s.Scan(b.Context(), noon); err != nil || len(ts) != 20 {
		b.Fatal(len(ts), err)
	}
	b.Run("unchanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Scan(b.Context(), noon); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.scanner().Scan(b.Context(), noon); err != nil {
				b.Fatal(err)
			}
		}
	})
}
