package process

import (
	"strings"
	"time"
)

// judge says of each connector whether it is stalled, as far as that can be
// seen.
func (p *Poller) judge(s *sample, now time.Time) (out []stallSample) {
	if s.ports == nil || !s.hasThreads || p.world.threads.nameless {
		return nil
	}
	for _, c := range p.cfg.Connectors {
		f := s.ports[uint16(c.Port)]
		if f == nil {
			continue
		}
		in := stallInput{now: now, listening: f.listening, waiting: f.waiting}
		in.busy = f.states[tcpEstablished] - f.waiting + f.closing
		switch {
		case f.limited:
			in.full, in.knowFull = f.queue >= f.limit && f.limit > 0, true
		case c.AcceptCount > 0:
			in.full, in.knowFull = f.queue > float64(c.AcceptCount), true
		}
		open := f.states[tcpEstablished] + f.states[tcpCloseWait]
		in.atLimit = c.MaxConnections > 0 && open-int(f.queue) >= c.MaxConnections
		pool := p.poolOf(c, &in)
		p.mu.Lock()
		told, ok := p.served[c.Port]
		p.mu.Unlock()
		in.served, in.hasLines, in.knowLines = told.lines, ok, told.atOnce
		st := p.stall[c.Port]
		if st == nil {
			st = &stallState{}
			p.stall[c.Port] = st
		}
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

// poolOf finds the pool that serves a connector, or -1.
func (p *Poller) poolOf(c Connector, in *stallInput) int32 {
	t := &p.world.threads
	if strings.EqualFold(c.Protocol, "jetty") {
		if f, ok := t.find("qtp"); ok {
			in.threads, in.max, in.knowPool = f.threads, c.MaxThreads, true
			return p.folder.byName["qtp"]
		}
		return -1
	}
	for _, pool := range p.cfg.Pools {
		for _, port := range pool.Ports {
			if port != c.Port || pool.Virtual || pool.Prefix == "" {
				continue
			}
			n := p.folder.pool(cut(pool.Prefix + "1"))
			t.grow()
			if int(n) >= len(t.pools) || n == 0 {
				return -1
			}
			in.threads, in.max, in.knowPool = t.pools[n].threads, pool.Max, true
			return n
		}
	}
	return -1
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
