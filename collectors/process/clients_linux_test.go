package process

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A gate holds requests in the lab's servlet until it is opened, so that what
// stands still does so for as long as the test needs, and counts them: how many
// threads have a request is then known from the application itself.
type gate struct{ dir string }

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{t.TempDir()}
	if err := os.WriteFile(filepath.Join(g.dir, "closed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// The servlet makes files in it, perhaps as another user.
	if err := os.Chmod(g.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { os.Remove(filepath.Join(g.dir, "closed")) }

// held is how many requests the application has in its hands.
func (g *gate) held() int {
	found, _ := filepath.Glob(filepath.Join(g.dir, "held-*"))
	return len(found)
}

func (g *gate) path(op string) string { return "/slow?op=" + op + "&dir=" + g.dir }

// A client is one connection and what was asked on it.
type client struct {
	net.Conn
	r *bufio.Reader
}

// dial connects n clients. A TLS client has not begun its handshake yet.
func dial(t testing.TB, addr string, secure bool, n int) []*client {
	t.Helper()
	all := make([]*client, n)
	for i := range all {
		raw, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if secure {
			// A certificate made for this test, which nobody has signed.
			raw = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
		}
		raw.SetDeadline(time.Now().Add(2 * time.Minute))
		all[i] = &client{raw, bufio.NewReader(raw)}
		t.Cleanup(func() { raw.Close() })
	}
	return all
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

// last is a request after which the server closes: BIO keeps a thread for each
// connection that it keeps.
func last(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
}

// write sends text on each of the clients, side by side, since a first write
// with TLS waits for the handshake, and a large one for whoever reads it. It does
// not wait for them: what goes wrong shows in the answers.
func write(all []*client, text string) {
	for _, c := range all {
		go io.WriteString(c, text)
	}
}

// answers reads n answers on each of the clients and wants them all to be 200.
func answers(t testing.TB, all []*client, n int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, c := range all {
		wg.Go(func() {
			for range n {
				res, err := http.ReadResponse(c.r, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					if res.StatusCode != 200 {
						err = fmt.Errorf("status %d", res.StatusCode)
					}
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// hangUp closes all of them.
func hangUp(all []*client) {
	for _, c := range all {
		c.Close()
	}
}
