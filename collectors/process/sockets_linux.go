package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// readSockets reads the serving ports: by sock_diag where the server shares our
// network namespace, else from its own /proc/PID/net.
func (p *Poller) readSockets(s *sample) error {
	w := &p.world
	w.readNet(&s.net)
	if len(w.ports) == 0 {
		return nil
	}
	ports := make(map[uint16]*portFigures, len(w.ports))
	for _, port := range w.ports {
		ports[port] = &portFigures{}
	}
	ours, known := w.sameNetwork(p.cfg.Root)
	if ours {
		err := w.askKernel(&s.net, ports)
		if err == nil {
			s.ports = ports
			return nil
		}
		// A sandbox may forbid netlink; the files have all but the limit.
		for _, f := range ports {
			*f = portFigures{}
		}
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindLimit, Detail: "limits of accept queues: " + err.Error(), Needs: "netlink sockets (AF_NETLINK)"})
	} else if known {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindLimit,
			Detail: "limits of accept queues: the server is in another network namespace, where only its /proc/PID/net/tcp can be read",
			Needs:  "a sidecar in the server's network namespace"})
	} else {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindNamespace,
			Detail: "which network namespace the server is in can't be read; its sockets are read from its own /proc/PID/net/tcp, which lacks the limit of the accept queue",
			Needs:  "the same user as the server, or CAP_SYS_PTRACE"})
	}
	seen := false
	var errs []error
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		b, err := w.file(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6 has no tcp6
				errs = append(errs, err)
			}
			continue
		}
		parseNetTCP(b, ports)
		seen = true
	}
	if seen {
		s.ports = ports
	}
	return errors.Join(errs...)
}

// askKernel reads the sockets by sock_diag.
func (w *world) askKernel(n *netFigures, ports map[uint16]*portFigures) (err error) {
	k := &w.asked
	if err := w.diag.listening(w.ports, ports); err != nil {
		return err
	}
	if k.still(n, ports) {
		were := len(k.sockets)
		k.sockets, err = w.diag.again(k.sockets, ports)
		if err == nil && len(k.sockets) == were {
			return nil
		}
		// One has ended, or a kernel of long ago does not find by name what is there:
		// the walk tells.
		k.never = k.never || err != nil
		for _, f := range ports {
			f.forgetConnections()
		}
	}
	states := otherStates
	withWaits := k.waitsDue()
	if !withWaits {
		states &^= 1 << tcpTimeWait
	}
	found, err := w.diag.walk(w.ports, states, ports, rememberMost)
	if err != nil {
		return err
	}
	k.saw(n, ports, found, withWaits)
	return nil
}

// remembered are the connections of the serving ports, in any state. As long as
// the namespace has accepted none since (PassiveOpens of its counters), there are no
// others, and the kernel is asked for these alone instead of walking its table of
// all sockets, which would be the largest part of what a server at rest costs, and
// a fifth of what one under load does. A connection that is half open is in that
// table and in no counter: so it is walked as long as there is one, when an accept
// queue is full, and every ten samples in any case.
type remembered struct {
	known   bool
	never   bool // a kernel that does not answer this walks
	opens   uint64
	skipped int
	sockets []socket

	waits    map[uint16]int // connections in time_wait, by port
	waitsAge int            // walks since they were counted
}

const (
	walkEvery = 10
	// rememberMost is how many connections are asked for one by one: as many cost about
	// a tenth of a walk.
	rememberMost = 400
	// Connections in time_wait are there for a minute, and nobody serves them. More
	// than manyWaits of them are counted in every waitsEvery'th walk: a server that ends
	// connections (Tomcat does after 100 requests each) has ten thousand under load,
	// and then more than a third of a walk is for them.
	manyWaits  = 1000
	waitsEvery = 5
)

// waitsDue says whether the next walk counts connections in time_wait.
func (k *remembered) waitsDue() bool {
	sum := 0
	for _, n := range k.waits {
		sum += n
	}
	k.waitsAge++
	return sum <= manyWaits || k.waitsAge >= waitsEvery
}

// keepWaits takes what a walk has counted, or else what one before it has.
func (k *remembered) keepWaits(ports map[uint16]*portFigures, counted bool) {
	if counted {
		k.waits, k.waitsAge = map[uint16]int{}, 0
	}
	for port, f := range ports {
		if counted {
			k.waits[port] = f.states[tcpTimeWait]
		} else {
			f.states[tcpTimeWait] = k.waits[port]
		}
	}
}

