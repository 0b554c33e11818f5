// Package container holds the Dockerfile to what it says. No engine is needed: the
// build command is run on what the builder would be sent, the root of the image is
// laid out by the lines of the last stage, and the program runs in it as an engine
// would run it: nothing else there, read-only, no capability, the image's user.
package container

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

const checkout = "../.."

// An instruction is one line of the Dockerfile, its continuations joined.
type instruction struct{ word, rest string }

// stages are the instructions from each FROM on.
func stages(t *testing.T) (list [][]instruction) {
	t.Helper()
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	joined := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(data), "")
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "FROM" {
			list = append(list, nil)
		}
		if len(list) == 0 {
			t.Fatalf("%s before FROM", word)
		}
		list[len(list)-1] = append(list[len(list)-1], instruction{word, rest})
	}
	return list
}

// the is the one instruction of its kind in a stage.
func the(t *testing.T, stage []instruction, word string) string {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(stage), func(i instruction) bool { return i.word != word })
	if len(found) != 1 {
		t.Fatalf("%d times %s", len(found), word)
	}
	return found[0].rest
}

func words(t *testing.T, form string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(form), &list); err != nil {
		t.Fatalf("%s: %v", form, err)
	}
	return list
}

func TestDockerfile(t *testing.T) {
	s := stages(t)
	if len(s) != 2 || the(t, s[1], "FROM") != "scratch" {
		t.Fatalf("stages %v", s)
	}
	// Nothing may run in a stage that has no shell, and the form without brackets
	// would want one.
	for _, i := range s[1] {
		if i.word == "RUN" || i.word == "ADD" {
			t.Errorf("%s in an empty image", i.word)
		}
	}
	words(t, the(t, s[1], "ENTRYPOINT"))
	words(t, the(t, s[1], "CMD"))
	for _, key := range []string{"title", "description", "source", "documentation", "licenses", "version", "revision"} {
		if !strings.Contains(the(t, s[1], "LABEL"), "org.opencontainers.image."+key+"=") {
			t.Errorf("no label %s", key)
		}
	}
	if user := the(t, s[1], "USER"); user == "0" || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		// A number, since an empty image has no passwd and Kubernetes asks for one
		// with runAsNonRoot.
		t.Errorf("USER %s", user)
	}
	health := the(t, s[1], "HEALTHCHECK")
	if _, form, ok := strings.Cut(health, "CMD "); !ok || words(t, form)[1] != "healthcheck" {
		t.Errorf("HEALTHCHECK %s", health)
	}
	// What is copied in from the checkout is there, and is not kept back.
	kept := context(t)
	for _, i := range s[0] {
		if i.word != "COPY" {
			continue
		}
		for _, from := range strings.Fields(i.rest)[:len(strings.Fields(i.rest))-1] {
			if from != "." && !slices.Contains(kept, from) {
				t.Errorf("COPY %s: it is not sent to the builder", from)
			}
		}
	}
	golang := regexp.MustCompile(`^--platform=\$BUILDPLATFORM golang:(\d+\.\d+)-\S+ AS build$`).FindStringSubmatch(the(t, s[0], "FROM"))
	mod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if golang == nil || !regexp.MustCompile(`(?m)^go `+regexp.QuoteMeta(golang[1])+`(\.|$)`).Match(mod) {
		t.Errorf("the builder is %s, and go.mod wants another Go", the(t, s[0], "FROM"))
	}
	release, err := os.ReadFile("../release.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-trimpath", "-buildvcs=false", `"-s -w -buildid= -X `} {
		if !strings.Contains(s[0][len(s[0])-1].rest, flag) || !strings.Contains(string(release), flag) {
			t.Errorf("%s is not in both of Dockerfile and release.sh", flag)
		}
	}
}

