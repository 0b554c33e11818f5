package ship

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestCase23EqualLines is a thousand equal access lines of one second, pushed to
// a server that stores them, answers 500, and keeps one of equal entries.
func TestCase23EqualLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(n int, _ []storedLine) (int, map[string]string, bool, error) {
			if n == 0 {
				return 500, nil, true, nil
			}
			return 204, nil, true, nil
		}
		s := newShipper(t, l, nil)
		tap := s.Tap("tomcat", "accesslog", "access.log")
		at := time.Now().Truncate(time.Second)
		for i := 0; i <= 1000; i++ {
			line := []byte(`192.0.2.7 - - [30/Jun/2024:12:00:00 +0000] "GET / HTTP/1.1" 200 1234`)
			if i == 1000 {
				at, line = at.Add(time.Second), []byte("the last")
			}
			tap.Offer(nil, &Entry{At: at.UnixNano(), Line: line})
		}
		time.Sleep(30 * time.Second)
		stop(s)
		if c := balanced(t, s); c.Shipped != 1001 {
			t.Errorf("shipped %v of 1001", c.Shipped)
		}
		lines := l.lines()
		if len(lines) != 1001 {
			t.Fatalf("%d entries stored, want 1001", len(lines))
		}
		for i := 1; i < len(lines); i++ {
			if lines[i].at <= lines[i-1].at {
				t.Fatalf("entry %d is not behind the one before it", i)
			}
		}
		if moved := lines[999].at - lines[0].at; moved >= 1000 {
			t.Errorf("the last of the thousand moved by %d ns", moved)
		}
		if lines[1000].text != "the last" {
			t.Errorf("order lost: %q is last", lines[1000].text)
		}
	})
}

// TestCase24Throttled is 429 with Retry-After for half a minute: nobody waits,
// memory is bounded, each line is somewhere, and what waited flows at the
// configured rate.
func TestCase24Throttled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		began := time.Now()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
			if time.Since(began) < 30*time.Second {
				return 429, map[string]string{"Retry-After": "2"}, false, nil
			}
			return 204, nil, true, nil
		}
		const rate = 150 << 10
		s := newShipper(t, l, func(c *Config) { c.QueueBytes, c.BytesPerSecond, c.BatchBytes = 8<<20, rate, 64<<10 })
		tap := s.Tap("tomcat", "accesslog", "access.log")
		for i := range 20000 {
			tap.Offer(nil, &Entry{At: time.Now().UnixNano(), Line: numbered(i)})
			if i%20 == 0 {
				time.Sleep(10 * time.Millisecond)
				if c := balanced(t, s); c.Memory > 8<<20+64<<10 {
					t.Fatalf("%d bytes of memory", c.Memory)
				}
			}
		}
		time.Sleep(time.Minute)
		if c := balanced(t, s); c.Shipped != 20000 || len(l.lines()) != 20000 {
			t.Errorf("shipped %v, stored %d, want 20000", c.Shipped, len(l.lines()))
		}
		if lines, texts := l.texts(), 20000; lines[0] != "line 000000" || lines[texts-1] != "line 019999" {
			t.Errorf("%q to %q", lines[0], lines[texts-1])
		}
		// 20,000 lines of some 240 bytes, counted as the queue counts them, take half
		// a minute at this rate once they are taken.
		if over := l.when[len(l.when)-1].Sub(began.Add(30 * time.Second)); over < 25*time.Second || over > 45*time.Second {
			t.Errorf("the backlog took %v", over)
		}
		for i := 1; i < 14; i++ { // one push each two seconds, and a little more
			if gap := l.when[i].Sub(l.when[i-1]); gap < 2*time.Second || gap > 3*time.Second {
				t.Errorf("push %d came %v after the one before", i, gap)
			}
		}
		stop(s)
	})
}

// TestCase24Refused is an outage of half an hour at a hundred lines a second.
func TestCase24Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		began := time.Now()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
			if time.Since(began) < 30*time.Minute {
				return 0, nil, false, syscall.ECONNREFUSED
			}
			return 204, nil, true, nil
		}
		before := runtime.NumGoroutine()
		s := newShipper(t, l, func(c *Config) { c.QueueBytes = 1 << 20; c.BatchBytes = 256 << 10; c.BytesPerSecond = 1 << 20 })
		tap := s.Tap("tomcat", "accesslog", "access.log")
		sent := 0
		for range 30 * 60 {
			for range 100 {
				tap.Offer(nil, &Entry{At: time.Now().UnixNano(), Line: numbered(sent)})
				sent++
			}
			if c := balanced(t, s); c.Memory > 1<<20+256<<10 {
				t.Fatalf("%d bytes of memory", c.Memory)
			}
			if n := runtime.NumGoroutine(); n > before+10 {
				t.Fatalf("%d goroutines", n)
			}
			time.Sleep(time.Second)
		}
		// Back-off: doubling to a minute, with jitter, so some 40 pushes and not 1800.
		if n := l.pushes(); n < 25 || n > 60 {
			t.Errorf("%d pushes in half an hour of refusal", n)
		}
		time.Sleep(3 * time.Minute)
		c := balanced(t, s)
		if c.Queued != 0 || c.Reasons[dropFull] == 0 || c.Shipped+c.Reasons[dropFull] != float64(sent) {
			t.Errorf("%+v of %d", c, sent)
		}
		// The oldest went first: what landed are the newest, and the first batch,
		// which was on its way all the time.
		lines := l.texts()
		if lines[0] != "line 000000" || lines[len(lines)-1] != string(numbered(sent-1)) {
			t.Errorf("%q to %q", lines[0], lines[len(lines)-1])
		}
		for i := 1; i < len(lines); i++ {
			if lines[i] <= lines[i-1] {
				t.Fatalf("%q after %q", lines[i], lines[i-1])
			}
		}
		stop(s)
	})
}

