package process

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The silent deaths of a connector, and what only looks like one, with real
// sockets and real threads. The clock is the test's own: each sample is a second later
// than the one before, so that ten seconds of watching take some milliseconds.
//
// The first was seen with NIO2 on a bounded shared Executor (its acceptor dies),
// the second and third when the limit of threads was reached (the Poller dies):
// the process lived, the log was quiet, and nobody was answered.
func TestSilentDeaths(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	for major, home := range jdks(t) {
		for _, c := range []struct {
			mode  string
			conns int
			send  int
			want  string
		}{
			{"idle", 0, 0, ""},
			{"idle", 3, 0, ""}, // open and nothing asked
			{"queue", 6, 0, stallQueue},
			{"queue", 6, 100, stallQueue + " " + stallUnread},
			{"unread", 3, 100, stallUnread},
			// The kernel gives ports of five digits, whose Poller and Acceptor have one name.
			{"poller", 3, 100, stallThread + " " + stallUnread},
			{"busy", 20, 100, ""},
			{"body", 1, 100, ""},
		} {
			t.Run(fmt.Sprintf("%s/%s-%d-%d", major, c.mode, c.conns, c.send), func(t *testing.T) {
				prog := run(t, home, "Silent", c.mode)
				port, err := strconv.Atoi(prog.line(t))
				if err != nil {
					t.Fatal(err)
				}
				cfg := configOf(t, prog.pid)
				cfg.Pools = []Pool{{Prefix: "catalina-exec-", Max: 10, Ports: []int{port}}}
				cfg.Connectors = []Connector{{Port: port, Protocol: "nio", Executor: "shared", AcceptCount: 5, MaxConnections: 1000}}
				set := metric.ForTarget("t")
				p := New(set, cfg)
				defer p.Close()
				now := time.Unix(1_000_000, 0)
				poll := func() map[string]float64 {
					t.Helper()
					now = now.Add(time.Second)
					if err := p.Poll(context.Background(), now); err != nil {
						t.Fatal(err)
					}
					return values(set)
				}
				// The names are set by the threads themselves, some time after the port.
				for deadline := time.Now().Add(20 * time.Second); ; {
					have := poll()
					if have["jvm_threadpool_threads pool=catalina-exec"] == 10 && helper(have, port, "Poller") == 1 && helper(have, port, "Acceptor") == 1 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("threads are missing: %v", have)
					}
				}
				for range 3 { // what a connector has is what it has had for three samples
					poll()
				}
				for range c.conns {
					conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					if _, err := conn.Write([]byte(strings.Repeat("x", c.send))); err != nil {
						t.Fatal(err)
					}
				}
				if c.mode != "queue" {
					for range c.conns {
						prog.line(t) // accepted
					}
				}
				if c.mode == "poller" {
					fmt.Fprintln(prog.in, "end your Poller")
					for deadline := time.Now().Add(20 * time.Second); helper(poll(), port, "Poller") != 0; {
						if time.Now().After(deadline) {
							t.Fatal("the Poller lives")
						}
					}
				}
				var have map[string]float64
				for range 10 {
					have = poll()
				}
				var stalled []string
				for _, reason := range []string{stallQueue, stallPoller, stallAcceptor, stallThread, stallUnread} {
					if have[fmt.Sprintf("connector_stalled port=%d reason=%s", port, reason)] == 1 {
						stalled = append(stalled, reason)
					}
				}
				if got := strings.Join(stalled, " "); got != c.want {
					t.Errorf("stalled: %q, want %q; %v", got, c.want, have)
				}
			})
		}
	}
}

// helper counts a connector's Poller or Acceptor, whose pool is known by its
// whole name or, with a port of five digits, by what both have in common.
func helper(have map[string]float64, port int, name string) float64 {
	base := fmt.Sprintf("jvm_threadpool_threads pool=http-nio-%d", port)
	if v, ok := have[base+"-"+name]; ok {
		return v
	}
	// http-nio-18080- is all that is left of both names.
	if v, ok := have[base]; ok {
		return v - 1
	}
	return 0
}
