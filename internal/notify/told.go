package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// What a receiver of news was told, and took, is kept in a file, so that an
// alert that fires before and after a restart of the sidecar (kill -9 included)
// is told once, and one that ended meanwhile is told as ended.
//
//	told before, fires again      nothing is said: it went on
//	told before, does not fire    told as resolved after settleTime
//	the sidecar was away too long told as resolved at once; what fires is new
//
// An Alertmanager needs none of this: it remembers by itself.

// settleTime is how long after a start an alert may take to fire again. The
// engine restores it with its first evaluations, which come at 15 s at the most.
const settleTime = time.Minute

// memory is that file. It is written by the goroutine of the receiver whose news
// it is, after each call that was taken.
type memory struct {
	mu     sync.Mutex
	path   string
	by     map[string]map[model.Fingerprint]*Alert // by receiver
	failed bool
}

// kept is one alert in the file.
type kept struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	FiredAt     time.Time         `json:"fired_at"`
}

// Remember reads what an earlier run of the sidecar told, and keeps in path what
// this one tells. gone says that the sidecar was away too long for anything to
// have gone on. It is called before the first Send. A file that can't be read is
// an error, after which the file begins anew.
func (n *Notifier) Remember(path string, gone bool, now time.Time) error {
	n.memory = &memory{path: path, by: map[string]map[model.Fingerprint]*Alert{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var in map[string][]kept
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		return fmt.Errorf("read what was told: %w", err)
	}
	for _, q := range n.queues {
		c := changesOf(q.to)
		if c == nil || len(in[q.name]) == 0 {
			continue
		}
		own := map[model.Fingerprint]*Alert{}
		n.memory.by[q.name] = own
		c.mu.Lock()
		c.before = map[model.Fingerprint]*Alert{}
		for _, k := range in[q.name] {
			a := &Alert{Labels: k.Labels, Annotations: k.Annotations, State: "firing", FiredAt: k.FiredAt}
			own[a.Fingerprint()] = a
			c.before[a.Fingerprint()] = a
		}
		c.mu.Unlock()
	}
	if gone {
		n.endOld(now)
		return nil
	}
	n.settle = time.AfterFunc(settleTime, func() { n.endOld(time.Now()) })
	return nil
}

// endOld tells as resolved what was told by an earlier run and has not fired
// since.
func (n *Notifier) endOld(now time.Time) {
	for _, q := range n.queues {
		c := changesOf(q.to)
		if c == nil {
			continue
		}
		var ended []Alert
		c.mu.Lock()
		for _, a := range c.before {
			e := *a
			e.State, e.ResolvedAt, e.ValidUntil = "inactive", now, now
			ended = append(ended, e)
		}
		c.mu.Unlock()
		q.add(ended)
	}
}

func changesOf(r receiver) *changes {
	if k, ok := r.(interface{ known() *changes }); ok {
		return k.known()
	}
	return nil
}

// took notes what a receiver has taken.
func (q *queue) took(batch []*Alert) {
	m := q.notifier.memory
	if m == nil || changesOf(q.to) == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.by[q.name]
	if own == nil {
		own = map[model.Fingerprint]*Alert{}
		m.by[q.name] = own
	}
	for _, a := range batch {
		if f := a.Fingerprint(); !a.Firing() {
			delete(own, f)
		} else if len(own) < queueLimit {
			own[f] = a
		}
	}
	err := m.write()
	if err != nil && !m.failed {
		q.notifier.log.Warn("what was told can't be kept: after a restart it is told again", "err", err)
	}
	m.failed = err != nil
}

// write replaces the file by a rename. No fsync: what it spares is one notice
// after a crash of the whole machine.
func (m *memory) write() error {
	out := map[string][]kept{}
	for name, alerts := range m.by {
		for _, a := range alerts {
			out[name] = append(out[name], kept{a.Labels, a.Annotations, a.FiredAt})
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	next := m.path + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, m.path)
}
