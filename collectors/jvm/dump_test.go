package jvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// made is a dump with what can be odd in one.
const made = `0
2026-11-30 12:51:17
Full thread dump OpenJDK 64-Bit Server VM (25.0.3+9-LTS mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00007f0fe0004490, length=27, elements={
0x00007f102402d1f0
}

"main" #3 [30214] prio=5 os_prio=0 cpu=1480.56ms elapsed=5.93s tid=0x00007f102402d1f0 nid=30214 waiting on condition  [0x00007f102a7fe000]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleepNanos0(java.base@25.0.3/Native Method)
	at java.lang.invoke.LambdaForm$DMH/0x000000004f0a2400.invokeVirtual(java.base@25.0.3/LambdaForm$DMH)

"a "quoted" name" #4 daemon prio=5 os_prio=0 cpu=2.00ms elapsed=5.93s tid=0x1 nid=0x2 runnable  [0x1]
   java.lang.Thread.State: RUNNABLE
	at a.B.c(B.java:1)

"catalina-exec-1" #14 daemon prio=5 os_prio=0 tid=0x3 nid=0x4 waiting for monitor entry [0x1]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at a.Shop.sell(Shop.java:7)
	- waiting to lock <0x00000000f8008de0> (a a.Shop$Till)
	at a.Shop.run(Shop.java:3)

   Locked ownable synchronizers:
	- None

"catalina-exec-12" #15 daemon prio=5 os_prio=0 tid=0x3 nid=0x4 waiting for monitor entry [0x1]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at a.Shop.sell(Shop.java:7)
	- waiting to lock <0x00000000f8008de1> (a a.Shop$Till)
	at a.Shop.run(Shop.java:3)

"http-nio-127.0.0.1-8080-exec-7" #16 daemon prio=5 os_prio=0 tid=0x3 nid=0x4 waiting on condition [0x1]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17/Native Method)
	- parking to wait for  <0x1> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
	at org.apache.tomcat.util.threads.TaskQueue.take(TaskQueue.java:1)

"a thread whose name has
two lines" #17 daemon

"C2 CompilerThread0" #18 daemon prio=9 os_prio=0 tid=0x3 nid=0x4 waiting on condition [0x1]
   java.lang.Thread.State: RUNNABLE

"GC Thread#0" os_prio=0 cpu=25.29ms elapsed=8.78s tid=0x00007f6ca803d570 nid=0x7589 runnable  

JNI global refs: 14, weak refs: 0


Found one Java-level deadlock:
=============================
"catalina-exec-1":
  waiting to lock monitor 0x00007f (object 0x00000000f, a a.Shop$Till),
  which is held by "catalina-exec-12"

"catalina-exec-12":
  waiting to lock monitor 0x00007f (object 0x00000000f, a a.Shop$Till),
  which is held by "catalina-exec-1"

Java stack information for the threads listed above:
===================================================
"catalina-exec-1":
	at a.Shop.sell(Shop.java:7)
`

