package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The sidecar and the server share a disk, and it is full to the last byte:
// LogDiskLow fires all the same and reaches the webhook.
func TestAlertFromFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server and the sidecar")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=20m"); err != nil {
		t.Skipf("a file system of its own can't be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	lab.Exclusive(t)
	s, err := lab.StartTomcatIn(filepath.Join(disk, "tomcat"), lab.Tomcat{Executor: &limits})
	lab.Need(t, err)
	defer s.Stop()
	settings, calls := receive(t)
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr, log := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(dir, "log")
	sidecar, err := lab.StartProgram("sidecar", log, program, "run", "--web.listen-address="+addr,
		"--storage.path="+filepath.Join(disk, "state"), "--config.file="+settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		sidecar.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(log)
			t.Logf("%s", said)
		}
	}()
	target := fmt.Sprintf("tomcat-%d", s.Port)
	engine := &lab.Prometheus{Addr: addr}
	if !lab.Until(30*time.Second, func() bool {
		got, err := engine.Query(fmt.Sprintf("count_over_time(logfs_avail_bytes{target=%q}[10s]) > 3 and on () engine_on_disk == 1", target))
		return err == nil && len(got) == 1
	}) {
		t.Fatal("the engine does not run on the disk")
	}
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for piece := make([]byte, size); ; {
			if _, err := filler.Write(piece); err != nil {
				break
			}
		}
	}
	filler.Close()
	for {
		c, ok := await(t, calls, 25*time.Second, "LogDiskLow", target, "firing")
		if !ok || c.severity == "critical" {
			break
		}
	}
	if !lab.Until(15*time.Second, func() bool {
		got, err := engine.Query("engine_on_disk == 0")
		return err == nil && len(got) == 1
	}) {
		t.Error("the engine does not say that it lost its disk")
	}
}
