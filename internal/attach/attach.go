// Package attach speaks HotSpot's attach protocol, so that a thread dump or a
// jcmd command needs neither a JDK nor a second JVM.
//
// It is the one place of this program that touches a watched process, and it is
// off unless the settings say attach: on. HotSpot opens its attach socket only
// when it gets SIGQUIT and finds a file called .attach_pidN. But SIGQUIT kills whatever
// does not catch it: a shell script called java, a JVM run with -Xrs, a JVM in
// its first tenth of a second; and a JVM with attach disabled answers by printing a dump into
// catalina.out. So before the signal everything is checked that can be, each
// time, the last of it right before; the signal goes through a pidfd, so
// that it can't reach another process that got the number; and it is sent once
// in the life of a process. Where the socket is open already no signal is sent.
//
// A socket is believed only when the kernel says that the process at its other
// end is the JVM.
//
// Seen with JDK 17.0.15 and 25.0.3. Protocol 1 is understood by all from 6 on;
// JDK 25 also has 2, with which a thread dump is written to memory first and
// then sent: with protocol 1 it writes to the socket from inside of the safepoint, and
// all threads stand still 2.5 to 5 times as long.
//
// Rights: root, or the JVM's own user. JDK 8 and older take their own user only.
package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Target is one JVM, verified by whoever found it.
type Target struct {
	// PID and StartTicks (field 22 of /proc/PID/stat) are its identity; NSPID is its
	// number in its own namespace, which names its files.
	PID        int
	StartTicks uint64
	NSPID      int
	// Root is the folder that is "/" for it: "/" or /proc/PID/root.
	Root string
	// PerfPath is its hsperfdata file as we open it. There it says whether it can
	// be attached to; without the file no signal is sent, but a socket that is
	// there already is used.
	PerfPath string
}

// Refusal is why a JVM was left alone. The list is closed.
type Refusal string

// The reasons.
const (
	Gone        Refusal = "gone"          // the process has ended
	NotHotSpot  Refusal = "not_hotspot"   // it maps no libjvm
	Disabled    Refusal = "disabled"      // it is run with attach disabled
	Unknown     Refusal = "unknown"       // its hsperfdata does not say whether attach is enabled
	NotCaught   Refusal = "sigquit_kills" // it does not catch SIGQUIT (-Xrs, or not yet)
	TooYoung    Refusal = "too_young"     // it has just started
	NoRight     Refusal = "no_right"      // we are neither root nor its user
	AskedBefore Refusal = "asked_before"  // one signal was sent already, without success
	NoAnswer    Refusal = "no_answer"     // no socket came
	WrongPeer   Refusal = "wrong_peer"    // the socket is not the JVM's
	TooLong     Refusal = "too_long"      // the reply is longer than MaxReply
	TooSoon     Refusal = "too_soon"      // the last command is less than MinInterval ago
	Unsupported Refusal = "unsupported"   // this platform has no such thing
)

func (r Refusal) Error() string { return "attach refused: " + string(r) }

// Detail is the reason in a sentence, and Needs the right that would mend it.
func (r Refusal) Detail() (sentence, needs string) {
	switch r {
	case Gone:
		return "the process has ended", ""
	case NotHotSpot:
		return "the process maps no libjvm.so, so it is no HotSpot", ""
	case Disabled:
		return "the JVM runs with -XX:+DisableAttachMechanism", ""
	case Unknown:
		return "the JVM has no hsperfdata that would say whether it can be attached to, so it gets no signal", ""
	case NotCaught:
		return "the process does not catch SIGQUIT (-Xrs?), which would kill it", ""
	case TooYoung:
		return "the JVM has just started", ""
	case NoRight:
		return "a JVM talks to its own user and to root only", "the same user as the JVM, or root"
	case AskedBefore:
		return "the JVM was asked to open its socket once, and did not", ""
	case NoAnswer:
		return "the JVM did not open its socket in time", ""
	case WrongPeer:
		return "another process listens at the JVM's socket", ""
	case TooLong:
		return "the reply is longer than any that is kept", ""
	case TooSoon:
		return "the last command is less than a second ago", ""
	case Unsupported:
		return "attach is written for Linux only", ""
	}
	return string(r), ""
}

// MinAge is how old a process must be before it gets a signal. A JVM installs
// its handler within the first tenth of a second.
const MinAge = 5 * time.Second

// MinInterval is the least time between two commands to one JVM.
const MinInterval = time.Second

// MaxReply bounds a reply; a dump of 5,000 threads has 8 MB.
const MaxReply = 128 << 20

// A Client remembers which JVMs it has asked. One Client serves the whole
// program; it is safe for concurrent use.
type Client struct {
	mu    sync.Mutex
	known map[identity]*memory

	now      func() time.Time
	minAge   time.Duration
	interval time.Duration
}

