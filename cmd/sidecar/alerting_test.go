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
	"slices"
	"strings"
	"sync"
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
	// together are the names of the alerts of the same target in the same call.
	together []string
}

// hook is a webhook.
func hook(t *testing.T) (url string, calls chan called) {
	t.Helper()
	calls = make(chan called, 10_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		var m struct {
			Alerts []struct {
				Status              string
				Labels, Annotations map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("webhook: %v", err)
		}
		together := map[string][]string{}
		for _, a := range m.Alerts {
			together[a.Labels["target"]] = append(together[a.Labels["target"]], a.Labels["alertname"])
		}
		for _, a := range m.Alerts {
			calls <- called{a.Status, a.Labels["alertname"], a.Labels["target"], a.Labels["severity"], a.Annotations["summary"], at, together[a.Labels["target"]]}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// settings writes a settings file.
func settings(t *testing.T, format string, args ...any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sidecar.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// receive is a webhook and the settings file that names it.
func receive(t *testing.T) (file string, calls chan called) {
	t.Helper()
	url, calls := hook(t)
	return settings(t, "notify: {webhooks: [{name: test, url: %q}]}\n", url), calls
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

// firstRejection is when Tomcat logged its first one, by Tomcat's own clock. It
// is the line before that of the exception.
func firstRejection(t *testing.T, log string) time.Time {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "java.util.concurrent.RejectedExecutionException") {
			const form = "02-Jan-2006 15:04:05.000"
			at, err := time.ParseInLocation(form, before[:min(len(before), len(form))], time.Local)
			if err != nil {
				t.Fatalf("the record of a rejection has no time: %q", before)
			}
			return at
		}
		before = line
	}
	t.Fatal("no rejection was logged")
	return time.Time{}
}

// fired collects for a while how long each alert of a target has fired, as an
// API tells it.
func fired(p *lab.Prometheus, target string, until <-chan struct{}, done *sync.WaitGroup) map[string]time.Duration {
	out := map[string]time.Duration{}
	const look = 250 * time.Millisecond
	done.Go(func() {
		for ticker := time.NewTicker(look); ; {
			if all, err := p.Alerts(""); err == nil {
				for _, a := range all {
					if a.State == "firing" && a.Labels["target"] == target {
						out[a.Labels["alertname"]] += look
					}
				}
			}
			select {
			case <-until:
				ticker.Stop()
				return
			case <-ticker.C:
			}
		}
	})
	return out
}

// A real Tomcat is overdriven. The sidecar alone calls a webhook within three
// seconds of the first rejection; the Prometheus that scrapes it beside, with a
// real Alertmanager behind TLS and a user, within ten. Both fire the same alerts,
// the Alertmanager groups what either sends, and all of them end.
func TestEmbeddedAlert(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real server, Prometheus, Alertmanager and the sidecar")
	}
	s := lab.StartTomcat(t, lab.Tomcat{Executor: &limits, AcceptCount: 100, AccessLogPattern: `%h %l %u %t "%r" %s %b %D`})
	direct, calls := hook(t)
	grouped, groupedCalls := hook(t)
	scraped, scrapedCalls := hook(t)
	manager, err := lab.StartLockedAlertmanager(t.TempDir(), fmt.Sprintf(`
route:
  receiver: embedded
  group_by: [target]
  group_wait: 1s
  group_interval: 2s
  routes: [{receiver: prometheus, matchers: ['from="prometheus"']}]
receivers:
  - {name: embedded, webhook_configs: [{url: %q}]}
  - {name: prometheus, webhook_configs: [{url: %q}]}
`, grouped, scraped))
	lab.Need(t, err)
	t.Cleanup(manager.Stop)
	b := startAlone(t, s, "tomcat", filepath.Join(t.TempDir(), "state"), "--config.file="+settings(t, `
notify:
  webhooks: [{name: test, url: %q}]
  alertmanagers: [{url: %q, http: {basic_auth: {username: %q, password: %q}, tls_config: {ca_file: %q}}}]
`, direct, manager.URL, manager.User, manager.Password, manager.CA))
	b.startPrometheus(fmt.Sprintf(`
alerting:
  alertmanagers:
    - {scheme: https, basic_auth: {username: %q, password: %q}, tls_config: {ca_file: %q}, static_configs: [{targets: [%q]}]}
`, manager.User, manager.Password, manager.CA, manager.Addr))
	embedded := &lab.Prometheus{Addr: b.addr} // its API is Prometheus': the lab's own client reads it
	lab.Burst(s.Addr, "/slow?ms=1", 5, 20*time.Second)

	stop, watching := make(chan struct{}), &sync.WaitGroup{}
	inEngine, inPrometheus := fired(embedded, b.target, stop, watching), fired(b.prometheus, b.target, stop, watching)
	tally := b.burst(80, 2000, 20*time.Second)
	first, firstOK := await(t, calls, 15*time.Second, "ExecutorRejectionStorm", b.target, "firing")
	second, secondOK := await(t, scrapedCalls, 20*time.Second, "ExecutorRejectionStorm", b.target, "firing")
	began := firstRejection(t, s.CatalinaOut)
	for _, one := range []struct {
		what string
		took time.Duration
		ok   bool
		bar  time.Duration
	}{
		{"the sidecar alone", first.at.Sub(began), firstOK, 3 * time.Second},
		{"by Prometheus and Alertmanager", second.at.Sub(began), secondOK, 10 * time.Second},
	} {
		if one.ok {
			t.Logf("%s: %.2f s from the first rejection to the webhook", one.what, one.took.Seconds())
			if one.took > one.bar || one.took < 0 {
				t.Errorf("%s: %v from the first rejection to the webhook, want %v at most", one.what, one.took, one.bar)
			}
		}
	}
	tally()
	got, err := embedded.Query(fmt.Sprintf("sum(applog_events_total{target=%q,event=\"executor_rejected\"})", b.target))
	if err != nil || len(got) != 1 || got[0].Value != 60 {
		t.Errorf("rejections by the query API: %v %v, want 60", got, err)
	}
	var out, errs tail
	if code := Main([]string{"wait", "--for=5s", "--fail-on=critical", "--target=" + b.target, "--url=http://" + b.addr}, nil, &out, &errs); code != 1 ||
		!strings.Contains(string(out), "ExecutorRejectionStorm (critical): "+b.target+" turns requests away") {
		t.Errorf("sidecar wait while it fires: exit %d: %s%s", code, out, errs)
	}

	// What the real Alertmanager holds of the sidecar's, in one group of the target.
	if !lab.Until(10*time.Second, func() bool {
		groups, err := manager.Groups()
		return err == nil && slices.ContainsFunc(groups, func(g lab.Group) bool {
			n := 0
			for _, a := range g.Alerts {
				if a.Labels["from"] == "" && a.Labels["target"] == b.target && a.Status.State == "active" {
					n++
				}
			}
			return g.Labels["target"] == b.target && n >= 2
		})
	}) {
		groups, err := manager.Groups()
		t.Errorf("Alertmanager has no group of several alerts of %s: %+v %v", b.target, groups, err)
	}
	await(t, calls, 60*time.Second, "ExecutorRejectionStorm", b.target, "resolved")
	ended, ok := await(t, groupedCalls, 30*time.Second, "ExecutorRejectionStorm", b.target, "resolved")
	if ok && len(ended.together) < 2 {
		t.Errorf("Alertmanager told it alone: %v", ended.together)
	}
	await(t, scrapedCalls, 30*time.Second, "ExecutorRejectionStorm", b.target, "resolved")
	if !lab.Until(60*time.Second, func() bool { // the window of half a minute, and then the hold
		all, err := embedded.Alerts("")
		return err == nil && !slices.ContainsFunc(all, func(a lab.Alert) bool {
			return a.State == "firing" && a.Labels["target"] == b.target && a.Labels["severity"] == "critical"
		})
	}) {
		t.Error("critical alerts do not end")
	}
	close(stop)
	watching.Wait()
	t.Logf("fired: in the engine %v, in Prometheus %v", inEngine, inPrometheus)
	// What one has seen for more than a moment the other has to have seen at all:
	// their samples are not of the same instants.
	for _, way := range [][2]map[string]time.Duration{{inEngine, inPrometheus}, {inPrometheus, inEngine}} {
		for name, long := range way[0] {
			if long > 2*time.Second && way[1][name] == 0 {
				t.Errorf("%s fired for %v in one of them only", name, long)
			}
		}
	}
	if len(inEngine) < 2 {
		t.Errorf("only %v fired at all", inEngine)
	}
	out, errs = nil, nil
	if code := Main([]string{"wait", "--for=2s", "--fail-on=critical", "--target=" + b.target, "--url=http://" + b.addr}, nil, &out, &errs); code != 0 {
		t.Errorf("sidecar wait when all is well again: exit %d: %s%s", code, out, errs)
	}
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
