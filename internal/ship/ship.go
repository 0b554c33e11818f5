// Package ship sends chosen lines to Loki: the words behind the numbers.
//
// # The story
//
// A server in trouble logs ten thousand records a second that say the same, and
// at that hour Loki is as likely to be in trouble as the server. Whoever ships
// from the path that reads the logs stands still with it: reading stops, files
// rotate away, and the numbers are wrong when they are needed most. So there is
// one queue in this program, here, and nobody ever waits for it. What does not
// fit is dropped, the oldest first, and counted.
//
//	stream ──> Tap ──> gate of the pattern ──> queue (memory) ──> batch ──> Loki
//	           chosen?   │ more than N a s        │ half full, stop   │ 400: split
//	                     v                        v                   │ 429, 5xx: wait
//	             one line a second         spool (disk), else         │ other 4xx: drop
//	             tells how many            dropped, counted           v
//	                                                         counted by result
//
// At every moment shipped + suppressed + dropped + queued = selected; each line
// moves from one to another under one lock.
//
// The sender is our own. The Client of github.com/grafana/loki-client-go can't
// say what became of a batch, drops the whole of it on a 400 (a test here shows
// it), does not read Retry-After, blocks its caller while it retries, and may
// take minutes to stop. Its types and its back-off are used; its promtail_*
// series stay out of the program, since they are registered only by the package
// that holds that Client.
//
// Known to work: VictoriaLogs v1.52.2, protobuf and JSON. Read in Loki 2.9 and
// 3.x: a push that is partly refused is answered 400 while its good lines are
// kept; exact repeats of time and line are kept once.
package ship

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/grafana/loki-client-go/pkg/backoff"
	"github.com/grafana/loki/pkg/push"
	promconfig "github.com/prometheus/common/config"
)

// An Entry is one line to be shipped.
type Entry struct {
	// Level and Event become labels, where they are not empty.
	Level, Event string
	// At is Unix nanoseconds of the line's own time stamp; 0 where it has none.
	At int64
	// Line is the caller's; it is copied.
	Line []byte
	// What follows becomes structured metadata: as many values as there are
	// lines would make as many streams.
	Pattern, Logger, Thread, Trace string
}

// A Shipper is the queue and its sender. Its methods may be called from any
// goroutine. Close a Shipper with Stop.
type Shipper struct {
	log  *slog.Logger
	host string

	mu      sync.Mutex
	cfg     Config // what follows is guarded by mu
	mask    masker
	client  *http.Client
	sender  sender
	streams map[labels]*stream
	lasts   map[string]int64 // of streams before other settings, or before a restart
	taps    map[*Tap]bool
	queue   queue
	flight  lot // of the batch on its way to Loki
	moving  lot // on their way to the spool
	spool   spool
	n       counts
	stopped bool
	since   time.Time // when the oldest line of the queue came

	// spilling is held while lines are on their way from the queue to the spool:
	// the sender must not take younger ones meanwhile. It is taken before mu.
	spilling sync.Mutex

	wake     chan struct{} // there is something to do
	half     chan struct{} // the queue is half full
	dry      chan struct{} // closed when nobody spills any more
	stopping chan struct{}
	hard     context.Context // ends when stopping has taken long enough
	cancel   context.CancelFunc
	done     chan struct{}

	// The sender's own.
	free time.Time        // when the rate lets the next batch go
	down bool             // the last push failed
	back *backoff.Backoff // nil after a success
}

// lot is an amount of lines.
type lot struct {
	lines int64
	bytes int64
}

// New makes a Shipper and starts its sender. The settings are checked, and the
// client is made from them; files of secrets are read at each push.
func New(cfg Config, log *slog.Logger) (*Shipper, error) {
	client, err := clientOf(&cfg)
	if err != nil {
		return nil, err
	}
	return newWith(cfg, log, client)
}

func newWith(cfg Config, log *slog.Logger, client *http.Client) (*Shipper, error) {
	s := unstarted(cfg, log, client)
	s.openSpool()
	go s.clock()
	go s.overflow()
	go s.run()
	return s, nil
}

// unstarted makes a Shipper that takes lines and does nothing with them.
func unstarted(cfg Config, log *slog.Logger, client *http.Client) *Shipper {
	s := &Shipper{
		log: log, streams: map[labels]*stream{}, lasts: map[string]int64{}, taps: map[*Tap]bool{},
		wake: make(chan struct{}, 1), half: make(chan struct{}, 1), dry: make(chan struct{}),
		stopping: make(chan struct{}), done: make(chan struct{}),
		n: newCounts(),
	}
	s.hard, s.cancel = context.WithCancel(context.Background())
	s.configure(cfg, client)
	return s
}