type identity struct {
	pid   int
	start uint64
}

type memory struct {
	busy      chan struct{} // holds a token while a command runs: one at a time
	signalled bool
	last      time.Time
}

// New makes a Client.
func New() *Client {
	return &Client{known: map[identity]*memory{}, now: time.Now, minAge: MinAge, interval: MinInterval}
}

// Command runs one command of the attach protocol: "threaddump", "jcmd" with
// "VM.flags" or "GC.heap_info" as its argument, "properties". The reply is
// without its result code. An error that is a Refusal means that the JVM was
// left alone or did not answer.
func (c *Client) Command(ctx context.Context, t Target, command string, args ...string) ([]byte, error) {
	m, err := c.enter(ctx, t)
	if err != nil {
		return nil, err
	}
	defer m.leave()
	return c.run(ctx, t, m, command, args)
}

// ThreadDump is the dump that jstack prints, with "-l" or "-e" in flags or
// nothing, taken in the way that stops the JVM for the shortest time.
func (c *Client) ThreadDump(ctx context.Context, t Target, flags string) ([]byte, error) {
	m, err := c.enter(ctx, t)
	if err != nil {
		return nil, err
	}
	defer m.leave()
	version, err := c.run(ctx, t, m, "getversion", []string{"options"})
	var refused Refusal
	if errors.As(err, &refused) {
		return nil, err
	}
	// JDK 17 says that it knows no such operation; that is an answer too.
	request := request1("threaddump", []string{flags})
	if err == nil && streams(version) {
		request = request2("threaddump streaming=0", flags)
	}
	conn, err := c.connect(ctx, t, m)
	if err != nil {
		return nil, err
	}
	b, err := exchange(ctx, conn, request)
	if err != nil {
		return nil, fmt.Errorf("thread dump of process %d: %w", t.PID, err)
	}
	return b, nil
}

// streams says whether a JVM that answered "2 streaming" to getversion writes
// its replies while it makes them, and can be told not to.
func streams(version []byte) bool {
	number, options, _ := strings.Cut(strings.TrimSpace(string(version)), " ")
	n, err := strconv.Atoi(number)
	return err == nil && n >= 2 && slices.Contains(strings.Split(options, ","), "streaming")
}

// enter waits for the JVM's turn.
func (c *Client) enter(ctx context.Context, t Target) (*memory, error) {
	c.mu.Lock()
	id := identity{t.PID, t.StartTicks}
	m := c.known[id]
	if m == nil {
		if len(c.known) >= 4096 { // restarts over months; a forgotten one is asked anew
			clear(c.known)
		}
		m = &memory{busy: make(chan struct{}, 1)}
		c.known[id] = m
	}
	c.mu.Unlock()
	select {
	case m.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := c.now()
	if !m.last.IsZero() && now.Sub(m.last) < c.interval {
		m.leave()
		return nil, TooSoon
	}
	m.last = now
	return m, nil
}

func (m *memory) leave() { <-m.busy }

func (c *Client) run(ctx context.Context, t Target, m *memory, command string, args []string) ([]byte, error) {
	conn, err := c.connect(ctx, t, m)
	if err != nil {
		return nil, err
	}
	b, err := exchange(ctx, conn, request1(command, args))
	if err != nil {
		return nil, fmt.Errorf("attach to process %d: %s: %w", t.PID, command, err)
	}
	return b, nil
}

// request1 is a request of protocol 1: the version, the command and always
// three arguments, each ended by a zero byte.
func request1(command string, args []string) []byte {
	b := append([]byte("1\x00"), command...)
	b = append(b, 0)
	for i := range 3 {
		if i < len(args) {
			b = append(b, args[i]...)
		}
		b = append(b, 0)
	}
	return b
}

// request2 is a request of protocol 2: the version, the length of what follows,
// the command with its options, and any number of arguments.
func request2(command string, args ...string) []byte {
	body := append([]byte(command), 0)
	for _, a := range args {
		body = append(append(body, a...), 0)
	}
	b := append([]byte("2\x00"), strconv.Itoa(len(body))...)
	return append(append(b, 0), body...)
}

// parseReply splits a reply into its result code, which is its first line, and
// the rest.
func parseReply(b []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		head, rest = b, nil
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(head)))
	if err != nil {
		return nil, fmt.Errorf("reply begins with %q and not with a result code", head[:min(len(head), 40)])
	}
	if code != 0 {
		return nil, fmt.Errorf("result %d: %s", code, bytes.TrimSpace(rest[:min(len(rest), 200)]))
	}
	return rest, nil
}
