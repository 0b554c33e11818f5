package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// alertmanager takes every alert each time the rules send it: it forgets one
// that is not repeated.
type alertmanager struct {
	url, external string
	client        *http.Client
}

func (*alertmanager) wants(*Alert) bool { return true }
func (*alertmanager) lost(*Alert)       {}
func (*alertmanager) follow(receiver)   {}

// posted is an alert in Alertmanager's API v2.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

func (m *alertmanager) send(ctx context.Context, alerts []*Alert) error {
	out := make([]posted, len(alerts))
	for i, a := range alerts {
		out[i] = posted{a.Labels, a.Annotations, a.FiredAt, a.ValidUntil, m.external}
		if !a.Firing() {
			out[i].EndsAt = a.ResolvedAt
		}
	}
	return post(ctx, m.client, m.url, out)
}

// post sends JSON. A status of 4xx is a refusal, but for the two that ask to
// come again.
func post(ctx context.Context, client *http.Client, address string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return refusal{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return refusal{err}
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := client.Do(req)
	// The address of a webhook is often its password too: it stays out of the log,
	// which names the receiver.
	if with, ok := err.(*url.Error); ok {
		return with.Err
	}
	if err != nil {
		return err
	}
	defer r.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(r.Body, 256))
	switch {
	case r.StatusCode/100 == 2:
		return nil
	case r.StatusCode/100 == 4 && r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusRequestTimeout &&
		r.StatusCode != http.StatusUnauthorized && r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusNotFound:
		return refusal{fmt.Errorf("%s: %s", r.Status, bytes.TrimSpace(said))}
	}
	return fmt.Errorf("%s: %s", r.Status, bytes.TrimSpace(said))
}

// changes remembers which alerts were told, so that a receiver of news is not
// told the same each minute.
type changes struct {
	mu   sync.Mutex
	told map[model.Fingerprint]time.Time // firing since
	// before are those that an earlier run of the sidecar told, and that have not
	// fired since.
	before map[model.Fingerprint]*Alert
}

func (c *changes) wants(a *Alert) bool {
	if a.Labels["severity"] == "none" {
		return false // a dead-man's switch is for receivers that miss it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[model.Fingerprint]time.Time{}
	}
	f := a.Fingerprint()
	since, known := c.told[f]
	_, before := c.before[f]
	delete(c.before, f)
	if a.Firing() {
		c.told[f] = a.FiredAt
		if before {
			return false // it went on
		}
		return !known || !since.Equal(a.FiredAt)
	}
	delete(c.told, f)
	return known || before
}

// lost takes back what wants has noted of an alert.
func (c *changes) lost(a *Alert) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := a.Fingerprint(); a.Firing() {
		delete(c.told, f)
	} else {
		c.told[f] = a.FiredAt
	}
}

func (c *changes) known() *changes { return c }

func (c *changes) follow(other receiver) {
	from := changesOf(other)
	if from == nil {
		return
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.before = maps.Clone(from.told), maps.Clone(from.before)
}

// webhook is called when an alert begins and when it ends.
type webhook struct {
	changes
	name, url, external string
	client              *http.Client
	match               map[string]string
}

func (w *webhook) wants(a *Alert) bool {
	for k, v := range w.match {
		if a.Labels[k] != v {
			return false
		}
	}
	return w.changes.wants(a)
}

// message is what Alertmanager posts to a webhook, version 4.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []told            `json:"alerts"`
}

type told struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

func (w *webhook) send(ctx context.Context, alerts []*Alert) error {
	return post(ctx, w.client, w.url, w.message(alerts))
}

func (w *webhook) message(alerts []*Alert) message {
	m := message{
		Version: "4", GroupKey: "{}:{}", Status: "resolved", Receiver: w.name, ExternalURL: w.external,
		GroupLabels: map[string]string{}, CommonLabels: common(alerts, func(a *Alert) map[string]string { return a.Labels }),
		CommonAnnotations: common(alerts, func(a *Alert) map[string]string { return a.Annotations }),
	}
	for _, a := range alerts {
		t := told{"resolved", a.Labels, a.Annotations, a.FiredAt, a.ResolvedAt, w.external, a.Fingerprint().String()}
		if a.Firing() {
			m.Status, t.Status = "firing", "firing"
		}
		m.Alerts = append(m.Alerts, t)
	}
	return m
}

// common are the pairs that all have.
func common(alerts []*Alert, of func(*Alert) map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range of(alerts[0]) {
		if !slices.ContainsFunc(alerts, func(a *Alert) bool { return of(a)[k] != v }) {
			out[k] = v
		}
	}
	return out
}

// logReceiver writes what begins and ends.
type logReceiver struct {
	changes
	log *slog.Logger
}

func (l *logReceiver) send(_ context.Context, alerts []*Alert) error {
	for _, a := range alerts {
		args := []any{"summary", a.Annotations["summary"]}
		var keys []string
		for k := range a.Labels {
			if k != "alertname" && k != "job" && k != "instance" {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range keys {
			args = append(args, k, a.Labels[k])
		}
		if a.Firing() {
			l.log.Warn("alert "+a.Labels["alertname"], args...)
		} else {
			l.log.Info("alert "+a.Labels["alertname"]+" ended", append(args, "after", a.ResolvedAt.Sub(a.FiredAt).Truncate(time.Second).String())...)
		}
	}
	return nil
}
