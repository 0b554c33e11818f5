// Package notify brings alerts to whoever should know: Alertmanagers, webhooks,
// the sidecar's own log.
//
// Each receiver has a goroutine and a bounded list of its own, so that one that
// hangs holds up nobody. In the list an alert stands once, in its latest state:
// what could not be told for ten minutes is told as it is now, and an alert
// that came and went meanwhile is told as resolved. A receiver that fails is
// tried again after a pause that doubles up to half a minute.
//
// Alertmanager's API is v2 as of 0.15 and later; the webhook's JSON is version
// 4 of Alertmanager's own (0.6 and later), so that what takes the one takes the
// other.
package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/model"
)

// Alert is one alert in one state.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
	Value               float64
	Expr                string
	ActiveAt            time.Time
	FiredAt             time.Time
	ResolvedAt          time.Time // zero while it fires
	ValidUntil          time.Time
}

// Firing says that it has not ended.
func (a *Alert) Firing() bool { return a.ResolvedAt.IsZero() }

// Fingerprint is Alertmanager's: the same labels, the same number.
func (a *Alert) Fingerprint() model.Fingerprint {
	set := make(model.LabelSet, len(a.Labels))
	for k, v := range a.Labels {
		set[model.LabelName(k)] = model.LabelValue(v)
	}
	return set.Fingerprint()
}

const (
	// queueLimit is how many alerts wait for one receiver.
	queueLimit = 1000
	// The pause after a failure, doubled each time.
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// sendTime is how long one call may take.
	sendTime = 10 * time.Second
	// batchLimit is how many alerts go into one call, as in Prometheus.
	batchLimit = 64
)

// What the notifier says of itself.
var (
	sent        = &metric.Family{Name: "notify_sent_total", Kind: metric.Counter, Labels: []string{"receiver"}, Help: "Alerts that a receiver has taken, repetitions included.", Source: "notify"}
	failed      = &metric.Family{Name: "notify_failed_total", Kind: metric.Counter, Labels: []string{"receiver"}, Help: "Calls to a receiver that failed. They are tried again.", Source: "notify"}
	dropped     = &metric.Family{Name: "notify_dropped_total", Kind: metric.Counter, Labels: []string{"receiver"}, Help: "Alerts that a receiver was not told: its queue was full (then they are tried again when they still fire a minute later), or it refused them as wrong.", Source: "notify"}
	queueLength = &metric.Family{Name: "notify_queue_length", Kind: metric.Gauge, Labels: []string{"receiver"}, Help: "Alerts that wait to be told to a receiver.", Source: "notify"}
	receiverUp  = &metric.Family{Name: "notify_receiver_up", Kind: metric.Gauge, Labels: []string{"receiver"}, Help: "1 when the last call to a receiver worked, 0 when it did not.", Source: "notify"}

	// Metrics are the notifier's own.
	Metrics = []*metric.Family{sent, failed, dropped, queueLength, receiverUp}
)

// A receiver is told some alerts at once. An error is tried again, unless it
// is a refusal.
type receiver interface {
	// wants says whether an alert is to be told, given what it was told before.
	wants(a *Alert) bool
	send(ctx context.Context, alerts []*Alert) error
	// lost says that an alert which it wanted will not reach it: it wants it again.
	lost(a *Alert)
	// follow takes over what another receiver of this name was told.
	follow(other receiver)
}

// refusal is an error of the alerts and not of the way to the receiver: sending
// them again would fail again.
type refusal struct{ error }

