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

// connect makes a connection to a listener of the test's own, and gives both ends.
func connect(t *testing.T, l net.Listener, addr string) (client, server *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() }) // or the garbage collector does it meanwhile
	return c.(*net.TCPConn), s.(*net.TCPConn)
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

// What is known of a port, none or some connections, is not looked for in the
// table of all sockets, and what changes is seen in the next sample all the same.
func TestConnectionsAreAskedForAgain(t *testing.T) {
	l, port := listen(t)
	cfg := selfConfig(t)
	cfg.Connectors = []Connector{{Port: port, Protocol: "nio", AcceptCount: 100}}
	set := metric.ForTarget("self")
	p := New(set, cfg)
	defer p.Close()
	poll := func(what string, waiting, established, closing float64) {
		t.Helper()
		if err := p.Poll(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		have := values(set)
		label := " port=" + strconv.Itoa(port)
		for name, n := range map[string]float64{"connector_requests_waiting" + label: waiting,
			"connector_connections" + label + " state=established": established, "connector_connections" + label + " state=close_wait": closing} {
			if v, ok := have[name]; !ok || v != n {
				t.Errorf("%s: %s is %v, want %v", what, name, v, n)
			}
		}
	}
	// Other tests of this process may accept connections meanwhile, and each is a
	// reason to walk; but not for ever.
	asked := func(what string, waiting, established, closing float64) {
		t.Helper()
		for range 100 {
			before := p.world.diag.walks
			if poll(what, waiting, established, closing); p.world.diag.walks == before || t.Failed() {
				return
			}
		}
		t.Errorf("%s: it is walked each time", what)
	}
	poll("at first", 0, 0, 0)
	if p.world.diag.walks != 1 {
		t.Fatalf("%d walks at first", p.world.diag.walks)
	}
	asked("unused", 0, 0, 0)
	var clients, served []*net.TCPConn
	for range 3 {
		c, s := connect(t, l, l.Addr().String())
		clients, served = append(clients, c), append(served, s)
	}
	poll("three came", 0, 3, 0)
	asked("three idle", 0, 3, 0)
	for i := range p.world.asked.sockets {
		p.world.asked.sockets[i].id[47] ^= 0xff // a kernel that does not find what is there
	}
	poll("not found by name", 0, 3, 0)
	for _, c := range clients[:2] {
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	asked("two ask", 2, 3, 0)
	if _, err := served[0].Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	asked("one is read", 1, 3, 0)
	clients[0].Close()
	asked("one has hung up", 1, 2, 1)
	if err := served[2].SetLinger(0); err != nil {
		t.Fatal(err)
	}
	served[2].Close() // reset: it is gone at once
	asked("one was reset", 1, 1, 1)

	for _, c := range []struct {
		what string
		net  netFigures
		at   portFigures
		want bool
	}{
		{"nothing new", netFigures{opens: 7, hasOpens: true}, portFigures{limited: true, queue: 1, limit: 2}, true},
		{"one more", netFigures{opens: 8, hasOpens: true}, portFigures{}, false},
		{"no counter", netFigures{opens: 7}, portFigures{}, false},
		{"a full accept queue", netFigures{opens: 7, hasOpens: true}, portFigures{limited: true, queue: 2, limit: 2}, false},
	} {
		r := remembered{known: true, opens: 7}
		if still := r.still(&c.net, map[uint16]*portFigures{80: &c.at}); still != c.want {
			t.Errorf("%s: %v", c.what, still)
		}
	}
	r := remembered{known: true, opens: 7}
	for i := range 2 * walkEvery {
		if still := r.still(&netFigures{opens: 7, hasOpens: true}, nil); still != (i < walkEvery-1) {
			t.Errorf("sample %d: %v", i, still)
		}
	}
	for what, f := range map[string]*portFigures{"one half open": {states: [13]int{tcpSynRecv: 1}}, "another": {states: [13]int{tcpNewSynRecv: 1}}} {
		if r.saw(&netFigures{opens: 7, hasOpens: true}, map[uint16]*portFigures{80: f}, nil, true); r.known {
			t.Errorf("%s is taken for known", what)
		}
	}
	if r.saw(&netFigures{opens: 7, hasOpens: true}, nil, make([]socket, rememberMost+1), true); r.known {
		t.Error("more than are remembered are taken for known")
	}
}

// Many connections in time_wait are counted now and then, and told meanwhile.
func TestManyInTimeWait(t *testing.T) {
	l, port := listen(t)
	cfg := selfConfig(t)
	cfg.Connectors = []Connector{{Port: port, Protocol: "nio", AcceptCount: 100}}
	set := metric.ForTarget("self")
	p := New(set, cfg)
	defer p.Close()
	hangUp := func(n int) {
		t.Helper()
		for range n {
			c, s := connect(t, l, l.Addr().String())
			s.Close() // first, so that the waiting is the server's
			c.Close()
		}
	}
	poll := func() (waits, established float64) {
		t.Helper()
		if err := p.Poll(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		have := values(set)
		label := "connector_connections port=" + strconv.Itoa(port) + " state="
		return have[label+"time_wait"], have[label+"established"]
	}
	last := float64(manyWaits / 2)
	hangUp(manyWaits / 2)
	if n, _ := poll(); n != last {
		t.Fatalf("%v in time_wait, want %v", n, last)
	}
	hangUp(manyWaits)
	last += manyWaits
	if n, _ := poll(); n != last {
		t.Fatalf("%v in time_wait, want %v", n, last)
	}
	connect(t, l, l.Addr().String())
	for i := range 2 * waitsEvery {
		hangUp(10)
		if i%waitsEvery == waitsEvery-1 {
			last += 10 * waitsEvery
		}
		if n, now := poll(); n != last || now != 1 {
			t.Fatalf("walk %d: %v in time_wait and %v established, want %v and 1", i, n, now, last)
		}
	}
}

// Sockets asked for by name are what a walk finds, in each state, over IPv4, IPv6
// and IPv4 to a listener of IPv6.
func TestAskedForIsWhatAWalkFinds(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"}, {"[::]:0", "127.0.0.1"}} {
		l, err := net.Listen("tcp", c.listen)
		if err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		list := []uint16{uint16(port)}
		d := sockDiag{fd: -1}
		defer d.close()
		var was []socket
		figures := func(again bool) (f portFigures) {
			t.Helper()
			err := d.listening(list, map[uint16]*portFigures{list[0]: {}})
			ports := map[uint16]*portFigures{list[0]: &f}
			if err == nil && again {
				was, err = d.again(was, ports)
			} else if err == nil {
				var found []socket
				found, err = d.walk(list, otherStates, ports, rememberMost)
				was = append([]socket(nil), found...)
			}
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		const each = 30 // more than one message holds, with four kinds
		kinds := [4][]*net.TCPConn{}
		for range each {
			for kind := range kinds {
				a, b := connect(t, l, net.JoinHostPort(c.dial, strconv.Itoa(port)))
				kinds[kind] = append(kinds[kind], a, b)
			}
		}
		if f := figures(false); f.states[tcpEstablished] != 4*each || len(was) != 4*each {
			t.Fatalf("%s: %d established, %d remembered", c.listen, f.states[tcpEstablished], len(was))
		}
		for i := range each {
			if _, err := kinds[0][2*i].Write([]byte("x")); err != nil { // unread
				t.Fatal(err)
			}
			kinds[1][2*i].Close()   // close_wait
			kinds[2][2*i+1].Close() // fin_wait2
			kinds[3][2*i+1].Close() // time_wait
			kinds[3][2*i].Close()
		}
		time.Sleep(100 * time.Millisecond) // the last segments
		again := figures(true)
		if walked := figures(false); again != walked {
			t.Errorf("%s: asked for %+v, walked %+v", c.listen, again, walked)
		}
		for state, n := range map[int]int{tcpEstablished: each, tcpCloseWait: each, tcpFinWait2: each, tcpTimeWait: each} {
			if again.states[state] != n {
				t.Errorf("%s: %d in state %s, want %d", c.listen, again.states[state], connStates[state], n)
			}
		}
		if again.waiting != each || len(was) != 4*each {
			t.Errorf("%s: %d wait, %d known", c.listen, again.waiting, len(was))
		}
		for i := range 2 * each {
			kinds[0][i].SetLinger(0)
			kinds[0][i].Close()
		}
		if f := figures(true); f.states[tcpEstablished] != 0 || len(was) != 3*each {
			t.Errorf("%s: after a reset %d established, %d known", c.listen, f.states[tcpEstablished], len(was))
		}
	}
}
