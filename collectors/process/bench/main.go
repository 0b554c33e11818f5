//go:build linux

// Command bench holds the room process, and the whole sidecar, against their
// bars with real servers and real peers.
//
//	go run ./collectors/process/bench            all tables, about twenty minutes
//	go run ./collectors/process/bench -only rest
//
//	threads   one sample of 5,000 threads beside a scrape of process-exporter
//	rest      the whole sidecar at one second beside a Tomcat at rest
//	pairs     a Tomcat at saturation, with and without the sidecar beside it, and another one
//	          with Prometheus' Java agent in it, scraped and not (pairs.go)
//
// CPU is user and system time by the kernel's account. What takes turns takes
// them in one run; medians are printed. Machines differ: the ratios count.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func main() {
	only := flag.String("only", "", "threads, rest, pairs, or nothing for all")
	threads := flag.Int("threads", 5000, "threads of the JVM of the first table")
	pairs := flag.Int("pairs", 200, "pairs of two seconds")
	flag.Parse()
	dir, err := os.MkdirTemp("", "process-bench")
	if err == nil {
		defer os.RemoveAll(dir)
		for _, table := range []struct {
			name string
			run  func() error
		}{
			{"threads", func() error { return tableThreads(dir, *threads) }},
			{"rest", func() error { return tableRest(dir, 5, 30*time.Second) }},
			{"pairs", func() error { return tablePairs(dir, *pairs/2) }},
		} {
			if err == nil && (*only == "" || *only == table.name) {
				err = table.run()
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row prints one line of a table, with its bar.
func row(what, figure, bar string, held bool) {
	mark := "held"
	if !held {
		mark = "MISSED"
	}
	fmt.Printf("| %s | %s | %s | %s |\n", what, figure, bar, mark)
}

func head(title string) {
	fmt.Printf("\n%s\n\n| work | measured | bar | |\n| --- | --- | --- | --- |\n", title)
}

// cpuOf is the CPU time of a process so far, by its own clock: the account of
// all its threads in nanoseconds.
func cpuOf(pid int) (time.Duration, error) {
	// A process' CPU clock is made of its number: ~pid << 3 | 2 (CPUCLOCK_SCHED).
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func rss(pid int) (mb float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "\nVmRSS:")
	var kb float64
	fmt.Sscan(rest, &kb)
	return kb / 1024
}

func scrape(addr string) (time.Duration, error) {
	began := time.Now()
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return time.Since(began), err
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// tableThreads samples a JVM's threads as the daemon does, once a second, and
// has process-exporter scraped in between.
func tableThreads(dir string, n int) error {
	jdk, err := lab.AnyJDK(8)
	if err != nil {
		return err
	}
	root, err := lab.ModuleRoot()
	if err != nil {
		return err
	}
	if out, err := exec.Command(jdk.Tool("javac"), "-d", dir, filepath.Join(root, "collectors/process/testdata/Pools.java")).CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w: %s", err, out)
	}
	cmd := exec.Command(jdk.Tool("java"), "-Xmx64m", "-XX:+UseSerialGC", "-cp", dir, "Pools", fmt.Sprintf("catalina-exec-=%d", n))
	in, err := cmd.StdinPipe() // the JVM ends when it is closed, so when we end
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := io.ReadFull(out, make([]byte, len("READY\n"))); err != nil {
		return fmt.Errorf("the JVM did not start: %w", err)
	}
	exporter, addr, err := lab.StartProcessExporter(dir, "Pools")
	if err != nil {
		return err
	}
	defer exporter.Stop()
	poller := process.New(metric.ForTarget("t"), process.Config{PID: cmd.Process.Pid, StartTicks: startTicks(cmd.Process.Pid)})
	defer poller.Close()
	var ours, theirs []float64
	for i := range 30 {
		time.Sleep(500 * time.Millisecond)
		before, err := cpuOf(os.Getpid())
		if err != nil {
			return err
		}
		if err := poller.Poll(context.Background(), time.Now()); err != nil {
			return err
		}
		after, _ := cpuOf(os.Getpid())
		time.Sleep(500 * time.Millisecond)
		eBefore, err := cpuOf(exporter.PID)
		if err != nil {
			return err
		}
		if _, err := scrape(addr); err != nil {
			return err
		}
		eAfter, _ := cpuOf(exporter.PID)
		if i >= 17 { // names are read once; what sleeps has been seen to sleep, twice at eight samples' distance
			ours = append(ours, (after - before).Seconds())
			theirs = append(theirs, (eAfter - eBefore).Seconds())
		}
	}
	head(fmt.Sprintf("Names, state and CPU of %d threads, one sample a second", n))
	a, b := median(ours), median(theirs)
	row("whole poll of the room", fmt.Sprintf("%.1f ms of CPU, %.1f %% of a core", a*1000, a*100), "4.5 % of a core", a <= 0.045)
	row("process-exporter, a scrape with -threads", fmt.Sprintf("%.0f ms of CPU", b*1000), "", true)
	row("ratio", fmt.Sprintf("1/%.0f", b/a), "1/20", a <= b/20)
	return nil
}

func startTicks(pid int) (n uint64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	fmt.Sscan(f[19], &n)
	return n
}

// A beside is a sidecar that watches one server and no other of the machine.
type beside struct {
	*lab.Child
	addr string
}

func startBeside(dir, program string, pid int, engine string) (*beside, error) {
	dir, err := os.MkdirTemp(dir, "sidecar")
	if err != nil {
		return nil, err
	}
	port, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	b := &beside{addr: fmt.Sprintf("127.0.0.1:%d", port)}
	settings := filepath.Join(dir, "sidecar.yml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "engine: {mode: %q}\ntargets:\n  discover: false\n  servers:\n  - name: watched\n    match: {pid: %d}\n", engine, pid), 0o644); err != nil {
		return nil, err
	}
	b.Child, err = lab.StartProgram("sidecar", filepath.Join(dir, "log"), program, "run", "--config.file="+settings,
		"--web.listen-address="+b.addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	if !lab.Until(30*time.Second, func() bool {
		m, err := lab.ReadMetrics(b.addr)
		if err != nil {
			return false
		}
		up, _ := m.Sum("target_up", "target", "watched")
		_, process := m.Sum("process_threads", "target", "watched")
		_, log := m.Sum("accesslog_requests_total", "target", "watched")
		return up == 1 && process && log
	}) {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		b.Stop()
		return nil, fmt.Errorf("the sidecar does not see the server:\n%s", said)
	}
	return b, nil
}

// tomcat is one as the case's: a shared Executor, an access log with durations.
func tomcat(dir string, options ...string) (*lab.Server, error) {
	base, err := os.MkdirTemp(dir, "tomcat")
	if err != nil {
		return nil, err
	}
	return lab.StartTomcatIn(base, lab.Tomcat{
		Version: "9.0.98", Executor: &lab.Executor{MaxThreads: 200, MinSpare: 30, MaxQueueSize: 1000},
		AccessLogPattern: `%h %l %u %t "%r" %s %b %D`, Buffered: true, JVMArgs: options,
	})
}

// tableRest takes several spans of time, since on a virtual machine the same
// second costs half as much again when its neighbours are busy.
func tableRest(dir string, spans int, length time.Duration) error {
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		return err
	}
	server, err := tomcat(dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	b, err := startBeside(dir, program, server.PID, "off")
	if err != nil {
		return err
	}
	defer b.Stop()
	// What a start costs is not what a second costs: a server is looked at more
	// often in its first minute.
	time.Sleep(time.Minute)
	var shares []float64
	for range spans {
		before, err := cpuOf(b.PID)
		if err != nil {
			return err
		}
		began := time.Now()
		time.Sleep(length)
		after, err := cpuOf(b.PID)
		if err != nil {
			return err
		}
		shares = append(shares, (after-before).Seconds()/time.Since(began).Seconds()*100)
	}
	memory := rss(b.PID)
	var times []float64
	for range 300 {
		d, err := scrape(b.addr)
		if err != nil {
			return err
		}
		times = append(times, d.Seconds())
		time.Sleep(10 * time.Millisecond)
	}
	slices.Sort(times)
	p99 := times[len(times)*99/100]
	head("The whole sidecar at one second beside one Tomcat at rest, engine off, not scraped meanwhile")
	row(fmt.Sprintf("CPU, median of %d spans of %v", spans, length), fmt.Sprintf("%.2f %% of a core (%.2f to %.2f)", median(shares), slices.Min(shares), slices.Max(shares)), "1 %", median(shares) <= 1)
	row("resident memory", fmt.Sprintf("%.1f MB", memory), "40 MB", memory <= 40)
	row("/metrics, 99th percentile of 300", fmt.Sprintf("%.2f ms", p99*1000), "10 ms", p99 < 0.010)
	return nil
}
