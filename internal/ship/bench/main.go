//go:build linux

// Command bench holds the whole sidecar that ships against one that does not.
//
//	go run ./internal/ship/bench                       about five minutes
//	go run ./internal/ship/bench -rounds 3 -seconds 8
//
// A storm is written at 300 MB/s into the catalina.out of a watched Tomcat, by
// turns beside a sidecar without loki.url, one whose Loki refuses connections,
// and one whose Loki takes the connection and never answers. Each leg has a
// fresh sidecar with its default settings, history and rules included. CPU is
// user and system time of the process by the kernel's account, from the storm's
// first byte until the last one is read; memory is the highest resident size of
// the process' life. Medians of the rounds are printed, and those of the ratios
// within each round, which count, since machines differ. The bar is 1.10 for each.
// At the end one leg tells what a Loki that takes all gets of the storm.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 7, "rounds, each with one leg of each kind")
	flag.IntVar(&b.seconds, "seconds", 4, "length of each storm")
	flag.Float64Var(&b.rate, "mbps", 300, "MB/s that the storm is written with")
	flag.IntVar(&b.lines, "lines", 0, "lines_per_second of the settings, where it is to be another one than by default: with 500 the queue is full within the storm, as it is after minutes of a dead Loki")
	flag.StringVar(&b.program, "sidecar", "", "the sidecar's program; default one built from the tree")
	flag.Parse()
	held, err := b.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !held {
		os.Exit(1)
	}
}

type bench struct {
	rounds, seconds int
	lines           int
	rate            float64
	program         string

	dir    string
	server *lab.Server
}

// A leg is one storm beside one sidecar.
type leg struct {
	cpu     float64 // seconds of CPU for a GB read
	memory  float64 // highest resident size in MB
	mbps    float64 // what the writer reached
	skipped float64 // bytes that were not read
	lines   float64 // selected
	shares  string  // where the selected lines are
	seconds float64 // from the storm's first byte until the last one is read
	final   lab.Scrape
}

