package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"golang.org/x/sys/unix"
)

// TestForbidden is no test by itself: it takes openat2 from itself and becomes
// the program that it is told.
func TestForbidden(t *testing.T) {
	args := strings.Split(os.Getenv("FORBIDDEN_RUN"), "\x01")
	if args[0] == "" {
		t.Skip("only started by another test")
	}
	if err := lab.Forbid(unix.SYS_OPENAT2, unix.ENOSYS); err != nil {
		t.Fatal(err)
	}
	t.Fatal(syscall.Exec(args[0], args, os.Environ()))
}

// On a kernel without openat2 the program opens nothing that a server names, and
// says so; told to walk, it sees what it sees elsewhere.
func TestKernelWithoutOpenat2(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the sidecar")
	}
	dir := t.TempDir()
	v := village{t, dir}
	v.begin()
	v.process(4000, "good", strings.Replace(goodXML, "PORT", "8080", 1), nil)
	// The log is a link to an absolute path, which is the server's own.
	v.put("good/var/log/app/access.log", "")
	if err := os.Remove(dir + "/good/srv/logs/access.log"); err != nil {
		t.Fatal(err)
	}
	v.link("good/srv/logs/access.log", "/var/log/app/access.log")
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ setting, settings string }{{"refuse", ""}, {"walk", "targets: {without_openat2: walk}\n"}} {
		t.Run(c.setting, func(t *testing.T) {
			state := t.TempDir()
			v.put("sidecar.yml", c.settings)
			port, err := lab.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			log, err := os.Create(filepath.Join(state, "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			cmd := exec.Command(os.Args[0], "-test.run=^TestForbidden$")
			cmd.Env = append(os.Environ(), "FORBIDDEN_RUN="+strings.Join([]string{program, "run", "--path.procfs=" + dir + "/proc", "--config.file=" + dir + "/sidecar.yml",
				"--web.listen-address=" + addr, "--storage.path=" + state}, "\x01"))
			cmd.Stdout, cmd.Stderr = log, log
			sidecar, err := lab.StartCommand("sidecar", cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				sidecar.Stop()
				if said, _ := os.ReadFile(log.Name()); t.Failed() {
					t.Logf("%s", said)
				}
			}()
			var m lab.Scrape
			if !lab.Until(20*time.Second, func() bool {
				m, err = lab.ReadMetrics(addr)
				_, said := m.Sum("sidecar_source_blind", "source", "target", "reason", "no_openat2")
				return err == nil && said
			}) {
				t.Fatal("it is not said")
			}
			var reasons, opened []string
			look := func() {
				m, _ = lab.ReadMetrics(addr)
				reasons, opened = nil, nil
				for _, s := range m {
					name := s.Labels["__name__"]
					if name == "sidecar_source_blind" && s.Labels["target"] != "" {
						reasons = append(reasons, s.Labels["source"]+"/"+s.Labels["reason"])
					}
					if strings.HasPrefix(name, "accesslog_") || strings.HasPrefix(name, "applog_records") || name == "tomcat_executor_maxqueuesize" || name == "logdir_size_bytes" {
						opened = append(opened, name)
					}
				}
				slices.Sort(opened)
				opened = slices.Compact(opened)
			}
			if c.setting == "refuse" {
				if !lab.Until(10*time.Second, func() bool {
					look()
					return slices.Contains(reasons, "target/no_openat2") && slices.Contains(reasons, "logdir/no_openat2") && slices.Contains(reasons, "applog/log_no_openat2")
				}) {
					t.Errorf("said is %v", reasons)
				}
				if len(opened) > 0 {
					t.Errorf("opened all the same: %v", opened)
				}
				return
			}
			requests := 0
			if !lab.Until(20*time.Second, func() bool {
				v.add("good/var/log/app/access.log", "127.0.0.1 - - [30/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5 7\n")
				requests++
				time.Sleep(1200 * time.Millisecond) // a tick
				look()
				n, _ := m.Sum("accesslog_requests_total", "target", "tomcat-8080")
				return n > 0 && !slices.ContainsFunc([]string{"applog_records_total", "logdir_size_bytes", "tomcat_executor_maxqueuesize"}, func(name string) bool {
					return !slices.Contains(opened, name)
				})
			}) {
				t.Errorf("of %d requests %v; blind %v", requests, opened, reasons)
			}
		})
	}
}
