package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// A name may hold blanks, parentheses and a line end; the figures are behind
// the last parenthesis of the whole file.
func TestCase33CommParentheses(t *testing.T) {
	const rest = " S 10129 10132 10132 0 -1 4194304 11 0 33 0 250 40 0 0 20 0 7 0 8981900 1000 20 18446744073709551615\n"
	for _, name := range []string{"java", "a) R 1 (x", "x\n) Z 9 9", "sle (2) .sh", "", ")", "("} {
		var s stat
		if !s.parse([]byte("10132 (" + name + ")" + rest)) {
			t.Errorf("%q is refused", name)
			continue
		}
		if string(s.comm) != name || s.state != 'S' || s.user != 250 || s.system != 40 || s.threads != 7 || s.start != 8981900 || s.minorFaults != 11 || s.majorFaults != 33 {
			t.Errorf("%q: %+v", name, s)
		}
	}
	for _, broken := range []string{"", "1", "1 (", "1 (a)", "1 (a) S", "1 (a) S 1 2 3", "1 a S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"} {
		var s stat
		if s.parse([]byte(broken)) {
			t.Errorf("%q is taken", broken)
		}
	}
}

// What the kernel keeps of names, and the pool it leads to.
func TestPools(t *testing.T) {
	f := newFolder([]Pool{
		{Prefix: "catalina-exec-", Max: 500, Ports: []int{7020}},
		{Prefix: "http-nio-8080-exec-", Ports: []int{8080}},
		{Prefix: "http-nio-127.0.0.1-18080-exec-", Ports: []int{18080}},
		{Prefix: "http-nio-20443-exec-", Ports: []int{20443}},
		{Name: "batch", Prefix: "nightly-batch-worker-"},
		{Prefix: "virt-", Virtual: true},
	}, []Connector{
		{Port: 7020, Protocol: "NIO", Executor: "tomcatThreadPool"},
		{Port: 8080, Protocol: "nio"},
		{Port: 18080, Protocol: "nio", Address: "127.0.0.1"},
		{Port: 8009, Protocol: "ajp-nio"},
		{Port: 20443, Protocol: "nio"},
	}, 60)
	for _, c := range []struct{ comm, pool string }{
		{"catalina-exec-1", "catalina-exec"}, // -1, -10 and -199 alike
		{"catalina-exec-9", "catalina-exec"},
		{"http-nio-8080-e", "http-nio-8080-exec"},
		{"http-nio-8080-P", "http-nio-8080-Poller"},
		{"http-nio-8080-A", "http-nio-8080-Acceptor"},
		{"http-nio-8080-C", "http-nio-8080-ClientPoller"},
		{"http-nio-7020-C", "http-nio-7020-ClientPoller"},
		{"http-nio-127.0.", "http-nio-127.0.0.1-18080"}, // exec, Poller, Acceptor: one
		{"http-nio-20443-", "http-nio-20443"},           // the same of a port of five digits
		{"ajp-nio-8009-P", "ajp-nio-8009-Poller"},
		{"nightly-batch-w", "batch"},
		// Shortened in the middle.
		{"catalin..xec-10", "catalina-exec"},
		{"http-ni..Poller", "http-nio-Poller"}, // replaced below: two ports look alike
		{"nightly..rker-7", "batch"},
		// Not from the settings.
		{"http-nio-9090-e", "http-nio-9090-exec"},
		{"https-jsse-nio-", "https-jsse-nio"},
		{"http-nio-18081-", "http-nio-18081"},
		{"http-8080-12", "http-8080"},
		{"qtp1589683045-1", "qtp"},
		{"qtp12-3", "qtp"},
		{"9f3@qtp-47-3", "qtp"},
		{"pool-3-thread-7", "pool-N-thread"},
		{"Scheduler-12-1", "Scheduler-N"},
		{"ForkJoinPool-1-", "ForkJoinPool"},
		{"Catalina-utilit", "Catalina-utility"},
		{"java", "main"},
		{"GC Thread#0", "jvm-gc"}, {"G1 Conc#0", "jvm-gc"}, {"ZWorker#1", "jvm-gc"}, {"GC task thread#", "jvm-gc"},
		{"C2 CompilerThre", "jvm-compiler"}, {"C2 Comp..hread0", "jvm-compiler"},
		{"VM Thread", "jvm-vm"}, {"VM Periodic Tas", "jvm-vm"}, {"Reference Handl", "jvm-vm"},
		{"", "unnamed"}, {"123", "unnamed"}, {"odd\n(name) 4", "odd (name)"}, {"caf\xc3", "caf"}, {"\xff\xfe", "unnamed"},
	} {
		got := f.labels[f.pool(c.comm)]
		if c.comm == "http-ni..Poller" {
			if len(f.merged) < 1 || strings.Contains(got, "8080") {
				t.Errorf("%q -> %q: two ports look alike", c.comm, got)
			}
			continue
		}
		if got != c.pool {
			t.Errorf("%q -> %q, want %q", c.comm, got, c.pool)
		}
	}
}

