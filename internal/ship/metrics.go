package ship

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

const source = "the sidecar"

// Metrics are what is said of shipping. At every moment shipped + suppressed +
// dropped + queued = selected.
var (
	Selected = &metric.Family{Name: "ship_selected_lines_total", Kind: metric.Counter, Source: source,
		Help: "Lines chosen for Loki. Each is in exactly one of shipped, suppressed, dropped and queued, at every moment."}
	Shipped = &metric.Family{Name: "ship_shipped_lines_total", Kind: metric.Counter, Source: source,
		Help: "Chosen lines that Loki took."}
	Suppressed = &metric.Family{Name: "ship_suppressed_lines_total", Kind: metric.Counter, Source: source,
		Help: "Chosen lines beyond the number of one pattern that is shipped in a second; a line a second tells how many."}
	Dropped = &metric.Family{Name: "ship_dropped_lines_total", Kind: metric.Counter, Labels: []string{"reason"}, Source: source,
		Help: "Chosen lines that are lost: queue_full and spool_full (the oldest go first), spool_failed, too_old, refused (Loki answered 400 to the line alone), rejected (another 4xx to its batch), stopped, restart (in memory when the sidecar was killed)."}
	Queued = &metric.Family{Name: "ship_queued_lines", Kind: metric.Gauge, Labels: []string{"where"}, Source: source,
		Help: "Chosen lines that wait, in memory (the batch on its way included) or in the spool on disk."}
	QueuedBytes = &metric.Family{Name: "ship_queued_bytes", Kind: metric.Gauge, Labels: []string{"where"}, Source: source,
		Help: "What they take of memory or disk."}
	Batches = &metric.Family{Name: "ship_batches_total", Kind: metric.Counter, Labels: []string{"result"}, Source: source,
		Help: "Pushes by what became of them: sent, retried, split in two after a 400, refused."}
	Errors = &metric.Family{Name: "ship_errors_total", Kind: metric.Counter, Labels: []string{"reason"}, Source: source,
		Help: "Pushes that failed: connection_refused, connection, timeout, dns, tls, throttled (429), status_3xx, status_4xx, status_5xx."}
	SentBytes = &metric.Family{Name: "ship_sent_bytes_total", Kind: metric.Counter, Source: source,
		Help: "Bytes of the pushes that Loki took, as they went over the wire."}
	Summaries = &metric.Family{Name: "ship_summary_lines_total", Kind: metric.Counter, Source: source,
		Help: "Lines of our own that tell how many were suppressed; not among the selected."}
	Cut = &metric.Family{Name: "ship_cut_lines_total", Kind: metric.Counter, Source: source,
		Help: "Chosen lines that were cut because they were too long."}
	LastSent = &metric.Family{Name: "ship_last_success_timestamp_seconds", Kind: metric.Gauge, Source: source,
		Help: "When Loki last took a push."}
)

// Metrics are all families of this package.
var Metrics = []*metric.Family{Selected, Shipped, Suppressed, Dropped, Queued, QueuedBytes, Batches, Errors, SentBytes, Summaries, Cut, LastSent}

// Why a line is dropped.
const (
	dropFull      = "queue_full"
	dropSpoolFull = "spool_full"
	dropSpool     = "spool_failed"
	dropOld       = "too_old"
	dropRefused   = "refused"
	dropRejected  = "rejected"
	dropStopped   = "stopped"
	dropRestart   = "restart"
)

var (
	dropReasons  = []string{dropFull, dropSpoolFull, dropSpool, dropOld, dropRefused, dropRejected, dropStopped, dropRestart}
	results      = []string{"sent", "retried", "split", "refused"}
	errorReasons = []string{"connection_refused", "connection", "timeout", "dns", "tls", "throttled", "status_3xx", "status_4xx", "status_5xx"}
)

// counts are the figures, guarded by the Shipper's lock.
type counts struct {
	selected, shipped, suppressed float64
	dropped                       map[string]float64
	batches                       map[string]float64
	errors                        map[string]float64
	sent, summaries, cut          float64
	last                          time.Time
}

func newCounts() counts {
	return counts{dropped: map[string]float64{}, batches: map[string]float64{}, errors: map[string]float64{}}
}

// Counts are the figures of one instant.
type Counts struct {
	Selected, Shipped, Suppressed, Dropped float64
	Queued                                 float64 // in memory and in the spool
	Reasons                                map[string]float64
	Summaries                              float64
	Memory, Disk                           int64 // bytes that wait
}

