// Package lab is the workbench of the tests and of the demo: it gets real
// servers and tools, starts them privately, loads them and stops them again.
//
// What the sidecar claims about a Tomcat under overload can only be held
// against a Tomcat under overload. So the lab fetches the real things by the
// machine's own package managers (Maven for the servers, apt for Prometheus and
// the load tools), unpacks them below a cache outside the repository, and never
// installs or starts a service. Each server it starts has a private base folder,
// a free loopback port, and is a child of the process that asked for it: it is
// stopped by its pid, and dies with its parent.
//
// The product never imports this package; it is the one place beside the tests
// that may start programs.
//
// Known to work: Tomcat 7.0.109, 8.5.32, 8.5.100, 9.0.98, 10.1.34, 11.0.24,
// Jetty 9.4.57 and 12.0.16, on JDK 17 and 25; Prometheus 2.42 and Alertmanager
// 0.25, ab 2.3, wrk 4.1.0 of Debian 12; Prometheus 3.4.2 built from its source.
package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// T is the part of testing.TB that the lab needs. The demo has one of its own.
type T interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Cache is the folder that holds what was fetched: $SIDECAR_CACHE, else
// sidecar-lab in $XDG_CACHE_HOME or ~/.cache. It is never in the repository.
func Cache() string {
	if dir := os.Getenv("SIDECAR_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "sidecar-lab")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		// A container's user may have no home; the fetched files are worth
		// keeping all the same.
		return filepath.Join(os.TempDir(), fmt.Sprintf("sidecar-lab-%d", os.Getuid()))
	}
	return filepath.Join(home, ".cache", "sidecar-lab")
}

// Missing says that something could not be had, as opposed to what it did.
type Missing struct{ error }

func (m Missing) Unwrap() error { return m.error }

// Need ends a test on an error. Where the error is that something could not be
// had, on a developer's machine without a network, that is a skip that says
// what is missing; under CI it is a failure, since there a skipped real-server
// test would be a green lie.
func Need(t T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if errors.As(err, &Missing{}) && os.Getenv("CI") != "true" {
		t.Skipf("%v", err)
	}
	t.Fatalf("%v", err)
}

// exclusive is the machine-wide turn for tests with a real server under load:
// go test runs packages side by side, and two overloads at once on a small
// machine would measure each other. It is counted, so that one test may start
// several servers.
var exclusive struct {
	sync.Mutex
	users  int
	unlock func()
}

// Exclusive waits for this process' turn and gives it back when the test ends.
func Exclusive(t T) {
	t.Helper()
	exclusive.Lock()
	defer exclusive.Unlock()
	if exclusive.users == 0 {
		unlock, err := cacheLock("turn")
		if err != nil {
			t.Fatalf("wait for the turn: %v", err)
		}
		exclusive.unlock = unlock
	}
	exclusive.users++
	t.Cleanup(func() {
		exclusive.Lock()
		defer exclusive.Unlock()
		if exclusive.users--; exclusive.users == 0 {
			exclusive.unlock()
		}
	})
}

// Until calls ok again and again until it says true (and returns true) or the
// limit is over. Real processes give no other sign; each caller names what it
// waits for in its own failure.
func Until(limit time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(limit)
	for {
		if ok() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}
