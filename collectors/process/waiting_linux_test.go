package process

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// What connector_requests_waiting means in each connector: forty clients at once
// on about ten threads, each request three seconds long: the first ten are
// served and the others wait, wherever that connector keeps them. In all of them
// the kernel still has their bytes.
func TestRequestsWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	const clients = 40
	nio := func(version, protocol string) func(*testing.T) *lab.Server {
		return func(t *testing.T) *lab.Server {
			return lab.StartTomcat(t, lab.Tomcat{Version: version, Protocol: protocol, Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 1000}, AcceptCount: 100})
		}
	}
	for _, c := range []struct {
		name      string
		protocol  string
		start     func(*testing.T) *lab.Server
		low, high float64 // what waits
	}{
		{"Tomcat 9 NIO", "nio", nio("9.0.98", "nio"), 30, 30},
		{"Tomcat 10.1 NIO2", "nio2", nio("10.1.34", "nio2"), 30, 30},
		{"Tomcat 7 BIO", "bio", func(t *testing.T) *lab.Server {
			return lab.StartTomcat(t, lab.Tomcat{Version: "7.0.109", Protocol: "bio", MaxThreads: 10, AcceptCount: 100})
		}, 30, 30},
		{"Tomcat 9 APR", "apr", func(t *testing.T) *lab.Server {
			native, err := lab.TCNative()
			lab.Need(t, err)
			return lab.StartTomcat(t, lab.Tomcat{
				Version: "9.0.98", Protocol: "apr", Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 1000}, AcceptCount: 100,
				JVMArgs: []string{"-Djava.library.path=" + native}, Env: []string{"LD_LIBRARY_PATH=" + native},
			})
		}, 30, 30},
		{"Jetty 9.4", "jetty", func(t *testing.T) *lab.Server { return lab.StartJetty(t, lab.Jetty{MinThreads: 10, MaxThreads: 14}) }, 20, 36},
		{"Jetty 12", "jetty", func(t *testing.T) *lab.Server {
			return lab.StartJetty(t, lab.Jetty{Version: "12.0.16", MinThreads: 10, MaxThreads: 14})
		}, 20, 36},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			cfg := configOf(t, s.PID)
			cfg.Connectors = []Connector{{Port: s.Port, Address: "127.0.0.1", Protocol: c.protocol}}
			set := metric.ForTarget("t")
			p := New(set, cfg)
			defer p.Close()
			waiting := func() (waiting, established, queue float64) {
				if err := p.Poll(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				have := values(set)
				return have[fmt.Sprintf("connector_requests_waiting port=%d", s.Port)], have[fmt.Sprintf("connector_connections port=%d state=established", s.Port)],
					have[fmt.Sprintf("tcp_listen_queue port=%d", s.Port)]
			}
			if n, _, _ := waiting(); n != 0 {
				t.Errorf("%v wait before anybody asks", n)
			}
			done := make(chan lab.Tally)
			go func() { done <- lab.Burst(s.Addr, "/slow?ms=3000", clients, time.Minute) }()
			// All have come, and the first ten are being served: then nothing moves for
			// three seconds.
			var seen []float64
			var most, established, queue float64
			lab.Until(20*time.Second, func() bool {
				n, e, q := waiting()
				seen = append(seen, n)
				established, queue = max(established, e), max(queue, q)
				return len(seen) >= 12 && slices.Max(seen[len(seen)-8:]) == slices.Min(seen[len(seen)-8:])
			})
			most = seen[len(seen)-1]
			t.Logf("waiting %v, established %v, accept queue up to %v, at the end %v", seen, established, queue, most)
			tally := <-done
			t.Logf("%s", tally)
			if most < c.low || most > c.high {
				t.Errorf("%v wait, want %v to %v", most, c.low, c.high)
			}
			if n, _, _ := waiting(); n != 0 {
				t.Errorf("%v wait after all are served", n)
			}
		})
	}
}
