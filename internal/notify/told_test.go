package notify

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/model"
)

// news is a receiver of news that writes down what it is told.
type news struct {
	changes
	mu   sync.Mutex
	got  []string
	fail bool
}

func (r *news) send(_ context.Context, alerts []*Alert) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail {
		return io.ErrUnexpectedEOF
	}
	for _, a := range alerts {
		state := "resolved"
		if a.Firing() {
			state = "firing"
		}
		r.got = append(r.got, a.Labels["alertname"]+" "+state)
	}
	slices.Sort(r.got)
	return nil
}

// one is a run of the sidecar: a notifier with one receiver of news.
func one(t *testing.T, path string, gone, fail bool) (*Notifier, *news) {
	t.Helper()
	r := &news{fail: fail}
	n := &Notifier{Set: metric.NewSet(), log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	n.cancel = cancel
	q := &queue{name: "news", to: r, notifier: n, wake: make(chan struct{}, 1), waiting: map[model.Fingerprint]*Alert{}}
	n.queues = []*queue{q}
	if err := n.Remember(path, gone, time.Now()); err != nil {
		t.Fatal(err)
	}
	n.done.Go(func() { q.run(ctx) })
	return n, r
}

// The sidecar is killed while alerts fire. What goes on is not told again, what
// ended meanwhile is told once the engine has had time to restore it, and what
// was never taken is told now.
func TestToldOverRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "told.json")
		want := func(r *news, when, text string) {
			t.Helper()
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := strings.Join(r.got, ", "); got != text {
				t.Errorf("%s: told %q, want %q", when, got, text)
			}
			r.got = nil
		}
		n, r := one(t, path, false, false)
		n.Send([]Alert{alert("On"), alert("Over"), alert("Done")})
		n.Send([]Alert{ended(alert("Done"))})
		want(r, "first run", "Done resolved, On firing, Over firing")
		r.mu.Lock()
		r.fail = true
		r.mu.Unlock()
		n.Send([]Alert{alert("Untold")})
		synctest.Wait()
		n.cancel() // as by kill -9: nothing is sent or written any more
		n.done.Wait()

		n, r = one(t, path, false, false)
		again := alert("On")
		again.FiredAt = begin.Add(time.Hour) // the engine's word for when it fires anew
		n.Send([]Alert{again, alert("Untold")})
		n.Send([]Alert{again})
		want(r, "after the restart", "Untold firing")
		time.Sleep(settleTime)
		want(r, "when it has settled", "Over resolved")
		n.Send([]Alert{ended(again)})
		want(r, "the end of what went on", "On resolved")
		time.Sleep(settleTime)
		want(r, "later", "")
		n.Close()

		// Away for too long: nothing went on, and what fires is new.
		n, r = one(t, path, true, false)
		want(r, "after a long time", "Untold resolved")
		n.Send([]Alert{alert("Untold")})
		want(r, "and then", "Untold firing")
		n.Close()
	})
}

// A reload hands on what was told before.
func TestToldOverReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "told.json")
		n, _ := one(t, path, false, false)
		n.Send([]Alert{alert("On"), alert("Over")})
		synctest.Wait()
		n.cancel()
		n.done.Wait()
		n, _ = one(t, path, false, false)
		next, r := one(t, filepath.Join(t.TempDir(), "other"), false, false)
		next.Follow(n)
		n.Close()
		next.Send([]Alert{alert("On")})
		time.Sleep(settleTime)
		synctest.Wait()
		if got := strings.Join(r.got, ", "); got != "Over resolved" {
			t.Errorf("told %q", got)
		}
		next.Close()
		if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "Over") || !strings.Contains(string(data), "On") {
			t.Errorf("kept: %s %v", data, err)
		}
	})
}

// A file that says nothing useful is no reason not to start.
func TestToldBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "told.json")
	if err := os.WriteFile(path, []byte(`{"news": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, Config{Log: true})
	if err := n.Remember(path, false, begin); err == nil {
		t.Error("no error")
	}
	n.Send([]Alert{alert("A")})
	n.Close()
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"alertname":"A"`) {
		t.Errorf("%s %v", data, err)
	}
}