func TestParseDump(t *testing.T) {
	d, err := ParseDump([]byte(made))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, x := range d.Threads {
		have = append(have, fmt.Sprintf("%s|%s|%v|%s|%.6g|%d|%s", x.Name, x.Pool, x.Daemon, x.State, x.CPU, len(x.Stack), x.Waits))
	}
	want := `main|main|false|TIMED_WAITING|1.48056|2|
a "quoted" name|a "quoted" name|true|RUNNABLE|0.002|1|
catalina-exec-1|catalina-exec|true|BLOCKED|-1|2|a.Shop$Till
catalina-exec-12|catalina-exec|true|BLOCKED|-1|2|a.Shop$Till
http-nio-127.0.0.1-8080-exec-7|http-nio-127.0.0.1-8080-exec|true|WAITING|-1|2|java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject
C2 CompilerThread0|jvm-compiler|true|RUNNABLE|-1|0|
GC Thread#0|jvm-gc|false||0.02529|0|`
	if got := strings.Join(have, "\n"); got != want {
		t.Errorf("threads:\n%s\nwant:\n%s", got, want)
	}
	if d.Unread != 1 || strings.Join(d.Deadlocked, " ") != "catalina-exec-1 catalina-exec-12" || d.Time != "2026-11-30 12:51:17" || !strings.HasPrefix(d.VM, "OpenJDK") {
		t.Errorf("unread %d, deadlocked %v, %q, %q", d.Unread, d.Deadlocked, d.Time, d.VM)
	}
	if s := fmt.Sprint(d.States()); s != "map[BLOCKED:2 NEW:0 RUNNABLE:1 TERMINATED:0 TIMED_WAITING:1 WAITING:1]" {
		t.Errorf("states %s", s)
	}
	if f := d.Threads[0].Stack; f[0] != "java.lang.Thread.sleepNanos0(Native Method)" || f[1] != "java.lang.invoke.LambdaForm$DMH.invokeVirtual(LambdaForm$DMH)" {
		t.Errorf("frames %q", f)
	}
	stacks := d.Stacks()
	if stacks[0].Threads != 2 || stacks[0].State != "BLOCKED" || !stacks[len(stacks)-1].Idle() {
		t.Errorf("stacks %+v", stacks)
	}
	var b bytes.Buffer
	if err := d.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DEADLOCK: 2 threads", "catalina-exec                                   2         0        2", "2 × BLOCKED in catalina-exec, waiting for a a.Shop$Till", "1 threads could not be read"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestDumpRefusals(t *testing.T) {
	for _, c := range []struct {
		in   string
		want error
	}{
		{"", NoDump},
		{"Attach refused", NoDump},
		{"Full thread dump OpenJDK:\n\nJNI global refs: 14\n", NoThreads},
		{made[:strings.Index(made, "JNI global")], DumpCutShort},
	} {
		if _, err := ParseDump([]byte(c.in)); !errors.Is(err, c.want) {
			t.Errorf("%.20q: %v, want %v", c.in, err, c.want)
		}
	}
}

func TestPoolNames(t *testing.T) {
	for name, want := range map[string]string{
		"qtp1589683045-15": "qtp", "qtp1589683045-14-acceptor-0@5e91993f-ServerConnector@3a{HTTP/1.1,(http/1.1)}{127.0.0.1:80}": "qtp-acceptor",
		"3472934@qtp-2349-1": "qtp", "pool-3-thread-17": "pool-N-thread", "http-nio-8080-Poller": "http-nio-8080-Poller",
		"http-bio-8080-exec-3": "http-bio-8080-exec", "http-8080-17": "http-8080", "http-nio-8080-ClientPoller-1": "http-nio-8080-ClientPoller",
		"ForkJoinPool-1-worker-3": "ForkJoinPool", "Thread-17": "Thread", "17": "unnamed", "Scheduler-12345-1": "Scheduler-N",
		"HikariPool-1 housekeeper": "HikariPool-N housekeeper",
	} {
		if got := poolOf(&Thread{Name: name, Java: true}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The dumps of real servers kept in the shared folder.
func TestDumpCorpus(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedDir(t), "corpus/discovery/threads/*-jstack.txt"))
	more, _ := filepath.Glob(filepath.Join(sharedDir(t), "corpus/discovery/attach-jdk*/threaddump-*.response"))
	files = append(files, more...)
	if len(files) < 10 {
		t.Fatalf("only %v", files)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseDump(b)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if lines := bytes.Count(b, []byte("\n\"")); len(d.Threads) != lines || d.Unread != 0 {
			t.Errorf("%s: %d threads of %d, %d unread", f, len(d.Threads), lines, d.Unread)
		}
		states := 0
		for _, x := range d.Threads {
			if x.State != "" {
				states++
			}
		}
		if n := bytes.Count(b, []byte("Thread.State: ")); n != states {
			t.Errorf("%s: %d states of %d", f, states, n)
		}
		pools := map[string]int{}
		for _, p := range d.Pools() {
			pools[p.Pool] = p.Threads
		}
		exec := pools["catalina-exec"] + pools["qtp"]
		for p, n := range pools {
			if strings.HasPrefix(p, "http-") && strings.HasSuffix(p, "-exec") {
				exec += n
			}
		}
		if exec == 0 && !strings.Contains(f, "virt") {
			t.Errorf("%s: no worker threads in %v", f, pools)
		}
	}
}

// A dump takes its time: polls go on without it, its figures appear when it is
// there, and go when no further one comes.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metric.ForTarget("t")
		calls := 0
		var blind *Blind
		var fail error
		p := New(set, Config{Attach: true, DumpEvery: 10 * time.Second, Dump: func(ctx context.Context) ([]byte, *Blind, error) {
			calls++
			time.Sleep(3 * time.Second)
			return []byte(made), blind, fail
		}})
		poll := func() map[string]float64 {
			p.Poll(t.Context(), time.Now())
			return values(set)
		}
		for range 3 {
			if v := poll(); len(v) != 0 {
				t.Errorf("too early: %v", v)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if v := poll(); v["jvm_threads_state state=BLOCKED"] != 2 || v["jvm_threads_deadlocked"] != 2 || calls != 1 {
			t.Errorf("%d calls, %v", calls, v)
		}
		if _, ok := values(set)["jvm_threads_state state=NEW"]; !ok {
			t.Error("a state that no thread has is 0, not absent")
		}
		fail = errors.New("no answer")
		for range 25 {
			time.Sleep(time.Second)
			synctest.Wait()
			poll()
		}
		if v := poll(); v["jvm_threads_state state=BLOCKED"] != 2 || calls != 3 {
			t.Errorf("28 s later: %d calls, %v", calls, v)
		}
		if b := p.Blind(); !slices.ContainsFunc(b, func(b Blind) bool { return b.Reason == "no_dump_now" }) {
			t.Errorf("blind %v", b)
		}
		for range 10 {
			time.Sleep(time.Second)
			synctest.Wait()
			poll()
		}
		if v := values(set); len(v) != 0 {
			t.Errorf("old figures stay: %v", v)
		}
		p.Close()
		time.Sleep(time.Minute)
		n := calls
		poll()
		time.Sleep(time.Minute)
		if poll(); calls != n {
			t.Error("a closed poller asks on")
		}
	})
}

