package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// quick is a Client for JVMs that the test has seen start.
func quick() *Client {
	c := New()
	c.minAge, c.interval = 0, 0
	return c
}

// jdks are the machine's, one a major version.
func jdks(t testing.TB) []lab.JDK {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	_, err := lab.AnyJDK(8)
	lab.Need(t, err)
	var out []lab.JDK
	for _, j := range lab.JDKs() {
		if len(out) == 0 || out[len(out)-1].Major != j.Major {
			out = append(out, j)
		}
	}
	return out
}

// A jvm is a JVM that runs testdata/Idle.java.
type jvm struct {
	*lab.Child
	output string // its standard output, a file
}

func compile(t testing.TB, j lab.JDK) (classes string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(j.Tool("javac"), "-d", dir, "testdata/Idle.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return dir
}

func startJVM(t testing.TB, j lab.JDK, classes string, threads int, options ...string) *jvm {
	t.Helper()
	output := filepath.Join(t.TempDir(), "out")
	args := append(append([]string{"-Xmx64m", "-XX:+UseSerialGC"}, options...), "-cp", classes, "Idle", strconv.Itoa(threads))
	child, err := lab.StartProgram("java", output, j.Tool("java"), args...)
	if err != nil {
		t.Fatal(err)
	}
	// A JVM that dies of a signal leaves its socket.
	t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/.java_pid%d", child.PID)) })
	t.Cleanup(child.Stop)
	p := &jvm{child, output}
	if !lab.Until(time.Minute, func() bool {
		gone, _ := p.Exited()
		return gone || strings.HasSuffix(p.said(), "READY\n")
	}) || p.gone() {
		t.Fatalf("the JVM did not start: %s", p.said())
	}
	return p
}

func (p *jvm) said() string {
	b, _ := os.ReadFile(p.output)
	return string(b)
}

func (p *jvm) gone() bool {
	gone, _ := p.Exited()
	return gone
}

// unharmed fails the test unless the JVM lives and has printed nothing since.
func (p *jvm) unharmed(t testing.TB, before string) {
	t.Helper()
	if p.gone() {
		_, err := p.Exited()
		t.Errorf("the JVM is dead: %v", err)
	}
	if after := p.said(); after != before {
		t.Errorf("the JVM has printed %q", strings.TrimPrefix(after, before))
	}
	for _, dir := range []string{"/tmp", fmt.Sprintf("/proc/%d/cwd", p.PID)} {
		if _, err := os.Lstat(filepath.Join(dir, fmt.Sprintf(".attach_pid%d", p.PID))); err == nil {
			t.Errorf("the attach file was left in %s", dir)
		}
	}
}

func startTicks(t testing.TB, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(string(bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])[19]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func targetOf(t testing.TB, pid int) Target {
	t.Helper()
	x := Target{PID: pid, StartTicks: startTicks(t, pid), NSPID: pid, Root: "/"}
	if found, _ := filepath.Glob(fmt.Sprintf("/tmp/hsperfdata_*/%d", pid)); len(found) == 1 {
		x.PerfPath = found[0]
	}
	return x
}

func bg(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Case 39: the handshake kills one JVM and fills the log of another. Here all
// live, and their output is unchanged.
func TestRealJVMs(t *testing.T) {
	for _, j := range jdks(t) {
		classes := compile(t, j)
		for _, c := range []struct {
			name    string
			options []string
			prepare func(t *testing.T, x *Target)
			want    error
		}{
			{name: "plain"},
			{name: "attach listener at start", options: []string{"-XX:+StartAttachListener"}},
			{name: "attach disabled", options: []string{"-XX:+DisableAttachMechanism"}, want: Disabled},
			// -Xrs opens the socket at the start; without it, it would die of the signal.
			{name: "Xrs", options: []string{"-Xrs"}},
			{name: "Xrs without socket", options: []string{"-Xrs"}, want: NotCaught, prepare: removeSocket},
			{name: "no hsperfdata", options: []string{"-XX:-UsePerfData"}, want: Unknown},
			{name: "no hsperfdata, socket there", options: []string{"-XX:-UsePerfData", "-XX:+StartAttachListener"}},
			{name: "a stale socket", prepare: staleSocket},
			{name: "somebody else's socket", prepare: strangersSocket, want: WrongPeer},
			{name: "another process by now", prepare: func(_ *testing.T, x *Target) { x.StartTicks++ }, want: Gone},
		} {
			t.Run(fmt.Sprintf("%d %s", j.Major, c.name), func(t *testing.T) {
				p := startJVM(t, j, classes, 3, c.options...)
				before := p.said()
				x := targetOf(t, p.PID)
				if c.prepare != nil {
					c.prepare(t, &x)
				}
				client := quick()
				for range 2 { // the second time is another way through
					b, err := client.ThreadDump(bg(t), x, "")
					if !errors.Is(err, c.want) {
						t.Fatalf("got %v, want %v", err, c.want)
					}
					if err == nil && (!bytes.Contains(b, []byte(`"catalina-exec-3"`)) || !bytes.Contains(b, []byte("JNI global ref"))) {
						t.Errorf("no whole dump: %.200s", b)
					}
				}
				if c.want == nil {
					b, err := client.Command(bg(t), x, "jcmd", "VM.flags")
					if err != nil || !bytes.Contains(b, []byte("-XX:+UseSerialGC")) {
						t.Errorf("VM.flags: %s, %v", b, err)
					}
					if _, err := client.Command(bg(t), x, "bogus"); err == nil || !strings.Contains(err.Error(), "not recognized") {
						t.Errorf("a command that is none: %v", err)
					}
				}
				p.unharmed(t, before)
			})
		}
	}
}

func socketOf(x *Target) string { return fmt.Sprintf("/tmp/.java_pid%d", x.NSPID) }

func removeSocket(t *testing.T, x *Target) {
	if err := os.Remove(socketOf(x)); err != nil {
		t.Fatal(err)
	}
}

// A JVM that was killed leaves its socket behind; its number is then another's.
func staleSocket(t *testing.T, x *Target) {
	listen(t, x).Close()
}

func strangersSocket(t *testing.T, x *Target) {
	l := listen(t, x)
	t.Cleanup(func() { l.Close(); os.Remove(socketOf(x)) })
}

// Once the socket is there, it is used and no further signal is sent: a JVM
// whose attach file is not there would answer one with a dump into its output.
// And a JVM that does not answer is asked once only.
func TestOneSignal(t *testing.T) {
	j := jdks(t)[0]
	p := startJVM(t, j, compile(t, j), 1)
	before := p.said()
	x := targetOf(t, p.PID)
	client := quick()
	if _, err := client.ThreadDump(bg(t), x, ""); err != nil {
		t.Fatal(err)
	}
	removeSocket(t, &x)
	if _, err := client.ThreadDump(bg(t), x, ""); !errors.Is(err, AskedBefore) {
		t.Errorf("asked again: %v", err)
	}
	p.unharmed(t, before)
}

func TestTooSoonAndTooYoung(t *testing.T) {
	j := jdks(t)[0]
	p := startJVM(t, j, compile(t, j), 1)
	x := targetOf(t, p.PID)
	client := New()
	client.minAge = time.Hour // of this machine's slowness nothing is known
	if _, err := client.ThreadDump(bg(t), x, ""); !errors.Is(err, TooYoung) {
		t.Errorf("a JVM of some seconds: %v", err)
	}
	if _, err := client.ThreadDump(bg(t), x, ""); !errors.Is(err, TooSoon) {
		t.Errorf("twice at once: %v", err)
	}
}

// A shell script called java catches nothing, and maps no libjvm.
func TestScriptCalledJava(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "java")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho READY\nwhile :; do sleep 1; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(dir, "out")
	child, err := lab.StartProgram("java", output, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Stop)
	p := &jvm{child, output}
	if !lab.Until(10*time.Second, func() bool { return p.said() == "READY\n" }) {
		t.Fatal("the script did not start")
	}
	x := targetOf(t, p.PID)
	if _, err := quick().ThreadDump(bg(t), x, ""); !errors.Is(err, Unknown) {
		t.Errorf("%v", err)
	}
	if err := x.catches(); !errors.Is(err, NotCaught) {
		t.Errorf("its SigCgt: %v", err)
	}
	// Even with a JVM's hsperfdata under its number.
	if len(jdks(t)) > 0 {
		j := jdks(t)[0]
		real := startJVM(t, j, compile(t, j), 1)
		x.PerfPath = targetOf(t, real.PID).PerfPath
		if _, err := quick().ThreadDump(bg(t), x, ""); !errors.Is(err, NotHotSpot) {
			t.Errorf("with another's hsperfdata: %v", err)
		}
	}
	p.unharmed(t, "READY\n")
}

// A JVM in its first tenth of a second has no handler yet. It is looked at again
// and again from its first instruction on, without regard to its age: at no
// point is it killed.
func TestStartingJVM(t *testing.T) {
	for _, j := range jdks(t) {
		classes := compile(t, j)
		for range 3 {
			output := filepath.Join(t.TempDir(), "out")
			child, err := lab.StartProgram("java", output, j.Tool("java"), "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", "-cp", classes, "Idle", "1")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(child.Stop)
			p := &jvm{child, output}
			x := targetOf(t, p.PID)
			young, bold := New(), quick()
			young.interval = 0
			reasons := map[string]int{}
			ok := lab.Until(time.Minute, func() bool {
				for range 20 {
					y := targetOf(t, p.PID)
					x.PerfPath = y.PerfPath
					if _, err := young.ThreadDump(bg(t), x, ""); err == nil {
						t.Error("a JVM that young was asked")
					}
					_, err := bold.ThreadDump(bg(t), x, "")
					if err == nil {
						return true
					}
					reasons[err.Error()]++
					if p.gone() {
						return true
					}
				}
				return false
			})
			if !ok || p.gone() {
				_, err := p.Exited()
				t.Errorf("JDK %d: %v, %v, %s", j.Major, err, reasons, p.said())
			}
			t.Logf("JDK %d: %v", j.Major, reasons)
			child.Stop()
		}
	}
}

func listen(t *testing.T, x *Target) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketOf(x), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	return l
}
