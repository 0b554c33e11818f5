package root

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"golang.org/x/sys/unix"
)

// tree is a root of a target, and a secret beside it.
func tree(t *testing.T) (dir string) {
	top := t.TempDir()
	dir = filepath.Join(top, "root")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "logs"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "logs/a.log"), []byte("inside"), 0o644))
	must(os.WriteFile(filepath.Join(top, "secret"), []byte("outside"), 0o644))
	must(os.Symlink("/logs/a.log", filepath.Join(dir, "absolute")))
	must(os.Symlink("logs/a.log", filepath.Join(dir, "relative")))
	must(os.Symlink("../secret", filepath.Join(dir, "climb")))
	must(os.Symlink(filepath.Join(top, "secret"), filepath.Join(dir, "out")))
	must(os.Symlink("..", filepath.Join(dir, "updir")))
	must(os.Symlink("loop", filepath.Join(dir, "loop")))
	must(os.Symlink("logs/.", filepath.Join(dir, "up")))
	must(os.Mkdir(filepath.Join(dir, "chain"), 0o755))
	for i := range 70 { // each one more link than the one before
		to := "/logs/a.log"
		if i > 0 {
			to = strconv.Itoa(i - 1)
		}
		must(os.Symlink(to, filepath.Join(dir, "chain", strconv.Itoa(i))))
	}
	must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	return dir
}

func content(f *os.File, err error) string {
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	return string(b)
}

// without gives a test a kernel with or without openat2, and with or without the
// leave to walk.
func without(t *testing.T, has, mayWalk bool) {
	t.Helper()
	was := hasOpenat2
	t.Cleanup(func() { hasOpenat2 = was; AllowWalk(false) })
	hasOpenat2 = func() bool { return has }
	AllowWalk(mayWalk)
}

// ways are the two ways to open what is beneath a root. They must not differ in
// what they open, nor in what they refuse.
func ways(t *testing.T, do func(t *testing.T)) {
	if !HasOpenat2() && os.Getenv("CI") == "true" {
		t.Error("this kernel has no openat2, and so half of this is not tested")
	}
	for name, has := range map[string]bool{"openat2": true, "walk": false} {
		if has && !HasOpenat2() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			without(t, has, true)
			do(t)
		})
	}
}