// TestEqualLinesAcrossRuns: the same line in the same second, before and after
// the settings were changed and the sidecar was restarted, is three lines.
func TestEqualLinesAcrossRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		s := newShipper(t, l, nil)
		at := time.Now().UnixNano()
		equal := func() {
			s.Tap("tomcat", "accesslog", "access.log").Offer(nil, &Entry{At: at, Line: []byte("the same")})
		}
		equal()
		s.configure(s.cfg, s.client)
		equal()
		time.Sleep(10 * time.Second)
		stop(s)
		saved, err := s.Save(metric.NewSet())
		if err != nil {
			t.Fatal(err)
		}
		s = newShipper(t, l, nil)
		if err := s.Load(saved); err != nil {
			t.Fatal(err)
		}
		equal()
		time.Sleep(10 * time.Second)
		stop(s)
		lines := l.lines()
		if len(lines) != 3 || lines[2].at != at+2 {
			t.Errorf("%v, the first at %d", lines, at)
		}
	})
}

// TestSplit refuses batches with bad lines in them: the good lines land.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(_ int, lines []storedLine) (int, map[string]string, bool, error) {
			for _, x := range lines {
				if strings.HasPrefix(x.text, "bad") {
					return 400, nil, false, nil
				}
			}
			return 204, nil, true, nil
		}
		s := newShipper(t, l, nil)
		tap := s.Tap("tomcat", "applog", "catalina.out")
		for i := range 500 {
			line := numbered(i)
			if i == 17 || i == 18 || i == 499 {
				line = []byte("bad")
			}
			tap.Offer(nil, &Entry{Line: line})
		}
		time.Sleep(time.Minute)
		c := balanced(t, s)
		if c.Shipped != 497 || c.Reasons[dropRefused] != 3 || len(l.lines()) != 497 {
			t.Errorf("shipped %v, refused %v, stored %d", c.Shipped, c.Reasons[dropRefused], len(l.lines()))
		}
		stop(s)
	})
}

// TestAllBad: a server that refuses everything costs a bounded number of pushes.
func TestAllBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		l.answer = func(int, []storedLine) (int, map[string]string, bool, error) { return 400, nil, false, nil }
		s := newShipper(t, l, nil)
		tap := s.Tap("tomcat", "applog", "catalina.out")
		for i := range 2000 {
			tap.Offer(nil, &Entry{Line: numbered(i)})
		}
		time.Sleep(time.Minute)
		if c := balanced(t, s); c.Reasons[dropRefused] != 2000 || l.pushes() > 2*(maxPushes+20) { // two batches; of each the parts that are left are tried once
			t.Errorf("%v refused in %d pushes", c.Reasons[dropRefused], l.pushes())
		}
		stop(s)
	})
}

// TestOtherRefusals: what is asked again, and what is not.
func TestOtherRefusals(t *testing.T) {
	for _, c := range []struct {
		status  int
		err     error
		dropped string
		reason  string
	}{
		{401, nil, dropRejected, "status_4xx"},
		{403, nil, dropRejected, "status_4xx"},
		{404, nil, dropRejected, "status_4xx"},
		{302, nil, dropRejected, "status_3xx"},
		{413, nil, dropRefused, "status_4xx"},
		{408, nil, "", "status_4xx"},
		{429, nil, "", "throttled"},
		{500, nil, "", "status_5xx"},
		{503, nil, "", "status_5xx"},
		{0, syscall.ECONNREFUSED, "", "connection_refused"},
		{0, errors.New("EOF"), "", "connection"},
		{0, os.ErrDeadlineExceeded, "", "timeout"},
	} {
		t.Run(fmt.Sprint(c.status, c.err), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoki()
				l.answer = func(n int, _ []storedLine) (int, map[string]string, bool, error) {
					if n == 0 {
						return c.status, nil, false, c.err
					}
					return 204, nil, true, nil
				}
				s := newShipper(t, l, func(cfg *Config) { cfg.Tenant = "team" })
				tap := s.Tap("tomcat", "applog", "catalina.out")
				tap.Offer(nil, &Entry{Line: []byte("one")})
				time.Sleep(5 * time.Second)
				tap.Offer(nil, &Entry{Line: []byte("two")})
				time.Sleep(5 * time.Second)
				n := balanced(t, s)
				want := 2.0
				if c.dropped != "" {
					want = 1
					if n.Reasons[c.dropped] != 1 {
						t.Errorf("dropped %v, want one %s", n.Reasons, c.dropped)
					}
				}
				if n.Shipped != want || s.n.errors[c.reason] != 1 {
					t.Errorf("shipped %v of %v, errors %v", n.Shipped, want, s.n.errors)
				}
				if l.tenant != "team" {
					t.Errorf("tenant %q", l.tenant)
				}
				stop(s)
			})
		})
	}
}

