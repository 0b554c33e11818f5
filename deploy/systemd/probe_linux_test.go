package systemd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"golang.org/x/sys/unix"
)

const sidecarAddr = "127.0.0.1:10404"

// show is one property of the service, as systemd has it.
func show(property string) string {
	out, _ := exec.Command("systemctl", "show", "sidecar", "--value", "-p", property).Output()
	return strings.TrimSpace(string(out))
}

func systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %s: %v %s", strings.Join(args, " "), err, out)
	}
}

// active waits until the service runs in a process other than not.
func active(t *testing.T, not string) (pid string) {
	t.Helper()
	if !lab.Until(40*time.Second, func() bool {
		pid = show("MainPID")
		return show("ActiveState") == "active" && pid != "0" && pid != not
	}) {
		said, _ := exec.Command("journalctl", "--no-pager", "-u", "sidecar").Output()
		t.Fatalf("it does not come up: %s %s\n%s", show("ActiveState"), show("Result"), said)
	}
	return pid
}

// TestProbe is no test by itself: it is what TestUnderSystemd runs beside the
// service, within its machine.
func TestProbe(t *testing.T) {
	if os.Getenv("SYSTEMD_TEST_PROBE") == "" {
		t.Skip("only run under a systemd of its own")
	}
	pid := active(t, "")
	for property, want := range map[string]string{
		"Type": "notify", "NotifyAccess": "main", "WatchdogUSec": "1min 30s", "NRestarts": "0", "User": "sidecar",
		"MemoryMax": strconv.Itoa(512 << 20), "CPUQuotaPerSecUSec": "500ms", "TasksMax": "256",
	} {
		if got := show(property); got != want {
			t.Errorf("%s is %q, want %q", property, got, want)
		}
	}
	// READY=1 came with a snapshot: there is something to ask at once.
	if m, err := lab.ReadMetrics(sidecarAddr); err != nil || len(m) == 0 {
		t.Errorf("started, and not there: %v", err)
	}
	rights(t, pid)
	counted := seesAll(t)
	readOnly(t, pid)
	limits(t, pid)
	reload(t, pid)
	watchdog(t, pid)
	// A kill is a restart like any other, and nothing that was counted falls. The
	// families of a file are there when its backlog is read, not with the first
	// snapshot; what they then say first is what counts.
	var requests float64
	if !lab.Until(20*time.Second, func() (ok bool) {
		m, err := lab.ReadMetrics(sidecarAddr)
		if err == nil {
			requests, ok = m.Sum("accesslog_requests_total")
		}
		return ok
	}) {
		t.Error("no requests are told after the restarts")
	} else if requests < counted {
		t.Errorf("%v requests, and %v before the restarts", requests, counted)
	}
	systemctl(t, "stop", "sidecar")
	if show("Result") != "success" || show("ExecMainStatus") != "0" {
		t.Errorf("stopped with %s, status %s", show("Result"), show("ExecMainStatus"))
	}
	if st, err := os.Stat("/var/lib/sidecar"); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("the state folder: %v %v", st, err)
	}
}

