package root

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
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

func TestOpenStaysInside(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		noOpenat2.Store(fallback)
		dir := tree(t)
		for name, want := range map[string]string{
			"/logs/a.log": "inside", "relative": "inside", "/logs/../relative": "inside", "/../../../../logs/a.log": "inside",
			"climb": "", "out": "", "/updir/secret": "", "loop": "", "pipe": "", "logs": "", "none": "", "": "", "/": "",
		} {
			if got := content(Open(dir, name)); got != want {
				t.Errorf("fallback %v: %s: %q, want %q", fallback, name, got, want)
			}
		}
		// A link to an absolute path means inside for the target; only openat2 can
		// do that.
		if got := content(Open(dir, "absolute")); got != map[bool]string{false: "inside", true: ""}[fallback] {
			t.Errorf("fallback %v: absolute: %q", fallback, got)
		}
		if _, err := Open(dir, "pipe"); !errors.Is(err, ErrNotRegular) && !fallback {
			t.Error("pipe:", err)
		}
		if d, err := OpenDir(dir, "logs"); err != nil {
			t.Error(err)
		} else {
			d.Close()
		}
		if _, err := OpenDir(dir, "updir"); err == nil && fallback {
			t.Error("a folder outside was opened")
		}
	}
	noOpenat2.Store(false)
}

// A target must not make us read our own files by way of /proc.
func TestOpenRefusesTheKernels(t *testing.T) {
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
	if g, err := Open("/", "/proc/self/fd/"+strconv.Itoa(int(f.Fd()))); err == nil {
		g.Close()
		t.Error("followed a magic link")
	}
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
