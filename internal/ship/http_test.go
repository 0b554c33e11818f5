package ship

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ServeHTTP is the stub behind a real listener.
func (l *loki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := l.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for k := range resp.Header {
		w.Header().Set(k, resp.Header.Get(k))
	}
	w.WriteHeader(resp.StatusCode)
}

// real makes a Shipper that speaks real HTTP, with short pauses.
func realShipper(t *testing.T, address string, change func(*Config)) *Shipper {
	t.Helper()
	cfg := DefaultConfig()
	cfg.URL, cfg.Host, cfg.BatchWait = address+"/loki/api/v1/push", "h", 0
	cfg.MinBackoff, cfg.MaxBackoff = 10*time.Millisecond, 20*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(s) })
	return s
}

// until waits for a condition without guessing how long it takes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatal("in 20 s not: " + what)
		case <-tick.C:
		}
	}
}

func (s *Shipper) errorCount(reason string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n.errors[reason]
}

// TestReal pushes over HTTP, in both encodings, with tenant, password and token.
func TestReal(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"protobuf", "json"} {
		l := newLoki()
		var header http.Header
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { header = r.Header; l.ServeHTTP(w, r) }))
		s := realShipper(t, srv.URL, func(c *Config) {
			c.Encoding, c.Tenant, c.HTTP.Username, c.HTTP.PasswordFile = encoding, "team", "sidecar", secret
			c.Labels = map[string]string{"env": `pro"d`}
		})
		tap := s.Tap("tomcat-8080", "applog", "catalina.out")
		tap.Offer(nil, &Entry{Level: "ERROR", Event: "executor_rejected", Line: []byte("one\n\tat two"), Thread: "exec-1", Logger: "a.B", Pattern: "p", Trace: "abc"})
		until(t, "shipped", func() bool { return balanced(t, s).Shipped == 1 })
		stop(s)
		srv.Close()
		x := l.lines()[0]
		if want := `{env="pro\"d", event="executor_rejected", host="h", level="ERROR", source="applog", target="tomcat-8080"}`; x.labels != want {
			t.Errorf("%s: labels %s, want %s", encoding, x.labels, want)
		}
		if x.text != "one\n\tat two" {
			t.Errorf("%s: %q", encoding, x.text)
		}
		want := map[string]string{"file": "catalina.out", "logger": "a.B", "pattern": "p", "thread": "exec-1", "trace_id": "abc"}
		if have := l.meta[x]; fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%s: metadata %v, want %v", encoding, have, want)
		}
		user, password, _ := (&http.Request{Header: header}).BasicAuth()
		if l.tenant != "team" || user != "sidecar" || password != "s3cret" {
			t.Errorf("tenant %q, user %q, password %q", l.tenant, user, password)
		}
	}
}

// TestCertificate: a certificate that nobody we know has signed is a failure
// with a name, retried, and taken once it is known.
func TestCertificate(t *testing.T) {
	l := newLoki()
	srv := httptest.NewUnstartedServer(l)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	srv.StartTLS()
	defer srv.Close()
	s := realShipper(t, srv.URL, nil)
	s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: []byte("one")})
	until(t, "refused certificates", func() bool { balanced(t, s); return s.errorCount("tls") > 2 })

	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.HTTP.CAFile = ca
	if err := s.Configure(cfg); err != nil {
		t.Fatal(err)
	}
	until(t, "shipped", func() bool { return balanced(t, s).Shipped == 1 })
}

// TestRefusedAndBack: nobody listens, then somebody does.
func TestRefusedAndBack(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	s := realShipper(t, "http://"+address, nil)
	s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: []byte("one")})
	until(t, "refused connections", func() bool { balanced(t, s); return s.errorCount("connection_refused") > 2 })
	l := newLoki()
	if ln, err = net.Listen("tcp", address); err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	srv := &http.Server{Handler: l}
	go srv.Serve(ln)
	defer srv.Close()
	until(t, "shipped", func() bool { return balanced(t, s).Shipped == 1 })
}

// TestDrip: a server that answers a byte now and then costs its time-out, and
// stopping does not wait for it.
func TestDrip(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(release)
	dir := t.TempDir()
	s := realShipper(t, srv.URL, func(c *Config) {
		c.Timeout, c.StopTimeout, c.SpoolDir = 100*time.Millisecond, 50*time.Millisecond, dir
	})
	s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: []byte("one")})
	until(t, "time-outs", func() bool { balanced(t, s); return s.errorCount("timeout") > 1 })
	began := time.Now()
	stop(s)
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("stopping took %v", d)
	}
	if c := balanced(t, s); c.Queued != 1 || c.Disk == 0 {
		t.Errorf("%+v", c)
	}
}

// TestRedirect is never followed: it would make a GET of the push, answered 200.
func TestRedirect(t *testing.T) {
	l := newLoki()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			return // 200
		}
		http.Redirect(w, r, "/login", http.StatusFound)
	}))
	defer srv.Close()
	s := realShipper(t, srv.URL, nil)
	s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: []byte("one")})
	until(t, "dropped", func() bool { return balanced(t, s).Reasons[dropRejected] == 1 })
	if len(l.lines()) != 0 {
		t.Error("something landed")
	}
}
