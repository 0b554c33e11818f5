package process

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// selfConfig makes the test's own process the watched one.
func selfConfig(t testing.TB) Config {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skip("no /proc here")
	}
	var st stat
	if !st.parse(b) {
		t.Fatalf("own stat is not understood: %q", b)
	}
	return Config{PID: os.Getpid(), StartTicks: st.start}
}

// values are the series of a Set as "name{label values}" -> value.
func values(set *metric.Set) map[string]float64 {
	set.Lock()
	defer set.Unlock()
	g := metric.NewGathering()
	g.Add(set)
	out := map[string]float64{}
	for _, f := range g.Snapshot(time.Time{}).Families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				if l.GetName() != "target" {
					name += " " + l.GetName() + "=" + l.GetValue()
				}
			}
			switch {
			case m.Gauge != nil:
				out[name] = m.Gauge.GetValue()
			case m.Counter != nil:
				out[name] = m.Counter.GetValue()
			}
		}
	}
	return out
}

func want(t *testing.T, have map[string]float64, name string, low, high float64) {
	t.Helper()
	v, ok := have[name]
	if !ok {
		t.Errorf("%s is absent", name)
	} else if v < low || v > high {
		t.Errorf("%s = %v, want %v to %v", name, v, low, high)
	}
}

// listen opens a port of the test's own.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

// Connections that the test makes to itself, with a listener that accepts none
// of them at first.
func TestOwnSockets(t *testing.T) {
	l, port := listen(t)
	cfg := selfConfig(t)
	cfg.Connectors = []Connector{{Port: port, Protocol: "nio", AcceptCount: 100, MaxConnections: 10000}}
	set := metric.ForTarget("self")
	p := New(set, cfg)
	defer p.Close()

	var clients []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	poll := func() map[string]float64 {
		t.Helper()
		if err := p.Poll(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		return values(set)
	}
	label := " port=" + strconv.Itoa(port)
	have := poll()
	want(t, have, "tcp_listen_queue"+label, 5, 5)
	want(t, have, "tcp_listen_limit"+label, 1, 1<<20)
	want(t, have, "connector_requests_waiting"+label, 0, 0)
	want(t, have, "connector_connections"+label+" state=established", 5, 5)
	want(t, have, "connector_accept_count"+label, 100, 100)
	want(t, have, "process_threads", 1, 1000)
	want(t, have, "process_open_fds", 10, 10000)
	want(t, have, "process_resident_memory_bytes", 1<<20, 1<<40)

	// Two of them send a request that nobody reads, then one is read.
	for _, c := range clients[:2] {
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	have = poll()
	want(t, have, "connector_requests_waiting"+label, 2, 2)
	if n, err := p.world.diag.untouched(uint16(port)); err != nil || n != 2 {
		t.Errorf("untouched: %d, %v; want 2", n, err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.ReadFull(s, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	have = poll()
	want(t, have, "tcp_listen_queue"+label, 4, 4)
	want(t, have, "connector_requests_waiting"+label, 2, 2)
	if n, err := p.world.diag.untouched(uint16(port)); err != nil || n != 1 {
		t.Errorf("untouched after four bytes were read: %d, %v; want 1", n, err)
	}

	// /proc/net/tcp must say the same, but for the limit.
	byFile := map[uint16]*portFigures{uint16(port): {}}
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		b, err := p.world.file(name)
		if err != nil {
			t.Fatal(err)
		}
		parseNetTCP(b, byFile)
	}
	f := byFile[uint16(port)]
	if f.queue != 4 || f.waiting != 2 || f.limited || f.states[tcpEstablished] != 5 {
		t.Errorf("from /proc/net/tcp: %+v", *f)
	}
}

// A port without connections is not looked for in the table of all sockets, and
// the first connection is seen in the sample after it came.
func TestUnusedPort(t *testing.T) {
	l, port := listen(t)
	cfg := selfConfig(t)
	cfg.Connectors = []Connector{{Port: port, Protocol: "nio", AcceptCount: 100}}
	set := metric.ForTarget("self")
	p := New(set, cfg)
	defer p.Close()
	established := func() float64 {
		t.Helper()
		if err := p.Poll(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		v, ok := values(set)["connector_connections port="+strconv.Itoa(port)+" state=established"]
		if !ok {
			t.Fatal("no figure")
		}
		return v
	}
	if established() != 0 || p.world.diag.walks != 1 {
		t.Fatalf("%d walks at first", p.world.diag.walks)
	}
	// Other tests of this process may accept connections meanwhile, and each is a
	// reason to walk; but not for ever.
	for i := 0; ; i++ {
		before := p.world.diag.walks
		if established(); p.world.diag.walks == before {
			break
		}
		if i == 100 {
			t.Fatal("it is walked each time")
		}
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 { // while there is one, each sample looks
		if n := established(); n != 1 {
			t.Errorf("%v established, want 1", n)
		}
	}
	u := unused{known: true, opens: 7}
	for i := range 2 * walkEvery {
		if still := u.still(&netFigures{opens: 7, hasOpens: true}); still != (i < walkEvery-1) {
			t.Errorf("sample %d: %v", i, still)
		}
	}
}
