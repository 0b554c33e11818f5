package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A tree of our own instead of /proc: a process is its pid and its start in
// ticks, whatever the wall clock does. The clock is stepped by an hour, and
// then the pid goes to another process.
func TestCase34ProcessIdentity(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	statOf := func(utime, start int) string {
		return fmt.Sprintf("4242 (java) S 1 4242 4242 0 -1 4194304 0 0 0 0 %d 0 0 0 20 0 1 0 %d 1000 20 1\n", utime, start)
	}
	put("4242/statm", "100 50 10 1 0 20 0\n")
	put("4242/status", "Name:\tjava\nVmSwap:\t8 kB\nCpus_allowed_list:\t0-3\n")
	set := metric.ForTarget("t")
	p := New(set, Config{Root: root, CgroupRoot: filepath.Join(root, "none"), PID: 4242, StartTicks: 8981900})
	defer p.Close()
	var first float64
	for i, look := range []struct{ btime, utime, start int }{
		{1719750000, 500, 8981900}, {1719750001, 510, 8981900}, {1719749999, 520, 8981900}, {1719753600, 530, 8981900}, {1719753600, 3, 9100000},
	} {
		put("stat", fmt.Sprintf("cpu 1 1 1 1\nbtime %d\n", look.btime))
		put("4242/stat", statOf(look.utime, look.start))
		put("4242/task/4242/stat", statOf(look.utime, look.start))
		if err := p.Poll(context.Background(), time.Unix(int64(1719800000+i), 0)); err != nil {
			t.Fatal(err)
		}
		have := values(set)
		if i == 4 {
			if len(have) != 0 || !p.Gone() {
				t.Errorf("another process under the same pid: gone %v, %v", p.Gone(), have)
			}
			break
		}
		cpu := float64(look.utime) / 100
		want(t, have, "process_cpu_seconds_total", cpu, cpu)
		want(t, have, "process_swap_bytes", 8192, 8192)
		if i == 0 {
			first = have["process_start_time_seconds"]
			want(t, have, "process_start_time_seconds", 1719750000+89819, 1719750000+89819)
		} else {
			want(t, have, "process_start_time_seconds", first, first)
			want(t, have, "process_cpu_usage_ratio", 0.1/4-1e-9, 0.1/4+1e-9)
		}
		if _, ok := have["process_open_fds"]; ok {
			t.Error("descriptors of a tree without fd")
		}
	}
	// The new one begins at its own figures.
	set = metric.ForTarget("t")
	p = New(set, Config{Root: root, CgroupRoot: filepath.Join(root, "none"), PID: 4242, StartTicks: 9100000})
	defer p.Close()
	if err := p.Poll(context.Background(), time.Unix(1719800009, 0)); err != nil {
		t.Fatal(err)
	}
	want(t, values(set), "process_cpu_seconds_total", 0.03, 0.03)
}

