package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A server in a container as runtimes make it: process 1 of its own pid
// namespace, with its own mounts and network, and another user's. From outside
// its threads, memory, descriptors and sockets are seen as those of any other;
// only the limit of the accept queue is not, and that is said.
func TestContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make namespaces")
	}
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	for _, tool := range []string{"unshare", "setpriv", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	for major, home := range jdks(t) {
		t.Run(major, func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "container")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			found, _ := filepath.Glob(filepath.Join(classes(t, home), "*.class"))
			if out, err := exec.Command("install", append(append([]string{"-m", "644"}, found...), dir)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c",
				`ip link set lo up && mount -t tmpfs -o mode=1777,size=16m tmpfs /tmp || exit 77; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -Xmx64m -XX:+UseSerialGC -cp "$1" Silent idle`,
				filepath.Join(home, "bin/java"), dir)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill() // its child dies with it
			defer in.Close()
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				t.Skip("no namespaces here")
			}
			port, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(string(bytes.TrimSpace(children)))
			if err != nil {
				t.Fatal(err)
			}
			cfg := configOf(t, pid)
			cfg.Pools = []Pool{{Prefix: "catalina-exec-", Max: 10, Ports: []int{port}}}
			cfg.Connectors = []Connector{{Port: port, Protocol: "nio", Executor: "shared", AcceptCount: 5}}
			set := metric.ForTarget("t")
			p := New(set, cfg)
			defer p.Close()
			var have map[string]float64
			for deadline := time.Now().Add(20 * time.Second); ; {
				if err := p.Poll(context.Background(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if have = values(set); have["jvm_threadpool_threads pool=catalina-exec"] == 10 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("threads are missing: %v", have)
				}
			}
			// Read independently: the kernel's own count of threads and descriptors.
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			want(t, have, "process_threads", float64(len(tasks)-2), float64(len(tasks)+2))
			want(t, have, "process_open_fds", float64(len(fds)-2), float64(len(fds)+2))
			want(t, have, "process_resident_memory_bytes", 5<<20, 500<<20)
			want(t, have, fmt.Sprintf("tcp_listen_queue port=%d", port), 0, 0)
			if v, ok := have[fmt.Sprintf("tcp_listen_limit port=%d", port)]; ok {
				t.Errorf("limit %v is not to be had from outside", v)
			}
			if r := (childReport{Blind: p.Blind()}); !r.has(BlindLimit) {
				t.Errorf("blind: %+v", r.Blind)
			}
			if p.Gone() {
				t.Error("it is said to be gone")
			}
		})
	}
}
