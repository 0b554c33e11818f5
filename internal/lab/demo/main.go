// Demo is the main job in a minute and a half: a private Tomcat is driven far
// past its limit, and the sidecar beside it, started with no settings, tells
// what happens while it happens. A real Prometheus scrapes it and fires the
// alert. At the end the sidecar's figures stand beside those of other programs.
//
// It is run by `make demo`. It starts everything privately on loopback ports,
// stops all of it again, and leaves nothing but the lab's cache.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// The limits of the demo's server, and the load against them. Each step is
// bounded in count and in time.
var pool = lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 20}

const (
	clients  = 150              // at once, against 10 threads and 20 places in the queue
	perRound = 4000             // connections of one ab
	storm    = 20 * time.Second // no new ab after that
	slowMS   = 100              // the servlet's time for one answer
)

// parts are all that the demo starts.
type parts struct {
	dir        string
	server     *lab.Server
	sidecar    *lab.Child
	addr       string // the sidecar's
	prometheus *lab.Prometheus
	target     string // what the sidecar calls the server
	asked      int    // answers that the lab's own client got in the quiet time
}

func demo(ctx context.Context) error {
	p, err := setUp()
	if p != nil {
		defer p.stop()
	}
	if err != nil {
		return err
	}
	s := newScreen(os.Stdout)
	s.title("1. Quiet: a few requests, all answered")
	w := watch(ctx, p, s)
	defer w.stop()
	if err := p.quiet(ctx); err != nil {
		return err
	}
	s.title(fmt.Sprintf("2. Overload: ab with %d clients at once against %d threads and %d places in the queue", clients, pool.MaxThreads, pool.MaxQueueSize))
	load, err := p.overload(ctx)
	if err != nil {
		return err
	}
	w.stop()
	s.title("3. What the sidecar says, and what others counted")
	differ, err := p.compare(ctx, s, load, w)
	if err != nil {
		return err
	}
	s.title("4. The server is stopped")
	p.server.Stop()
	down := lab.Until(15*time.Second, func() bool { return ctx.Err() != nil || p.alert("TargetDown") == "firing" })
	s.line("TargetDown %s", map[bool]string{true: "fires", false: "does NOT fire"}[down])
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted")
	}
	switch {
	case w.fired.IsZero():
		return fmt.Errorf("the alert ExecutorRejectionStorm never fired")
	case !down:
		return fmt.Errorf("the alert TargetDown never fired")
	case differ > 0:
		return fmt.Errorf("%d figures differ from the independent ones", differ)
	}
	s.line("")
	s.line("Everything that was started is stopped. Run `sidecar` beside a server of your own and look at http://localhost:10404.")
	return nil
}

// setUp fetches what is missing and starts server, sidecar and Prometheus.
func setUp() (*parts, error) {
	fmt.Println("The sidecar's demo. What is missing is fetched into", lab.Cache(), "and nothing is installed.")
	dir, err := os.MkdirTemp("", "sidecar-demo-")
	if err != nil {
		return nil, err
	}
	p := &parts{dir: dir}
	for _, tool := range []string{"ab", "prometheus"} {
		if err := lab.Tool(tool); err != nil {
			return p, err
		}
	}
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		return p, err
	}
	base := filepath.Join(dir, "tomcat")
	if err := os.Mkdir(base, 0o755); err != nil {
		return p, err
	}
	p.server, err = lab.StartTomcatIn(base, lab.Tomcat{
		Executor:         &pool,
		AcceptCount:      100,
		AccessLogPattern: `%h %l %u %t "%r" %s %b %D`,
	})
	if err != nil {
		return p, err
	}
	fmt.Printf("Tomcat %s on JDK %s runs at %s: an NIO connector on a shared Executor, maxThreads=%d maxQueueSize=%d, a servlet of %d ms.\n",
		p.server.Version, p.server.JDK.Version, p.server.Addr, pool.MaxThreads, pool.MaxQueueSize, slowMS)
	if err := p.startSidecar(program); err != nil {
		return p, err
	}
	return p, p.startPrometheus()
}

// startSidecar starts the real program as a user would, but for a free port and
// a private place for its state, and waits until it has found the server.
func (p *parts) startSidecar(program string) error {
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	p.target = fmt.Sprintf("tomcat-%d", p.server.Port)
	output := filepath.Join(p.dir, "sidecar.log")
	p.sidecar, err = lab.StartProgram("sidecar", output, program,
		"run", "--web.listen-address="+p.addr, "--storage.path="+filepath.Join(p.dir, "state"))
	if err != nil {
		return err
	}
	found := lab.Until(30*time.Second, func() bool {
		if gone, _ := p.sidecar.Exited(); gone {
			return true
		}
		m, err := lab.ReadMetrics(p.addr)
		if err != nil {
			return false
		}
		up, ok := m.Sum("target_up", "target", p.target)
		_, events := m.Sum("applog_events_total", "target", p.target)
		return ok && up == 1 && events
	})
	if gone, _ := p.sidecar.Exited(); gone || !found {
		said, _ := os.ReadFile(output)
		return fmt.Errorf("the sidecar did not find %s:\n%s", p.target, said)
	}
	fmt.Printf("The sidecar runs at http://%s with no settings, and has found %s by itself.\n", p.addr, p.target)
	return nil
}

func (p *parts) startPrometheus() error {
	root, err := lab.ModuleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, "prometheus")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	p.prometheus, err = lab.StartPrometheus(dir, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: sidecar
    static_configs: [{targets: [%q]}]
`, filepath.Join(root, "rules/load/*.yml"), p.addr))
	if err != nil {
		return err
	}
	fmt.Printf("A real Prometheus scrapes it each second with rules/load, at http://%s.\n", p.prometheus.Addr)
	return nil
}

// stop ends all that was started, in reverse, and removes their files.
func (p *parts) stop() {
	if p.prometheus != nil {
		p.prometheus.Stop()
	}
	if p.sidecar != nil {
		p.sidecar.Stop()
	}
	if p.server != nil {
		p.server.Stop()
	}
	os.RemoveAll(p.dir)
}

// alert is "firing", "pending" or "" for an alert on our target. Other servers
// on the machine are the sidecar's business too, but not the demo's.
func (p *parts) alert(name string) string {
	alerts, err := p.prometheus.Alerts(name)
	if err != nil {
		return ""
	}
	state := ""
	for _, a := range alerts {
		if a.Labels["target"] == p.target && state != "firing" {
			state = a.State
		}
	}
	return state
}
