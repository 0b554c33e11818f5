package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func alert(name string, more ...string) Alert {
	a := Alert{
		Labels:      map[string]string{"alertname": name, "severity": "critical", "target": "tomcat-8080"},
		Annotations: map[string]string{"summary": name + " of tomcat-8080"},
		State:       "firing", FiredAt: begin, ActiveAt: begin.Add(-2 * time.Second), ValidUntil: begin.Add(4 * time.Minute),
	}
	for i := 0; i+1 < len(more); i += 2 {
		a.Labels[more[i]] = more[i+1]
	}
	return a
}

func ended(a Alert) Alert {
	a.State, a.ResolvedAt, a.ValidUntil = "inactive", begin.Add(30*time.Second), begin.Add(time.Minute)
	return a
}

// call is one request that a receiver got.
type call struct {
	path string
	body string
}

// stub answers with the statuses in turn, then 200.
func stub(t *testing.T, statuses ...int) (url string, calls chan call) {
	calls = make(chan call, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
		}
		calls <- call{r.URL.Path, string(body)}
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func start(t *testing.T, cfg Config) *Notifier {
	t.Helper()
	for i := range cfg.Alertmanagers {
		cfg.Alertmanagers[i].HTTP = config.DefaultHTTPClientConfig
	}
	for i := range cfg.Webhooks {
		cfg.Webhooks[i].HTTP = config.DefaultHTTPClientConfig
	}
	n, err := New(cfg, "http://here:10404", metric.NewSet(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func (n *Notifier) figure(f *metric.Family) (sum float64) {
	n.Set.Lock()
	defer n.Set.Unlock()
	n.Set.Each(f, func(_ []string, v float64) { sum += v })
	return sum
}

func TestAlertmanager(t *testing.T) {
	url, calls := stub(t)
	n := start(t, Config{Alertmanagers: []Alertmanager{{URL: url + "/prefix"}}})
	n.Send([]Alert{alert("A")})
	c := <-calls
	want := `[{"labels":{"alertname":"A","severity":"critical","target":"tomcat-8080"},"annotations":{"summary":"A of tomcat-8080"},` +
		`"startsAt":"2026-03-01T12:00:00Z","endsAt":"2026-03-01T12:04:00Z","generatorURL":"http://here:10404"}]`
	if c.path != "/prefix/api/v2/alerts" || c.body != want {
		t.Errorf("%s\n%s\nwant\n%s", c.path, c.body, want)
	}
	// It is told again each time: it would else take the alert for resolved.
	n.Send([]Alert{alert("A")})
	<-calls
	n.Send([]Alert{ended(alert("A"))})
	if c = <-calls; !strings.Contains(c.body, `"endsAt":"2026-03-01T12:00:30Z"`) {
		t.Errorf("resolved: %s", c.body)
	}
}

// Two Alertmanagers behind one proxy, each with a prefix of its own.
func TestAlertmanagersOfOneHost(t *testing.T) {
	url, calls := stub(t)
	n := start(t, Config{Alertmanagers: []Alertmanager{{URL: url + "/east/"}, {URL: url + "/west"}, {URL: url}}})
	n.Send([]Alert{alert("A")})
	got := map[string]bool{}
	for range 3 {
		got[(<-calls).path] = true
	}
	if len(got) != 3 || !got["/east/api/v2/alerts"] || !got["/west/api/v2/alerts"] || !got["/api/v2/alerts"] {
		t.Errorf("called were %v", got)
	}
	host := strings.TrimPrefix(url, "http://")
	for i, want := range []string{host + "/east", host + "/west", host} {
		if got := n.queues[i].name; got != "alertmanager "+want {
			t.Errorf("receiver %q, want %q", got, want)
		}
	}
}

// What a webhook's address says is in many a case all that its service asks for.
func TestAddressStaysOutOfTheLog(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	receivers, err := (&Config{Webhooks: []Webhook{{URL: gone.URL + "/hooks/s3cret", HTTP: config.DefaultHTTPClientConfig}}}).receivers("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := alert("A")
	if err := receivers[0].to.send(t.Context(), []*Alert{&a}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}

func TestWebhook(t *testing.T) {
	url, calls := stub(t)
	n := start(t, Config{Webhooks: []Webhook{{Name: "stop", URL: url + "/hook", Match: map[string]string{"severity": "critical"}}}})
	n.Send([]Alert{alert("A"), alert("B"), alert("C", "severity", "info")})
	c := <-calls
	var m message
	if err := json.Unmarshal([]byte(c.body), &m); err != nil {
		t.Fatal(err)
	}
	if c.path != "/hook" || m.Version != "4" || m.Status != "firing" || m.Receiver != "stop" || len(m.Alerts) != 2 ||
		m.CommonLabels["target"] != "tomcat-8080" || m.CommonLabels["alertname"] != "" || m.Alerts[0].Labels["alertname"] != "A" ||
		m.Alerts[0].Fingerprint == "" || !m.Alerts[0].EndsAt.IsZero() {
		t.Errorf("%s", c.body)
	}
	// The same again is no news; the end is.
	n.Send([]Alert{alert("A"), alert("B")})
	n.Send([]Alert{ended(alert("A"))})
	if err := json.Unmarshal([]byte((<-calls).body), &m); err != nil {
		t.Fatal(err)
	}
	if m.Status != "resolved" || len(m.Alerts) != 1 || m.Alerts[0].Status != "resolved" {
		t.Errorf("%+v", m)
	}
	n.Close()
	if len(calls) != 0 {
		t.Errorf("%d calls too many", len(calls))
	}
}

// A receiver that fails is tried again; what is told then is the latest.
func TestFailures(t *testing.T) {
	url, calls := stub(t, 500, 429)
	n := start(t, Config{Webhooks: []Webhook{{URL: url}}})
	n.Send([]Alert{alert("A")})
	<-calls
	<-calls
	n.Send([]Alert{ended(alert("A"))})
	if c := <-calls; !strings.Contains(c.body, `"status":"resolved"`) {
		t.Errorf("third call: %s", c.body)
	}
	n.Close()
	if f, s, d := n.figure(failed), n.figure(sent), n.figure(dropped); f != 2 || s != 1 || d != 0 {
		t.Errorf("failed %v, sent %v, dropped %v; want 2, 1, 0", f, s, d)
	}
}

// What is refused as wrong is not sent for ever.
func TestRefusal(t *testing.T) {
	url, calls := stub(t, 400)
	n := start(t, Config{Webhooks: []Webhook{{URL: url}}})
	n.Send([]Alert{alert("A")})
	<-calls
	n.Send([]Alert{alert("B")})
	if c := <-calls; strings.Contains(c.body, `"A"`) {
		t.Errorf("%s", c.body)
	}
	n.Close()
	if d, s := n.figure(dropped), n.figure(sent); d != 1 || s != 1 {
		t.Errorf("dropped %v, sent %v; want 1, 1", d, s)
	}
}

// A receiver that never answers holds up neither the sender nor another.
func TestHanging(t *testing.T) {
	block := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	defer hung.Close()
	defer close(block)
	url, calls := stub(t)
	n := start(t, Config{Webhooks: []Webhook{{Name: "hung", URL: hung.URL}, {Name: "good", URL: url}}})
	for i := range 3 * queueLimit {
		n.Send([]Alert{alert(fmt.Sprint("A", i))})
	}
	<-calls
	if q := n.queues[0].length(); q > queueLimit+batchLimit {
		t.Errorf("%d wait for the one that hangs", q)
	}
	if n.figure(dropped) == 0 {
		t.Error("none was counted as dropped")
	}
	n.cancel()
}

// What a full queue has lost is news again when the rules repeat it. It was noted
// as told, and so a webhook never heard of an alert that went on firing.
func TestLostIsToldAgain(t *testing.T) {
	n := &Notifier{Set: metric.NewSet(), log: slog.New(slog.DiscardHandler)}
	q := &queue{name: "x", notifier: n, wake: make(chan struct{}, 1), waiting: map[modelFingerprint]*Alert{}, to: &webhook{}}
	first := alert("first")
	q.add([]Alert{first})
	for i := range queueLimit {
		q.add([]Alert{alert(fmt.Sprint("A", i))})
	}
	waits := func(a Alert) bool {
		w := q.waiting[a.Fingerprint()]
		return w != nil && w.Firing() == a.Firing()
	}
	if waits(first) || n.figure(dropped) != 1 {
		t.Fatalf("the first still waits, or none was counted: %v", n.figure(dropped))
	}
	q.take()
	q.add([]Alert{first})
	if !waits(first) {
		t.Error("it fires, and is told no more")
	}
	// The same of an end.
	for len(q.take()) > 0 {
	}
	q.add([]Alert{ended(first)})
	for i := range queueLimit {
		q.add([]Alert{alert(fmt.Sprint("B", i))})
	}
	q.take()
	if q.add([]Alert{ended(first)}); !waits(ended(first)) {
		t.Error("it has ended, and that is told no more")
	}
}

// The pause doubles and ends at half a minute.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		first := time.Now()
		n := &Notifier{Set: metric.NewSet(), log: slog.New(slog.DiscardHandler)}
		q := &queue{name: "x", notifier: n, wake: make(chan struct{}, 1), waiting: map[modelFingerprint]*Alert{},
			to: fake(func() error { at = append(at, time.Since(first)); return io.ErrUnexpectedEOF })}
		ctx, cancel := contextWithTimeout(t, 3*time.Minute)
		defer cancel()
		q.add([]Alert{alert("A")})
		q.run(ctx)
		var gaps []string
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, (at[i] - at[i-1]).String())
		}
		if got := strings.Join(gaps, " "); got != "500ms 1s 2s 4s 8s 16s 30s 30s 30s 30s" && got != "500ms 1s 2s 4s 8s 16s 30s 30s 30s" && got != "500ms 1s 2s 4s 8s 16s 30s 30s 30s 30s 30s" {
			t.Errorf("pauses: %s", got)
		}
	})
}

func TestLog(t *testing.T) {
	var b bytes.Buffer
	n, err := New(Config{Log: true}, "", metric.NewSet(), slog.New(slog.NewTextHandler(&b, nil)))
	if err != nil {
		t.Fatal(err)
	}
	n.Send([]Alert{alert("A")})
	n.Close()
	if got := b.String(); !strings.Contains(got, `level=WARN msg="alert A" summary="A of tomcat-8080" severity=critical target=tomcat-8080`) {
		t.Errorf("%s", got)
	}
}

func TestConfig(t *testing.T) {
	cfg := DefaultConfig()
	dec := yaml.NewDecoder(strings.NewReader(`
alertmanagers:
  - url: https://alerts:9093/am
    http: {basic_auth: {username: u, password: p}, tls_config: {insecure_skip_verify: true}}
webhooks:
  - url: http://load:8000/stop
    match: {severity: critical}
`))
	dec.KnownFields(true)
	if err := dec.Decode(&cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	if a := cfg.Alertmanagers[0]; a.HTTP.BasicAuth == nil || a.HTTP.BasicAuth.Password != "p" || !a.HTTP.FollowRedirects || !a.HTTP.TLSConfig.InsecureSkipVerify {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct{ text, want string }{
		{"webhooks: [{url: load}]", "webhooks[0]: url:"},
		{"webhooks: [{url: 'http://a/'}, {url: 'http://a/b'}]", "webhooks[1]: webhook a is there twice: give each a name of its own"},
		{"webhooks: [{url: 'http://a/', name: x}, {url: 'http://b/', name: x}]", "webhooks[1]: webhook x is there twice"},
		{"alertmanagers: [{url: 'http://a:9093'}, {url: 'http://a:9093/'}]", "alertmanagers[1]: alertmanager a:9093 is there twice"},
		{"alertmanagers: [{url: 'http://a/x'}, {url: 'http://a/x/'}]", "alertmanagers[1]: alertmanager a/x is there twice"},
		{"alertmanagers: [{url: 'http://a/', bearer: x}]", "bearer"},
	} {
		cfg := DefaultConfig()
		dec := yaml.NewDecoder(strings.NewReader(c.text))
		dec.KnownFields(true)
		err := dec.Decode(&cfg)
		if err == nil {
			err = cfg.Check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
