package ship

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/grafana/loki/pkg/push"
)

// A stored line is what the stub keeps: one of equal ones, as Loki does.
type storedLine struct {
	labels string
	at     int64
	text   string
}

// loki is a stub that stores what is pushed and answers what it is told. As a
// RoundTripper it works inside of a synctest bubble, where an outage of half an
// hour takes milliseconds.
type loki struct {
	mu     sync.Mutex
	seen   map[storedLine]bool
	list   []storedLine // without repeats, in the order of their coming
	meta   map[storedLine]map[string]string
	when   []time.Time // of each push
	bytes  []int
	tenant string
	// answer decides: store says whether what was pushed is kept. nil is 204.
	answer func(n int, lines []storedLine) (status int, header map[string]string, store bool, err error)
}

func newLoki() *loki {
	return &loki{seen: map[storedLine]bool{}, meta: map[storedLine]map[string]string{}}
}

func decode(contentType string, body []byte) (lines []storedLine, meta []map[string]string, err error) {
	if contentType == "application/json" {
		var b struct {
			Streams []struct {
				Stream map[string]string
				Values [][]json.RawMessage
			}
		}
		if err := json.Unmarshal(body, &b); err != nil {
			return nil, nil, err
		}
		for _, st := range b.Streams {
			for _, v := range st.Values {
				var at, text string
				m := map[string]string{}
				json.Unmarshal(v[0], &at)
				json.Unmarshal(v[1], &text)
				if len(v) > 2 {
					if err := json.Unmarshal(v[2], &m); err != nil {
						return nil, nil, err
					}
				}
				n, err := strconv.ParseInt(at, 10, 64)
				if err != nil {
					return nil, nil, err
				}
				lines, meta = append(lines, storedLine{labelText(st.Stream), n, text}), append(meta, m)
			}
		}
		return lines, meta, nil
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, nil, err
	}
	var req push.PushRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, nil, err
	}
	for _, st := range req.Streams {
		for _, e := range st.Entries {
			m := map[string]string{}
			for _, x := range e.StructuredMetadata {
				m[x.Name] = x.Value
			}
			lines, meta = append(lines, storedLine{st.Labels, e.Timestamp.UnixNano(), e.Line}), append(meta, m)
		}
	}
	return lines, meta, nil
}

func (l *loki) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	lines, meta, err := decode(r.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, fmt.Errorf("the stub can't read the push: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.when)
	l.when, l.bytes = append(l.when, time.Now()), append(l.bytes, len(body))
	l.tenant = r.Header.Get("X-Scope-OrgID")
	status, header, store := 204, map[string]string(nil), true
	if l.answer != nil {
		if status, header, store, err = l.answer(n, lines); err != nil {
			return nil, err
		}
	}
	if store {
		for i, x := range lines {
			if !l.seen[x] {
				l.seen[x] = true
				l.list = append(l.list, x)
				l.meta[x] = meta[i]
			}
		}
	}
	resp := &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
	for k, v := range header {
		resp.Header.Set(k, v)
	}
	return resp, nil
}

func (l *loki) pushes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.when)
}

func (l *loki) lines() []storedLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// newShipper makes a Shipper whose pushes go to rt.
func newShipper(t testing.TB, rt http.RoundTripper, change func(*Config)) *Shipper {
	t.Helper()
	cfg := DefaultConfig()
	cfg.URL, cfg.Host = "http://loki.test/loki/api/v1/push", "h"
	cfg.LinesPerSecond = 1e6
	cfg.BytesPerSecond = 0
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	s, err := newWith(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), &http.Client{Transport: rt})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// balanced fails unless each chosen line is in exactly one place.
func balanced(t *testing.T, s *Shipper) Counts {
	t.Helper()
	c := s.Counts()
	if c.Shipped+c.Suppressed+c.Dropped+c.Queued != c.Selected {
		t.Fatalf("shipped %v + suppressed %v + dropped %v + queued %v is not selected %v (%v)", c.Shipped, c.Suppressed, c.Dropped, c.Queued, c.Selected, c.Reasons)
	}
	return c
}

func stop(s *Shipper) { s.Stop(context.Background()) }

func numbered(i int) []byte { return fmt.Appendf(nil, "line %06d", i) }

// texts are the stored lines' texts.
func (l *loki) texts() []string {
	var out []string
	for _, x := range l.lines() {
		out = append(out, x.text)
	}
	return out
}

var _ = bytes.Equal