// Pools that the cut merges are said to be merged, with the names of all.
func TestMergedPoolsAreSaid(t *testing.T) {
	f := newFolder([]Pool{{Prefix: "http-nio-20443-exec-", Ports: []int{20443}}}, []Connector{{Port: 20443, Protocol: "nio"}}, 40)
	said := f.merged[f.pool("http-nio-20443-")]
	for _, name := range []string{"http-nio-20443-exec, the connector's own threads", "counted together as http-nio-20443, and ThreadsExhausted and PoolAtCeiling stay silent for it"} {
		if !strings.Contains(said, name) {
			t.Errorf("%q is not in: %s", name, said)
		}
	}
	// Which helpers there are differs by version: none is named that may not be there.
	for _, name := range []string{"ClientPoller", "BlockPoller", "Sendfile"} {
		if strings.Contains(said, name) {
			t.Errorf("%q is in: %s", name, said)
		}
	}
	// With one digit less nothing is merged.
	f = newFolder([]Pool{{Prefix: "http-nio-8443-exec-", Ports: []int{8443}}}, []Connector{{Port: 8443, Protocol: "nio"}}, 40)
	for _, comm := range []string{"http-nio-8443-e", "http-nio-8443-P", "http-nio-8443-A"} {
		f.pool(comm)
	}
	if len(f.merged) > 0 {
		t.Errorf("merged: %v", f.merged)
	}
}

// Names that somebody invents without end must not become series without end,
// and must not push out the pools of the settings.
func TestPoolsAreBounded(t *testing.T) {
	f := newFolder([]Pool{{Prefix: "catalina-exec-"}}, nil, 20)
	for i := range 1000 {
		f.pool("job" + strings.Repeat("x", i%10) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)))
	}
	if len(f.labels) > 20 {
		t.Errorf("%d pools", len(f.labels))
	}
	if got := f.labels[f.pool("catalina-exec-1")]; got != "catalina-exec" {
		t.Errorf("catalina-exec-1 -> %q", got)
	}
	if got := f.labels[f.pool("late")]; got != poolOther {
		t.Errorf("late -> %q", got)
	}
}

