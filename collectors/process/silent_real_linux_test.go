package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The silent deaths of real servers. Each stands still once it has died, so the
// clock of the samples is the test's own: ten of them are ten seconds.

// verdicts takes so many samples, each a second later than the one before, and
// returns the reasons for which a port was called stalled in the last.
func (w *watched) verdicts(t *testing.T, port, samples int) (reasons []string) {
	t.Helper()
	var have map[string]float64
	for range samples {
		have = w.poll(t)
	}
	for _, reason := range []string{stallQueue, stallPoller, stallAcceptor, stallThread, stallUnread} {
		if have[fmt.Sprintf("connector_stalled port=%d reason=%s", port, reason)] == 1 {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// served says whether the server answers one more client.
func served(addr string) bool {
	tally := lab.Burst(addr, "/slow", 1, 3*time.Second)
	return tally.Complete() == 1
}

// comms counts the threads of a process whose name begins so, in the kernel's own files.
func comms(pid int, prefix string) (n int) {
	found, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	for _, f := range found {
		if b, _ := os.ReadFile(f); strings.HasPrefix(string(b), prefix) {
			n++
		}
	}
	return n
}

// oneUser is a user that has no process here: no limit of processes binds root.
func oneUser() uint32 { return 61_000 + uint32(os.Getpid()%4000) }

// When a Tomcat may have no more threads, its Poller dies of the first that it
// asks for. Then connections are accepted and nobody reads them.
func TestPollerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	shared := &lab.Executor{MaxThreads: 20, MinSpare: 4, MaxQueueSize: 100}
	jdks := lab.JDKs()
	for _, c := range []struct {
		name string
		lab.Tomcat
		want []string
	}{
		{"four digits", lab.Tomcat{Version: "9.0.98", ShortPort: true, AnyAddress: true, Executor: shared}, []string{stallPoller, stallUnread}},
		{"newest JDK", lab.Tomcat{Version: "10.1.34", ShortPort: true, AnyAddress: true, Executor: shared, JDK: jdks[len(jdks)-1]}, []string{stallPoller, stallUnread}},
		// http-nio-18080- is all that is left of Poller and Acceptor.
		{"five digits", lab.Tomcat{Version: "8.5.100", AnyAddress: true, Executor: shared}, []string{stallThread, stallUnread}},
		// http-nio-127.0. is all that is left of Poller, Acceptor and exec.
		{"own pool", lab.Tomcat{Version: "10.1.34", MaxThreads: 20, Connector: `minSpareThreads="4"`}, []string{stallUnread}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.UID, c.AcceptCount = oneUser(), 100
			w := watch(t, lab.StartTomcat(t, c.Tomcat), "nio", c.Tomcat)
			if got := w.verdicts(t, w.Port, 60); len(got) > 0 {
				t.Fatalf("idle and called dead: %v", got)
			}
			if !served(w.Addr) {
				t.Fatal("it does not serve")
			}
			poller := fmt.Sprintf("http-nio-%d-", w.Port)
			if c.ShortPort {
				poller += "P"
			}
			before := comms(w.PID, poller)
			// Not one more thread for this user.
			lab.Need(t, w.Limit("nproc", 1))
			g := newGate(t)
			all := dial(t, w.Addr, false, 8)
			write(all, get(g.path("hold")))
			if !lab.Until(20*time.Second, func() bool {
				return strings.Contains(w.Output(), "unable to create native thread") && (!c.AnyAddress || comms(w.PID, poller) == before-1)
			}) {
				t.Fatalf("the Poller lives: %d of %d; %s", comms(w.PID, poller), before, w.Output())
			}
			g.open()
			lab.Until(5*time.Second, func() bool { return g.held() == 0 })
			all = append(all, dial(t, w.Addr, false, 1)...)
			write(all[8:], get("/slow"))
			if served(w.Addr) {
				t.Fatal("it serves on: this server survived")
			}
			if got := w.verdicts(t, w.Port, 10); !slices.Equal(got, c.want) {
				t.Errorf("stalled: %v, want %v", got, c.want)
			}
			if gone, err := w.Exited(); gone {
				t.Errorf("the server has ended: %v", err)
			}
			hangUp(all)
		})
	}
}

// NIO2 on a bounded Executor loses requests of a burst, and some servers never
// serve again. Which do is chance: both ends are taken, and said rightly.
func TestNIO2Bursts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	executor := &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}
	jdks := lab.JDKs()
	if len(jdks) == 0 {
		_, err := lab.AnyJDK(8)
		lab.Need(t, err)
	}
	wedged, survived := 0, 0
	for _, c := range []lab.Tomcat{
		{Version: "10.1.60"}, {Version: "9.0.98"}, {Version: "10.1.60", JDK: jdks[len(jdks)-1]},
		// Up to here NIO2 can't use a shared Executor at all and serves with threads
		// without end.
		{Version: "9.0.70"},
	} {
		t.Run(c.Version, func(t *testing.T) {
			c.Protocol, c.Executor, c.AcceptCount = "nio2", executor, 100
			w := watch(t, lab.StartTomcat(t, c), "nio2", c)
			w.poller.Died(0)
			for burst := range 4 {
				tally := lab.Burst(w.Addr, "/slow?ms=200", 80, 3*time.Second)
				lives := served(w.Addr) || served(w.Addr)
				// Whoever gave up is gone; one client is left, as there is always one.
				late := dial(t, w.Addr, false, 1)
				write(late, get("/slow"))
				if lives {
					answers(t, late, 1)
				}
				// What collectors tells of the server's log.
				w.poller.Died(float64(strings.Count(w.Output(), "ShutdownChannelGroupException\n")))
				got := w.verdicts(t, w.Port, 10)
				have := values(w.set)
				t.Logf("burst %d: %s; lives %v, stalled %v, queue %v, waiting %v, ShutdownChannelGroupException %d", burst, tally, lives, got,
					have[fmt.Sprintf("tcp_listen_queue port=%d", w.Port)], have[fmt.Sprintf("connector_requests_waiting port=%d", w.Port)],
					strings.Count(w.Output(), "ShutdownChannelGroupException"))
				if lives != (len(got) == 0) {
					t.Errorf("it serves: %v, and is called stalled: %v", lives, got)
				}
				hangUp(late)
				if !lives {
					// And with no client at all, the queue that nobody empties tells.
					n := values(w.set)[fmt.Sprintf("tcp_listen_queue port=%d", w.Port)]
					if got := w.verdicts(t, w.Port, 10); n > 0 && !slices.Contains(got, stallQueue) {
						t.Errorf("%v in the accept queue, no client, stalled: %v", n, got)
					}
					wedged++
					return
				}
			}
			survived++
		})
	}
	t.Logf("%d wedged, %d survived", wedged, survived)
}