// rights looks at what the kernel says the process may.
func rights(t *testing.T, pid string) {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	caps := fmt.Sprintf("%016x", 1<<unix.CAP_SYS_PTRACE|1<<unix.CAP_DAC_READ_SEARCH)
	want := map[string]string{
		"Uid": strings.Repeat("\t54311", 4)[1:], "NoNewPrivs": "1", "Seccomp": "2", "Umask": "0077",
		"CapEff": caps, "CapPrm": caps, "CapBnd": caps, "CapAmb": caps,
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		if w, ok := want[key]; ok && strings.TrimSpace(value) != w {
			t.Errorf("%s is %q, want %q", key, strings.TrimSpace(value), w)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("not said: %v", want)
	}
	if own, _ := os.ReadFile("/proc/" + pid + "/cgroup"); !bytes.Contains(own, []byte("0::/system.slice/sidecar.service")) {
		t.Errorf("its cgroup: %s", own)
	}
}

// seesAll waits for one figure of each source of the Tomcat, which is another
// user's and whose files are closed to others.
func seesAll(t *testing.T) (requests float64) {
	t.Helper()
	var missing []string
	var m lab.Scrape
	if !lab.Until(60*time.Second, func() bool {
		lab.Burst(fmt.Sprintf("127.0.0.1:%d", tomcatPort), "/slow?ms=1", 1, 5*time.Second)
		missing = missing[:0]
		var err error
		if m, err = lab.ReadMetrics(sidecarAddr); err != nil {
			return false
		}
		for _, name := range []string{
			"process_cpu_seconds_total", "process_open_fds", "process_disk_bytes_total", "jvm_memory_used_bytes", "jvm_threadpool_threads", "tcp_listen_queue",
			"tcp_listen_limit", "tomcat_executor_maxqueuesize", "accesslog_request_duration_seconds_count", "applog_records_total", "logdir_size_bytes", "logfs_avail_bytes",
		} {
			if _, ok := m.Sum(name, "target", fmt.Sprintf("tomcat-%d", tomcatPort)); !ok {
				missing = append(missing, name)
			}
		}
		return len(missing) == 0
	}) {
		t.Errorf("not seen under the unit: %v", missing)
		for _, s := range m {
			if name := s.Labels["__name__"]; name == "target_up" || name == "sidecar_source_blind" {
				t.Logf("%v %v", s.Labels, s.Value)
			}
		}
		said, _ := exec.Command("systemctl", "status", "-l", "--no-pager", "tomcat").CombinedOutput()
		t.Logf("%s", said)
	}
	for _, s := range m {
		if s.Labels["__name__"] == "sidecar_source_blind" && strings.Contains(s.Labels["reason"], "permission") {
			t.Errorf("blind: %v", s.Labels)
		}
	}
	t.Log(show("StatusText"))
	if up, ok := m.Sum("target_up"); !ok || up != 1 || show("StatusText") != "Watching 1 servers, 1 of them up." {
		t.Errorf("%v targets, status %q", up, show("StatusText"))
	}
	requests, _ = m.Sum("accesslog_requests_total")
	return requests
}

// readOnly tries to write where the service sees its files, with all of root's
// rights: the mounts alone must say no.
func readOnly(t *testing.T, pid string) {
	t.Helper()
	touch := func(path string) string {
		out, _ := exec.Command("nsenter", "-t", pid, "-m", "touch", path).CombinedOutput()
		return string(out)
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Log(err)
		return
	}
	for _, path := range []string{"/etc/x", "/usr/bin/x", "/tmp/x", "/var/log/x", "/home/x", "/root/x"} {
		if out := touch(path); !strings.Contains(out, "Read-only file system") {
			t.Errorf("%s could be written: %s", path, out)
		}
	}
	if out := touch("/var/lib/sidecar/x"); out != "" {
		t.Errorf("its own state could not: %s", out)
	}
}

// limits puts others into the service's own group, where there are controllers of
// memory and CPU: one that wants more than MemoryMax, and one that never rests. The
// kernel must end the first, and hold the second back to CPUQuota.
func limits(t *testing.T, pid string) {
	t.Helper()
	const group = "/system.slice/sidecar.service"
	// ours is the service's group for a controller: in the second hierarchy, or in the
	// controller's own of the first.
	ours := func(controller, second, first string) (dir string) {
		for file, dir := range map[string]string{second: "/sys/fs/cgroup" + group, first: "/sys/fs/cgroup/" + controller + group} {
			if _, err := os.Stat(dir + "/" + file); err != nil {
				continue
			}
			if in, err := os.ReadFile(dir + "/cgroup.procs"); err != nil || !slices.Contains(strings.Fields(string(in)), pid) {
				t.Errorf("the sidecar is not in %s: %v", dir, err)
			}
			return dir
		}
		t.Logf("systemd has no controller of %s here: that the limit holds is not seen", controller)
		return ""
	}
	if dir := ours("memory", "memory.max", "memory.limit_in_bytes"); dir != "" {
		// tail keeps all of a line that does not end: 600 MiB, were it let.
		eater := exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && head -c "$1" /dev/zero | tail -n 1 >/dev/null`, dir, "629145600")
		out, err := eater.CombinedOutput()
		if eater.ProcessState.ExitCode() != 128+int(unix.SIGKILL) {
			t.Errorf("more than MemoryMax could be had: %v %s", err, out)
		}
		// And what is well below is let.
		eater = exec.Command(eater.Path, "-c", eater.Args[2], dir, "104857600")
		if out, err := eater.CombinedOutput(); err != nil {
			t.Errorf("100 MiB could not be had: %v %s", err, out)
		}
	}
	if dir := ours("cpu", "cpu.max", "cpu.cfs_quota_us"); dir != "" {
		busy := exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec timeout 3 /bin/sh -c 'while :; do :; done'`, dir)
		began := time.Now()
		busy.Run() // timeout ends it, which is no success
		took, used := time.Since(began), busy.ProcessState.UserTime()+busy.ProcessState.SystemTime()
		t.Logf("in the sidecar's group %.2f s of CPU were had in %.1f s", used.Seconds(), took.Seconds())
		if share := used.Seconds() / took.Seconds(); took < 2*time.Second || share > 0.6 {
			t.Errorf("%.0f %% of a processor, and CPUQuota is 50 %%", 100*share)
		}
		// A busy machine would have held it back too: this is the kernel's own count.
		if stat, err := os.ReadFile(dir + "/cpu.stat"); err != nil || !regexp.MustCompile(`(?m)^nr_throttled [1-9]`).Match(stat) {
			t.Errorf("never throttled: %v %s", err, stat)
		}
	}
	if again := show("MainPID"); again != pid {
		t.Errorf("the sidecar itself was ended: %s, and %s before", again, pid)
	}
}