// Notifier has all receivers.
type Notifier struct {
	// Set carries notify_*.
	Set    *metric.Set
	log    *slog.Logger
	queues []*queue
	memory *memory     // nil until Remember
	settle *time.Timer // tells what did not go on after a start
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New starts a notifier that keeps its figures in set. externalURL is where the
// sidecar is found.
func New(cfg Config, externalURL string, set *metric.Set, log *slog.Logger) (*Notifier, error) {
	n := &Notifier{Set: set, log: log}
	receivers, err := cfg.receivers(externalURL, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	for _, r := range receivers {
		q := &queue{name: r.name, to: r.to, notifier: n, waiting: map[model.Fingerprint]*Alert{}, wake: make(chan struct{}, 1)}
		n.Set.Lock()
		n.Set.Start(sent, q.name)
		n.Set.Start(failed, q.name)
		n.Set.Start(dropped, q.name)
		n.Set.Gauge(queueLength, q.name).Set(0)
		n.Set.Unlock()
		n.queues = append(n.queues, q)
		n.done.Add(1)
		go func() { defer n.done.Done(); q.run(ctx) }()
	}
	return n, nil
}

// Follow takes over from another what each receiver that both have was told, so
// that a reload does not tell news twice. It is called before the first Send.
func (n *Notifier) Follow(old *Notifier) {
	n.memory = old.memory
	if old.settle != nil && old.settle.Stop() {
		n.settle = time.AfterFunc(settleTime, func() { n.endOld(time.Now()) })
	}
	for _, q := range n.queues {
		for _, was := range old.queues {
			if was.name == q.name {
				q.mu.Lock()
				q.to.follow(was.to)
				q.mu.Unlock()
			}
		}
	}
}

// Send hands alerts to all receivers. It never waits.
func (n *Notifier) Send(alerts []Alert) {
	for _, q := range n.queues {
		q.add(alerts)
	}
}

// Close gives receivers a moment to take what waits, and ends.
func (n *Notifier) Close() {
	if n.settle != nil {
		n.settle.Stop()
	}
	deadline := time.After(2 * time.Second)
	for _, q := range n.queues {
		for q.length() > 0 {
			select {
			case <-deadline:
				n.cancel()
				n.done.Wait()
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	n.cancel()
	n.done.Wait()
}

// queue is what waits for one receiver.
type queue struct {
	name     string
	to       receiver
	notifier *Notifier
	wake     chan struct{}

	mu      sync.Mutex
	waiting map[model.Fingerprint]*Alert
	order   []model.Fingerprint
	sending int // out of the list, not yet taken
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + q.sending
}

func (q *queue) add(alerts []Alert) {
	q.mu.Lock()
	full := 0
	for i := range alerts {
		a := &alerts[i]
		if !q.to.wants(a) {
			continue
		}
		f := a.Fingerprint()
		if q.waiting[f] == nil {
			if len(q.waiting) >= queueLimit {
				// The oldest goes: the rules repeat each minute what still fires.
				q.to.lost(q.waiting[q.order[0]])
				delete(q.waiting, q.order[0])
				q.order = q.order[1:]
				full++
			}
			q.order = append(q.order, f)
		}
		q.waiting[f] = a
	}
	length := len(q.waiting)
	q.mu.Unlock()
	q.count(dropped, full)
	q.gauge(queueLength, float64(length))
	if length > 0 {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// take removes the oldest batch.
func (q *queue) take() []*Alert {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*Alert
	for len(q.order) > 0 && len(out) < batchLimit {
		f := q.order[0]
		q.order = q.order[1:]
		out = append(out, q.waiting[f])
		delete(q.waiting, f)
	}
	q.sending = len(out)
	return out
}

// back returns a batch that was not taken, but for those with newer news.
func (q *queue) back(batch []*Alert) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var again []model.Fingerprint
	for _, a := range batch {
		if f := a.Fingerprint(); q.waiting[f] == nil {
			q.waiting[f] = a
			again = append(again, f)
		}
	}
	q.order = append(again, q.order...)
	q.sending = 0
}

func (q *queue) run(ctx context.Context) {
	pause := firstPause
	for {
		batch := q.take()
		if len(batch) == 0 {
			q.gauge(queueLength, 0)
			select {
			case <-ctx.Done():
				return
			case <-q.wake:
			}
			continue
		}
		call, cancel := context.WithTimeout(ctx, sendTime)
		err := q.to.send(call, batch)
		cancel()
		var wrong bool
		if err != nil {
			_, wrong = err.(refusal)
		}
		switch {
		case err == nil:
			q.took(batch)
			q.done(batch, sent)
			q.gauge(receiverUp, 1)
			pause = firstPause
			continue
		case wrong:
			q.done(batch, dropped)
			q.gauge(receiverUp, 1)
			q.notifier.log.Error("alerts were refused", "receiver", q.name, "alerts", len(batch), "err", err)
			continue
		}
		q.back(batch)
		if ctx.Err() != nil {
			return
		}
		q.count(failed, 1)
		q.gauge(receiverUp, 0)
		if pause == firstPause {
			q.notifier.log.Warn("alerts can't be sent, trying again", "receiver", q.name, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

func (q *queue) done(batch []*Alert, as *metric.Family) {
	q.mu.Lock()
	q.sending = 0
	length := len(q.waiting)
	q.mu.Unlock()
	q.count(as, len(batch))
	q.gauge(queueLength, float64(length))
}

func (q *queue) count(f *metric.Family, n int) {
	if n > 0 {
		q.notifier.Set.Lock()
		q.notifier.Set.Counter(f, q.name).Add(float64(n))
		q.notifier.Set.Unlock()
	}
}

func (q *queue) gauge(f *metric.Family, v float64) {
	q.notifier.Set.Lock()
	q.notifier.Set.Gauge(f, q.name).Set(v)
	q.notifier.Set.Unlock()
}
