package jvm

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// A Dump is one thread dump, as jstack prints it.
type Dump struct {
	Time    string // as the JVM wrote it, in its own time zone
	VM      string // "OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing)"
	Threads []Thread
	// Deadlocked are the names of threads that wait for each other in a circle.
	Deadlocked []string
	// Unread counts the thread headers that could not be read.
	Unread int
}

// A Thread is one thread of a dump.
type Thread struct {
	Name   string
	Pool   string
	Java   bool    // it runs Java code; false for the collector's and other threads of the JVM itself
	Daemon bool    //
	State  string  // RUNNABLE, BLOCKED, WAITING, TIMED_WAITING, NEW, TERMINATED; empty for what is not Java
	CPU    float64 // seconds since the thread's start, -1 where the JDK does not say (up to 10)
	// Stack are the frames, top first, without "at" and without the module; the
	// first maxFrames of them.
	Stack []string
	// Waits is the lock it wants and has not, as class name.
	Waits string
}

// States are the values of Thread.State in Java's own order.
var States = []string{"NEW", "RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "TERMINATED"}

// A DumpRefusal is why bytes are no thread dump. The list is closed.
type DumpRefusal string

func (r DumpRefusal) Error() string { return "thread dump refused: " + string(r) }

// The reasons.
const (
	NoDump       DumpRefusal = "no_dump"    // it has no "Full thread dump"
	NoThreads    DumpRefusal = "no_threads" // no thread in it could be read
	DumpCutShort DumpRefusal = "cut_short"  // it ends in the middle
)

const (
	maxFrames  = 64
	maxThreads = 200_000
	maxName    = 200
)

const stateMark = "java.lang.Thread.State: "

// ParseDump reads a thread dump of JDK 6 to 25. What it returns holds no
// reference to b.
//
//	Full thread dump OpenJDK 64-Bit Server VM (…):
//	"name" #18 daemon prio=5 os_prio=0 cpu=62.74ms elapsed=1.14s tid=0x… nid=0x2b7c waiting on condition  [0x…]
//	   java.lang.Thread.State: WAITING (parking)
//		at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:211)
//		- parking to wait for  <0x…> (a java.util.concurrent.locks.…)
//	Found one Java-level deadlock:
//	=============================
//	"left-1":
//	  waiting to lock monitor 0x… (object 0x…, a java.lang.Object),
//	  which is held by "right-1"
//	Java stack information for the threads listed above:
func ParseDump(b []byte) (*Dump, error) {
	i := bytes.Index(b, []byte("Full thread dump "))
	if i < 0 {
		return nil, NoDump
	}
	d := &Dump{}
	if head := bytes.Fields(b[:i]); len(head) >= 2 {
		d.Time = strings.ToValidUTF8(string(head[len(head)-2])+" "+string(head[len(head)-1]), "?")
	}
	rest := b[i+len("Full thread dump "):]
	line, rest, _ := bytes.Cut(rest, []byte("\n"))
	d.VM = text(bytes.TrimSuffix(bytes.TrimSpace(line), []byte(":")))
	p := dumpParser{d: d, frames: map[string]string{}}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		p.line(bytes.TrimRight(line, "\r"))
	}
	switch {
	case len(d.Threads) == 0:
		return nil, NoThreads
	case !p.ended:
		// Its last line, "JNI global refs", comes behind all threads.
		return nil, DumpCutShort
	}
	slices.Sort(d.Deadlocked)
	d.Deadlocked = slices.Compact(d.Deadlocked)
	for i := range d.Threads {
		d.Threads[i].Pool = poolOf(&d.Threads[i])
	}
	return d, nil
}

type dumpParser struct {
	d       *Dump
	open    bool // the last thread of d.Threads is being read
	inCycle bool // between "Found … deadlock" and the stacks repeated below it
	ended   bool
	frames  map[string]string // each frame once: a pool has the same ones in all its threads
}

