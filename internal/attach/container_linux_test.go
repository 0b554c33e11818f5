package attach

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// A JVM that is process 1 of its own namespaces (case 38), of another user, with
// a /tmp of its own: its socket, its hsperfdata and its attach file are beneath
// its own root and have its own number.
func TestContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes namespaces")
	}
	for _, program := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	for _, j := range jdks(t) {
		t.Run(fmt.Sprint(j.Major), func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "attach")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("cp", filepath.Join(compile(t, j), "Idle.class"), dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			output := filepath.Join(t.TempDir(), "out")
			script := `mount -t tmpfs -o mode=1777,size=16m tmpfs /tmp && cd ` + dir +
				` && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -Xmx64m -XX:+UseSerialGC -cp . Idle 3`
			child, err := lab.StartProgram("container", output, "unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", script, j.Tool("java"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(child.Kill) // unshare itself takes no TERM while it waits
			p := &jvm{child, output}
			if !lab.Until(time.Minute, func() bool { return p.gone() || strings.HasSuffix(p.said(), "READY\n") }) || p.gone() {
				t.Skipf("no namespaces here: %s", p.said())
			}
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", child.PID, child.PID))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(string(bytes.TrimSpace(b)))
			if err != nil {
				t.Fatal(err)
			}
			// It would outlive unshare: who changes his user is no longer bound to his
			// parent's end.
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
			root := fmt.Sprintf("/proc/%d/root", pid)
			x := Target{PID: pid, StartTicks: startTicks(t, pid), NSPID: 1, Root: root}
			client := quick()
			if _, err := client.ThreadDump(bg(t), x, ""); !errors.Is(err, Unknown) {
				t.Errorf("without its hsperfdata: %v", err)
			}
			x.PerfPath = root + "/tmp/hsperfdata_nobody/1"
			for range 2 {
				d, err := client.ThreadDump(bg(t), x, "")
				if err != nil || !bytes.Contains(d, []byte(`"catalina-exec-3"`)) {
					t.Fatalf("%v: %.100s", err, d)
				}
			}
			for _, dir := range []string{root + "/tmp", dir} {
				if _, err := os.Lstat(dir + "/.attach_pid1"); err == nil {
					t.Errorf("the attach file was left in %s", dir)
				}
			}
			// A link where the socket should be leads nowhere: not out of its root.
			if err := os.Remove(root + "/tmp/.java_pid1"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/var/tmp/.java_pid1", root+"/tmp/.java_pid1"); err != nil {
				t.Fatal(err)
			}
			if _, err := client.ThreadDump(bg(t), x, ""); !errors.Is(err, WrongPeer) {
				t.Errorf("through a link: %v", err)
			}
			if p.gone() || p.said() != "READY\n" {
				t.Errorf("gone %v, said %s", p.gone(), p.said())
			}
		})
	}
}

// A user who is neither the JVM's nor root is told so, and nothing is sent.
func TestNoRight(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: to be somebody else")
	}
	j := jdks(t)[0]
	p := startJVM(t, j, compile(t, j), 1)
	before := p.said()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary lies in a folder of ours only.
	copied := filepath.Join("/var/tmp", fmt.Sprintf("attach-test-%d", os.Getpid()))
	if out, err := exec.Command("install", "-m", "755", exe, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.Remove(copied) })
	x := targetOf(t, p.PID)
	cmd := exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copied, "-test.run", "^TestAsSomebodyElse$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), fmt.Sprintf("ATTACH_TO=%d %d %s", x.PID, x.StartTicks, x.PerfPath))
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PASS: TestAsSomebodyElse")) {
		t.Errorf("%v: %s", err, out)
	}
	p.unharmed(t, before)
}

// TestAsSomebodyElse is run by TestNoRight with another user's rights.
func TestAsSomebodyElse(t *testing.T) {
	x := Target{Root: "/"}
	if n, _ := fmt.Sscan(os.Getenv("ATTACH_TO"), &x.PID, &x.StartTicks, &x.PerfPath); n != 3 {
		t.Skip("run by TestNoRight")
	}
	x.NSPID = x.PID
	if _, err := quick().ThreadDump(bg(t), x, ""); !errors.Is(err, NoRight) {
		t.Errorf("%v", err)
	}
}