// inMemory is what waits and is not on disk yet; the caller holds the lock.
func (s *Shipper) inMemory() lot {
	return lot{s.queue.weight + s.flight.lines + s.moving.lines, s.queue.bytes + s.flight.bytes + s.moving.bytes}
}

// Counts are the figures as of now, of one instant.
func (s *Shipper) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally()
	c := Counts{Selected: s.n.selected, Shipped: s.n.shipped, Suppressed: s.n.suppressed, Reasons: map[string]float64{}, Summaries: s.n.summaries}
	for why, n := range s.n.dropped {
		c.Dropped += n
		c.Reasons[why] = n
	}
	disk := s.spool.total()
	c.Queued = float64(s.inMemory().lines + disk.lines)
	c.Memory, c.Disk = s.inMemory().bytes, disk.bytes
	return c
}

// writeTo puts the figures into a Set; the caller holds both locks.
func (s *Shipper) writeTo(set *metric.Set) {
	set.Counter(Selected).Set(s.n.selected)
	set.Counter(Shipped).Set(s.n.shipped)
	set.Counter(Suppressed).Set(s.n.suppressed)
	for _, why := range dropReasons {
		set.Counter(Dropped, why).Set(s.n.dropped[why])
	}
	disk := s.spool.total()
	set.Gauge(Queued, "memory").Set(float64(s.inMemory().lines))
	set.Gauge(Queued, "spool").Set(float64(disk.lines))
	set.Gauge(QueuedBytes, "memory").Set(float64(s.inMemory().bytes))
	set.Gauge(QueuedBytes, "spool").Set(float64(disk.bytes))
	for _, r := range results {
		set.Counter(Batches, r).Set(s.n.batches[r])
	}
	for _, r := range errorReasons {
		set.Counter(Errors, r).Set(s.n.errors[r])
	}
	set.Counter(SentBytes).Set(s.n.sent)
	set.Counter(Summaries).Set(s.n.summaries)
	set.Counter(Cut).Set(s.n.cut)
	if !s.n.last.IsZero() {
		set.Gauge(LastSent).Set(float64(s.n.last.UnixMilli()) / 1000)
	}
}

// state is the checkpoint's form.
type state struct {
	Selected   float64            `json:"selected"`
	Shipped    float64            `json:"shipped"`
	Suppressed float64            `json:"suppressed"`
	Dropped    map[string]float64 `json:"dropped"`
	Batches    map[string]float64 `json:"batches"`
	Errors     map[string]float64 `json:"errors"`
	Sent       float64            `json:"sent_bytes"`
	Summaries  float64            `json:"summaries"`
	Cut        float64            `json:"cut"`
	Last       time.Time          `json:"last"`
	Queued     float64            `json:"queued"`
	Lasts      map[string]int64   `json:"last_times,omitempty"`
}

// Save writes the figures of one instant down, for the checkpoint and in a Set,
// whose lock the caller holds: what is shown may not be more than what is saved, or
// it would fall after a kill.
func (s *Shipper) Save(set *metric.Set) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally()
	s.writeTo(set)
	n := &s.n
	return json.Marshal(state{n.selected, n.shipped, n.suppressed, n.dropped, n.batches, n.errors, n.sent, n.summaries, n.cut, n.last,
		float64(s.inMemory().lines + s.spool.total().lines), s.lastTimes(time.Now())})
}

// Load adds the figures of an earlier run, whose queue is gone but for what is
// in the spool: the rest was lost when it was killed.
func (s *Shipper) Load(data []byte) error {
	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return fmt.Errorf("load figures of ship: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.n
	// What the spool holds was counted as selected when it was opened.
	n.selected += st.Selected - s.spool.found
	if lost := st.Queued - s.spool.found; lost >= 0 {
		n.dropped[dropRestart] += lost
	} else {
		n.selected -= lost // selected after the last checkpoint, and on disk
	}
	s.spool.found = 0
	n.shipped += st.Shipped
	n.suppressed += st.Suppressed
	for _, m := range []struct{ to, from map[string]float64 }{{n.dropped, st.Dropped}, {n.batches, st.Batches}, {n.errors, st.Errors}} {
		for k, v := range m.from {
			m.to[k] += v
		}
	}
	// A stamp of the far future in a checkpoint would push all lines there.
	for text, last := range st.Lasts {
		if last <= time.Now().Add(maxAhead).UnixNano() {
			s.lasts[text] = max(s.lasts[text], last)
		}
	}
	n.sent += st.Sent
	n.summaries += st.Summaries
	n.cut += st.Cut
	if n.last.IsZero() {
		n.last = st.Last
	}
	return nil
}
