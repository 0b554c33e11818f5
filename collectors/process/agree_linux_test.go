package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// Each figure of a real server, on each JDK of this machine, is what jstack, ss
// and the kernel's own files say.
func TestAgreesWithTools(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip(err)
	}
	shared := &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 100}
	majors := map[int]bool{}
	for _, jdk := range lab.JDKs() {
		if jdk.Major < 17 || majors[jdk.Major] {
			continue
		}
		majors[jdk.Major] = true
		for _, c := range []struct {
			name  string
			start func(t *testing.T) *watched
			pools func(port int) map[string]string // label: how the full names begin
			merge bool
		}{
			{"a shared Executor, four digits", func(t *testing.T) *watched {
				o := lab.Tomcat{Version: "10.1.34", ShortPort: true, AnyAddress: true, Executor: shared, AcceptCount: 7, JDK: jdk}
				return watch(t, lab.StartTomcat(t, o), "nio", o)
			}, func(port int) map[string]string {
				return map[string]string{"catalina-exec": "catalina-exec-", fmt.Sprintf("http-nio-%d-Poller", port): fmt.Sprintf("http-nio-%d-Poller", port),
					fmt.Sprintf("http-nio-%d-Acceptor", port): fmt.Sprintf("http-nio-%d-Acceptor", port), "Catalina-utility": "Catalina-utility-"}
			}, false},
			// http-nio-18080- is all that the kernel keeps of exec, Poller and Acceptor.
			{"a pool of its own, five digits", func(t *testing.T) *watched {
				o := lab.Tomcat{Version: "9.0.98", AnyAddress: true, MaxThreads: 10, AcceptCount: 7, JDK: jdk}
				return watch(t, lab.StartTomcat(t, o), "nio", o)
			}, func(port int) map[string]string {
				return map[string]string{fmt.Sprintf("http-nio-%d", port): fmt.Sprintf("http-nio-%d-", port)}
			}, true},
			{"Jetty", func(t *testing.T) *watched {
				return watch(t, lab.StartJetty(t, lab.Jetty{Version: "12.0.16", MinThreads: 10, MaxThreads: 14, JDK: jdk}), "jetty", lab.Tomcat{})
			}, func(int) map[string]string { return map[string]string{"qtp": "qtp"} }, false},
		} {
			t.Run(fmt.Sprintf("%d/%s", jdk.Major, c.name), func(t *testing.T) {
				w := c.start(t)
				g := newGate(t)
				all := dial(t, w.Addr, false, 9)
				write(all[:6], get(g.path("hold")))
				w.at(t, w.Port, g, "six held, three silent", 6, 0, 0)
				have := w.poll(t)
				for label, prefix := range c.pools(w.Port) {
					n, err := w.ThreadsNamed(prefix)
					if err != nil {
						t.Fatal(err)
					}
					want(t, have, "jvm_threadpool_threads pool="+label, float64(n), float64(n))
				}
				merged := false
				for _, b := range w.poller.Blind() {
					merged = merged || b.Reason == BlindMerged && strings.Contains(b.Detail, fmt.Sprintf("http-nio-%d-exec", w.Port)) && strings.Contains(b.Detail, "the connector's own threads")
				}
				if merged != c.merge {
					t.Errorf("said to be merged: %v, want %v: %+v", merged, c.merge, w.poller.Blind())
				}
				queue, limit := listenBySS(t, w.Port)
				want(t, have, fmt.Sprintf("tcp_listen_queue port=%d", w.Port), queue, queue)
				want(t, have, fmt.Sprintf("tcp_listen_limit port=%d", w.Port), limit, limit)
				if c.name != "Jetty" && limit != 7 {
					t.Errorf("ss says a limit of %v, acceptCount is 7", limit)
				}
				for state, n := range statesBySS(t, w.Port) {
					want(t, have, fmt.Sprintf("connector_connections port=%d state=%s", w.Port, state), n, n)
				}
				want(t, have, fmt.Sprintf("connector_connections port=%d state=established", w.Port), 9, 9)
				tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", w.PID))
				want(t, have, "process_threads", float64(len(tasks)-2), float64(len(tasks)+2))
				fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.PID))
				want(t, have, "process_open_fds", float64(len(fds)-2), float64(len(fds)+2))
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID))
				_, rest, _ := strings.Cut(string(status), "VmRSS:")
				kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				if err != nil {
					t.Fatal(err)
				}
				want(t, have, "process_resident_memory_bytes", kb*1024*0.9, kb*1024*1.1)
				g.open()
				answers(t, all[:6], 1)
				if gone, err := w.Exited(); gone {
					t.Errorf("the server has ended: %v", err)
				}
			})
		}
	}
	if len(majors) == 0 {
		_, err := lab.AnyJDK(17)
		lab.Need(t, err)
	}
}

// ss runs it and returns the rows' fields.
func ss(t testing.TB, args ...string) (rows [][]string) {
	t.Helper()
	out, err := exec.Command("ss", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 {
			rows = append(rows, f)
		}
	}
	return rows
}

func listenBySS(t testing.TB, port int) (queue, limit float64) {
	t.Helper()
	rows := ss(t, "-Hltn", fmt.Sprintf("sport = :%d", port))
	if len(rows) != 1 {
		t.Fatalf("%d listeners: %v", len(rows), rows)
	}
	queue, _ = strconv.ParseFloat(rows[0][1], 64)
	limit, _ = strconv.ParseFloat(rows[0][2], 64)
	return queue, limit
}

func statesBySS(t testing.TB, port int) map[string]float64 {
	t.Helper()
	names := map[string]string{"ESTAB": "established", "TIME-WAIT": "time_wait", "CLOSE-WAIT": "close_wait", "SYN-RECV": "syn_recv"}
	states := map[string]float64{"established": 0, "time_wait": 0, "close_wait": 0, "syn_recv": 0}
	for _, f := range ss(t, "-Htan", fmt.Sprintf("sport = :%d", port)) {
		if name, ok := names[f[0]]; ok {
			states[name]++
		}
	}
	return states
}

// unreadBySS is what ss counts: established connections of a port with bytes in
// their receive queue.
func unreadBySS(t testing.TB, port int) (n int) {
	t.Helper()
	for _, f := range ss(t, "-Htn", "state", "established", fmt.Sprintf("sport = :%d", port)) {
		if f[0] != "0" {
			n++
		}
	}
	return n
}
