package target

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/root"
)

// TestRealContainer runs a JVM as pid 1 in pid and mount namespaces of its own,
// with a /tmp that nobody outside can see, as a container does.
func TestRealContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	if out, err := exec.Command("unshare", "--pid", "--mount", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v %s", err, out)
	}
	home := javaHomes(t)[0]
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Listen.java"), listenSource)
	if out, err := exec.Command(filepath.Join(home, "bin/javac"), "-d", dir, filepath.Join(dir, "Listen.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	console, err := os.Create(filepath.Join(dir, "console.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	cmd := exec.Command("unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c",
		`mount -t tmpfs none /mnt && cp "$0"/Listen.class /mnt && mount --move /mnt /tmp && cd /tmp && exec "$1"/bin/java -Xmx40m '-Xlog:gc*:file=gc-%p-%t.log' -cp . Listen app.log`, dir, home)
	cmd.Stdout, cmd.Stderr = console, console
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	waitForPort(t, console.Name())

	ts, err := New(DefaultConfig()).Scan(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ts, func(x *Target) bool { return x.Process.NSPID == 1 && x.Process.MainClass == "Listen" })
	if i < 0 {
		t.Fatal("not found")
	}
	x := ts[i]
	if x.Process.Root != "/proc/"+strconv.Itoa(x.Process.PID)+"/root" || x.Process.Cwd != "/tmp" {
		t.Errorf("root %s, cwd %s", x.Process.Root, x.Process.Cwd)
	}
	if x.PerfData.Path != x.Process.Root+"/tmp/hsperfdata_root/1" {
		t.Errorf("%+v", x.PerfData)
	}
	data, err := hsperf.ReadFile(x.PerfData.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := hsperf.Decode(data); err != nil {
		t.Error(err)
	} else if c, _ := d.String("sun.rt.javaCommand"); c != "Listen app.log" {
		t.Error(c)
	}
	if len(x.GCLogs) != 1 || !regexp.MustCompile(`^/tmp/gc-1-\d{4}-.*\.log$`).MatchString(x.GCLogs[0].Path) || x.GCLogs[0].Name != "gc.log" {
		t.Fatalf("%+v", x.GCLogs)
	}
	if _, err := os.Stat(x.GCLogs[0].Path); err == nil {
		t.Error("the GC log is visible outside: this is no container")
	}
	f, err := root.Open(x.Process.Root, x.GCLogs[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, _ := io.ReadAll(f); !strings.Contains(string(b), "Using ") {
		t.Errorf("%q", b)
	}
	if !slices.ContainsFunc(x.AppLogs, func(a AppLog) bool { return a.Path == "/tmp/app.log" }) {
		t.Errorf("%+v", x.AppLogs)
	}
}
