package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// called is one alert that came to a webhook, and when.
type called struct {
	status, name, target, severity, summary string
	at                                      time.Time
}

// receive is a webhook and the settings file that names it.
func receive(t *testing.T) (settings string, calls chan called) {
	t.Helper()
	calls = make(chan called, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Alerts []struct {
				Status              string
				Labels, Annotations map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("webhook: %v", err)
		}
		for _, a := range m.Alerts {
			calls <- called{a.Status, a.Labels["alertname"], a.Labels["target"], a.Labels["severity"], a.Annotations["summary"], time.Now()}
		}
	}))
	t.Cleanup(server.Close)
	settings = filepath.Join(t.TempDir(), "sidecar.yml")
	text := fmt.Sprintf("notify: {webhooks: [{name: test, url: %q}]}\n", server.URL)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return settings, calls
}

// await takes calls until one is of this alert.
func await(t *testing.T, calls chan called, limit time.Duration, name, target, status string) (called, bool) {
	t.Helper()
	late := time.After(limit)
	for {
		select {
		case c := <-calls:
			t.Logf("webhook: %s %s (%s) of %q: %s", c.status, c.name, c.severity, c.target, c.summary)
			if c.name == name && c.target == target && c.status == status {
				return c, true
			}
		case <-late:
			t.Errorf("no %s %s of %s came to the webhook in %v", status, name, target, limit)
			return called{}, false
		}
	}
}

// The sidecar alone: from the first rejection to a webhook call at most three
// seconds, and the Prometheus beside it fires the same alerts.
func TestEmbeddedAlert(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, a real Prometheus and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	settings, calls := receive(t)
	b := startBeside(t, s, "tomcat", "--config.file="+settings)
	lab.Burst(s.Addr, "/slow?ms=1", 5, 20*time.Second)
	began := time.Now() // before the first rejection
	tally := b.burst(80, 2000, 20*time.Second)
	c, ok := await(t, calls, 15*time.Second, "ExecutorRejectionStorm", b.target, "firing")
	if took := c.at.Sub(began); ok {
		t.Logf("%.2f s from before the first rejection to the webhook", took.Seconds())
		// A second more than the bar: the clock starts before the burst does.
		if took > 4*time.Second {
			t.Errorf("%v from the burst to the webhook", took)
		}
	}
	tally()
	if !lab.Until(15*time.Second, func() bool { return b.prometheus.Firing("ExecutorRejectionStorm") }) {
		t.Error("the Prometheus beside does not fire it")
	}
	// The query API is Prometheus': the lab's own client reads it.
	embedded := &lab.Prometheus{Addr: b.addr}
	if !embedded.Firing("ExecutorRejectionStorm") {
		t.Error("/api/v1/alerts does not have it")
	}
	got, err := embedded.Query(fmt.Sprintf("sum(applog_events_total{target=%q,event=\"executor_rejected\"})", b.target))
	if err != nil || len(got) != 1 || got[0].Value != 60 {
		t.Errorf("rejections by the query API: %v %v, want 60", got, err)
	}
	var out, errs tail
	if code := Main([]string{"wait", "--for=5s", "--target=" + b.target, "--url=http://" + b.addr}, nil, &out, &errs); code != 1 {
		t.Errorf("sidecar wait: exit %d: %s%s", code, out, errs)
	}
	await(t, calls, 60*time.Second, "ExecutorRejectionStorm", b.target, "resolved")
}

type tail []byte

func (b *tail) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }

// On and off of the engine take a restart; a reload says so in one line, and does
// nothing else.
func TestEngineOnOffAtReload(t *testing.T) {
	for _, on := range []bool{true, false} {
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		cfg := collectors.Defaults()
		if !on {
			cfg.Engine.Mode = "off"
		}
		d := &daemon{storage: t.TempDir(), web: &toolkit.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}}}
		a, err := d.startAlerting(&cfg, log)
		if err != nil {
			t.Fatal(err)
		}
		if had := a.engine != nil; had != on || (a.api() != nil) != on {
			t.Errorf("engine %v: it is there: %v", on, had)
		}
		cfg.Engine.Mode = map[bool]string{true: "off", false: "on"}[on]
		said.Reset()
		if err := a.reload(&cfg); err != nil {
			t.Error(err)
		}
		if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "take effect at the next start") {
			t.Errorf("engine %v, reload: %q", on, text)
		}
		if (a.engine != nil) != on {
			t.Errorf("engine %v: changed by a reload", on)
		}
		a.close()
	}
}