// context is the files that the builder is sent: those of git, without what
// Dockerfile.dockerignore keeps back.
func context(t *testing.T) (files []string) {
	t.Helper()
	data, err := os.ReadFile("Dockerfile.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var ignored []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			ignored = append(ignored, line)
		}
	}
	err = filepath.WalkDir(checkout, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(checkout, p)
		for _, pattern := range ignored {
			base, anywhere := strings.CutPrefix(pattern, "**/")
			on := name
			if anywhere {
				on = path.Base(name)
			}
			if ok, err := path.Match(base, on); err != nil {
				t.Fatal(err)
			} else if ok && name != "." {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		if d.Type().IsRegular() {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// buildImage runs the first stage's build and lays out the last stage's root.
func buildImage(t *testing.T, dir, arch string) (root string) {
	t.Helper()
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out-"+arch)
	if _, err := os.Stat(src); err != nil {
		for _, name := range context(t) {
			data, err := os.ReadFile(filepath.Join(checkout, name))
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(src, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := stages(t)
	run := s[0][len(s[0])-1]
	if run.word != "RUN" {
		t.Fatalf("the last of the build is %s", run.word)
	}
	cmd := exec.Command("/bin/sh", "-ec", strings.ReplaceAll(run.rest, "/out/", out+"/"))
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+arch, "VERSION=0.0.0-test", "REVISION=none")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", run.rest, err, said)
	}
	root = filepath.Join(dir, "root-"+arch)
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, i := range s[1] {
		if i.word != "COPY" {
			continue
		}
		f := strings.Fields(i.rest)
		from, to := strings.Replace(f[len(f)-2], "/out/", out+"/", 1), filepath.Join(root, f[len(f)-1])
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		for _, option := range f[:len(f)-2] {
			var uid, gid int
			if _, err := fmt.Sscanf(option, "--chown=%d:%d", &uid, &gid); err == nil && os.Getuid() == 0 {
				if err := os.Lchown(to, uid, gid); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return root
}

// inImage is a command as an engine would run it in the image's root: read-only,
// with a /proc of the pid namespace, in namespaces of its own but for those shared.
const inImage = `set -e
mount --bind "$ROOT" "$ROOT"
mount --bind "$STATE" "$ROOT/state"
mkdir -p "$ROOT/proc"
mount -t proc proc "$ROOT/proc"
mount -o remount,bind,ro "$ROOT"
[ -z "$ALONE" ] || ip link set lo up
exec setpriv --no-new-privs unshare -R "$ROOT" -S "$USER" -G "$USER" "$@"
`

type box struct {
	root, state, user string
	alone             bool // pid and network namespaces of its own
}

func (b box) command(args ...string) *exec.Cmd {
	spaces := []string{"-m", "-u", "-i", "--kill-child", "-f"}
	env := append(os.Environ(), "ROOT="+b.root, "STATE="+b.state, "USER="+b.user, "ALONE=")
	if b.alone {
		spaces = append(spaces, "-p", "-n")
		env = append(env, "ALONE=1")
	}
	cmd := exec.Command("unshare", append(append(spaces, "/bin/sh", "-c", inImage, "sh"), args...)...)
	cmd.Env = env
	return cmd
}

// childOf finds the program itself, below unshare.
func childOf(t *testing.T, pid int) (found string) {
	t.Helper()
	lab.Until(20*time.Second, func() bool {
		for at := fmt.Sprint(pid); ; {
			data, _ := os.ReadFile("/proc/" + at + "/task/" + at + "/children")
			next := strings.Fields(string(data))
			if len(next) == 0 {
				comm, _ := os.ReadFile("/proc/" + at + "/comm")
				found = at
				return strings.TrimSpace(string(comm)) == "sidecar"
			}
			at = next[0]
		}
	})
	return found
}

func TestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the image's program and runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can lay out a root of its own")
	}
	for _, p := range []string{"unshare", "nsenter", "setpriv", "mount", "ip"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	dir, err := os.MkdirTemp("", "image") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := buildImage(t, dir, runtime.GOARCH)
	static(t, filepath.Join(root, "sidecar"))
	last := stages(t)[1]
	user, _, _ := strings.Cut(the(t, last, "USER"), ":")
	entry, args := words(t, the(t, last, "ENTRYPOINT")), words(t, the(t, last, "CMD"))
	_, health, _ := strings.Cut(the(t, last, "HEALTHCHECK"), "CMD ")

	start := func(t *testing.T, b box, command ...string) (pid string) {
		t.Helper()
		b.state = filepath.Join(dir, "state-"+b.user)
		if err := os.MkdirAll(b.state, 0o700); err != nil {
			t.Fatal(err)
		}
		var uid int
		fmt.Sscan(b.user, &uid)
		if err := os.Chown(b.state, uid, uid); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(b.state + ".log")
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		cmd := b.command(command...)
		cmd.Stdout, cmd.Stderr = log, log
		child, err := lab.StartCommand("image", cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// It changed its user, and with that forgot that it dies with its parent.
			if n, err := strconv.Atoi(pid); err == nil {
				syscall.Kill(n, syscall.SIGKILL)
			}
			child.Kill()
			if said, _ := os.ReadFile(log.Name()); t.Failed() {
				t.Logf("%s", said)
			}
		})
		pid = childOf(t, child.PID)
		if status, err := os.ReadFile("/proc/" + pid + "/status"); err != nil ||
			!regexp.MustCompile(`(?m)^Uid:\t`+b.user+`\t`+b.user+`\t`).Match(status) ||
			!regexp.MustCompile(`(?m)^CapEff:\t0+$`).Match(status) || !strings.Contains(string(status), "NoNewPrivs:\t1") {
			t.Errorf("not as an engine would start it: %v\n%s", err, status)
		}
		mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo")
		if err != nil || !regexp.MustCompile(`(?m)^\d+ \d+ \S+ \S+ / ro,`).Match(mounts) {
			t.Errorf("the root can be written to: %v\n%s", err, mounts)
		}
		return pid
	}

	t.Run("alone", func(t *testing.T) {
		pid := start(t, box{root: root, user: user, alone: true}, append(slices.Clone(entry), args...)...)
		check := func(more ...string) (string, error) {
			out, err := exec.Command("nsenter", append(append([]string{"-t", pid, "-m", "-n", "-p", "-r", "-S", user, "-G", user}, words(t, health)...), more...)...).CombinedOutput()
			return string(out), err
		}
		var said string
		var err error
		if !lab.Until(20*time.Second, func() bool { said, err = check(); return err == nil }) || !strings.Contains(said, "healthy") {
			t.Errorf("the image's health check: %v %s", err, said)
		}
		if said, err := check("--url=http://127.0.0.1:1/"); err == nil {
			t.Errorf("healthy where nobody answers: %s", said)
		}
		if !lab.Until(20*time.Second, func() bool {
			list, _ := os.ReadDir(filepath.Join(dir, "state-"+user))
			return len(list) > 0
		}) {
			t.Error("no state was written")
		}
	})

	// As compose.yml has it: the server's user, its pid and network namespaces, and
	// no capability.
	t.Run("beside a Tomcat", func(t *testing.T) {
		lab.Exclusive(t)
		s, err := lab.StartTomcatIn(filepath.Join(dir, "tomcat"), lab.Tomcat{User: 65534, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
		lab.Need(t, err)
		defer s.Stop()
		port, err := lab.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		start(t, box{root: root, user: "65534"}, append(append(slices.Clone(entry), args...), "--web.listen-address="+addr)...)
		var missing []string
		if !lab.Until(30*time.Second, func() bool {
			lab.Burst(s.Addr, "/slow?ms=1", 1, 5*time.Second)
			m, err := lab.ReadMetrics(addr)
			if missing = nil; err != nil {
				return false
			}
			for _, name := range []string{"process_open_fds", "jvm_memory_used_bytes", "tcp_listen_limit", "accesslog_request_duration_seconds_count", "logdir_size_bytes", "applog_records_total"} {
				// The records of its start were there before us, and are not counted.
				if n, ok := m.Sum(name, "target", fmt.Sprintf("tomcat-%d", s.Port)); !ok || n == 0 && name != "applog_records_total" {
					missing = append(missing, name)
				}
			}
			return len(missing) == 0
		}) {
			t.Errorf("not seen from the image: %v", missing)
		}
	})
}

// static says that the program needs nothing of what an empty image has not.
func static(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s wants a loader", program)
		}
	}
}

// The other architecture is built from the same lines, and runs where an emulator
// of its instructions is at hand.
func TestImageForArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the image's program")
	}
	root := buildImage(t, t.TempDir(), "arm64")
	program := filepath.Join(root, "sidecar")
	static(t, program)
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("built for %v", f.Machine)
	}
	qemu, env, err := lab.Emulator()
	lab.Need(t, err)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(qemu, append([]string{program}, args...)...)
		cmd.Dir, cmd.Env = checkout, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("version"); !strings.Contains(out, "version 0.0.0-test ") || !strings.Contains(out, "linux/arm64") {
		t.Errorf("version: %s", out)
	}
	for _, log := range []string{"catalina.out", "access.txt", "gc.log"} {
		log = "cmd/sidecar/testdata/logs/" + log
		native := exec.Command("go", "run", "./cmd/sidecar", "replay", log)
		native.Dir = checkout
		want, err := native.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := run("replay", log); got != string(want) {
			t.Errorf("%s: arm64 counts\n%s\nthis machine\n%s", log, got, want)
		}
	}
}
