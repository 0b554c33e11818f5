package process

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// watched is one real server and our poller beside it.
type watched struct {
	*lab.Server
	protocol string
	poller   *Poller
	set      *metric.Set
	now      time.Time
}

// watch begins to watch a Tomcat that was started with these options, or a Jetty
// of fourteen threads.
func watch(t *testing.T, s *lab.Server, protocol string, o lab.Tomcat) *watched {
	cfg := configOf(t, s.PID)
	for _, port := range []int{s.Port, s.TLSPort} {
		if port == 0 {
			continue
		}
		c := Connector{Port: port, Address: "127.0.0.1", Protocol: protocol, TLS: port == s.TLSPort, AcceptCount: o.AcceptCount, MaxConnections: o.MaxConnections, MaxThreads: o.MaxThreads}
		if o.AnyAddress {
			c.Address = ""
		}
		switch {
		case protocol == "jetty":
			c.Executor = "qtp"
		case o.Executor != nil:
			c.Executor = "tomcatThreadPool"
		default:
			base := threadBases(c)[0]
			if protocol == "bio" { // 7.0 has no other name for TLS
				base = threadBases(Connector{Port: port, Address: c.Address, Protocol: protocol})[0]
			}
			cfg.Pools = append(cfg.Pools, Pool{Prefix: base + "exec-", Max: o.MaxThreads, Ports: []int{port}})
		}
		cfg.Connectors = append(cfg.Connectors, c)
	}
	switch ports := []int{s.Port, s.TLSPort}; {
	case protocol == "jetty":
		cfg.Pools = append(cfg.Pools, Pool{Prefix: "qtp", Max: 14, Ports: ports})
	case o.Executor != nil:
		cfg.Pools = append(cfg.Pools, Pool{Prefix: "catalina-exec-", Max: o.Executor.MaxThreads, Ports: ports})
	}
	w := &watched{Server: s, protocol: protocol, set: metric.ForTarget("t"), now: time.Now()}
	w.poller = New(w.set, cfg)
	t.Cleanup(func() { w.poller.Close() })
	return w
}

func (w *watched) poll(t *testing.T) map[string]float64 {
	t.Helper()
	w.now = w.now.Add(time.Second)
	if err := w.poller.Poll(t.Context(), w.now); err != nil {
		t.Fatal(err)
	}
	return values(w.set)
}

// at waits until so many requests wait and so many are held, and stay so, and
// holds the figure against ss. Then a minute goes by, in which a server that has
// just its threads full, or nothing to do, must not be called dead.
func (w *watched) at(t *testing.T, port int, g *gate, what string, wantHeld, low, high int) {
	t.Helper()
	var seen []string
	settled := 0
	lab.Until(10*time.Second, func() bool {
		have := w.poll(t)
		n, held := int(have[fmt.Sprintf("connector_requests_waiting port=%d", port)]), g.held()
		now := fmt.Sprintf("%d wait, %d held", n, held)
		if len(seen) == 0 || seen[len(seen)-1] != now {
			seen = append(seen, now)
			settled = 0
		}
		if settled++; n < low || n > high || wantHeld >= 0 && held != wantHeld {
			settled = 0
		}
		return settled >= 5
	})
	have := w.poll(t)
	t.Logf("%s: %s, %v established, %v in the accept queue", what, seen[len(seen)-1],
		have[fmt.Sprintf("connector_connections port=%d state=established", port)], have[fmt.Sprintf("tcp_listen_queue port=%d", port)])
	if settled < 5 {
		t.Errorf("%s: %v, want %d to %d waiting and %d held", what, seen, low, high, wantHeld)
	}
	if n := have[fmt.Sprintf("connector_requests_waiting port=%d", port)]; int(n) != unreadBySS(t, port) {
		t.Errorf("%s: %v wait, ss says %d", what, n, unreadBySS(t, port))
	}
	for second := range 60 {
		for name, v := range w.poll(t) {
			if strings.HasPrefix(name, "connector_stalled") && v == 1 {
				t.Errorf("%s: %s after %d s", what, name, second)
				return
			}
		}
	}
}