func (p *dumpParser) line(l []byte) {
	switch {
	case len(l) == 0:
		p.open = false
	case l[0] == '"' && p.inCycle:
		if end := bytes.LastIndexByte(l, '"'); end > 0 && len(p.d.Deadlocked) < maxThreads {
			p.d.Deadlocked = append(p.d.Deadlocked, text(l[1:end]))
		}
	case l[0] == '"' && !p.ended:
		p.header(l)
	case bytes.HasPrefix(l, []byte("Found ")) && bytes.Contains(l, []byte("deadlock:")):
		p.inCycle, p.open = true, false
	case bytes.HasPrefix(l, []byte("Java stack information for the threads listed above")):
		p.inCycle, p.open = false, false
	case bytes.HasPrefix(l, []byte("JNI global ref")):
		p.ended, p.open = true, false
	case p.open:
		p.detail(l)
	}
}

// header reads a thread's first line. The name may hold anything, quotes too;
// what follows it holds none.
func (p *dumpParser) header(l []byte) {
	end := bytes.LastIndexByte(l, '"')
	if end < 1 || !bytes.Contains(l[end:], []byte(" tid=")) || len(p.d.Threads) >= maxThreads {
		p.open = false
		p.d.Unread++
		return
	}
	t := Thread{Name: text(l[1:end]), CPU: -1}
	for _, f := range bytes.Fields(l[end+1:]) {
		if v, ok := bytes.CutPrefix(f, []byte("cpu=")); ok {
			if ms, ok := bytes.CutSuffix(v, []byte("ms")); ok {
				if n, err := strconv.ParseFloat(string(ms), 64); err == nil && n >= 0 {
					t.CPU = n / 1000
				}
			}
		} else if string(f) == "daemon" {
			t.Daemon = true
		} else if bytes.HasPrefix(f, []byte("tid=")) {
			break
		}
	}
	p.d.Threads = append(p.d.Threads, t)
	p.open = true
}

// detail reads a line below a header.
func (p *dumpParser) detail(l []byte) {
	t := &p.d.Threads[len(p.d.Threads)-1]
	l = bytes.TrimSpace(l)
	switch {
	case bytes.HasPrefix(l, []byte(stateMark)):
		word, _, _ := bytes.Cut(l[len(stateMark):], []byte(" "))
		t.Java = true
		if i := slices.Index(States, string(word)); i >= 0 {
			t.State = States[i]
		}
	case bytes.HasPrefix(l, []byte("at ")):
		if len(t.Stack) < maxFrames {
			t.Stack = append(t.Stack, p.frame(l[3:]))
		}
	case bytes.HasPrefix(l, []byte("- waiting to lock <")), bytes.HasPrefix(l, []byte("- parking to wait for ")):
		if _, class, ok := bytes.Cut(l, []byte("(a ")); ok && t.Waits == "" {
			t.Waits = text(bytes.TrimSuffix(class, []byte(")")))
		}
	}
}

// frame drops the module and the addresses of hidden classes, so that equal code
// makes equal frames.
func (p *dumpParser) frame(l []byte) string {
	if s, ok := p.frames[string(l)]; ok {
		return s
	}
	method, place, _ := bytes.Cut(l, []byte("("))
	// LambdaForm$MH/0x000000004f0a2c00.invoke
	if i := bytes.Index(method, []byte("/0x")); i >= 0 {
		j := i + 3
		for j < len(method) && (method[j] >= '0' && method[j] <= '9' || method[j] >= 'a' && method[j] <= 'f') {
			j++
		}
		method = append(append([]byte(nil), method[:i]...), method[j:]...)
	}
	if i := bytes.LastIndexByte(place, '/'); i >= 0 {
		place = place[i+1:]
	}
	s := text(append(append(append([]byte(nil), method...), '('), place...))
	if len(p.frames) < 100_000 {
		p.frames[string(l)] = s
	}
	return s
}

// text is a stranger's bytes as one line of bounded length.
func text(b []byte) string {
	if len(b) > 2*maxName {
		b = b[:2*maxName]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b), "?"))
}
