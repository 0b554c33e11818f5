package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// Cases 36 and 39 of ../shared/cases with the whole program at its defaults: it
// opens no file of the kernel's that stops the process it is of, and sends nobody
// a signal, whatever looks like a JVM. All of them live on and say nothing.
func TestCases36SmapsAnd39Sigquit(t *testing.T) {
	jdks := onePerMajor(t)
	dir := t.TempDir()
	const source = "public class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(120_000); } }"
	if err := os.WriteFile(filepath.Join(dir, "Sleep.java"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(jdks[0].Tool("javac"), "-d", dir, filepath.Join(dir, "Sleep.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := filepath.Join(dir, "java")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do sleep 1; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	type one struct {
		what string
		*lab.Child
		output string
	}
	var all []one
	start := func(what, program string, args ...string) one {
		t.Helper()
		output := filepath.Join(dir, fmt.Sprintf("out-%d", len(all)))
		c, err := lab.StartProgram(what, output, program, args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		all = append(all, one{what, c, output})
		return all[len(all)-1]
	}
	for _, j := range jdks {
		java := j.Tool("java")
		start("-Xrs on "+j.Version, java, "-Xmx32m", "-Xrs", "-cp", dir, "Sleep")
		start("no attach on "+j.Version, java, "-Xmx32m", "-XX:+DisableAttachMechanism", "-cp", dir, "Sleep")
	}
	start("a script called java", script)

	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	opened := func() (n int) {
		b := make([]byte, 64<<10)
		got, err := unix.Read(watch, b)
		if err != nil || got <= 0 {
			return 0
		}
		return got / unix.SizeofInotifyEvent
	}
	stopping := []string{"smaps", "smaps_rollup", "numa_maps", "pagemap"}
	for _, c := range all {
		for _, name := range stopping {
			unix.InotifyAddWatch(watch, fmt.Sprintf("/proc/%d/%s", c.PID, name), unix.IN_OPEN) // not each kernel has each
		}
	}

	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := lab.StartProgram("sidecar", filepath.Join(dir, "sidecar.log"), program,
		"run", "--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sidecar.Stop)
	targets := 0
	if !lab.Until(30*time.Second, func() bool {
		m, err := lab.ReadMetrics(addr)
		if err != nil {
			return false
		}
		n, _ := m.Sum("target_up")
		targets = int(n)
		return targets >= 2*len(jdks)
	}) {
		t.Fatalf("%d servers are seen, %d JVMs are there", targets, 2*len(jdks))
	}
	// A JVM in its first moments, while the sidecar looks for new ones.
	for i := range 5 {
		start(fmt.Sprintf("new %d", i), jdks[i%len(jdks)].Tool("java"), "-Xms200m", "-XX:+AlwaysPreTouch", "-cp", dir, "Sleep")
		lab.Until(time.Second, func() bool { return false })
	}
	lab.Until(5*time.Second, func() bool { return false })
	for _, c := range all {
		if gone, err := c.Exited(); gone {
			t.Errorf("%s has ended: %v", c.what, err)
		}
		if b, _ := os.ReadFile(c.output); len(b) > 0 {
			t.Errorf("%s says: %s", c.what, b)
		}
	}
	if n := opened(); n > 0 {
		t.Errorf("files that stop a JVM were opened %d times", n)
	}
	// Would it have been seen?
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", all[0].PID))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n := opened(); n == 0 {
		t.Error("an open of smaps goes unseen here, so that this test proves nothing of it")
	}
	// And a signal: -Xrs does not survive one.
	syscall.Kill(all[0].PID, syscall.SIGQUIT)
	if !lab.Until(10*time.Second, func() bool { gone, _ := all[0].Exited(); return gone }) {
		t.Error("a SIGQUIT does no harm here, so that this test proves nothing of it")
	}
	if said, _ := os.ReadFile(filepath.Join(dir, "sidecar.log")); strings.Contains(string(said), "BUG") {
		t.Errorf("%s", said)
	}
}
