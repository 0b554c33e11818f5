package collectors

import (
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Here is what joins figures of several streams of one server. No room sees
// more than its own lines.

// pairing compares catalina.out with its copy, catalina.DATE.log: records that
// are in the first and not in the second were dropped by the server's logger.
type pairing struct {
	pair          *applog.Pair
	primary, copy *stream
}

// join finds the two streams; without both there is nothing to compare.
func (p *pairing) join(streams []*stream) {
	var primary, copy *stream
	for _, st := range streams {
		switch {
		case st.role == applog.Primary && primary == nil:
			primary = st
		case st.role == applog.Copy && copy == nil:
			copy = st
		}
	}
	if primary == p.primary && copy == p.copy {
		return
	}
	*p = pairing{primary: primary, copy: copy}
	if primary == nil || copy == nil {
		return
	}
	a, okA := primary.observer.(*applog.Observer)
	b, okB := copy.observer.(*applog.Observer)
	if okA && okB {
		p.pair = applog.NewPair(a, b, primary.fromStart && copy.fromStart)
	}
}

func (p *pairing) tick(now time.Time) {
	if p.pair != nil {
		p.pair.Tick(now, p.primary.atEnd() && p.copy.atEnd())
	}
}

// blameTicks is the span over which growth is compared, in ticks.
const blameTicks = 10

// blamer remembers how far each log of a server had grown in the last ticks,
// and how much of it each event took.
type blamer struct {
	past []grownBytes // oldest first
}

type grownBytes struct {
	files  map[string]float64
	events map[string]map[string]float64
}

// note takes the state of the streams at one tick.
func (b *blamer) note(streams []*stream) {
	now := grownBytes{map[string]float64{}, map[string]map[string]float64{}}
	for _, st := range streams {
		if st.again {
			continue // the same bytes once more
		}
		st.set.Lock()
		if st.follower.CaughtUp() {
			now.files[st.log.Name] += float64(st.follower.Ledger().Written)
			st.set.Each(applog.EventBytes, func(values []string, v float64) {
				if now.events[st.log.Name] == nil {
					now.events[st.log.Name] = map[string]float64{}
				}
				now.events[st.log.Name][values[0]] += v
			})
		}
		st.set.Unlock()
	}
	b.past = append(b.past, now)
	if len(b.past) > blameTicks+1 {
		b.past = b.past[1:]
	}
}

// write puts the shares into the Set, whose lock is held.
func (b *blamer) write(set *metric.Set) {
	if len(b.past) < 2 {
		return
	}
	old, now := b.past[0], b.past[len(b.past)-1]
	files := map[string]float64{}
	events := map[string]map[string]float64{}
	for name, bytes := range now.files {
		before, known := old.files[name]
		if !known {
			continue // it was not followed then
		}
		files[name] = bytes - before
		events[name] = map[string]float64{}
		for event, bytes := range now.events[name] {
			events[name][event] = bytes - old.events[name][event]
		}
	}
	for _, share := range Blame(files, events) {
		set.Gauge(growthShare, share.File, share.Event).Set(share.Share)
	}
}

// process is the poller of the server's process, or nil.
func (s *server) process() *process.Poller {
	for _, w := range s.watches {
		if p, ok := w.poller.(*process.Poller); ok {
			return p
		}
	}
	return nil
}

// tellServed gives the process room the access-log lines of a connector, by
// which it tells a stalled connector from an idle one. Only where one connector
// serves HTTP do the lines say which port they belong to.
func (s *server) tellServed() {
	if s.target == nil {
		return
	}
	port, serving := 0, 0
	for _, c := range s.target.Connectors {
		if !strings.HasPrefix(c.Protocol, "ajp") {
			port = c.Port
			serving++
		}
	}
	lines, logged, atOnce := 0.0, false, false
	for _, st := range s.streams {
		if st.room == "accesslog" {
			st.set.Lock()
			lines += float64(st.follower.Ledger().Lines)
			logged, atOnce = true, atOnce || st.unbuffered
			st.set.Unlock()
		}
	}
	if serving != 1 || !logged {
		return
	}
	if p := s.process(); p != nil {
		p.Served(port, lines, atOnce)
	}
}

// tellDied gives the process room what the server's log says of NIO2's threads.
func (s *server) tellDied() {
	died, told := 0.0, false
	for _, st := range s.streams {
		if st.room != "applog" || st.again {
			continue
		}
		st.set.Lock()
		st.set.Each(applog.EventsTotal, func(values []string, v float64) {
			if values[0] == "nio2_thread_died" {
				died, told = died+v, true
			}
		})
		st.set.Unlock()
	}
	if !told {
		return
	}
	if p := s.process(); p != nil {
		p.Died(died)
	}
}
