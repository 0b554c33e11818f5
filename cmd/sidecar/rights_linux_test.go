package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
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

// What each right buys, and what is blind without it: the table of docs/deploy.md,
// held against a real Tomcat of one user and the real program of another. The logs
// and settings of that Tomcat are closed to others (0640), as Tomcat makes them.

// figuresOf says by which figure a thing is seen. Each must be there for whoever
// may see it, and absent, never 0, for whoever may not.
var figuresOf = map[string]string{
	"the process":      "target_up",
	"CPU":              "process_cpu_seconds_total",
	"its share":        "process_cpu_usage_ratio", // from the second look on
	"pools":            "jvm_threadpool_threads",
	"the accept queue": "tcp_listen_queue",
	"its limit":        "tcp_listen_limit",
	"descriptors":      "process_open_fds",
	"disk I/O":         "process_disk_bytes_total",
	"heap":             "jvm_memory_used_bytes",
	"settings":         "tomcat_executor_maxqueuesize",
	"requests":         "accesslog_requests_total",
	"request times":    "accesslog_request_duration_seconds_count",
	"records":          "applog_records_total",
	"folder":           "logdir_size_bytes",
}

// serverUser has an entry in passwd: a JVM whose user has none makes no
// hsperfdata. strangeUser needs none.
const (
	serverUser  = 65534 // nobody
	strangeUser = 54322
)

func TestRights(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, and the sidecar seven times")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	lab.Exclusive(t)
	// Not t.TempDir, which is closed to others.
	dir, err := os.MkdirTemp("", "rights")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.StartTomcatIn(filepath.Join(dir, "tomcat"), lab.Tomcat{
		User: serverUser, Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`,
	})
	lab.Need(t, err)
	defer s.Stop()
	for _, name := range []string{"conf/server.xml", "logs/catalina.out"} {
		if st, err := os.Stat(filepath.Join(s.Base, name)); err != nil || st.Mode().Perm() != 0o640 || st.Sys().(*syscall.Stat_t).Uid != serverUser {
			t.Fatalf("%s is not closed to others: %v %v", name, st, err)
		}
	}
	// The machine may run other servers.
	settings := filepath.Join(dir, "sidecar.yml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "targets: {discover: off, servers: [{name: watched, match: {base: %s}}]}\n", s.Base), 0o644); err != nil {
		t.Fatal(err)
	}
	ptrace, read := []uintptr{unix.CAP_SYS_PTRACE}, []uintptr{unix.CAP_DAC_READ_SEARCH}
	stranger := []string{"the accept queue", "its limit", "descriptors", "disk I/O", "heap", "settings", "requests", "request times", "records"}
	says := []string{"process/fds_no_permission", "process/io_no_permission", "jvm/no_perfdata", "target/no_permission", "applog/log_permission"}
	var root []string
	for _, c := range []struct {
		as    string
		user  int
		caps  []uintptr
		open  bool     // the server's settings, to all
		blind []string // what is not seen
		says  []string // the reasons that are named
		cwd   bool     // the server's working folder is known
	}{
		{"root", 0, nil, false, nil, nil, true},
		{"its own user", serverUser, nil, false, nil, nil, true},
		{"another user", strangeUser, nil, false, stranger, says, false},
		{"another user with CAP_SYS_PTRACE", strangeUser, ptrace, false, stranger, says, true},
		{"another user with CAP_DAC_READ_SEARCH", strangeUser, read, false, []string{"disk I/O", "its limit"},
			[]string{"process/io_no_permission", "process/network_namespace_unknown", "target/no_permission"}, false},
		{"another user with both", strangeUser, append(ptrace, read...), false, nil, nil, true},
		{"another user, open settings", strangeUser, nil, true, []string{"its limit", "descriptors", "disk I/O", "heap", "requests", "request times", "records"}, says, false},
	} {
		t.Run(c.as, func(t *testing.T) {
			// With both, nothing of what root sees may be missing.
			likeRoot := c.as == "another user with both" || c.as == "its own user"
			if c.open {
				if err := os.Chmod(filepath.Join(s.Base, "conf/server.xml"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			addr := startAs(t, program, dir, c.user, c.caps, "--config.file="+settings)
			var m lab.Scrape
			there := func(what string) bool { _, ok := m.Sum(figuresOf[what], "target", "watched"); return ok }
			said := func(reason string) bool {
				source, reason, _ := strings.Cut(reason, "/")
				_, ok := m.Sum("sidecar_source_blind", "target", "watched", "source", source, "reason", reason)
				return ok
			}
			lab.Until(20*time.Second, func() bool {
				// What came before it looked is history, and not counted.
				lab.Burst(s.Addr, "/slow?ms=1", 1, 10*time.Second)
				m, err = lab.ReadMetrics(addr)
				for what := range figuresOf {
					if err != nil || !there(what) && !slices.Contains(c.blind, what) {
						return false
					}
				}
				if likeRoot && !slices.Equal(familiesOf(m), root) {
					return false
				}
				return !slices.ContainsFunc(c.says, func(r string) bool { return !said(r) })
			})
			for _, what := range slices.Sorted(maps.Keys(figuresOf)) {
				if want := !slices.Contains(c.blind, what); there(what) != want {
					t.Errorf("%s is seen: %v, want %v", what, !want, want)
				}
			}
			for _, reason := range says {
				if want := slices.Contains(c.says, reason); said(reason) != want {
					t.Errorf("%s is said: %v, want %v", reason, !want, want)
				}
			}
			var st struct {
				Targets []struct {
					Target struct{ Process struct{ Cwd string } }
				}
			}
			if err := getJSON("http://"+addr+"/status.json", &st); err != nil {
				t.Fatal(err)
			}
			if known := st.Targets[0].Target.Process.Cwd == s.Base; known != c.cwd {
				t.Errorf("the working folder is %q", st.Targets[0].Target.Process.Cwd)
			}
			names := familiesOf(m)
			if c.as == "root" {
				root = names
			}
			if likeRoot && !slices.Equal(names, root) {
				t.Errorf("not what root sees:\n%v\nroot:\n%v", names, root)
			}
		})
	}
}

// startAs starts the sidecar as somebody, with nothing but these capabilities.
func startAs(t *testing.T, program, dir string, user int, caps []uintptr, args ...string) (addr string) {
	t.Helper()
	state, err := os.MkdirTemp(dir, "state")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, user, user); err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	log, err := os.Create(state + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, append([]string{"run", "--web.listen-address=" + addr, "--storage.path=" + state}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}, AmbientCaps: caps}
	sidecar, err := lab.StartCommand("sidecar", cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sidecar.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s", said)
		}
	})
	return addr
}

func getJSON(url string, into any) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(into)
}

// familiesOf are the names of the target's figures that do not come and go by
// themselves: rates and windows need more than a moment, and a collection or a
// finding comes when it comes.
func familiesOf(m lab.Scrape) (names []string) {
	for _, s := range m {
		name := s.Labels["__name__"]
		room, _, _ := strings.Cut(name, "_")
		if s.Labels["target"] == "watched" && slices.Contains([]string{"process", "jvm", "accesslog", "applog", "tomcat", "target"}, room) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
