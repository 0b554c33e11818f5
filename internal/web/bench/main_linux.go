// Command bench measures what the live page costs: the renderer that shows it,
// and the sidecar that answers it.
//
// A process of its own holds an engine with the last minutes of some 500
// series, a sample each second, goes on with them as they come, and serves the
// page with the real API. A Chromium without a screen shows its charts. How busy
// the renderer is says Chromium itself (TaskDuration of Performance.getMetrics);
// what the page costs the server is its CPU with the page less that without, by
// turns.
//
//	go run ./internal/web/bench [--minutes 15] [--seconds 20] [--rounds 3]
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/web"
	"github.com/jvm-sidecar/sidecar/rules"
)

func main() {
	minutes := flag.Int("minutes", 15, "minutes of samples")
	length := flag.Int("seconds", 20, "how long each turn is measured")
	rounds := flag.Int("rounds", 3, "turns without and with the page")
	serving := flag.Bool("serve", false, "be the server")
	flag.Parse()
	if *serving {
		serve(*minutes)
		return
	}
	if err := measure(*minutes, *rounds, time.Duration(*length)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve fills an engine, says where it listens, and goes on until it is killed.
func serve(minutes int) {
	log := slog.New(slog.DiscardHandler)
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	e, err := engine.Open(engine.DefaultConfig(), engine.Options{Job: "sidecar", Instance: "here:10404", Pack: rules.Files, Start: at, Log: log, Notify: func([]engine.Alert) {}})
	if err != nil {
		panic(err)
	}
	w := newWorld()
	for i := 0; at.Before(time.Now()); i++ {
		at = at.Add(time.Second)
		e.Append(w.snapshot(i, at))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, web.Handler(w, web.Options{API: e.Handler(), Log: log}))
	fmt.Printf("%s %d\n", l.Addr(), w.series)
	i := minutes * 60
	for now := range time.Tick(time.Second) {
		i++
		e.Append(w.snapshot(i, now))
	}
}

// measure starts the server and the browser, and takes turns.
func measure(minutes, rounds int, length time.Duration) error {
	dir, err := os.MkdirTemp("", "page-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.Command(self, "--serve", "--minutes", strconv.Itoa(minutes))
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { server.Process.Kill(); server.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server did not come up: %w", err)
	}
	addr, series, _ := strings.Cut(strings.TrimSpace(line), " ")
	browser, err := lab.StartBrowser(filepath.Join(dir), 1280, 1700)
	if err != nil {
		return err
	}
	defer browser.Stop()
	var alone, with, busy, script, layout, paint []float64
	for range rounds {
		used, err := cpuOver(server.Process.Pid, func() error { time.Sleep(length); return nil })
		if err != nil {
			return err
		}
		alone = append(alone, used)
		began := time.Now()
		if err := browser.Go("http://" + addr + "/"); err != nil {
			return err
		}
		if !browser.Until(30*time.Second, `[...document.querySelectorAll(".chart")].length === 9 && [...document.querySelectorAll(".chart")].every((e) => e.chart.visible && e.chart.plot && e.chart.grid.seen)`) {
			return fmt.Errorf("the charts are not all in sight: %v", browser.Console())
		}
		paint = append(paint, time.Since(began).Seconds())
		time.Sleep(3 * time.Second) // what comes once is over
		used, err = cpuOver(server.Process.Pid, func() error {
			share, err := browser.Idle(length)
			busy = append(busy, share["TaskDuration"])
			script = append(script, share["ScriptDuration"])
			layout = append(layout, share["LayoutDuration"]+share["RecalcStyleDuration"])
			return err
		})
		if err != nil {
			return err
		}
		with = append(with, used)
		if err := browser.Go("about:blank"); err != nil {
			return err
		}
	}
	fmt.Printf("9 charts at 1 s over %d min of %s series, %d turns of %v each; medians (least to most)\n", minutes, series, rounds, length)
	fmt.Printf("all charts drawn after opening: %s s\n", spread(paint, 1, 2))
	fmt.Printf("renderer busy (TaskDuration):   %s %% of the time (bar: 5)\n", spread(busy, 100, 1))
	fmt.Printf("  of it script, layout and style: %s %%, %s %%\n", spread(script, 100, 1), spread(layout, 100, 1))
	fmt.Printf("server alone:                   %s %% of a core\n", spread(alone, 100, 2))
	fmt.Printf("server with the page:           %s %% of a core\n", spread(with, 100, 2))
	cost := make([]float64, len(with))
	for i := range with {
		cost[i] = with[i] - alone[i]
	}
	fmt.Printf("the page costs the server:      %s %% of a core (bar: 1)\n", spread(cost, 100, 2))
	return nil
}

// spread is the median of some figures, and the least and the most of them.
func spread(v []float64, times float64, digits int) string {
	v = slices.Clone(v)
	slices.Sort(v)
	f := func(x float64) string { return strconv.FormatFloat(x*times, 'f', digits, 64) }
	return fmt.Sprintf("%s (%s to %s)", f(v[len(v)/2]), f(v[0]), f(v[len(v)-1]))
}

// cpuOver is the share of a core that a process takes while something is done.
func cpuOver(pid int, do func() error) (float64, error) {
	before, err := cpuOf(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	after, err := cpuOf(pid)
	return (after - before) / time.Since(began).Seconds(), err
}

// cpuOf is the CPU that a process has used, in seconds. /proc/PID/schedstat
// counts nanoseconds, but for each thread alone.
func cpuOf(pid int) (total float64, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, t := range tasks {
		text, err := os.ReadFile(t)
		if err != nil {
			continue // a thread that ended
		}
		var ns float64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, fmt.Errorf("%s: %w", t, err)
		}
		total += ns / 1e9
	}
	return total, nil
}