// clientOf checks the settings and makes the client.
func clientOf(cfg *Config) (*http.Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	settings, err := cfg.HTTP.client()
	if err != nil {
		return nil, err
	}
	client, err := promconfig.NewClientFromConfig(settings, "loki")
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	// A redirect would turn the push into a GET of another page, answered 200.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// Configure puts other settings in force. What is queued stays, with the labels
// it got when it was offered. The spool stays where it was.
func (s *Shipper) Configure(cfg Config) error {
	client, err := clientOf(&cfg)
	if err != nil {
		return err
	}
	s.configure(cfg, client)
	return nil
}

func (s *Shipper) configure(cfg Config, client *http.Client) {
	host := cfg.Host
	if host == "" {
		host, _ = os.Hostname()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.CloseIdleConnections()
		cfg.SpoolDir = s.cfg.SpoolDir
	}
	s.cfg, s.mask, s.host, s.client = cfg, newMasker(cfg.Masks), clean(host, 255), client
	s.sender = &pusher{&cfg, client}
	s.lasts = s.lastTimes(time.Now())
	s.streams = map[labels]*stream{}
	nudge(s.wake)
}

// nudge wakes up whoever waits on the channel, now or later.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// offer takes a chosen line. It never waits: the lock is held for moments only,
// by whoever counts, and never while something is sent or written.
func (s *Shipper) offer(t *Tap, g *Gate, e *Entry) {
	now := time.Now()
	s.mu.Lock()
	mask, limit := s.mask, s.cfg.MaxLine
	s.mu.Unlock()
	text, cut := shape(mask, e.Line, limit)
	meta := t.meta(mask, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.selected++
	if cut {
		s.n.cut++
	}
	at := s.put(t, e, text, meta, now, 1)
	if g != nil {
		if g.event != e.Event {
			g.event = strings.Clone(e.Event)
		}
		if at != 0 {
			g.last = at
		}
	}
}

// put queues a line, and returns the time it got, or 0 where it was dropped.
// weight is 1 for a chosen line and 0 for one of our own. The caller holds the
// lock.
func (s *Shipper) put(t *Tap, e *Entry, text string, meta push.LabelsAdapter, now time.Time, weight int64) int64 {
	at := e.At
	switch {
	case s.stopped:
		s.drop(dropStopped, weight)
		return 0
	case at == 0:
		at = now.UnixNano()
	case at < now.Add(-s.cfg.MaxAge).UnixNano():
		s.drop(dropOld, weight)
		return 0
	case at > now.Add(maxAhead).UnixNano():
		// Loki refuses what is more than ten minutes ahead, and a clock that is
		// wrong is no reason to lose the line: it gets our time, and keeps its own
		// beside it.
		meta = append(meta, ownTime(at))
		at = now.UnixNano()
	}
	st := s.stream(t, e)
	l := line{stream: st, at: st.next(at), text: text, meta: meta, weight: weight}
	if weight > 0 && l.at-at >= 1e9 {
		// Two logs of one stream, or a clock that was set back: order is kept, and so
		// is what the line said.
		l.meta = append(l.meta, ownTime(at))
	}
	if s.queue.lines() == 0 {
		s.since = now
	}
	s.queue.push(l)
	s.bound()
	if n := s.queue.bytes; n >= int64(s.cfg.BatchBytes) || s.queue.lines() == 1 {
		nudge(s.wake)
	}
	if s.queue.bytes >= int64(s.cfg.QueueBytes)/2 {
		nudge(s.half)
	}
	return l.at
}

// ownTime is the time of a line's own stamp, where it is sent with another one.
func ownTime(at int64) push.LabelAdapter {
	return push.LabelAdapter{Name: "event_time", Value: time.Unix(0, at).UTC().Format(time.RFC3339Nano)}
}

// bound keeps the queue within its memory: the oldest go. The caller holds the
// lock.
func (s *Shipper) bound() {
	for s.queue.bytes > int64(s.cfg.QueueBytes) {
		old := s.queue.pop()
		s.drop(dropFull, old.weight)
	}
}

// drop counts lines that are lost; the caller holds the lock.
func (s *Shipper) drop(why string, lines int64) {
	if lines > 0 {
		s.n.dropped[why] += float64(lines)
	}
}

// shape makes a string of a line: bounded, valid, and without its secrets. It
// is cut after it was masked: a cut may take away the name that told the secret.
func shape(mask masker, b []byte, limit int) (string, bool) {
	// Masking is linear but not free: bound what a hostile line may cost.
	raw := b[:min(len(b), 4*limit)]
	if len(raw) < len(b) {
		// In two halves of a word a mask may not know the secret (//user:pass@host).
		raw = raw[:max(0, bytes.LastIndexAny(raw, " \t\n"))]
	}
	text := mask.mask(valid(raw))
	if len(text) <= limit && len(raw) == len(b) {
		return text, false
	}
	return cutAt(text, limit-len(cutMark)) + cutMark, true
}

// Stop ends the Shipper: what is queued is sent, or spooled, or dropped and
// counted, by the context's deadline.
func (s *Shipper) Stop(ctx context.Context) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		<-s.done
		return
	}
	s.summarise(time.Now())
	s.stopped = true
	limit := s.cfg.StopTimeout
	s.mu.Unlock()
	close(s.stopping)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done // what is left is a write to the spool at most
	}
	s.cancel()
}

// Idle says that nothing is queued, in memory or on disk.
func (s *Shipper) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.lines() == 0 && s.flight == (lot{}) && s.moving == (lot{}) && len(s.spool.segments) == 0
}