// A JVM with more threads than the setting allows is left alone.
func TestTooManyThreads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1")
	if err := os.WriteFile(path, file(t, "java.threads.live 2001"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := New(metric.ForTarget("t"), Config{Attach: true, PerfPath: path, Dump: func(context.Context) ([]byte, *Blind, error) {
		t.Error("a dump of 2,001 threads")
		return nil, nil, nil
	}})
	p.Poll(t.Context(), time.Unix(1000, 0))
	if b := p.Blind(); !slices.ContainsFunc(b, func(b Blind) bool { return b.Reason == BlindThreads }) {
		t.Errorf("blind %v", b)
	}
	p.Close()
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Check(); err != nil || DefaultConfig().Attach {
		t.Errorf("the default: %v", err)
	}
	if err := (Config{DumpEvery: time.Second}).Check(); err == nil {
		t.Error("a dump a second")
	}
	if err := (Config{DumpThreads: -1}).Check(); err == nil {
		t.Error("less than no threads")
	}
}

func FuzzDump(f *testing.F) {
	f.Add([]byte(made))
	f.Add([]byte("Full thread dump x:\n\"a\" tid=\n   java.lang.Thread.State: \n\tat \n\tat a/0x\nJNI global ref"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDump(b)
		if (d == nil) == (err == nil) {
			t.Fatal("neither a dump nor an error, or both")
		}
		if d == nil {
			return
		}
		sum := 0
		for _, p := range d.Pools() {
			if p.Pool == "" {
				t.Error("a pool without a name")
			}
			sum += p.Threads
		}
		if sum != len(d.Threads) {
			t.Errorf("%d threads in pools of %d", sum, len(d.Threads))
		}
		if err := d.WriteSummary(new(bytes.Buffer)); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkParseDump(b *testing.B) {
	head, rest, _ := strings.Cut(made, `"catalina-exec-1"`)
	_, tail, _ := strings.Cut(rest, "JNI global")
	var text strings.Builder
	text.WriteString(head)
	for i := range 2000 {
		fmt.Fprintf(&text, "\"catalina-exec-%d\" #14 daemon prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x3 nid=0x4 waiting on condition [0x1]\n   java.lang.Thread.State: WAITING (parking)\n", i)
		for k := range 25 {
			fmt.Fprintf(&text, "\tat org.apache.tomcat.util.net.SomeClass$Inner.method%d(SomeClass.java:%d)\n", k, k*7)
		}
		text.WriteString("\n")
	}
	text.WriteString("JNI global" + tail)
	in := []byte(text.String())
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseDump(in); err != nil {
			b.Fatal(err)
		}
	}
}
func sharedDir(t testing.TB) string {
	dir, _ := os.Getwd()
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == "/" {
			t.Fatal("no go.mod above")
		}
	}
	shared := filepath.Join(dir, "../shared")
	if _, err := os.Stat(shared); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no shared folder: ", err)
		}
		t.Skip("no shared folder beside the checkout")
	}
	return shared
}