// What connector_requests_waiting means in each connector, which docs/sockets.md
// tells: real servers of about ten threads, whose requests are held in the
// application until the test lets them go. So all that is counted stands still.
func TestRequestsWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	shared := &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 1000}
	for _, c := range []struct {
		name, protocol string
		tomcat         lab.Tomcat
		jetty          lab.Jetty
	}{
		{"Tomcat 9 NIO", "nio", lab.Tomcat{Version: "9.0.98", Executor: shared}, lab.Jetty{}},
		{"Tomcat 8.5 NIO, own pool", "nio", lab.Tomcat{Version: "8.5.100", MaxThreads: 10}, lab.Jetty{}},
		{"Tomcat 10.1 NIO2", "nio2", lab.Tomcat{Version: "10.1.34", Executor: shared}, lab.Jetty{}},
		{"Tomcat 7 BIO", "bio", lab.Tomcat{Version: "7.0.109", MaxThreads: 10, MaxConnections: 10}, lab.Jetty{}},
		{"Tomcat 9 APR", "apr", lab.Tomcat{Version: "9.0.98", Executor: shared}, lab.Jetty{}},
		{"Jetty 9.4", "jetty", lab.Tomcat{}, lab.Jetty{Version: "9.4.57.v20241219"}},
		{"Jetty 12", "jetty", lab.Tomcat{}, lab.Jetty{Version: "12.0.16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // what is held stands still, however slow the machine
			var s *lab.Server
			if c.protocol == "jetty" {
				c.jetty.MinThreads, c.jetty.MaxThreads, c.jetty.TLS = 10, 14, true
				s = lab.StartJetty(t, c.jetty)
			} else {
				c.tomcat.Protocol, c.tomcat.AcceptCount, c.tomcat.TLS = c.protocol, 100, true
				if c.protocol == "apr" {
					native, err := lab.TCNative()
					lab.Need(t, err)
					c.tomcat.JVMArgs, c.tomcat.Env = []string{"-Djava.library.path=" + native}, []string{"LD_LIBRARY_PATH=" + native}
				}
				s = lab.StartTomcat(t, c.tomcat)
			}
			w := watch(t, s, c.protocol, c.tomcat)
			bio := c.protocol == "bio"
			threads := 10
			if c.protocol == "jetty" {
				threads = -1 // some of the fourteen accept and select
			}
			// Of so many clients all wait whom no thread has. NIO2 alone reads the next
			// request of a connection that it has kept before a thread has time for it, so
			// that there none is seen to wait.
			rest := func(t *testing.T, port int, g *gate, what string, clients int) {
				t.Helper()
				if c.protocol == "nio2" {
					w.at(t, port, g, what, threads, 0, 0)
					return
				}
				if threads > 0 {
					w.at(t, port, g, what, threads, clients-threads, clients-threads)
					return
				}
				lab.Until(10*time.Second, func() bool { return g.held() >= 8 })
				lab.Until(time.Second, func() bool { return g.held() >= 14 })
				held := g.held()
				if held < 8 || held > 13 {
					t.Errorf("%s: %d threads of Jetty serve", what, held)
				}
				w.at(t, port, g, what, held, clients-held, clients-held)
			}
			for _, secure := range []bool{false, true} {
				name, addr, port := "plain", w.Addr, w.Port
				if secure {
					name, addr, port = "TLS", w.TLSAddr, w.TLSPort
				}
				t.Run(name+" silent", func(t *testing.T) {
					all := dial(t, addr, false, 40)
					w.at(t, port, newGate(t), "nothing sent", 0, 0, 0)
					hangUp(all)
				})
				t.Run(name+" kept alive", func(t *testing.T) {
					n := 40
					if bio {
						n = 6 // with more, BIO keeps none alive
					}
					all := dial(t, addr, secure, n)
					write(all, get("/slow"))
					answers(t, all, 1)
					g := newGate(t)
					w.at(t, port, g, "answered, idle", 0, 0, 0)
					write(all, get(g.path("hold")))
					if bio {
						w.at(t, port, g, "the next request", 6, 0, 0)
					} else {
						rest(t, port, g, "the next request", n)
					}
					g.open()
					answers(t, all, 1)
					hangUp(all)
					w.at(t, port, g, "hung up", 0, 0, 0)
				})
				t.Run(name+" new connections", func(t *testing.T) {
					g := newGate(t)
					all := dial(t, addr, secure, 40)
					write(all, last(g.path("hold")))
					switch {
					case secure && !bio:
						// The others are between two steps of their handshake: what they sent is
						// read, and they wait for an answer that waits for a thread.
						w.at(t, port, g, "40 at once", -1, 0, 32)
					case c.protocol == "nio2":
						// What it has accepted and read is seen no more, what it has not is: how far
						// it comes before its last thread is taken is chance, from none to all.
						w.at(t, port, g, "40 at once", threads, 0, 30)
					default:
						rest(t, port, g, "40 at once", 40)
					}
					g.open()
					answers(t, all, 1)
					hangUp(all)
				})
				t.Run(name+" pipelined", func(t *testing.T) {
					g := newGate(t)
					all := dial(t, addr, secure, 21)
					if !bio {
						write(all, get("/slow"))
						answers(t, all, 1)
					}
					three := strings.Repeat(get(g.path("hold")), 3)
					write(all[:1], three)
					w.at(t, port, g, "three in one write, threads free", 1, 0, 0)
					write(all[1:], three)
					rest(t, port, g, "three on each of 21", 21)
					g.open()
					if !bio { // which keeps none alive with so many
						answers(t, all, 3)
					}
					hangUp(all)
					w.at(t, port, g, "hung up", 0, 0, 0)
				})
				t.Run(name+" uploads", func(t *testing.T) {
					for _, u := range []struct {
						what              string
						size, read, waits int
					}{
						{"8 MB, none of it read", 8 << 20, 0, 5},
						{"8 MB, 100 kB of it read", 8 << 20, 100_000, 5},
						// With TLS the whole request has to fit into one record, and the first
						// records of a connection are of some 1,200 bytes: of a second one it is
						// chance whether it comes in time to be read with the first.
						{"500 bytes, none of it read", 500, 0, 0},
					} {
						g := newGate(t)
						all := dial(t, addr, secure, 5)
						write(all, fmt.Sprintf("POST %s&n=%d HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s",
							g.path("hold"), u.read, u.size, strings.Repeat("x", u.size)))
						w.at(t, port, g, u.what, 5, u.waits, u.waits)
						g.open()
						answers(t, all, 1)
						hangUp(all)
					}
				})
				t.Run(name+" long polls", func(t *testing.T) {
					g := newGate(t)
					all := dial(t, addr, secure, 40)
					write(all, last(g.path("poll")))
					if bio { // which accepts no more than it has threads for
						w.at(t, port, g, "forty", 10, 30, 30)
					} else {
						w.at(t, port, g, "forty", 40, 0, 0)
					}
					g.open()
					answers(t, all, 1)
					hangUp(all)
				})
			}
			// All threads are taken by the clients of one port: another that they serve
			// too is not dead either.
			t.Run("the other port", func(t *testing.T) {
				g := newGate(t)
				kept := dial(t, w.TLSAddr, true, 5)
				write(kept, get("/slow"))
				answers(t, kept, 1)
				all := dial(t, w.Addr, false, 20)
				write(all, get(g.path("hold")))
				lab.Until(10*time.Second, func() bool { return g.held() >= 9 })
				write(kept, get(g.path("hold")))
				switch {
				case c.tomcat.MaxThreads > 0: // a pool for each
					w.at(t, w.TLSPort, g, "five on the other port", 15, 0, 0)
				case c.protocol == "jetty": // one of its idle threads may be of use to this port
					w.at(t, w.TLSPort, g, "five on the other port", -1, 3, 5)
				case c.protocol == "nio2":
					w.at(t, w.TLSPort, g, "five on the other port", threads, 0, 0)
				default:
					w.at(t, w.TLSPort, g, "five on the other port", threads, 5, 5)
				}
				g.open()
				answers(t, all, 1)
				answers(t, kept, 1)
			})
		})
	}
}
