package ship

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/grafana/loki-client-go/pkg/backoff"
)

// maxPushes bounds what one batch may cost when its lines are refused: splitting
// finds k bad lines of n in about 2k·log2(n/k) pushes. What is left when it is
// spent is refused with them.
const maxPushes = 512

// A batch is on its way.
type batch struct {
	number uint64 // in the order of batches
	file   string // in the spool, where it came from there
	parts  [][]line
	pushes int
}

// clock turns the second of the gates.
func (s *Shipper) clock() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case now := <-tick.C:
			s.mu.Lock()
			if !s.stopped {
				s.summarise(now)
			}
			s.mu.Unlock()
		}
	}
}

// run sends until it is stopped, then keeps what is left.
func (s *Shipper) run() {
	defer close(s.done)
	for {
		b := s.next()
		if b == nil {
			break
		}
		if !s.deliver(b) {
			s.keep(b)
			break
		}
	}
	<-s.dry
	s.keepQueue()
}

// next waits for a batch: the oldest of the spool, else the queue's head, when
// it is full or has waited long enough. nil means that it is time to stop.
func (s *Shipper) next() *batch {
	for {
		b, seg, wait := s.choose(time.Now())
		switch {
		case b != nil:
			return b
		case seg != nil:
			if b := s.unspool(*seg); b != nil {
				return b
			}
			continue
		case wait < 0:
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.wake:
		case <-s.stopping:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// choose is what is to be sent next: a batch of the queue, a segment of the
// spool, or nothing for so long; less than 0 is to stop.
func (s *Shipper) choose(now time.Time) (b *batch, seg *segment, wait time.Duration) {
	s.spilling.Lock()
	defer s.spilling.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped && (len(s.spool.segments) > 0 || s.queue.lines() == 0 || s.down || s.hard.Err() != nil):
		// What is in the spool is safe, and what is in memory comes after it.
		return nil, nil, -1
	case len(s.spool.segments) > 0:
		first := s.spool.segments[0]
		s.spool.segments = s.spool.segments[1:]
		s.flight = lot{first.lines, first.bytes}
		return nil, &first, 0
	case s.queue.lines() == 0:
		return nil, nil, time.Hour
	}
	wait = s.cfg.BatchWait - now.Sub(s.since)
	if wait <= 0 || s.stopped || s.queue.bytes >= int64(s.cfg.BatchBytes) {
		b = &batch{number: s.spool.number(), parts: [][]line{s.queue.take(int64(s.cfg.BatchBytes))}}
		s.flight = amount(b.parts[0])
		s.since = now
	}
	return b, nil, max(wait, 0)
}

// deliver sends a batch, in parts where it must, until each of its lines is
// taken or given up. false means that it is time to stop; what is left is in
// the batch.
func (s *Shipper) deliver(b *batch) bool {
	for len(b.parts) > 0 {
		part := s.fresh(b.parts[0])
		if len(part) == 0 {
			b.parts = b.parts[1:]
			continue
		}
		b.parts[0] = part
		if !s.pace(amount(part).bytes) {
			return false
		}
		b.pushes++
		s.mu.Lock()
		to := s.sender
		s.mu.Unlock()
		r := to.push(s.hard, part)
		s.note(r)
		if s.hard.Err() != nil && r.kind == again {
			return false
		}
		switch r.kind {
		case sent:
			s.settle(part, "sent", "", r.bytes)
			b.parts = b.parts[1:]
			s.back = nil
		case split:
			if len(part) == 1 || b.pushes >= maxPushes {
				s.settle(part, "refused", dropRefused, 0)
				b.parts = b.parts[1:]
				continue
			}
			s.count("split")
			half := len(part) / 2
			b.parts = append([][]line{part[:half:half], part[half:]}, b.parts[1:]...)
		case reject:
			// Asking again with the same rights gets the same answer. The pause is
			// for the ones behind it, until somebody has mended the settings.
			s.settle(part, "refused", dropRejected, 0)
			b.parts = b.parts[1:]
			s.pause(s.delay(0))
		case again:
			s.count("retried")
			if s.ending() {
				return false
			}
			s.pause(s.delay(r.after))
		}
	}
	s.mu.Lock()
	s.flight = lot{}
	s.mu.Unlock()
	if b.file != "" {
		s.remove(b.file)
	}
	return true
}

// delay is how long to wait after a failure: the server's wish and a little, so
// that all who were told the same come back at different moments, else longer
// each time and with jitter. It has an upper bound in any case.
func (s *Shipper) delay(wish time.Duration) time.Duration {
	s.mu.Lock()
	shortest, longest := s.cfg.MinBackoff, s.cfg.MaxBackoff
	s.mu.Unlock()
	if s.back == nil {
		s.back = backoff.New(s.hard, backoff.BackoffConfig{MinBackoff: shortest, MaxBackoff: longest})
	}
	d := s.back.NextDelay()
	if wish > 0 {
		d = wish + rand.N(wish/10+1)
	}
	return min(d, longest)
}

func (s *Shipper) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// fresh leaves out what has become too old while it waited.
func (s *Shipper) fresh(part []line) []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := time.Now().Add(-s.cfg.MaxAge).UnixNano()
	if !slices.ContainsFunc(part, func(l line) bool { return l.at < oldest }) {
		return part
	}
	var out []line
	for i := range part {
		if part[i].at < oldest {
			s.flight.lines -= part[i].weight
			s.drop(dropOld, part[i].weight)
		} else {
			out = append(out, part[i])
		}
	}
	return out
}

// settle moves lines from queued to where they end.
func (s *Shipper) settle(part []line, result, why string, bytes int) {
	n := amount(part)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.batches[result]++
	s.flight.lines -= n.lines
	s.flight.bytes = max(0, s.flight.bytes-n.bytes)
	if why != "" {
		s.drop(why, n.lines)
		return
	}
	s.n.shipped += float64(n.lines)
	s.n.sent += float64(bytes)
	s.n.last = time.Now()
}

func (s *Shipper) count(result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.batches[result]++
}

// pace waits until the rate lets so many bytes go.
func (s *Shipper) pace(bytes int64) bool {
	s.mu.Lock()
	rate := s.cfg.BytesPerSecond
	s.mu.Unlock()
	now := time.Now()
	if s.free.After(now) {
		s.pause(s.free.Sub(now))
		now = time.Now()
	}
	if rate > 0 {
		if s.free.Before(now) {
			s.free = now
		}
		s.free = s.free.Add(time.Duration(float64(bytes) / float64(rate) * 1e9))
	}
	return s.hard.Err() == nil
}

// pause waits, less long when the Shipper is stopped.
func (s *Shipper) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
	}
}

// note counts a failure, and says once that it began and once that it ended.
func (s *Shipper) note(r result) {
	if r.kind == sent {
		if s.down {
			s.log.Info("Loki takes lines again")
		}
		s.down = false
		return
	}
	s.mu.Lock()
	s.n.errors[r.reason]++
	s.mu.Unlock()
	if !s.down {
		s.log.Warn("lines can't be shipped", "reason", r.reason, "detail", r.detail)
	}
	s.down = true
}
