package process

import (
	"runtime"
	"slices"
	"strings"
	"time"
)

// judge says of each connector whether it is stalled, as far as that can be
// seen.
func (p *Poller) judge(s *sample, now time.Time) (out []stallSample) {
	if s.ports == nil || !s.hasThreads || p.world.threads.nameless {
		return nil
	}
	p.mu.Lock()
	died := p.died.newer
	p.died.newer = false
	p.mu.Unlock()
	for _, c := range p.cfg.Connectors {
		f := s.ports[uint16(c.Port)]
		if f == nil {
			continue
		}
		in := stallInput{now: now, listening: f.listening, waiting: f.waiting, busy: f.busy(), closing: f.closing, queue: f.queue}
		switch {
		case f.limited:
			in.full, in.knowFull = f.queue >= f.limit && f.limit > 0, true
		case c.AcceptCount > 0:
			in.full, in.knowFull = f.queue > float64(c.AcceptCount), true
		}
		open := f.states[tcpEstablished] + f.states[tcpCloseWait]
		in.atLimit = c.MaxConnections > 0 && open-int(f.queue) >= c.MaxConnections
		pool := p.poolOf(c, s, &in)
		p.mu.Lock()
		told, ok := p.served[c.Port]
		p.mu.Unlock()
		in.served, in.hasLines, in.knowLines = told.lines, ok, told.atOnce
		st := p.stall[c.Port]
		if st == nil {
			st = &stallState{}
			p.stall[c.Port] = st
		}
		in.died = died && strings.HasSuffix(strings.ToLower(c.Protocol), "nio2")
		st.forget(&in)
		if in.suspicious() && pool >= 0 && !st.answers(&in) {
			in.turns, in.knowTurns = p.world.threads.turns(&p.world.task, pool)
			if f.limited && in.waiting > 0 { // we are in its network namespace
				n, err := p.world.diag.untouched(uint16(c.Port))
				if err == nil {
					in.untouched = n
				}
			}
		}
		p.helpers(c, &in)
		st.judge(&in, p.cfg.StallAfter, func(reason string, stalled bool) {
			out = append(out, stallSample{c.Port, reason, stalled})
		})
	}
	return out
}

// poolOf finds the pool that serves a connector, or -1. Where it serves others
// too, their connections keep its threads busy like those of this one.
func (p *Poller) poolOf(c Connector, s *sample, in *stallInput) int32 {
	t := &p.world.threads
	jetty := strings.EqualFold(c.Protocol, "jetty")
	pool, n := Pool{Prefix: "qtp", Max: c.MaxThreads}, int32(-1)
	for _, known := range p.cfg.Pools {
		if known.Virtual || known.Prefix == "" {
			continue
		}
		if slices.Contains(known.Ports, c.Port) || jetty && known.Prefix == "qtp" {
			pool, n = known, p.folder.pool(cut(known.Prefix+"1"))
			break
		}
	}
	if jetty {
		// The names of its threads have a hash in them that no settings know.
		number, ok := p.folder.byName["qtp"]
		if !ok {
			return -1
		}
		n, in.aside = number, p.jettyAside(pool.Max)
	}
	t.grow()
	if n <= 0 || int(n) >= len(t.pools) {
		return -1
	}
	in.threads, in.max, in.knowPool = t.pools[n].threads, pool.Max, true
	for _, other := range p.cfg.Connectors {
		f := s.ports[uint16(other.Port)]
		if f != nil && other.Port != c.Port && (jetty || slices.Contains(pool.Ports, other.Port)) {
			in.busy += f.busy()
			in.closing += f.closing
		}
	}
	return n
}

// jettyAside is how many threads of Jetty's pool may serve no request: for each
// connector up to four acceptors and its selectors, by the rule for what is not
// set, and those that the pool holds in reserve. It is an upper bound, since
// nothing tells them apart from outside; a busy server must not be called dead.
func (p *Poller) jettyAside(most int) (n int) {
	if most == 0 {
		most = 200
	}
	for _, c := range p.cfg.Connectors {
		if strings.EqualFold(c.Protocol, "jetty") {
			n += 4 + max(1, min(runtime.NumCPU()/2, most/16))
		}
	}
	return n + max(1, most/10)
}

// helpers counts the connector's Poller and Acceptor threads.
func (p *Poller) helpers(c Connector, in *stallInput) {
	protocol := strings.ToLower(c.Protocol)
	if protocol != "nio" && protocol != "apr" && protocol != "bio" {
		return // NIO2 has neither; of others we don't know
	}
	t := &p.world.threads
	pools, acceptors := map[int32]bool{}, map[int32]bool{}
	for _, base := range threadBases(c) {
		for _, name := range []string{"Poller", "ClientPoller-0"} {
			pools[p.folder.pool(cut(base+name))] = true
		}
		for _, name := range []string{"Acceptor", "Acceptor-0"} {
			acceptors[p.folder.pool(cut(base+name))] = true
		}
	}
	t.grow()
	together := false
	for n := range pools {
		if n == 0 || p.servesElse(n, c) {
			return
		}
		together = together || acceptors[n]
		in.pollers += t.pools[n].threads
	}
	if together {
		in.helpers = helpersTogether
		return
	}
	for n := range acceptors {
		if n == 0 || p.servesElse(n, c) {
			return
		}
		in.acceptors += t.pools[n].threads
	}
	if protocol == "bio" { // it has no Poller
		in.helpers, in.pollers = helpersTogether, in.acceptors
		return
	}
	in.helpers = helpersApart
}

// servesElse says whether a pool number also holds request threads, or threads
// of another connector.
func (p *Poller) servesElse(n int32, c Connector) bool {
	for _, pool := range p.cfg.Pools {
		if pool.Prefix != "" && p.folder.pool(cut(pool.Prefix+"1")) == n {
			return true
		}
	}
	for _, other := range p.cfg.Connectors {
		if other.Port == c.Port {
			continue
		}
		for _, base := range threadBases(other) {
			if p.folder.pool(cut(base+"Poller")) == n || p.folder.pool(cut(base+"Acceptor")) == n {
				return true
			}
		}
	}
	return false
}

// cut is what the kernel keeps of a name.
func cut(name string) string { return name[:min(len(name), commLen)] }
