package jvm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// jdks finds the JDKs of this machine by their major version.
func jdks(t testing.TB) map[string]string {
	found := map[string]string{}
	homes, _ := filepath.Glob("/usr/lib/jvm/*")
	if j := os.Getenv("JAVA_HOME"); j != "" {
		homes = append(homes, j)
	}
	for _, home := range homes {
		b, err := os.ReadFile(filepath.Join(home, "release"))
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(home, "bin/javac")); err != nil {
			continue
		}
		_, rest, ok := strings.Cut(string(b), `JAVA_VERSION="`)
		if major, _, _ := strings.Cut(rest, "."); ok {
			found[major] = home
		}
	}
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no JDK on this machine")
		}
		t.Skip("no JDK on this machine")
	}
	return found
}

// A child is a JVM that has said what its MXBeans see and now waits.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  map[string][][]string // the last report by kind of line
	perf  string
	start uint64
}

// compile makes the class files of a source in testdata.
func compile(t testing.TB, home, source string) string {
	dir := t.TempDir()
	if out, err := exec.Command(filepath.Join(home, "bin/javac"), "-d", dir, source).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return dir
}

func startChild(t testing.TB, home, classes string, options ...string) *child {
	c := &child{}
	c.cmd = exec.Command(filepath.Join(home, "bin/java"), append(options, "-cp", classes, "Steady")...)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.stdin.Close()
		killer := time.AfterFunc(20*time.Second, func() { c.cmd.Process.Kill() })
		defer killer.Stop()
		c.cmd.Wait()
	})
	killer := time.AfterFunc(60*time.Second, func() { c.cmd.Process.Kill() })
	defer killer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "READY" {
		f := strings.Split(lines.Text(), "\t")
		if f[0] == "BEGIN" {
			c.said = map[string][][]string{}
			continue
		}
		if c.said != nil {
			c.said[f[0]] = append(c.said[f[0]], f[1:])
		}
	}
	if lines.Text() != "READY" {
		t.Fatalf("the JVM ended early: %v %v", c.cmd.Args, lines.Err())
	}
	files, _ := filepath.Glob(fmt.Sprintf("/tmp/hsperfdata_*/%d", c.cmd.Process.Pid))
	if len(files) == 1 {
		c.perf = files[0]
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	c.start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	return c
}

func (c *child) config() Config {
	return Config{PerfPath: c.perf, PID: c.cmd.Process.Pid, StartTicks: c.start, UID: os.Getuid(), CheckOwner: true}
}

// What a JVM's own MXBeans say, with nothing running in it any more, must be
// what its hsperfdata says.
func TestAgainstMXBeans(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	for major, home := range jdks(t) {
		classes := compile(t, home, "testdata/Steady.java")
		for _, gc := range []string{"Serial", "Parallel", "G1", "Z", "Shenandoah"} {
			t.Run(major+"/"+gc, func(t *testing.T) {
				if out, err := exec.Command(filepath.Join(home, "bin/java"), "-XX:+Use"+gc+"GC", "-version").CombinedOutput(); err != nil {
					t.Skipf("this JDK has no such collector: %s", out)
				}
				c := startChild(t, home, classes, "-XX:+Use"+gc+"GC", "-Xmx192m", "-Xms96m")
				set := metric.ForTarget("t")
				p := New(set, c.config())
				if err := p.Poll(context.Background(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if b := p.Blind(); len(b) != 0 && b[0].Reason != BlindCollections {
					t.Fatalf("blind: %+v", b)
				}
				compare(t, c, values(set))
			})
		}
	}
}

func compare(t *testing.T, c *child, have map[string]float64) {
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	check := func(name string, want, slack float64) {
		t.Helper()
		v, ok := have[name]
		switch {
		case want < 0 && ok:
			t.Errorf("%s = %v, the MXBean has none", name, v)
		case want >= 0 && !ok:
			t.Errorf("%s is absent, the MXBean says %v", name, want)
		case want >= 0 && (v < want-slack || v > want+slack):
			t.Errorf("%s = %v, the MXBean says %v", name, v, want)
		}
	}
	const mb = 1 << 20
	for _, f := range c.said["pool"] {
		name, label := f[0], " pool="+f[0]
		if strings.HasPrefix(name, "CodeHeap") || name == "CodeCache" {
			continue // not in hsperfdata
		}
		// Saying all this allocates some; Metaspace is written at collections.
		slack := 0.0
		switch {
		case strings.Contains(name, "Eden"), strings.HasPrefix(name, "Z"), strings.HasPrefix(name, "Shen"), name == "Metaspace", strings.HasPrefix(name, "Compressed"):
			slack = 4 * mb
		}
		check("jvm_memory_pool_used_bytes"+label, number(f[1]), slack)
		if name != "Metaspace" && !strings.HasPrefix(name, "Compressed") {
			slack = 0
		}
		if strings.HasPrefix(name, "ZGC") { // its two generations give pages to each other
			slack = 4 * mb
		}
		if name != "Shenandoah" { // committed is not in hsperfdata
			check("jvm_memory_pool_committed_bytes"+label, number(f[2]), slack)
		}
		check("jvm_memory_pool_max_bytes"+label, number(f[3]), 0)
		if v, ok := have["jvm_memory_pool_init_bytes"+label]; ok && v != number(f[4]) {
			t.Errorf("jvm_memory_pool_init_bytes%s = %v, the MXBean says %s", label, v, f[4])
		}
	}
	for _, f := range c.said["gc"] {
		label := " gc=" + f[0]
		if strings.HasSuffix(f[0], "Cycles") {
			continue // only the pauses are in hsperfdata
		}
		if strings.HasPrefix(f[0], "Shenandoah") {
			// hsperfdata counts phases, so there must be nothing.
			check("jvm_gc_collection_seconds_count"+label, -1, 0)
			continue
		}
		check("jvm_gc_collection_seconds_count"+label, number(f[1]), 0)
		check("jvm_gc_collection_seconds_sum"+label, number(f[2])/1000, 0.010)
	}
	heap := c.said["heap"][0]
	check("jvm_memory_used_bytes area=heap", number(heap[0]), 4*mb)
	if _, shenandoah := have["jvm_memory_pool_used_bytes pool=Shenandoah"]; !shenandoah {
		check("jvm_memory_committed_bytes area=heap", number(heap[1]), 0)
	}
	check("jvm_memory_max_bytes area=heap", number(heap[2]), 0)
	threads := c.said["threads"][0]
	check("jvm_threads_current", number(threads[0]), 0)
	check("jvm_threads_daemon", number(threads[1]), 0)
	check("jvm_threads_peak", number(threads[2]), 0)
	check("jvm_threads_started_total", number(threads[3]), 0)
	classes := c.said["classes"][0]
	check("jvm_classes_currently_loaded", number(classes[0]), 20)
	check("jvm_classes_loaded_total", number(classes[1]), 20)
	check("jvm_classes_unloaded_total", number(classes[2]), 20)
	r := c.said["runtime"][0]
	check("jvm_runtime_info runtime="+r[0]+" vendor="+r[1]+" version="+r[2], 1, 0)
}
