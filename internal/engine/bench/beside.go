//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/expfmt"
)

// tableBeside has three children with the same figures at the same time: one that
// makes a snapshot each second and no more, one with an engine, and one that a
// Prometheus of Debian's scrapes each second, with the same rules. What the first
// takes is taken off the second; Prometheus' own process is counted whole.
func tableBeside() error {
	dir, err := os.MkdirTemp("", "engine-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := lab.ModuleRoot()
	if err != nil {
		return err
	}
	bare, err := startChild(dir, "bare")
	if err != nil {
		return err
	}
	defer bare.stop()
	scraped, err := startChild(dir, "scraped")
	if err != nil {
		return err
	}
	defer scraped.stop()
	// The rules' own intervals hold, and where a group has none the default of the
	// engine.
	prom, err := lab.StartPrometheus(dir, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 5s}
rule_files: [%q]
scrape_configs:
  - job_name: sidecar
    static_configs: [{targets: [%q]}]
`, filepath.Join(root, "rules/load/*.yml"), scraped.addr))
	if err != nil {
		return err
	}
	defer prom.Stop()
	embedded, err := startChild(dir, "engine")
	if err != nil {
		return err
	}
	defer embedded.stop()
	pids := []int{bare.pid, embedded.pid, prom.PID}
	time.Sleep(15 * time.Second) // started, and each group has been evaluated
	var from, cpu [3]time.Duration
	for i, pid := range pids {
		from[i] = cpuOf(pid)
	}
	var most [3]float64
	for end := time.Now().Add(time.Duration(*seconds) * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		for i, pid := range pids {
			most[i] = max(most[i], resident(pid))
		}
	}
	for i, pid := range pids {
		cpu[i] = cpuOf(pid) - from[i]
	}
	up, err := prom.Query(`count({instance=~".+"})`)
	if err != nil || len(up) != 1 || up[0].Value < float64(*series) {
		return fmt.Errorf("Prometheus has not %d series: %v %v", *series, up, err)
	}
	// On a machine with other work a scrape may come too late, and is then not
	// evaluated either: such a run compares nothing.
	scrapes, err := prom.Query(fmt.Sprintf(`sum_over_time(up[%ds])`, *seconds))
	if err != nil || len(scrapes) != 1 {
		return fmt.Errorf("Prometheus' scrapes: %v %v", scrapes, err)
	}
	per := func(d time.Duration) float64 { return ms(d) / float64(*seconds) }
	engine, ratio := cpu[1]-cpu[0], float64(cpu[1]-cpu[0])/float64(cpu[2])
	head(fmt.Sprintf("%d s in real time, %s series in Prometheus, its own included", *seconds, fmt.Sprint(up[0].Value)))
	row("CPU of the snapshots alone", fmt.Sprintf("%.1f ms a second", per(cpu[0])), "", true)
	row("CPU of the engine, on top of that", fmt.Sprintf("%.1f ms a second", per(engine)), "", true)
	row("CPU of Debian's Prometheus", fmt.Sprintf("%.1f ms a second", per(cpu[2])), "", true)
	row("scrapes that Prometheus made in time", fmt.Sprintf("%v of %d", scrapes[0].Value, *seconds), "", true)
	row("engine / Prometheus", fmt.Sprintf("%.2f", ratio), "0.7", ratio <= .7)
	row("resident, the engine on top", fmt.Sprintf("%.1f MB", most[1]-most[0]), "45 MB", most[1]-most[0] <= 45)
	row("resident, Prometheus", fmt.Sprintf("%.1f MB", most[2]), "", true)
	return nil
}

type kid struct {
	cmd  *exec.Cmd
	pid  int
	addr string
}

// startChild runs this program in another role, which ends with us.
func startChild(dir, role string) (*kid, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-role", role, "-series", fmt.Sprint(*series), "-folder", filepath.Join(dir, role))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &kid{cmd: cmd, pid: cmd.Process.Pid}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		k.stop()
		return nil, fmt.Errorf("child %s: %w", role, err)
	}
	k.addr = strings.TrimSpace(line)
	return k, nil
}

func (k *kid) stop() {
	k.cmd.Process.Kill()
	k.cmd.Wait()
}

// child makes snapshots until it is killed.
func child(role string) error {
	w, err := newWorld(*series)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var current atomic.Pointer[metric.Snapshot]
	current.Store(w.snapshot(0, time.Now()))
	take := func(*metric.Snapshot) {}
	switch role {
	case "engine":
		e, err := open(*folder, time.Now())
		if err != nil {
			return err
		}
		take = e.Append
	case "scraped":
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			format := expfmt.Negotiate(r.Header)
			w.Header().Set("Content-Type", string(format))
			enc := expfmt.NewEncoder(w, format)
			for _, f := range current.Load().Families {
				if err := enc.Encode(f); err != nil {
					return
				}
			}
			if c, ok := enc.(expfmt.Closer); ok {
				c.Close() // OpenMetrics ends with # EOF
			}
		}))
	}
	fmt.Println(l.Addr())
	tick := time.NewTicker(time.Second)
	for i := 1; ; i++ {
		snap := w.snapshot(i, <-tick.C)
		current.Store(snap)
		take(snap)
	}
}

// engineBinary builds the sidecar as a release does, and says how large it is.
func engineBinary(dir string) (int64, error) {
	root, err := lab.ModuleRoot()
	if err != nil {
		return 0, err
	}
	path := filepath.Join(dir, "sidecar")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/sidecar")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w: %s", err, said)
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
