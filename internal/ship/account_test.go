package ship

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestStorm counts exactly: 200,000 of one pattern and a lone one of another.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoki()
		s := newShipper(t, l, func(c *Config) { c.LinesPerSecond = 10 })
		tap := s.Tap("tomcat", "applog", "catalina.out")
		send := func(pattern, event string, line []byte) {
			g := tap.Gate("WARN", pattern)
			if g.Pass() {
				tap.Offer(g, &Entry{Level: "WARN", Event: event, Pattern: pattern, Line: line, At: time.Now().UnixNano()})
			}
		}
		time.Sleep(500 * time.Millisecond) // in the middle of a second of the gates
		for i := range 200000 {
			send("Socket accept failed", "too_many_open_files", numbered(i))
			if i%20000 == 0 {
				time.Sleep(time.Second)
				balanced(t, s)
			}
		}
		send("Executor rejected socket [*]", "executor_rejected", []byte("the lone one"))
		time.Sleep(10 * time.Second)
		c := balanced(t, s)
		if c.Selected != 200001 || c.Queued != 0 || c.Dropped != 0 {
			t.Errorf("%+v", c)
		}
		lone, told := 0, 0
		passed, summaries := map[int64]int{}, map[int64]int{} // by second
		for _, x := range l.lines() {
			switch second := x.at / 1e9; {
			case strings.HasPrefix(x.text, "line "):
				passed[second]++
			case strings.HasSuffix(x.text, " more"):
				summaries[second]++
			}
			if x.text == "the lone one" {
				lone++
			}
			var n int
			if rest, ok := strings.CutPrefix(x.text, "too_many_open_files: "); ok {
				fmt.Sscanf(strings.ReplaceAll(rest, ",", ""), "%d more", &n)
				told += n
			}
		}
		if len(passed) != 11 || len(summaries) != 10 { // in the first second there is one line
			t.Errorf("lines in %d seconds, summaries in %d", len(passed), len(summaries))
		}
		for second := range passed {
			if passed[second] > 10 || summaries[second] > 1 {
				t.Errorf("%d lines and %d summaries in one second", passed[second], summaries[second])
			}
		}
		if lone != 1 {
			t.Errorf("the lone one landed %d times", lone)
		}
		if float64(told) != c.Suppressed {
			t.Errorf("the summaries tell of %d, suppressed were %v", told, c.Suppressed)
		}
		if n := len(l.lines()); float64(n) != c.Shipped+c.Summaries {
			t.Errorf("%d stored, %v shipped and %v summaries", n, c.Shipped, c.Summaries)
		}
		stop(s)
	})
}

// TestGateIsCountedAtOnce: a line that its gate shuts out is in the figures of
// whoever looks next, before the second is over.
func TestGateIsCountedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipper(t, newLoki(), func(c *Config) { c.LinesPerSecond = 2 })
		g := s.Tap("t", "applog", "f").Gate("WARN", "p")
		for i := range 10 {
			if pass := g.Pass(); pass != (i < 2) {
				t.Fatalf("line %d passes: %v", i, pass)
			}
		}
		if c := balanced(t, s); c.Suppressed != 8 || c.Selected != 8 {
			t.Errorf("%+v", c)
		}
		saved, err := s.Save(metric.NewSet())
		if err != nil || !strings.Contains(string(saved), `"suppressed":8,`) {
			t.Errorf("%s %v", saved, err)
		}
		stop(s)
	})
}

// published fails unless the series that a scrape gets add up.
func published(t *testing.T, s *Shipper) {
	t.Helper()
	set := metric.NewSet()
	set.Lock()
	defer set.Unlock()
	if _, err := s.Save(set); err != nil {
		t.Fatal(err)
	}
	sum := map[*metric.Family]float64{}
	for _, f := range []*metric.Family{Selected, Shipped, Suppressed, Dropped, Queued} {
		set.Each(f, func(_ []string, v float64) {
			if v < 0 {
				t.Fatalf("%s is %v", f.Name, v)
			}
			sum[f] += v
		})
	}
	if have := sum[Shipped] + sum[Suppressed] + sum[Dropped] + sum[Queued]; have != sum[Selected] {
		t.Fatalf("shipped %v + suppressed %v + dropped %v + queued %v is not selected %v", sum[Shipped], sum[Suppressed], sum[Dropped], sum[Queued], sum[Selected])
	}
}

// TestBalanceUnderFire looks at the sum all the time, while several files are
// read and the server answers at random.
func TestBalanceUnderFire(t *testing.T) {
	l := newLoki()
	rnd := rand.New(rand.NewSource(1))
	l.answer = func(int, []storedLine) (int, map[string]string, bool, error) {
		switch rnd.Intn(6) {
		case 0:
			return 400, nil, false, nil
		case 1:
			return 500, nil, true, nil
		case 2:
			return 0, nil, false, errors.New("reset")
		case 3:
			return 401, nil, false, nil
		}
		return 204, nil, true, nil
	}
	s := newShipper(t, l, func(c *Config) {
		c.QueueBytes, c.BatchBytes, c.LinesPerSecond = 64<<10, 8<<10, 5000
		c.BatchWait, c.MinBackoff, c.MaxBackoff = 0, 10*time.Millisecond, 10*time.Millisecond
		c.SpoolDir, c.SpoolBytes = t.TempDir(), 100<<10
	})
	var files sync.WaitGroup
	for f := range 3 {
		files.Go(func() {
			tap := s.Tap("t", "applog", fmt.Sprint(f))
			g := tap.Gate("WARN", "p")
			for i := range 20000 {
				if g.Pass() {
					tap.Offer(g, &Entry{Line: numbered(i)})
				}
			}
			tap.Close()
		})
	}
	var over atomic.Bool
	go func() { files.Wait(); over.Store(true) }()
	for !over.Load() {
		balanced(t, s)
		published(t, s)
	}
	stop(s)
	published(t, s)
	if c := balanced(t, s); c.Selected != 60000 || c.Suppressed == 0 || c.Shipped == 0 {
		t.Errorf("%+v", c)
	}
}

// BenchmarkGate is what a suppressed line costs.
func BenchmarkGate(b *testing.B) {
	s := newShipper(b, newLoki(), func(c *Config) { c.LinesPerSecond = 1 })
	defer stop(s)
	g := s.Tap("t", "applog", "f").Gate("WARN", "p")
	b.ReportAllocs()
	for b.Loop() {
		g.Pass()
	}
}