func (k *remembered) still(n *netFigures, ports map[uint16]*portFigures) bool {
	if k.skipped++; !n.hasOpens || n.opens != k.opens || k.skipped >= walkEvery {
		k.known = false
	}
	for _, f := range ports {
		if f.limited && f.queue >= f.limit {
			k.known = false
		}
	}
	return k.known
}

// saw takes what a walk has found, with or without connections in time_wait. n was
// read before it, so that what came in between is not taken for known.
func (k *remembered) saw(n *netFigures, ports map[uint16]*portFigures, found []socket, withWaits bool) {
	k.keepWaits(ports, withWaits)
	k.known = n.hasOpens && !k.never && withWaits && len(found) <= rememberMost
	k.opens, k.skipped = n.opens, 0
	k.sockets = append(k.sockets[:0], found...)
	for _, f := range ports {
		if f.states[tcpSynRecv]+f.states[tcpNewSynRecv] > 0 {
			k.known = false
		}
	}
}

// sameNetwork compares the network namespaces of the server and of ourselves.
func (w *world) sameNetwork(root string) (same, known bool) {
	theirs, err := os.Readlink(filepath.Join(w.dir, "ns/net"))
	if err != nil {
		return false, false
	}
	// Under a root of a container's host, our own entry still is /proc/self.
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false, false
	}
	return ours == theirs, true
}

func (w *world) readNet(n *netFigures) {
	if b, err := w.file("net/netstat"); err == nil {
		o, ok1 := protocolCounter(b, "TcpExt", "ListenOverflows")
		d, ok2 := protocolCounter(b, "TcpExt", "ListenDrops")
		n.overflows, n.drops, n.hasListen = float64(o), float64(d), ok1 && ok2
	}
	if b, err := w.file("net/snmp"); err == nil {
		r, ok := protocolCounter(b, "Tcp", "RetransSegs")
		n.retransmits, n.hasTCP = float64(r), ok
		n.opens, n.hasOpens = protocolCounter(b, "Tcp", "PassiveOpens")
	}
	if b, err := w.file("net/dev"); err == nil {
		rx, tx, ok := interfaceDrops(b)
		n.rxDropped, n.txDropped, n.hasDev = float64(rx), float64(tx), ok
	}
}

// shownStates are the connection states with a series of their own at every
// port, so that their absence is a 0; the others appear when they are there.
var shownStates = []int{tcpEstablished, tcpSynRecv, tcpTimeWait, tcpCloseWait}

func (p *Poller) writeSockets(s *sample, count, gauge put) {
	count(listenOverflows, s.net.hasListen, s.net.overflows)
	count(listenDrops, s.net.hasListen, s.net.drops)
	count(retransmits, s.net.hasTCP, s.net.retransmits)
	count(networkDrops, s.net.hasDev, s.net.rxDropped, "receive")
	count(networkDrops, s.net.hasDev, s.net.txDropped, "transmit")
	for _, c := range p.cfg.Connectors {
		port := strconv.Itoa(c.Port)
		gauge(acceptCount, c.AcceptCount > 0, float64(c.AcceptCount), port)
		gauge(maxConnections, c.MaxConnections > 0, float64(c.MaxConnections), port)
		f := s.ports[uint16(c.Port)]
		if f == nil {
			continue
		}
		gauge(listenQueue, f.listening, f.queue, port)
		gauge(listenLimit, f.limited, f.limit, port)
		gauge(requestsWaiting, f.listening || f.states[tcpEstablished] > 0, float64(f.waiting), port)
		f.states[tcpSynRecv] += f.states[tcpNewSynRecv]
		f.states[tcpNewSynRecv] = 0
		for state, n := range f.states {
			if state == tcpListen || connStates[state] == "" {
				continue
			}
			shown := n > 0
			for _, always := range shownStates {
				shown = shown || (state == always && f.listening)
			}
			gauge(connections, shown, float64(n), port, connStates[state])
		}
	}
	for _, st := range s.stalls {
		v := 0.0
		if st.stalled {
			v = 1
		}
		gauge(stalled, true, v, strconv.Itoa(st.port), st.reason)
	}
}