func TestOpenStaysInside(t *testing.T) {
	ways(t, func(t *testing.T) {
		dir := tree(t)
		for name, want := range map[string]string{
			"/logs/a.log": "inside", "relative": "inside", "/logs/../relative": "inside", "/../../../../logs/a.log": "inside",
			"absolute": "inside", "updir/logs/a.log": "inside", "updir/updir/updir/absolute": "inside", "/chain/9": "inside", "up/a.log": "inside",
			"climb": "", "out": "", "/updir/secret": "", "loop": "", "logs": "", "none": "", "": "", "/": "", "/chain/60": "",
			"/logs/a.log/none": "", "none/../logs": "",
		} {
			if got := content(Open(dir, name)); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if _, err := Open(dir, "pipe"); !errors.Is(err, ErrNotRegular) {
			t.Error("pipe:", err)
		}
		if _, err := Open(dir, "loop"); !errors.Is(err, syscall.ELOOP) {
			t.Error("a link to itself:", err)
		}
		if _, err := Open(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Error("what is not there:", err)
		}
		// A folder that a link out leads to is the target's own root, as for itself.
		for _, name := range []string{"logs", "updir/logs", "up", "/"} {
			d, err := OpenDir(dir, name)
			if err != nil {
				t.Error(name, err)
				continue
			}
			if names, _ := d.Readdirnames(-1); slices.Contains(names, "secret") || len(names) == 0 {
				t.Errorf("%s holds %v", name, names)
			}
			d.Close()
		}
		if d, err := OpenDir(dir, "relative"); err == nil {
			d.Close()
			t.Error("a file is no folder")
		}
	})
}

// Whoever holds folders open on the way must give them back.
func TestWalkKeepsNothingOpen(t *testing.T) {
	without(t, false, true)
	dir := tree(t)
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	deep := strings.Repeat("d/", maxDepth+20)
	if err := os.MkdirAll(filepath.Join(dir, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	content(Open(dir, "absolute"))
	before := count()
	for _, name := range []string{"/logs/a.log", "absolute", "climb", "loop", "none", "pipe", "/logs/a.log/x", "updir/logs/none", "/chain/9", "/chain/60", "/", deep} {
		content(Open(dir, name))
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors, and %d before", after, before)
	}
}

// While a folder of the path is swapped for a link to the outside, again and
// again, no open may find what is outside.
func TestSwappedFolder(t *testing.T) {
	ways(t, func(t *testing.T) {
		dir := tree(t)
		top := filepath.Dir(dir)
		// secret is a name inside, too, so that each open finds something.
		for path, text := range map[string]string{"root/real/secret": "inside", "root/other/secret": "inside", "root/secret": "inside"} {
			path = filepath.Join(top, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("..", filepath.Join(dir, "outside")); err != nil {
			t.Fatal(err)
		}
		swap := func(a, b string) {
			// Both are names at every moment, and what they are changes.
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					swap("real", "outside")
				}
			}
		}()
		inside := 0
		for range 3000 {
			for _, name := range []string{"real/secret", "real/../other/../secret", "real/updir/secret"} {
				switch got := content(Open(dir, name)); got {
				case "inside":
					inside++
				case "outside":
					t.Fatalf("%s led out of the root", name)
				}
			}
		}
		close(stop)
		<-stopped
		if inside == 0 {
			t.Error("nothing was opened, so nothing was tested")
		}
	})
}

// Without openat2 nothing is opened, unless it is allowed.
func TestRefusedWithoutOpenat2(t *testing.T) {
	without(t, false, false)
	dir := tree(t)
	if f, err := Open(dir, "/logs/a.log"); !errors.Is(err, ErrNoOpenat2) {
		t.Errorf("%v, %v", f, err)
	}
	if f, err := OpenDir(dir, "/logs"); !errors.Is(err, ErrNoOpenat2) {
		t.Errorf("%v, %v", f, err)
	}
}

// The kernel's own no, and a filter's: each must be taken for what it is. The child
// is this test under a filter that can't be taken off again.
func TestKernelSaysNo(t *testing.T) {
	const role = "ROOT_TEST_ERRNO"
	if said := os.Getenv(role); said != "" {
		errno, err := strconv.Atoi(said)
		if err != nil {
			t.Fatal(err)
		}
		if err := lab.Forbid(unix.SYS_OPENAT2, unix.Errno(errno)); err != nil {
			t.Skip("no filter here: ", err)
		}
		dir := tree(t)
		if _, err := Open(dir, "/logs/a.log"); !errors.Is(err, ErrNoOpenat2) {
			t.Error("not refused: ", err)
		}
		AllowWalk(true)
		if got := content(Open(dir, "absolute")); got != "inside" {
			t.Errorf("walked to %q", got)
		}
		if got := content(Open(dir, "out")); got != "" {
			t.Errorf("walked out to %q", got)
		}
		return
	}
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKernelSaysNo$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", role, errno))
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			if bytes.Contains(out, []byte("--- SKIP")) {
				t.Skipf("%s", out)
			}
			t.Errorf("%v: %v\n%s", errno, err, out)
		}
	}
}

// A target must not make us read our own files by way of /proc.
func TestOpenRefusesTheKernels(t *testing.T) {
	ways(t, func(t *testing.T) {
		for _, name := range []string{"/proc/self/environ", "/proc/self/status", "/proc/1/cmdline", "/dev/null", "/sys/kernel/mm/transparent_hugepage/enabled"} {
			if f, err := Open("/", name); err == nil {
				f.Close()
				t.Error("opened ", name)
			}
		}
		// Magic links lead anywhere, so they are not followed at all.
		f, err := os.CreateTemp(t.TempDir(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, name := range []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), fmt.Sprintf("/proc/%d/root%s", os.Getpid(), f.Name())} {
			if g, err := Open("/", name); err == nil {
				g.Close()
				t.Errorf("followed a magic link: %s", name)
			}
		}
	})
}

func TestOpenDescriptor(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("text")
	os.Remove(f.Name()) // a deleted file can still be read through its descriptor
	if got := content(OpenDescriptor(link(f))); got != "text" {
		t.Errorf("%q", got)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.WriteString("lines of somebody else")
	if _, err := OpenDescriptor(link(r)); !errors.Is(err, ErrNotRegular) {
		t.Error("pipe:", err)
	}
	w.Close()
	if b, _ := io.ReadAll(r); string(b) != "lines of somebody else" {
		t.Errorf("lines were taken away: %q is left", b)
	}
	if _, err := OpenDescriptor("/proc/self/fd/99999"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func link(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

func TestSplit(t *testing.T) {
	for in, want := range map[string][2]string{
		"/proc/12/root/tmp/x":         {"/proc/12/root", "/tmp/x"},
		"/tmp/x":                      {"/", "/tmp/x"},
		"/root/x":                     {"/", "/root/x"},
		"/a/root/proc/7/root/root/5/": {"/a/root/proc/7/root", "/root/5/"},
		"/proc/self/root/x":           {"/", "/proc/self/root/x"},
		"":                            {"/", ""},
	} {
		if d, n := Split(in); d != want[0] || n != want[1] {
			t.Errorf("%s: %s, %s", in, d, n)
		}
	}
}

func TestMayRead(t *testing.T) {
	c := Cred{UID: 10, GID: 20, Groups: []int{30}}
	for _, tt := range []struct {
		uid, gid int
		mode     fs.FileMode
		want     bool
	}{
		{10, 1, 0o400, true}, {10, 1, 0o044, false}, {1, 20, 0o040, true}, {1, 30, 0o040, true},
		{1, 20, 0o404, false}, {1, 1, 0o004, true}, {1, 1, 0o640, false}, {0, 0, 0o600, false},
	} {
		if got := c.MayRead(Facts{UID: tt.uid, GID: tt.gid, Mode: tt.mode}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if !(Cred{}).MayRead(Facts{UID: 1, GID: 1}) {
		t.Error("root may read all")
	}
}
