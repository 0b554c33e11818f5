package ship

import (
	"context"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/log"
	lokiclient "github.com/grafana/loki-client-go/loki"
	"github.com/grafana/loki-client-go/pkg/backoff"
	"github.com/grafana/loki-client-go/pkg/urlutil"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
)

// simple is the simple path: the Client of loki-client-go behind our interface.
// Handle takes a line and says nothing of what becomes of it, so all that can be
// told of a batch is that it was handed over.
type simple struct {
	client *lokiclient.Client
	stop   func()
}

func newSimple(t *testing.T, address string, change func(*lokiclient.Config)) *simple {
	t.Helper()
	u, err := url.Parse(address + "/loki/api/v1/push")
	if err != nil {
		t.Fatal(err)
	}
	cfg := lokiclient.Config{
		URL: urlutil.URLValue{URL: u}, BatchWait: 20 * time.Millisecond, BatchSize: 1 << 20, Timeout: 5 * time.Second,
		BackoffConfig: backoff.BackoffConfig{MinBackoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond, MaxRetries: 10},
	}
	if change != nil {
		change(&cfg)
	}
	client, err := lokiclient.NewWithLogger(cfg, log.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	return &simple{client, client.Stop}
}

func (s *simple) push(_ context.Context, part []line) result {
	for i := range part {
		l := &part[i]
		pairs, err := readLabels(l.stream.text)
		if err != nil {
			return result{kind: reject, detail: err.Error()}
		}
		set := model.LabelSet{}
		for name, value := range pairs {
			set[model.LabelName(name)] = model.LabelValue(value)
		}
		if err := s.client.HandleWithMetadata(set, time.Unix(0, l.at), l.text, l.meta); err != nil {
			return result{kind: reject, detail: err.Error()}
		}
	}
	return result{kind: sent}
}

// both runs a test with each of the two senders against a stub that answers so.
func both(t *testing.T, answer func(n int, lines []storedLine) (int, map[string]string, bool, error), change func(*Config), run func(t *testing.T, s *Shipper, l *loki, ours bool)) {
	t.Helper()
	for _, name := range []string{"ours", "loki-client-go"} {
		t.Run(name, func(t *testing.T) {
			l := newLoki()
			l.answer = answer
			srv := httptest.NewServer(l)
			defer srv.Close()
			s := realShipper(t, srv.URL, change)
			if name != "ours" {
				theirs := newSimple(t, srv.URL, nil)
				defer theirs.stop()
				s.mu.Lock()
				s.sender = theirs
				s.mu.Unlock()
			}
			run(t, s, l, name == "ours")
		})
	}
}

func offer(s *Shipper, texts ...string) {
	tap := s.Tap("tomcat", "applog", "catalina.out")
	for _, text := range texts {
		tap.Offer(nil, &Entry{Level: "WARN", Line: []byte(text), Thread: "exec-1"})
	}
}

// TestSimplePath: where all goes well, both send the same lines with the same
// labels, metadata and times: the types and the encoding are the same.
func TestSimplePath(t *testing.T) {
	both(t, nil, nil, func(t *testing.T, s *Shipper, l *loki, _ bool) {
		offer(s, "one", "two", "three")
		until(t, "three landed", func() bool { return len(l.lines()) == 3 })
		lines := l.lines()
		if have := strings.Join(l.texts(), " "); have != "one two three" {
			t.Errorf("%q", have)
		}
		if want := `{host="h", level="WARN", source="applog", target="tomcat"}`; lines[0].labels != want {
			t.Errorf("labels %s, want %s", lines[0].labels, want)
		}
		if l.meta[lines[0]]["thread"] != "exec-1" || lines[1].at <= lines[0].at {
			t.Errorf("%v, %v", l.meta[lines[0]], lines)
		}
	})
}

// TestClientLosesBatch is why the sender is our own: the Client gives up the
// whole batch when one of its lines is refused, and tells nobody, so that the
// account says shipped of lines that are lost. Ours splits: the good lines land,
// and the bad one is counted.
func TestClientLosesBatch(t *testing.T) {
	refuse := func(_ int, lines []storedLine) (int, map[string]string, bool, error) {
		if slices.ContainsFunc(lines, func(x storedLine) bool { return x.text == "bad" }) {
			return 400, nil, false, nil
		}
		return 204, nil, true, nil
	}
	slow := func(c *Config) { c.BatchWait = 50 * time.Millisecond }
	both(t, refuse, slow, func(t *testing.T, s *Shipper, l *loki, ours bool) {
		offer(s, "one", "two", "bad", "three")
		if ours {
			until(t, "three shipped", func() bool { c := balanced(t, s); return c.Shipped == 3 && c.Reasons[dropRefused] == 1 })
			if have := strings.Join(l.texts(), " "); have != "one two three" {
				t.Errorf("landed %q", have)
			}
			return
		}
		until(t, "one push", func() bool { return l.pushes() == 1 })
		offer(s, "the next batch")
		until(t, "the next batch", func() bool { return len(l.lines()) > 0 })
		if have := strings.Join(l.texts(), " "); have != "the next batch" || l.pushes() != 2 {
			t.Errorf("loki-client-go landed %q in %d pushes: it splits now, and may do instead of ours", have, l.pushes())
		}
		if c := balanced(t, s); c.Shipped != 5 || c.Dropped != 0 {
			t.Errorf("%+v: loki-client-go tells what becomes of a batch now", c)
		}
	})
}

// TestClientIgnoresRetryAfter: told to come back in a second, the Client asks
// again at once, and ours in a second.
func TestClientIgnoresRetryAfter(t *testing.T) {
	throttle := func(n int, _ []storedLine) (int, map[string]string, bool, error) {
		if n == 0 {
			return 429, map[string]string{"Retry-After": "1"}, false, nil
		}
		return 204, nil, true, nil
	}
	both(t, throttle, func(c *Config) { c.MaxBackoff = 10 * time.Second }, func(t *testing.T, s *Shipper, l *loki, ours bool) {
		offer(s, "one")
		until(t, "landed", func() bool { return len(l.lines()) == 1 })
		l.mu.Lock()
		gap := l.when[1].Sub(l.when[0])
		l.mu.Unlock()
		switch {
		case ours && gap < time.Second:
			t.Errorf("asked again after %v", gap)
		case !ours && gap >= time.Second:
			t.Errorf("loki-client-go asked again after %v: it reads Retry-After now", gap)
		}
	})
}

// TestClientBlocks: while it tries again, the Client takes no line, and stopping
// it waits for all of its tries. With ours nobody waits.
func TestClientBlocks(t *testing.T) {
	srv := httptest.NewServer(&loki{answer: func(int, []storedLine) (int, map[string]string, bool, error) { return 503, nil, false, nil }})
	defer srv.Close()
	// Five tries, each a tenth of a second after the other: by default there are
	// ten, from half a second to minutes.
	theirs := newSimple(t, srv.URL, func(c *lokiclient.Config) {
		c.BackoffConfig = backoff.BackoffConfig{MinBackoff: 200 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, MaxRetries: 5}
	})
	began := time.Now()
	theirs.push(context.Background(), []line{{stream: &stream{text: `{a="b"}`}, at: 1, text: "x"}})
	theirs.stop()
	if d := time.Since(began); d < 500*time.Millisecond {
		t.Errorf("the Client stopped within %v, with a batch that was refused five times", d)
	}

	s := realShipper(t, srv.URL, func(c *Config) {
		c.MinBackoff, c.MaxBackoff, c.StopTimeout = time.Minute, time.Minute, 50*time.Millisecond
	})
	offer(s, "one")
	until(t, "refused", func() bool { return s.errorCount("status_5xx") == 1 })
	began = time.Now()
	offer(s, "two")
	stop(s)
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("stopping took %v", d)
	}
	if c := balanced(t, s); c.Reasons[dropStopped] != 2 {
		t.Errorf("%+v", c)
	}
}

// TestClientSeries: the Client's series are in the default registry, once its
// package is in the program. That registry is not served, and the package is not
// in the program: TestPromtailStaysOut, and each scrape of the tests in
// cmd/sidecar/ship_unix_test.go.
func TestClientSeries(t *testing.T) {
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return strings.HasPrefix(f.GetName(), "promtail_") }) {
		t.Error("no promtail_* there: the comment above is out of date")
	}
}
