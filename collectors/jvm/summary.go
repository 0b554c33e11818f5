package jvm

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A PoolSummary is one pool's share of a dump.
type PoolSummary struct {
	Pool    string
	Threads int
	States  map[string]int // Java's; empty for the JVM's own threads
	CPU     float64        // seconds, of those threads of which it is known
}

// A StackSummary is a stack that several threads have.
type StackSummary struct {
	Threads int
	State   string
	Pools   []string
	Frames  []string
	Waits   string
}

// Pools sums a dump up by pool, the largest first.
func (d *Dump) Pools() []PoolSummary {
	at := map[string]int{}
	var out []PoolSummary
	for i := range d.Threads {
		t := &d.Threads[i]
		n, ok := at[t.Pool]
		if !ok {
			n = len(out)
			at[t.Pool] = n
			out = append(out, PoolSummary{Pool: t.Pool, States: map[string]int{}})
		}
		out[n].Threads++
		if t.State != "" {
			out[n].States[t.State]++
		}
		out[n].CPU += max(t.CPU, 0)
	}
	slices.SortStableFunc(out, func(a, b PoolSummary) int {
		if a.Threads != b.Threads {
			return b.Threads - a.Threads
		}
		return strings.Compare(a.Pool, b.Pool)
	})
	return out
}

// Stacks are the stacks that most threads have, idle ones last: forty workers
// that wait for work say less than three that wait for the same lock.
func (d *Dump) Stacks() []StackSummary {
	at := map[string]int{}
	var out []StackSummary
	for i := range d.Threads {
		t := &d.Threads[i]
		if len(t.Stack) == 0 {
			continue
		}
		key := t.State + "\n" + strings.Join(t.Stack, "\n")
		n, ok := at[key]
		if !ok {
			n = len(out)
			at[key] = n
			out = append(out, StackSummary{State: t.State, Frames: t.Stack, Waits: t.Waits})
		}
		out[n].Threads++
		if !slices.Contains(out[n].Pools, t.Pool) && len(out[n].Pools) < 8 {
			out[n].Pools = append(out[n].Pools, t.Pool)
		}
	}
	slices.SortStableFunc(out, func(a, b StackSummary) int {
		if x, y := a.Idle(), b.Idle(); x != y {
			if x {
				return 1
			}
			return -1
		}
		return b.Threads - a.Threads
	})
	return out
}

// idle are frames of threads that wait for work, not in the middle of it.
var idle = []string{
	"java.util.concurrent.ThreadPoolExecutor.getTask(", "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask(",
	"org.apache.tomcat.util.threads.TaskQueue.take(", "org.apache.tomcat.util.threads.TaskQueue.poll(",
	"org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll(", "org.eclipse.jetty.util.BlockingArrayQueue.poll(", "org.eclipse.jetty.util.BlockingArrayQueue.take(",
	"org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.reservedWait(",
	"org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.run(",
	"java.util.concurrent.ForkJoinPool.awaitWork(", "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.take(",
	"sun.nio.ch.EPoll.wait(", "sun.nio.ch.EPollArrayWrapper.epollWait(", "java.net.PlainSocketImpl.socketAccept(", "sun.nio.ch.Net.accept(",
	"sun.nio.ch.ServerSocketChannelImpl.accept0(", "java.lang.ref.ReferenceQueue.remove(", "java.lang.ref.Reference.waitForReferencePendingList(",
	"java.util.concurrent.LinkedBlockingDeque.take(", "org.apache.catalina.core.StandardServer.await(",
}

// Idle says that the stack is one of waiting for work.
func (s *StackSummary) Idle() bool {
	for _, f := range s.Frames {
		for _, i := range idle {
			if strings.HasPrefix(f, i) {
				return true
			}
		}
	}
	return false
}

const (
	shownPools  = 20
	shownStacks = 8
	shownFrames = 12
)

// WriteSummary writes what a person wants to know of a dump before its
// thousands of lines.
func (d *Dump) WriteSummary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d threads at %s, %s\n", len(d.Threads), orDash(d.Time), orDash(d.VM))
	if n := len(d.Deadlocked); n > 0 {
		fmt.Fprintf(&b, "DEADLOCK: %d threads wait for each other: %s\n", n, strings.Join(d.Deadlocked[:min(n, 20)], ", "))
	}
	if d.Unread > 0 {
		fmt.Fprintf(&b, "%d threads could not be read\n", d.Unread)
	}
	fmt.Fprintf(&b, "\n%-40s %8s %9s %8s %8s %8s %10s\n", "pool", "threads", "runnable", "blocked", "waiting", "timed", "CPU s")
	pools := d.Pools()
	for _, p := range pools[:min(len(pools), shownPools)] {
		fmt.Fprintf(&b, "%-40s %8d %9d %8d %8d %8d %10.2f\n", cut(p.Pool, 40), p.Threads, p.States["RUNNABLE"], p.States["BLOCKED"], p.States["WAITING"], p.States["TIMED_WAITING"], p.CPU)
	}
	if n := len(pools) - shownPools; n > 0 {
		fmt.Fprintf(&b, "and %d smaller pools\n", n)
	}
	stacks := d.Stacks()
	b.WriteString("\nStacks that most threads have, those that wait for work last\n")
	for _, s := range stacks[:min(len(stacks), shownStacks)] {
		fmt.Fprintf(&b, "\n%d × %s in %s", s.Threads, orDash(s.State), strings.Join(s.Pools, ", "))
		if s.Waits != "" {
			fmt.Fprintf(&b, ", waiting for a %s", s.Waits)
		}
		b.WriteByte('\n')
		for _, f := range s.Frames[:min(len(s.Frames), shownFrames)] {
			fmt.Fprintf(&b, "    %s\n", f)
		}
		if n := len(s.Frames) - shownFrames; n > 0 {
			fmt.Fprintf(&b, "    … %d more\n", n)
		}
	}
	if n := len(stacks) - shownStacks; n > 0 {
		fmt.Fprintf(&b, "\nand %d more stacks\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cut shortens to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
