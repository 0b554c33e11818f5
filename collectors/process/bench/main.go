//go:build linux

// Command bench holds the room process, and the whole sidecar, against their
// bars with real servers and real peers.
//
//	go run ./collectors/process/bench            all tables, about fifteen minutes
//	go run ./collectors/process/bench -only rest
//
//	threads   one sample of 5,000 threads beside a scrape of process-exporter
//	rest      the whole sidecar at one second beside a Tomcat at rest
//	pairs     a Tomcat at saturation, with the sidecar beside it and alone, and another one
//	          with Prometheus' Java agent in it, scraped and not
//
// CPU is user and system time by the kernel's account. What takes turns takes
// them in one run; medians are printed. Machines differ: the ratios count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
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
	seconds := flag.Int("seconds", 5, "length of each leg of a pair")
	pairs := flag.Int("pairs", 20, "pairs, an even number")
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
			{"pairs", func() error { return tablePairs(dir, *pairs, time.Duration(*seconds)*time.Second) }},
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
	for i := range 20 {
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
		if i >= 8 { // names are read once; what sleeps has been seen to sleep
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

// settle is how long what stands beside a server runs before it is held against
// it: a start is paid once, and a load run is long.
const settle = 10 * time.Second

// tablePairs loads one Tomcat alone and with the sidecar beside it, as it is by
// default, and another that runs Prometheus' Java agent, scraped and not. What
// is beside is scraped each second.
//
// Two pairs are one round: alone, with, with, alone, so that a machine that gets
// slower or faster meanwhile takes nothing from either. Each Tomcat is held
// against itself, since two that are alike still differ by what their compilers
// happened to do.
func tablePairs(dir string, pairs int, leg time.Duration) error {
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		return err
	}
	agentPort, err := lab.FreePort()
	if err != nil {
		return err
	}
	option, err := lab.JMXAgent(dir, agentPort)
	if err != nil {
		return err
	}
	plain, err := tomcat(dir)
	if err != nil {
		return err
	}
	defer plain.Stop()
	agent, err := tomcat(dir, option)
	if err != nil {
		return err
	}
	defer agent.Stop()
	load := func(s *lab.Server, d time.Duration) (float64, error) {
		r, err := lab.Wrk(s.URL("/slow?op=size&n=1000"), 64, d)
		return r.PerSecond, err
	}
	for _, s := range []*lab.Server{plain, agent} { // compiled code
		if _, err := load(s, 30*time.Second); err != nil {
			return err
		}
	}
	withSidecar := func(share *[]float64) (rates []float64, err error) {
		b, err := startBeside(dir, program, plain.PID, "on")
		if err != nil {
			return nil, err
		}
		defer b.Stop()
		defer scrapeEachSecond(b.addr)()
		time.Sleep(settle)
		for range 2 {
			own0, err0 := cpuOf(b.PID)
			his0, err1 := cpuOf(plain.PID)
			rate, err := load(plain, leg)
			own1, err2 := cpuOf(b.PID)
			his1, err3 := cpuOf(plain.PID)
			if err := errors.Join(err0, err1, err, err2, err3); err != nil {
				return nil, err
			}
			rates = append(rates, rate)
			*share = append(*share, (own1-own0).Seconds()/(his1-his0).Seconds())
		}
		return rates, nil
	}
	withAgent := func() (rates []float64, err error) {
		defer scrapeEachSecond(fmt.Sprintf("127.0.0.1:%d", agentPort))()
		time.Sleep(settle)
		for range 2 {
			rate, err := load(agent, leg)
			if err != nil {
				return nil, err
			}
			rates = append(rates, rate)
		}
		return rates, nil
	}
	// round is alone, with, with, alone: the geometric mean of its two ratios.
	round := func(s *lab.Server, with func() ([]float64, error)) (float64, error) {
		before, err := load(s, leg)
		if err != nil {
			return 0, err
		}
		rates, err := with()
		if err != nil {
			return 0, err
		}
		after, err := load(s, leg)
		return math.Sqrt(rates[0] / before * rates[1] / after), err
	}
	var ratio, agentRatio, share []float64
	for i := range pairs / 2 {
		ours, err := round(plain, func() ([]float64, error) { return withSidecar(&share) })
		if err != nil {
			return err
		}
		theirs, err := round(agent, withAgent)
		if err != nil {
			return err
		}
		ratio, agentRatio = append(ratio, ours), append(agentRatio, theirs)
		fmt.Fprintf(os.Stderr, "pairs %d and %d: with the sidecar %.3f of alone, its CPU %.2f and %.2f %% of Tomcat's; with the agent scraped %.3f of not\n",
			2*i+1, 2*i+2, ours, share[2*i]*100, share[2*i+1]*100, theirs)
	}
	mean, low := lowerBound(ratio)
	agentMean, agentLow := lowerBound(agentRatio)
	head(fmt.Sprintf("Tomcat at saturation (wrk, 64 connections), %d pairs of %v, the sidecar as it is by default", pairs, leg))
	row("the sidecar's CPU", fmt.Sprintf("%.2f %% of Tomcat's", median(share)*100), "2 %", median(share) <= 0.02)
	row("throughput with the sidecar, of that without", fmt.Sprintf("%.3f, at least %.3f (95 %%)", mean, low), "at least 0.97", low >= 0.97)
	row("throughput with jmx_prometheus_javaagent scraped, of that not", fmt.Sprintf("%.3f, at least %.3f (95 %%)", agentMean, agentLow), "no better than with the sidecar", mean >= agentMean-0.01)
	return nil
}

// scrapeEachSecond stands for a Prometheus.
func scrapeEachSecond(addr string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			scrape(addr)
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// lowerBound is the geometric mean of ratios and the lower end of its two-sided
// 95 % interval (Student's t).
func lowerBound(ratios []float64) (mean, low float64) {
	n := float64(len(ratios))
	var sum, squares float64
	for _, r := range ratios {
		sum += math.Log(r)
	}
	for _, r := range ratios {
		squares += math.Pow(math.Log(r)-sum/n, 2)
	}
	if n < 2 {
		return math.Exp(sum / n), 0
	}
	t := map[int]float64{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145, 19: 2.093}[len(ratios)-1]
	if t == 0 {
		t = 2.3 // between those above, to the safe side
	}
	return math.Exp(sum / n), math.Exp(sum/n - t*math.Sqrt(squares/(n-1)/n))
}
