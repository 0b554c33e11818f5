package ship

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A Loki that behaves badly on purpose, in the ways that the other tests leave:
// http_test.go has refused connections, certificates and redirects, ship_test.go
// the statuses, throttling, outages and refused lines.

// TestRetryAfterDate: the header may hold a date instead of seconds.
func TestRetryAfterDate(t *testing.T) {
	for _, c := range []struct {
		status int
		header func() string
		least  time.Duration
		most   time.Duration
	}{
		{429, func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) }, 19 * time.Second, 23 * time.Second},
		{503, func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) }, 19 * time.Second, 23 * time.Second},
		{503, func() string { return "7" }, 7 * time.Second, 8 * time.Second},
		{429, func() string { return "1e9" }, time.Minute, 61 * time.Second},                                                              // never longer than max_backoff
		{429, func() string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }, 400 * time.Millisecond, 2 * time.Second}, // a wish of the past is none
		{429, func() string { return "soon" }, 400 * time.Millisecond, 2 * time.Second},
		{429, func() string { return "-5" }, 400 * time.Millisecond, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLoki()
			said := ""
			l.answer = func(n int, _ []storedLine) (int, map[string]string, bool, error) {
				if n == 0 {
					said = c.header()
					return c.status, map[string]string{"Retry-After": said}, false, nil
				}
				return 204, nil, true, nil
			}
			s := newShipper(t, l, nil)
			s.Tap("t", "applog", "f").Offer(nil, &Entry{Line: []byte("one")})
			time.Sleep(2 * time.Minute)
			stop(s)
			if len(l.when) != 2 {
				t.Fatalf("%d pushes", len(l.when))
			}
			if gap := l.when[1].Sub(l.when[0]); gap < c.least || gap > c.most {
				t.Errorf("%d, Retry-After: %s: asked again after %v, want %v to %v", c.status, said, gap, c.least, c.most)
			}
		})
	}
}

// TestLate: the answer comes when nobody waits for it any more, though all was
// stored. The same push again carries the same times, so nothing is doubled.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(n int, _ []storedLine) (int, map[string]string, bool, error) {
			if n == 0 {
				time.Sleep(9 * time.Second) // within the time-out of 10 s: late, and good
			}
			return 204, nil, true, nil
		}
		s := newShipper(t, l, nil)
		tap := s.Tap("t", "applog", "f")
		tap.Offer(nil, &Entry{Line: []byte("one")})
		time.Sleep(5 * time.Second)
		if c := balanced(t, s); c.Queued != 1 {
			t.Errorf("while it is on its way: %+v", c)
		}
		time.Sleep(10 * time.Second)
		if c := balanced(t, s); c.Shipped != 1 || l.pushes() != 1 {
			t.Errorf("%+v in %d pushes", c, l.pushes())
		}
		stop(s)
	})

	l := newLoki()
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			l.ServeHTTP(httptest.NewRecorder(), r) // stored
			<-r.Context().Done()                   // and not said in time
			return
		}
		l.ServeHTTP(w, r)
	}))
	defer srv.Close()
	s := realShipper(t, srv.URL, func(c *Config) { c.Timeout = 100 * time.Millisecond })
	offer(s, "one", "one", "two")
	until(t, "shipped", func() bool { return balanced(t, s).Shipped == 3 })
	if s.errorCount("timeout") == 0 || len(l.lines()) != 3 || l.pushes() < 2 {
		t.Errorf("%d time-outs, %d lines stored in %d pushes", int(s.errorCount("timeout")), len(l.lines()), l.pushes())
	}
}

// TestSlowDrip: an answer that comes byte by byte and never ends costs its
// time-out, in its head as in its body; an answer of 200 is taken by its head.
func TestSlowDrip(t *testing.T) {
	for name, head := range map[string]string{
		"head":        "",
		"body of 500": "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1000\r\n\r\n",
		"body of 200": "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						go io.Copy(io.Discard, c)
						if _, err := io.WriteString(c, head); err != nil {
							return
						}
						tick := time.NewTicker(5 * time.Millisecond)
						defer tick.Stop()
						for i := range 1000 {
							<-tick.C
							if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaa"[min(i, 20):][:1])); err != nil {
								return
							}
						}
					}()
				}
			}()
			s := realShipper(t, "http://"+ln.Addr().String(), func(c *Config) { c.Timeout = 150 * time.Millisecond })
			offer(s, "one")
			switch name {
			case "head":
				until(t, "time-outs", func() bool { balanced(t, s); return s.errorCount("timeout") > 1 })
			case "body of 500":
				until(t, "failures", func() bool { balanced(t, s); return s.errorCount("status_5xx") > 1 })
			default:
				until(t, "shipped", func() bool { return balanced(t, s).Shipped == 1 })
				return
			}
			began := time.Now()
			stop(s)
			if d := time.Since(began); d > 8*time.Second {
				t.Errorf("stopping took %v", d)
			}
			if c := balanced(t, s); c.Shipped != 0 || c.Reasons[dropStopped] != 1 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestWrongTenant: what the tenant may not do is not asked again, the next batch
// waits for somebody to mend the settings, and once they are mended it goes.
func TestWrongTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
			switch l.tenant {
			case "":
				return 401, nil, false, nil // "no org id"
			case "team":
				return 204, nil, true, nil
			}
			return 403, nil, false, nil
		}
		s := newShipper(t, l, nil)
		tap := s.Tap("t", "applog", "f")
		for i := range 600 { // ten minutes of a line a second
			tap.Offer(nil, &Entry{Line: numbered(i)})
			time.Sleep(time.Second)
			balanced(t, s)
		}
		if n := l.pushes(); n > 30 {
			t.Errorf("%d pushes in ten minutes of 401", n)
		}
		cfg := s.cfg
		cfg.Tenant = "other"
		s.configure(cfg, s.client)
		time.Sleep(2 * time.Minute)
		cfg.Tenant = "team"
		s.configure(cfg, s.client)
		tap.Offer(nil, &Entry{Line: []byte("the last")})
		time.Sleep(2 * time.Minute)
		c := balanced(t, s)
		if c.Reasons[dropRejected] == 0 || c.Queued != 0 || c.Shipped+c.Reasons[dropRejected] != 601 {
			t.Errorf("%+v", c)
		}
		texts := l.texts()
		if len(texts) == 0 || texts[len(texts)-1] != "the last" {
			t.Errorf("landed %q", texts)
		}
		stop(s)
	})
}
