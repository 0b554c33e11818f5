package applog

import (
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// savedPair is what Pair has to remember across a restart.
type savedPair struct {
	Based   bool  `json:"based"`
	Base    int64 `json:"base"`    // the difference that was there from the beginning
	Dropped int64 `json:"dropped"` // counted so far
}

// A Pair holds catalina.out against catalina.DATE.log. Both carry the same
// records; what the second lacks was dropped by Tomcat's asynchronous handler,
// whose queue takes 10,000. While records are being written one of the files is
// always ahead, so the difference means something only when both have been read
// to their end and nothing has come for five seconds.
type Pair struct {
	primary, copy *Observer
	dropped       *metric.Number
	lastLines     [2]uint64
	since         time.Time
}

// Quiet is how long both files must be still.
const Quiet = 5 * time.Second

// NewPair joins a primary and its copy. fromStart says that both are read from
// their first byte; otherwise the difference at the first quiet moment is what
// was there before the sidecar came, and is not counted.
func NewPair(primary, copy *Observer, fromStart bool) *Pair {
	primary.set.Lock()
	defer primary.set.Unlock()
	p := &Pair{primary: primary, copy: copy, dropped: primary.figures.Start(Dropped)}
	if primary.pair == nil {
		primary.pair = &savedPair{Based: fromStart}
	}
	return p
}

// Tick is called once a tick, with no lock held. atEnd says that the followers
// of both files are at the end of what is there.
func (p *Pair) Tick(now time.Time, atEnd bool) {
	p.copy.set.Lock()
	copied, lines := p.copy.records, p.copy.seen
	p.copy.set.Unlock()

	p.primary.set.Lock()
	defer p.primary.set.Unlock()
	at := [2]uint64{p.primary.seen, lines}
	if at != p.lastLines || !atEnd || p.since.IsZero() {
		p.lastLines, p.since = at, now
		return
	}
	if now.Sub(p.since) < Quiet {
		return
	}
	s := p.primary.pair
	diff := int64(p.primary.records) - int64(copied)
	if !s.Based {
		s.Based, s.Base = true, diff
		return
	}
	if more := diff - s.Base - s.Dropped; more > 0 {
		s.Dropped += more
		p.dropped.Add(float64(more))
	}
}