func reload(t *testing.T, pid string) {
	t.Helper()
	at := func() float64 {
		m, err := lab.ReadMetrics(sidecarAddr)
		if err != nil {
			return 0
		}
		v, _ := m.Sum("sidecar_config_reload_timestamp_seconds")
		return v
	}
	before := at()
	systemctl(t, "reload", "sidecar")
	if !lab.Until(10*time.Second, func() bool { return at() > before }) || show("MainPID") != pid {
		t.Errorf("not reloaded: %v, and %v before", at(), before)
	}
}

// watchdog shortens the patience, sees that a sidecar which works is left alone,
// and stops it by SIGSTOP, as a hang would: it must be another one soon.
func watchdog(t *testing.T, pid string) string {
	t.Helper()
	if err := os.MkdirAll("/run/systemd/system/sidecar.service.d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/run/systemd/system/sidecar.service.d/short.conf", []byte("[Service]\nWatchdogSec=2s\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "daemon-reload")
	systemctl(t, "restart", "sidecar")
	pid = active(t, pid)
	time.Sleep(5 * time.Second) // more than two patiences
	if n := show("NRestarts"); n != "0" || show("MainPID") != pid {
		t.Fatalf("%s restarts of a sidecar that works", n)
	}
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := unix.Kill(n, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	again := active(t, pid)
	t.Logf("hung, and another one runs after %.1f s", time.Since(began).Seconds())
	if n := show("NRestarts"); n != "1" {
		t.Errorf("%s restarts", n)
	}
	said, _ := exec.Command("journalctl", "--no-pager", "-u", "sidecar").Output()
	if !bytes.Contains(said, []byte("Watchdog timeout")) {
		t.Errorf("restarted, and not by the watchdog:\n%s", said)
	}
	return again
}