// A restart of the sidecar must not make a pool's CPU time fall, although the
// threads that ended before are gone.
func TestPoolCPUOverRestart(t *testing.T) {
	root := t.TempDir()
	thread := func(tid, ticks int) {
		t.Helper()
		dir := filepath.Join(root, "7/task", fmt.Sprint(tid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d (catalina-exec-1) R 1 7 7 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 1 1 1\n", tid, ticks, 100+tid)
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	process := "7 (java) S 1 7 7 0 -1 0 0 0 0 0 900 0 0 0 20 0 1 0 55 1 1 1\n"
	thread(11, 100)
	thread(12, 200)
	os.WriteFile(filepath.Join(root, "7/stat"), []byte(process), 0o644)
	cfg := Config{Root: root, CgroupRoot: filepath.Join(root, "none"), PID: 7, StartTicks: 55, Pools: []Pool{{Prefix: "catalina-exec-"}}}
	const name = "jvm_threadpool_cpu_seconds_total pool=catalina-exec"
	poll := func(p *Poller) float64 {
		t.Helper()
		p.Poll(context.Background(), time.Unix(1, 0)) // there is no statm, which is an error and no matter
		v, ok := values(p.set)[name]
		if !ok {
			t.Fatal("no CPU time")
		}
		return v
	}
	p := New(metric.ForTarget("t"), cfg)
	if v := poll(p); v != 3 {
		t.Errorf("at first %v, want 3", v)
	}
	thread(12, 250)
	os.RemoveAll(filepath.Join(root, "7/task/11"))
	if v := poll(p); v != 3.5 {
		t.Errorf("after a thread ended %v, want 3.5", v)
	}
	data, err := p.Save()
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	thread(12, 260)
	thread(13, 5)
	q := New(metric.ForTarget("t"), cfg)
	defer q.Close()
	if err := q.Load(data); err != nil {
		t.Fatal(err)
	}
	if v := poll(q); v < 3.65-1e-9 || v > 3.65+1e-9 {
		t.Errorf("after the restart %v, want 3.65", v)
	}
	thread(13, 15)
	if v := poll(q); v < 3.75-1e-9 || v > 3.75+1e-9 {
		t.Errorf("later %v, want 3.75", v)
	}
	// Another process' counters are not ours.
	cfg.StartTicks = 56
	os.WriteFile(filepath.Join(root, "7/stat"), []byte(strings.Replace(process, " 55 ", " 56 ", 1)), 0o644)
	r := New(metric.ForTarget("t"), cfg)
	defer r.Close()
	if err := r.Load(data); err != nil {
		t.Fatal(err)
	}
	if v := poll(r); v != 2.75 {
		t.Errorf("a new process begins at %v, want 2.75", v)
	}
}

// TestChild is no test: it is what the tests below start as somebody else, or
// in another network namespace. It polls the process that is named and prints what it saw.
func TestChild(t *testing.T) {
	switch role := os.Getenv("PROCESS_TEST_CHILD"); {
	case role == "":
		t.Skip("only started by other tests")
	case role == "listen":
		l, err := net.Listen("tcp", "127.0.0.1:18080")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("tcp", "127.0.0.1:18080")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("hello"))
		fmt.Println("READY")
		os.Stdin.Read(make([]byte, 1)) // until the parent is done
	case role == "accept":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(l.Addr())
		go func() {
			var kept []net.Conn
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				kept = append(kept, c)
			}
		}()
		os.Stdin.Read(make([]byte, 1))
	default:
		var cfg Config
		if err := json.Unmarshal([]byte(role), &cfg); err != nil {
			t.Fatal(err)
		}
		set := metric.ForTarget("t")
		p := New(set, cfg)
		err := p.Poll(context.Background(), time.Now())
		json.NewEncoder(os.Stdout).Encode(map[string]any{"values": values(set), "blind": p.Blind(), "gone": p.Gone(), "err": fmt.Sprint(err)})
	}
}

type childReport struct {
	Values map[string]float64
	Blind  []Blind
	Gone   bool
	Err    string
}

func childEnv(t *testing.T, cfg Config) []string {
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PROCESS_TEST_CHILD="+string(b))
}

func (r *childReport) has(reason string) bool {
	for _, b := range r.Blind {
		if b.Reason == reason && b.Detail != "" && b.Needs != "" {
			return true
		}
	}
	return false
}

func decodeReport(t *testing.T, out []byte) (r childReport) {
	t.Helper()
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// reachable copies the test binary to where anybody may run it.
func reachable(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "rights")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "child")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// As another user, what may not be read is absent and named, and what may be
// read is there. Never a 0 for "not permitted".
func TestCase35PermissionIsNotZero(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	cfg := selfConfig(t)
	cfg.Connectors = []Connector{{Port: 18080, Protocol: "nio"}}
	cmd := exec.Command(reachable(t), "-test.run=^TestChild$")
	cmd.Env = childEnv(t, cfg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := decodeReport(t, out)
	for _, name := range []string{"process_open_fds", "process_disk_bytes_total direction=read"} {
		if v, ok := r.Values[name]; ok {
			t.Errorf("%s = %v, it can't be seen", name, v)
		}
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_max_fds", "process_resident_memory_bytes", "process_threads"} {
		if _, ok := r.Values[name]; !ok {
			t.Errorf("%s is absent, it can be seen", name)
		}
	}
	for _, reason := range []string{BlindFDs, BlindIO, BlindNamespace} {
		if !r.has(reason) {
			t.Errorf("%s is not said, or not what it needs: %+v", reason, r.Blind)
		}
	}
	if r.Gone || r.Err != "<nil>" {
		t.Errorf("gone %v, error %s", r.Gone, r.Err)
	}
}

// Under hidepid a living process is hidden, which is neither up nor gone.
func TestCase35Hidepid(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	for _, tool := range []string{"unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t proc -o hidepid=2 proc /proc || exit 77; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" "-test.run=^TestChild$"`, reachable(t))
	cmd.Env = childEnv(t, selfConfig(t))
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 77 {
		t.Skipf("no mount here: %s", exit.Stderr)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := decodeReport(t, out)
	if len(r.Values) != 0 || r.Gone || !r.has(BlindHidden) {
		t.Errorf("%+v", r)
	}
}

// In another network namespace the sockets come from the server's own
// /proc/PID/net, without the limit, and that is said.
func TestAnotherNetwork(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a network namespace")
	}
	for _, tool := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.Command("unshare", "--net", "sh", "-c", `ip link set lo up || exit 77; exec "$0" "-test.run=^TestChild$"`, reachable(t))
	cmd.Env = append(os.Environ(), "PROCESS_TEST_CHILD=listen")
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
	defer in.Close()
	b := make([]byte, 6)
	if _, err := out.Read(b); err != nil || string(b[:5]) != "READY" {
		t.Skipf("no network namespace here: %q %v", b, err)
	}
	cfg := configOf(t, cmd.Process.Pid)
	cfg.Connectors = []Connector{{Port: 18080, Protocol: "nio"}}
	set := metric.ForTarget("t")
	p := New(set, cfg)
	defer p.Close()
	if err := p.Poll(context.Background(), time.Now()); err != nil {
		t.Fatal(err)
	}
	have := values(set)
	want(t, have, "tcp_listen_queue port=18080", 1, 1)
	want(t, have, "connector_requests_waiting port=18080", 1, 1)
	if v, ok := have["tcp_listen_limit port=18080"]; ok {
		t.Errorf("limit %v is not to be had", v)
	}
	if r := (childReport{Blind: p.Blind()}); !r.has(BlindLimit) {
		t.Errorf("blind: %+v", r.Blind)
	}
}