func (b *bench) run() (held bool, err error) {
	if b.dir, err = os.MkdirTemp("", "ship-bench"); err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	if b.program == "" {
		if b.program, err = lab.Build(b.dir, "./cmd/sidecar"); err != nil {
			return false, err
		}
	}
	if b.server, err = lab.StartTomcatIn(filepath.Join(b.dir, "tomcat"), lab.Tomcat{Version: "9.0.98"}); err != nil {
		return false, err
	}
	defer b.server.Stop()

	refused, err := lab.FreePort()
	if err != nil {
		return false, err
	}
	// What takes a connection and says nothing: reading goes on, so that the push
	// is taken by the kernel and only the answer is waited for.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, err
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()

	kinds := []struct{ name, loki string }{
		{"without shipping", ""},
		{"Loki refuses connections", fmt.Sprintf("127.0.0.1:%d", refused)},
		{"Loki never answers", silent.Addr().String()},
	}
	legs := make([][]leg, len(kinds))
	for round := range b.rounds {
		for i := range kinds {
			// Each round begins with another kind, so that a machine that gets
			// slower or faster is no kind's gain.
			k := (i + round) % len(kinds)
			l, err := b.leg(kinds[k].loki, false)
			if err != nil {
				return false, fmt.Errorf("%s: %w", kinds[k].name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d, %s: %.3f s/GB, %.1f MB, %s\n", round+1, kinds[k].name, l.cpu, l.memory, l.shares)
			legs[k] = append(legs[k], l)
		}
	}

	fmt.Printf("\nA storm of %d s at %.0f MB/s, %d rounds, medians\n\n", b.seconds, b.rate, b.rounds)
	fmt.Println("| the sidecar | written at | CPU | ratio | peak memory | ratio | lines selected | not read | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	held = true
	base := legs[0]
	for k, kind := range kinds {
		cpu, memory := ratio(legs[k], base, func(l leg) float64 { return l.cpu }), ratio(legs[k], base, func(l leg) float64 { return l.memory })
		mark := "held"
		if cpu > 1.10 || memory > 1.10 {
			mark, held = "MISSED", false
		}
		fmt.Printf("| %s | %.0f MB/s | %.3f s/GB | %.2f | %.1f MB | %.2f | %.0f | %.0f MB | %s |\n", kind.name,
			median(legs[k], func(l leg) float64 { return l.mbps }),
			median(legs[k], func(l leg) float64 { return l.cpu }), cpu,
			median(legs[k], func(l leg) float64 { return l.memory }), memory,
			median(legs[k], func(l leg) float64 { return l.lines }),
			median(legs[k], func(l leg) float64 { return l.skipped / 1e6 }), mark)
	}
	return held, b.alive()
}

// alive tells what one target ships under the storm to a Loki that takes all.
func (b *bench) alive() error {
	var pushes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		pushes.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	l, err := b.leg(server.Listener.Addr().String(), true)
	if err != nil {
		return fmt.Errorf("Loki takes all: %w", err)
	}
	second := func(name string) float64 {
		n, _ := l.final.Sum(name)
		return n / l.seconds
	}
	fmt.Printf("\nOne target under this storm, to a Loki that takes all, in each of %.1f s\n\n", l.seconds)
	fmt.Println("| records chosen | shipped | suppressed | lines that tell how many | pushes | on the wire |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| %.0f | %.0f | %.0f | %.1f | %.1f | %.1f kB |\n", second("ship_selected_lines_total"), second("ship_shipped_lines_total"),
		second("ship_suppressed_lines_total"), second("ship_summary_lines_total"), float64(pushes.Load())/l.seconds, second("ship_sent_bytes_total")/1e3)
	return nil
}

func (b *bench) leg(loki string, alive bool) (l leg, err error) {
	dir, err := os.MkdirTemp(b.dir, "leg")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(dir)
	if err := os.Truncate(b.server.CatalinaOut, 0); err != nil {
		return l, err
	}
	defer os.Truncate(b.server.CatalinaOut, 0)
	settings := fmt.Sprintf("targets:\n  discover: false\n  servers:\n  - name: watched\n    match: {pid: %d}\n", b.server.PID)
	if loki != "" {
		settings += fmt.Sprintf("loki:\n  url: http://%s/loki/api/v1/push\n", loki)
		if b.lines > 0 {
			settings += fmt.Sprintf("  lines_per_second: %d\n", b.lines)
		}
	}
	port, err := lab.FreePort()
	if err != nil {
		return l, err
	}
	addr, file := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(dir, "sidecar.yml")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return l, err
	}
	said := filepath.Join(dir, "log")
	sidecar, err := lab.StartProgram("sidecar", said, b.program, "run", "--config.file="+file,
		"--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		return l, err
	}
	defer sidecar.Stop()
	if !lab.Until(30*time.Second, func() bool {
		m, err := lab.ReadMetrics(addr)
		if err != nil {
			return false
		}
		_, log := m.Sum("applog_bytes_total", "target", "watched")
		return log
	}) {
		text, _ := os.ReadFile(said)
		return l, fmt.Errorf("the sidecar does not see the server's log:\n%s", text)
	}
	time.Sleep(2 * time.Second) // what a start costs is not what a storm costs

	before, err := cpuOf(sidecar.PID)
	if err != nil {
		return l, err
	}
	began := time.Now()
	wrote, took, err := storm(b.server.CatalinaOut, b.rate*1e6, time.Duration(b.seconds)*time.Second)
	if err != nil {
		return l, err
	}
	var m lab.Scrape
	if !lab.Until(2*time.Minute, func() bool {
		time.Sleep(200 * time.Millisecond)
		if m, err = lab.ReadMetrics(addr); err != nil {
			return false
		}
		read, _ := m.Sum("logfile_read_bytes_total", "target", "watched", "file", "catalina.out")
		l.skipped, _ = m.Sum("logfile_skipped_bytes_total", "target", "watched", "file", "catalina.out")
		return read+l.skipped >= float64(wrote)
	}) {
		return l, fmt.Errorf("of %d bytes not all are read after two minutes (%v)", wrote, err)
	}
	after, err := cpuOf(sidecar.PID)
	if err != nil {
		return l, err
	}
	l.cpu = (after - before).Seconds() / (float64(wrote) - l.skipped) * 1e9
	l.mbps = float64(wrote) / took.Seconds() / 1e6
	l.memory = status(sidecar.PID, "VmHWM")
	l.seconds, l.final = time.Since(began).Seconds(), m
	if loki == "" {
		if _, ships := m.Sum("ship_selected_lines_total"); ships {
			return l, fmt.Errorf("the sidecar without loki.url ships")
		}
		l.shares = "nothing selected"
		return l, nil
	}
	// A leg that shipped, or that selected nothing, would prove nothing.
	sum := 0.0
	for _, name := range []string{"shipped_lines_total", "suppressed_lines_total", "dropped_lines_total", "queued_lines"} {
		n, _ := m.Sum("ship_" + name)
		l.shares += fmt.Sprintf("%s %.0f ", strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "_lines"), n)
		sum += n
	}
	l.lines, _ = m.Sum("ship_selected_lines_total")
	shipped, _ := m.Sum("ship_shipped_lines_total")
	if l.lines == 0 || sum != l.lines || (shipped != 0) != alive {
		return l, fmt.Errorf("selected %.0f lines, of which %s", l.lines, l.shares)
	}
	return l, nil
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

// status is a figure of /proc/PID/status in MB.
func status(pid int, name string) (mb float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	var kb float64
	fmt.Sscan(rest, &kb)
	return kb * 1024 / 1e6
}

func median(legs []leg, of func(leg) float64) float64 {
	var v []float64
	for _, l := range legs {
		v = append(v, of(l))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratio is the median of the rounds' quotients: what else the machine does is
// more alike within a round than between two.
func ratio(legs, base []leg, of func(leg) float64) float64 {
	quotients := make([]leg, len(legs))
	for i := range legs {
		quotients[i].cpu = of(legs[i]) / of(base[i])
	}
	return median(quotients, func(l leg) float64 { return l.cpu })
}
