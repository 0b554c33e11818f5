package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/status"
)

func TestTell(t *testing.T) {
	now := time.Now()
	fresh := &status.Status{At: now.Add(-time.Second), Targets: []status.Server{{Up: true}, {}}}
	for _, c := range []struct {
		name           string
		st             *status.Status
		ready, watched bool
		want           string
	}{
		{"nothing published yet", nil, false, true, ""},
		{"the first snapshot", fresh, false, false, "STATUS=Watching 2 servers, 1 of them up.\nREADY=1"},
		{"with a watchdog", fresh, false, true, "STATUS=Watching 2 servers, 1 of them up.\nREADY=1\nWATCHDOG=1"},
		{"later", fresh, true, true, "STATUS=Watching 2 servers, 1 of them up.\nWATCHDOG=1"},
		{"hung", &status.Status{At: now.Add(-2 * stalledAfter)}, true, true, ""},
		{"slow is not hung", &status.Status{At: now.Add(-stalledAfter / 2)}, true, true, "STATUS=Watching 0 servers, 0 of them up.\nWATCHDOG=1"},
	} {
		if got := tell(c.st, now, c.ready, c.watched); got.message != c.want {
			t.Errorf("%s: %q, want %q", c.name, got.message, c.want)
		}
	}
}

// A socket stands in for systemd: READY once, then beats, then STOPPING.
func TestNotifySystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if len(path) > 100 {
		t.Skip("the temporary folder's name is too long for a socket")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("no datagram sockets here: ", err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "60000")
	t.Setenv("WATCHDOG_PID", "")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		notifySystemd(ctx, func() *status.Status { return &status.Status{At: time.Now()} }, slog.New(slog.DiscardHandler))
	}()
	read := func() string {
		t.Helper()
		b := make([]byte, 1000)
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	read() // that it looks at the machine
	if got := read(); !strings.Contains(got, "READY=1") || !strings.Contains(got, "WATCHDOG=1") {
		t.Errorf("first: %q", got)
	}
	for range 3 {
		if got := read(); strings.Contains(got, "READY") || !strings.Contains(got, "WATCHDOG=1") {
			t.Errorf("then: %q", got)
		}
	}
	stop()
	<-done
	for {
		if got := read(); got == "STOPPING=1" {
			break
		} else if !strings.Contains(got, "WATCHDOG=1") {
			t.Fatalf("at the end: %q", got)
		}
	}
}