// TestTimes: too old is dropped, too far ahead gets our time and keeps its own
// beside it, too long is cut.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		s := newShipper(t, l, func(c *Config) { c.MaxLine = 200 })
		tap := s.Tap("tomcat", "applog", "catalina.out")
		now := time.Now()
		ahead := now.Add(2 * time.Hour)
		tap.Offer(nil, &Entry{At: now.Add(-10 * 24 * time.Hour).UnixNano(), Line: []byte("old")})
		tap.Offer(nil, &Entry{At: ahead.UnixNano(), Line: []byte("ahead")})
		tap.Offer(nil, &Entry{At: now.UnixNano(), Line: []byte(strings.Repeat("ä", 5000))})
		tap.Offer(nil, &Entry{At: now.UnixNano(), Line: []byte("bad \xff\x00 bytes \x1b[31mred\x1b[0m")})
		time.Sleep(5 * time.Second)
		c := balanced(t, s)
		lines := l.lines()
		if c.Reasons[dropOld] != 1 || len(lines) != 3 {
			t.Fatalf("%+v, %q", c, l.texts())
		}
		if d := lines[0].at - now.UnixNano(); d != 0 {
			t.Errorf("the line from the future is %v off", time.Duration(d))
		}
		if have := l.meta[lines[0]]["event_time"]; have != ahead.UTC().Format(time.RFC3339Nano) {
			t.Errorf("its own time is %q", have)
		}
		if n := len(lines[1].text); n > 200 || !strings.HasSuffix(lines[1].text, cutMark) || s.n.cut != 1 {
			t.Errorf("cut to %d bytes", n)
		}
		if lines[2].text != "bad \ufffd\ufffd bytes red" {
			t.Errorf("%q", lines[2].text)
		}
		stop(s)
	})
}

// TestOrder: in a stream no line is before the one that came before it, whatever
// their stamps say; one that is moved by a second or more keeps its own time.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		s := newShipper(t, l, nil)
		tap := s.Tap("tomcat", "applog", "catalina.out")
		now := time.Now()
		for i, ago := range []time.Duration{5 * time.Second, 0, time.Hour, 500 * time.Millisecond, -time.Minute} {
			tap.Offer(nil, &Entry{At: now.Add(-ago).UnixNano(), Line: numbered(i)})
		}
		time.Sleep(5 * time.Second)
		stop(s)
		lines := l.lines()
		if len(lines) != 5 {
			t.Fatalf("%d lines", len(lines))
		}
		for i, x := range lines {
			if x.text != string(numbered(i)) || i > 0 && x.at <= lines[i-1].at {
				t.Errorf("%d: %v", i, x)
			}
			want := ""
			if i == 2 {
				want = now.Add(-time.Hour).UTC().Format(time.RFC3339Nano)
			}
			if have := l.meta[x]["event_time"]; have != want {
				t.Errorf("%s: event_time %q, want %q", x.text, have, want)
			}
		}
	})
}

// TestLabels: what a stream is found by is Labels, and no more than they: the
// dashboards are checked against that list.
func TestLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		s := newShipper(t, l, nil)
		s.Tap("tomcat", "applog", "catalina.out").Offer(nil, &Entry{
			At: time.Now().UnixNano(), Line: []byte("x"), Level: "WARN", Event: "too_many_open_files", Thread: "main", Trace: "4bf9"})
		time.Sleep(30 * time.Second)
		stop(s)
		lines := l.lines()
		if len(lines) != 1 {
			t.Fatalf("%d entries stored, want 1", len(lines))
		}
		for _, name := range Labels {
			if !strings.Contains(lines[0].labels, name+`="`) {
				t.Errorf("no label %s in %s", name, lines[0].labels)
			}
		}
		if n := strings.Count(lines[0].labels, `="`); n != len(Labels) {
			t.Errorf("%d labels, want %d: %s", n, len(Labels), lines[0].labels)
		}
	})
}
