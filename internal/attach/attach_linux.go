package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/root"
)

// connect opens the JVM's attach socket, and makes the JVM open it when it is
// not there and everything speaks for it.
func (c *Client) connect(ctx context.Context, t Target, m *memory) (net.Conn, error) {
	if err := t.alive(); err != nil {
		return nil, err
	}
	conn, err := t.dial(ctx)
	if err == nil || errors.Is(err, WrongPeer) {
		return conn, err
	}
	// No socket, or one that a killed JVM of the same number left behind.
	if m.signalled {
		return nil, AskedBefore
	}
	if err := t.mayAsk(c.minAge); err != nil {
		return nil, err
	}
	return t.ask(ctx, m)
}

// alive compares the start of the process that has this number now.
func (t Target) alive() error {
	b, err := os.ReadFile(t.proc("stat"))
	if err != nil {
		return Gone
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 || string(f[19]) != strconv.FormatUint(t.StartTicks, 10) || string(f[0]) == "Z" {
		return Gone
	}
	return nil
}

func (t Target) proc(name string) string { return "/proc/" + strconv.Itoa(t.PID) + "/" + name }

// dial connects to the socket beneath the target's own root, and asks the
// kernel who is at the other end.
func (t Target) dial(ctx context.Context) (net.Conn, error) {
	tmp, err := root.OpenDir(t.Root, "/tmp")
	if err != nil {
		return nil, fmt.Errorf("open the JVM's /tmp: %w", err)
	}
	defer tmp.Close()
	// The path of a socket has 107 bytes at most; through our own descriptor it
	// is short, whatever the root is called.
	path := fmt.Sprintf("/proc/self/fd/%d/.java_pid%d", tmp.Fd(), t.NSPID)
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, fmt.Errorf("look for the JVM's socket: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, WrongPeer
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return nil, NoRight
		}
		return nil, fmt.Errorf("connect to the JVM's socket: %w", err)
	}
	if pid, err := peer(conn.(*net.UnixConn)); err != nil || pid != t.PID {
		conn.Close()
		return nil, WrongPeer
	}
	return conn, nil
}

// peer is the process that listens at the other end, in our numbers.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}

// mayAsk says why a signal must not be sent, or nothing.
func (t Target) mayAsk(minAge time.Duration) error {
	uid, _, err := t.user()
	if err != nil {
		return err
	}
	if own := os.Geteuid(); own != 0 && own != uid {
		return NoRight
	}
	if err := t.capable(); err != nil {
		return err
	}
	maps, err := os.ReadFile(t.proc("maps"))
	if err != nil {
		return NoRight
	}
	if !bytes.Contains(maps, []byte("libjvm.so")) {
		return NotHotSpot
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return fmt.Errorf("read the age of process %d: %w", t.PID, err)
	}
	up, _, _ := bytes.Cut(uptime, []byte(" "))
	seconds, err := strconv.ParseFloat(string(up), 64)
	// The kernel counts a process' start in hundredths on all machines Go runs on.
	if err != nil || seconds-float64(t.StartTicks)/100 < minAge.Seconds() {
		return TooYoung
	}
	return t.catches()
}

// capable reads what the JVM itself says of attach. The first character of its
// capabilities is 1 when it can be attached to.
func (t Target) capable() error {
	if t.PerfPath == "" {
		return Unknown
	}
	b, err := hsperf.ReadFile(t.PerfPath, nil)
	if err != nil {
		return Unknown
	}
	d, err := hsperf.Decode(b)
	if err != nil {
		return Unknown
	}
	switch c, _ := d.String("sun.rt.jvmCapabilities"); {
	case c == "":
		return Unknown
	case c[0] != '1':
		return Disabled
	}
	return nil
}

// user is the effective user and group of the process: the JVM believes an
// attach file only when it is theirs.
func (t Target) user() (uid, gid int, err error) {
	b, err := os.ReadFile(t.proc("status"))
	if err != nil {
		return 0, 0, Gone
	}
	id := func(key string) int {
		_, rest, _ := strings.Cut(string(b), "\n"+key+":")
		line, _, _ := strings.Cut(rest, "\n")
		f := strings.Fields(line)
		if len(f) < 2 {
			return -1
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			return -1
		}
		return n
	}
	uid, gid = id("Uid"), id("Gid")
	if uid < 0 || gid < 0 {
		return 0, 0, Gone
	}
	return uid, gid, nil
}

// catches says whether the process has a handler for SIGQUIT now. Signal 3 is
// bit 2 of the mask.
func (t Target) catches() error {
	b, err := os.ReadFile(t.proc("status"))
	if err != nil {
		return Gone
	}
	_, rest, ok := strings.Cut(string(b), "\nSigCgt:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseUint(mask, 16, 64)
	if !ok || err != nil || v&(1<<(unix.SIGQUIT-1)) == 0 {
		return NotCaught
	}
	return nil
}

// ask puts the attach file in place, sends the signal, once, and waits for the socket.
func (t Target) ask(ctx context.Context, m *memory) (net.Conn, error) {
	pidfd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return nil, Gone
	}
	defer unix.Close(pidfd)
	remove, err := t.attachFile()
	if err != nil {
		return nil, err
	}
	defer remove()
	// From here on the pidfd holds the process; that it is the right one, and that it
	// still catches the signal, is looked at with the descriptor in hand.
	if err := t.alive(); err != nil {
		return nil, err
	}
	if err := t.catches(); err != nil {
		return nil, err
	}
	m.signalled = true
	if err := unix.PidfdSendSignal(pidfd, unix.SIGQUIT, nil, 0); err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, NoRight
		}
		return nil, Gone
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := t.dial(ctx)
		if err == nil || errors.Is(err, WrongPeer) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, NoAnswer
		case <-tick.C:
		}
	}
}

// attachFile makes the file that tells the JVM what the signal means. It is
// looked for in the working directory first, then in /tmp, and must belong to the JVM's user.
// Without it the JVM would print a dump, so no file means no signal.
func (t Target) attachFile() (remove func(), err error) {
	uid, gid, err := t.user()
	if err != nil {
		return nil, err
	}
	name := ".attach_pid" + strconv.Itoa(t.NSPID)
	dirs := []func() (*os.File, error){
		func() (*os.File, error) { return os.Open(t.proc("cwd")) },
		func() (*os.File, error) { return root.OpenDir(t.Root, "/tmp") },
	}
	for _, open := range dirs {
		dir, openErr := open()
		if openErr != nil {
			err = openErr
			continue
		}
		var fd int
		fd, err = unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			dir.Close()
			continue
		}
		if os.Geteuid() == 0 {
			err = unix.Fchown(fd, uid, gid)
		}
		unix.Close(fd)
		remove := func() {
			unix.Unlinkat(int(dir.Fd()), name, 0)
			dir.Close()
		}
		if err != nil {
			remove()
			continue
		}
		return remove, nil
	}
	return nil, fmt.Errorf("make the attach file of process %d: %w", t.PID, err)
}

// exchange sends one request and reads the reply to its end. The connection is
// closed: the JVM serves one request each.
func exchange(ctx context.Context, conn net.Conn, request []byte) ([]byte, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(conn, MaxReply+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxReply {
		return nil, TooLong
	}
	return parseReply(b)
}
