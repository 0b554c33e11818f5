package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// Every thread of `sidecar run` sleeps with our slack, the Go runtime's own too:
// the program has started itself again, once and as the same process.
func TestTimersAreRelaxed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the program")
	}
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	log := filepath.Join(dir, "log")
	sidecar, err := lab.StartProgram("sidecar", log, program, "run", "--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer sidecar.Stop()
	if !lab.Until(20*time.Second, func() bool { _, err := lab.ReadMetrics(addr); return err == nil }) {
		said, _ := os.ReadFile(log)
		t.Fatalf("it does not answer:\n%s", said)
	}
	if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", sidecar.PID)); err != nil || !strings.HasPrefix(string(args), program+"\x00run\x00") {
		t.Errorf("its command line is %q, %v", args, err)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", sidecar.PID))
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		b, err := os.ReadFile("/proc/" + th.Name() + "/timerslack_ns")
		if os.IsPermission(err) {
			t.Skip("another thread's slack can't be read without CAP_SYS_NICE")
		}
		if os.IsNotExist(err) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if got := strings.TrimSpace(string(b)); err != nil || got != fmt.Sprint(timerSlack.Nanoseconds()) {
			t.Errorf("thread %s: %q, %v", th.Name(), got, err)
		}
	}
}