// A Tomcat opens its port before it deploys, which may take minutes: clients queue
// up, their requests are read by nobody, and nothing is wrong.
func TestStartingIsNotDead(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	g := newGate(t)
	o := lab.Tomcat{Version: "9.0.98", Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4}, AcceptCount: 3, NoWait: true, JVMArgs: []string{"-Dlab.start.hold=" + g.dir}}
	s := lab.StartTomcat(t, o)
	if !lab.Until(time.Minute, func() bool { return g.held() == 1 }) {
		t.Fatalf("it does not deploy: %s", s.Output())
	}
	w := watch(t, s, "nio", o)
	all := dial(t, w.Addr, false, 4)
	write(all, get("/slow"))
	if !lab.Until(10*time.Second, func() bool {
		return w.poll(t)[fmt.Sprintf("connector_requests_waiting port=%d", w.Port)] == 4
	}) {
		t.Fatalf("nobody waits: %v", values(w.set))
	}
	have := values(w.set)
	want(t, have, fmt.Sprintf("tcp_listen_queue port=%d", w.Port), 4, 4)
	want(t, have, fmt.Sprintf("tcp_listen_limit port=%d", w.Port), 3, 3)
	for range 6 {
		if got := w.verdicts(t, w.Port, 10); len(got) > 0 {
			t.Fatalf("it deploys and is called dead: %v", got)
		}
	}
	g.open()
	if err := w.WaitStarted(); err != nil {
		t.Fatal(err)
	}
	answers(t, all, 1)
}

// A request now and then, each of them slow, and an access log whose lines come in
// lumps: by the clock on the wall, since it is the server's own buffer that is slow.
func TestBufferedLogIsNotDead(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	o := lab.Tomcat{Version: "10.1.34", Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4}, AcceptCount: 100, Buffered: true}
	w := watch(t, lab.StartTomcat(t, o), "nio", o)
	kept := dial(t, w.Addr, false, 1)
	var lines []int
	began := time.Now()
	for second := 0; second < 25; second++ {
		switch {
		case second%9 == 0: // a long one, on a connection of its own
			write(dial(t, w.Addr, false, 1), get("/slow?ms=8000"))
		case second%4 == 0:
			write(kept, get("/slow"))
			answers(t, kept, 1)
		}
		lab.Until(time.Until(began.Add(time.Duration(second+1)*time.Second)), func() bool { return false })
		n := strings.Count(w.AccessLog(), "\n")
		if len(lines) == 0 || lines[len(lines)-1] != n {
			lines = append(lines, n)
		}
		w.poller.Served(w.Port, float64(n), false)
		w.now = time.Now().Add(-time.Second)
		if got := w.verdicts(t, w.Port, 1); len(got) > 0 {
			t.Fatalf("after %d s: %v", second, got)
		}
	}
	if len(lines) > 4 {
		t.Errorf("the log is not buffered: %v lines", lines)
	}
	t.Logf("lines seen: %v", lines)
}