func TestNetTCP(t *testing.T) {
	const file = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000063 00:00000000 00000000     0        0 1001 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:0000004E 00:00000000 00000000     0        0 1002 1
   2: 0100007F:1F90 0100007F:C351 01 00000000:00000000 00:00000000 00000000     0        0 1003 1
   3: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 1004 1
   4: 0100007F:1F90 0100007F:C352 06 00000000:00000000 03:00000000 00000000     0        0 0 3
   5: 0100007F:1F90 0100007F:C353 08 00000000:00000001 00:00000000 00000000     0        0 1005 1
   6: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000002 00:00000000
   7: broken
   8: 0100007F:XX90 0100007F:C354 01 00000000:0000004E 00:00000000
`
	ports := map[uint16]*portFigures{8080: {}}
	if rows := parseNetTCP([]byte(file), ports); rows != 7 {
		t.Errorf("%d rows", rows)
	}
	p := ports[8080]
	if !p.listening || p.queue != 0x63+2 || p.limited || p.waiting != 1 || p.closing != 1 ||
		p.states[tcpEstablished] != 2 || p.states[tcpTimeWait] != 1 || p.states[tcpCloseWait] != 1 {
		t.Errorf("%+v", *p)
	}
}

func TestCounters(t *testing.T) {
	netstat := "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPX\nTcpExt: 1 9175 9180 4\nIpExt: InNoRoutes\nIpExt: 5\n"
	for name, want := range map[string]uint64{"ListenOverflows": 9175, "ListenDrops": 9180, "TCPX": 4} {
		if v, ok := protocolCounter([]byte(netstat), "TcpExt", name); !ok || v != want {
			t.Errorf("%s = %d %v", name, v, ok)
		}
	}
	if _, ok := protocolCounter([]byte(netstat), "TcpExt", "None"); ok {
		t.Error("None is found")
	}
	dev := "Inter-|   Receive\n face |bytes\n  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0:1 2 3 40 5 6 7 8 9 10 11 120 13 14 15 16\n"
	if rx, tx, ok := interfaceDrops([]byte(dev)); !ok || rx != 44 || tx != 132 {
		t.Errorf("drops %d %d %v", rx, tx, ok)
	}
	limits := "Limit                     Soft Limit           Hard Limit           Units     \nMax processes             unlimited            unlimited            processes \nMax open files            5000                 5000                 files     \n"
	if v, known, unlimited := softLimit([]byte(limits), "Max open files"); v != 5000 || !known || unlimited {
		t.Errorf("open files %d %v %v", v, known, unlimited)
	}
	if _, known, unlimited := softLimit([]byte(limits), "Max processes"); !known || !unlimited {
		t.Errorf("processes %v %v", known, unlimited)
	}
	for list, n := range map[string]int{"0-3,8\n": 5, "0": 1, "0-1": 2, "x": 0, "": 0, "3-1": 0} {
		if got := cpuList([]byte(list)); got != n {
			t.Errorf("%q: %d cores", list, got)
		}
	}
}

// A stall, and everything that looks like one. Each step is one second.
func TestStalls(t *testing.T) {
	base := stallInput{listening: true, knowFull: true, knowPool: true, threads: 10, max: 10, knowTurns: true}
	at := time.Unix(1000, 0)
	run := func(seconds int, step func(i int, in *stallInput)) map[string]bool {
		st := &stallState{}
		var out map[string]bool
		for i := range seconds {
			in := base
			in.now = at.Add(time.Duration(i) * time.Second)
			step(i, &in)
			st.forget(&in)
			out = map[string]bool{}
			st.judge(&in, 6*time.Second, func(reason string, stalled bool) { out[reason] = stalled })
		}
		return out
	}
	for _, c := range []struct {
		name string
		step func(i int, in *stallInput)
		want string // the only reason that is 1
	}{
		{"idle server", func(int, *stallInput) {}, ""},
		{"wedged: queue full, threads idle", func(i int, in *stallInput) { in.full, in.waiting, in.busy = true, 90, 0 }, stallQueue + " " + stallUnread},
		{"wedged, but nothing sent by the clients", func(i int, in *stallInput) { in.full = true }, stallQueue},
		{"busy: all threads in use", func(i int, in *stallInput) { in.full, in.waiting, in.busy, in.turns = true, 90, 10, uint64(i)*100 }, ""},
		{"the back end hangs: all threads in use, none moves", func(i int, in *stallInput) { in.full, in.waiting, in.busy = true, 90, 10 }, ""},
		{"all threads in use, two of the pool are the connector's own helpers", func(i int, in *stallInput) {
			in.threads, in.busy, in.waiting, in.untouched = 12, 10, 30, 30
		}, ""},
		{"all threads in use, four of the pool accept and select", func(i int, in *stallInput) {
			in.threads, in.max, in.aside, in.busy, in.waiting, in.untouched = 14, 14, 4, 10, 30, 30
		}, ""},
		{"the server is not done starting", func(i int, in *stallInput) {
			in.threads, in.full, in.waiting, in.untouched = 0, true, 5, 5
		}, ""},
		{"NIO2 has lost its requests: half a queue, and what looks like busy threads", func(i int, in *stallInput) {
			in.queue, in.busy, in.closing, in.died = 49, 15, 15, i == 1
		}, stallQueue},
		{"the same, and one more client", func(i int, in *stallInput) {
			in.queue, in.busy, in.closing, in.died, in.waiting, in.untouched = 49, 15, 15, i == 1, 1, 1
		}, stallQueue + " " + stallUnread},
		{"the same without a death: all threads serve clients that gave up", func(i int, in *stallInput) {
			in.queue, in.busy, in.closing = 49, 15, 15
		}, ""},
		{"threads of NIO2 died, and the others all serve", func(i int, in *stallInput) {
			in.queue, in.busy, in.closing, in.died, in.waiting = 49, 25, 15, i == 1, 30
		}, ""},
		{"threads of NIO2 died, and it serves on", func(i int, in *stallInput) {
			in.queue, in.busy, in.closing, in.died, in.turns = 3, 15, 15, i == 1, uint64(i)*100
		}, ""},
		{"maxConnections reached", func(i int, in *stallInput) { in.full, in.atLimit, in.waiting = true, true, 5 }, ""},
		{"queue full but threads work", func(i int, in *stallInput) { in.full, in.busy, in.turns = true, 3, uint64(i)*100 }, ""},
		{"queue full but lines come", func(i int, in *stallInput) {
			in.full, in.hasLines, in.knowLines, in.served = true, true, true, float64(i)
		}, ""},
		{"queue full but buffered lines come in lumps", func(i int, in *stallInput) { in.full, in.hasLines, in.served = true, true, float64(i/5) }, ""},
		{"queue full, no buffered line comes, and no turns can be read", func(i int, in *stallInput) {
			in.full, in.hasLines, in.served, in.knowTurns = true, true, 7, false
		}, ""},
		{"wedged with a buffered log", func(i int, in *stallInput) { in.full, in.hasLines, in.served = true, true, 7 }, stallQueue},
		{"nobody reads one request", func(i int, in *stallInput) { in.waiting, in.untouched = 1, 1 }, stallUnread},
		{"a thread sleeps before it reads a body", func(i int, in *stallInput) { in.waiting, in.untouched = 1, 0 }, ""},
		{"more unread requests than threads on kept connections", func(i int, in *stallInput) { in.waiting = 11 }, stallUnread},
		{"nobody reads, but for 3 s only", func(i int, in *stallInput) {
			if i > 9 {
				in.waiting, in.untouched = 1, 1
			}
		}, ""},
		{"no way to see progress", func(i int, in *stallInput) { in.full, in.waiting, in.untouched, in.knowTurns = true, 5, 5, false }, ""},
		{"not listening any more", func(i int, in *stallInput) { in.full, in.waiting, in.untouched, in.listening = true, 5, 5, false }, ""},
		{"poller dies", func(i int, in *stallInput) {
			in.helpers, in.pollers, in.acceptors = helpersApart, 1, 1
			if i > 4 {
				in.pollers = 0
			}
		}, stallPoller},
		{"poller was dead before we came", func(i int, in *stallInput) { in.helpers, in.acceptors = helpersApart, 1 }, stallPoller},
		{"a new thread under its maker's name", func(i int, in *stallInput) {
			in.helpers, in.pollers = helpersTogether, 2
			if i == 3 || i == 4 || i == 7 {
				in.pollers = 3
			}
		}, ""},
		{"acceptor dies, one of two names", func(i int, in *stallInput) {
			in.helpers, in.pollers = helpersTogether, 2
			if i > 4 {
				in.pollers = 1
			}
		}, stallThread},
		{"poller is replaced at once", func(i int, in *stallInput) {
			in.helpers, in.pollers, in.acceptors = helpersApart, 1, 1
			if i == 5 {
				in.pollers = 0
			}
		}, ""},
	} {
		var stalled []string
		out := run(12, c.step)
		for _, reason := range []string{stallQueue, stallPoller, stallAcceptor, stallThread, stallUnread} {
			if out[reason] {
				stalled = append(stalled, reason)
			}
		}
		if got := strings.Join(stalled, " "); got != c.want {
			t.Errorf("%s: stalled %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Fatal(err)
	}
}

func TestConfigCheck(t *testing.T) {
	if err := DefaultConfig().Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(*Config){
		func(c *Config) { c.MaxPools = 0 }, func(c *Config) { c.MaxPools = 1000 },
		func(c *Config) { c.MaxThreadReads = 1 }, func(c *Config) { c.StallAfter = 0 },
	} {
		c := DefaultConfig()
		bad(&c)
		if c.Check() == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

func FuzzStat(f *testing.F) {
	b, _ := os.ReadFile(filepath.Join("/proc/self/stat"))
	f.Add(b)
	f.Add([]byte("1 (a) R 1 (x) S 10129 10132 10132 0 -1 4194304 11 0 33 0 250 40 0 0 20 0 7 0 8981900"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s stat
		s.parse(b)
		number(b, "VmSwap:")
		softLimit(b, "Max")
		cpuList(b)
		parsePressure(nil, "cpu", b)
	})
}

func FuzzSockets(f *testing.F) {
	f.Add([]byte("  0: 0100007F:1F90 00000000:0000 0A 00000000:00000063 00:00000000\n"))
	f.Add([]byte("TcpExt: A B\nTcpExt: 1 2\n lo: 1 2 3 4 5 6 7 8 9 10 11 12 13\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseNetTCP(b, map[uint16]*portFigures{8080: {}})
		protocolCounter(b, "TcpExt", "B")
		interfaceDrops(b)
	})
}

func FuzzName(f *testing.F) {
	f.Add("http-nio-127.0.")
	f.Add("catalin..xec-10")
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), commLen)]
		fd := newFolder([]Pool{{Prefix: "catalina-exec-"}}, []Connector{{Port: 8080, Protocol: "nio"}}, 40)
		if label := fd.labels[fd.pool(s)]; label == "" || strings.ContainsAny(label, "\n\r\x00") {
			t.Errorf("%q -> %q", s, label)
		}
	})
}
