package process

import "bytes"

// TCP states by the kernel's numbers.
const (
	tcpEstablished = 1
	tcpSynRecv     = 3
	tcpFinWait2    = 5
	tcpTimeWait    = 6
	tcpCloseWait   = 8
	tcpListen      = 10
	tcpNewSynRecv  = 12
)

// connStates are the states of connections by the kernel's number, under the
// names of ss in this project's spelling.
var connStates = [13]string{"", "established", "syn_sent", "syn_recv", "fin_wait1", "fin_wait2", "time_wait",
	"close", "close_wait", "last_ack", "", "closing", "syn_recv"}

// What an established connection with unread bytes means, held against servers
// whose requests are held in the application (TestRequestsWaiting; the table is in
// docs/sockets.md):
//
//	NIO          a request that no thread has read: clients minus busy threads, which
//	             is the queue of the executor, kept alive or new. Of pipelined
//	             requests only the first counts, since a thread reads what is there
//	             into its buffer.
//	NIO2         only what it has not read yet: the next request of a kept connection
//	             is read before a thread has time for it, and is not seen
//	BIO          (7.0) the same as NIO, but those beyond the threads are still in the
//	             accept queue, since it accepts no more than it has threads for
//	APR          (9.0) the same as NIO
//	Jetty        (9.4, 12) the same, its pool's queue; some of its threads are
//	             acceptors, selectors or in reserve, so of 14 threads 8 to 10 served
//	over TLS     the same once the handshake is done; between two steps of a
//	             handshake a client waits and has nothing unread
//	any          a body that the application has not read yet counts too, whether or
//	             not a thread has the request: one for each such upload
//
// Connections in the accept queue are established for the kernel, and count.

// portFigures is what the sockets of one serving port say.
type portFigures struct {
	listening bool
	queue     float64 // connections not accepted yet
	limit     float64 // where the queue overflows; only sock_diag has it
	limited   bool
	states    [13]int
	waiting   int // established, with bytes that nobody has read
	closing   int // close_wait with no more than the end unread: may still be served
}

// add takes one socket. rx is the length of its receive queue, for a listener
// that of its accept queue; tx is a listener's limit.
func (p *portFigures) add(state uint8, rx, tx uint32, hasLimit bool) {
	if int(state) >= len(p.states) {
		return
	}
	p.states[state]++
	switch state {
	case tcpListen:
		// A port has several listeners with SO_REUSEPORT, or on several addresses.
		p.listening = true
		p.queue += float64(rx)
		if hasLimit {
			p.limit += float64(tx)
			p.limited = true
		}
	case tcpEstablished:
		if rx > 0 {
			p.waiting++
		}
	case tcpCloseWait:
		// The peer's end counts as one byte.
		if rx <= 1 {
			p.closing++
		}
	}
}

// forgetConnections leaves what the listening sockets say.
func (p *portFigures) forgetConnections() {
	listening := p.states[tcpListen]
	p.states = [13]int{tcpListen: listening}
	p.waiting, p.closing = 0, 0
}

// busy is how many connections may be in progress in a thread: all from which
// somebody has read what came, idle ones that are kept alive included.
func (p *portFigures) busy() int { return p.states[tcpEstablished] - p.waiting + p.closing }

// parseNetTCP reads /proc/PID/net/tcp or tcp6 into the figures of the ports it
// knows. Broken rows are left out; it reports how many rows were whole.
func parseNetTCP(b []byte, ports map[uint16]*portFigures) int {
	rows := 0
	for row := range bytes.Lines(b) {
		//   0: 0100007F:1F90 00000000:0000 0A 00000000:00000063 ...
		colon := bytes.IndexByte(row, ':')
		if colon < 0 || colon > 8 {
			continue // the heading
		}
		fields := row[colon+1:]
		local, fields := nextField(fields)
		_, fields = nextField(fields) // peer
		state, fields := nextField(fields)
		queues, _ := nextField(fields)
		i := bytes.LastIndexByte(local, ':')
		j := bytes.IndexByte(queues, ':')
		if i < 0 || j < 0 {
			continue
		}
		port, ok1 := hex(local[i+1:])
		st, ok2 := hex(state)
		rx, ok3 := hex(queues[j+1:])
		if !ok1 || !ok2 || !ok3 || port > 0xffff {
			continue
		}
		rows++
		if p := ports[uint16(port)]; p != nil && st < 13 {
			p.add(uint8(st), uint32(rx), 0, false)
		}
	}
	return rows
}

func nextField(b []byte) (field, rest []byte) {
	b = bytes.TrimLeft(b, " ")
	i := bytes.IndexAny(b, " \n")
	if i < 0 {
		return b, nil
	}
	return b[:i], b[i:]
}

func hex(b []byte) (uint64, bool) {
	var v uint64
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'A' && c <= 'F':
			v = v<<4 | uint64(c-'A'+10)
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// protocolCounter reads a counter from a file such as /proc/net/netstat or snmp: a
// row of names, then a row of figures with the same first word.
func protocolCounter(b []byte, protocol, name string) (uint64, bool) {
	var heads []byte
	for row := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(row, []byte(protocol+":"))
		if !ok {
			continue
		}
		if heads == nil {
			heads = rest
			continue
		}
		for len(heads) > 0 {
			var head, figure []byte
			head, heads = nextField(heads)
			figure, rest = nextField(rest)
			if string(head) == name {
				return digitsAt(figure)
			}
			if len(head) == 0 {
				break
			}
		}
		return 0, false
	}
	return 0, false
}

// interfaceDrops adds up the dropped packets of /proc/net/dev.
func interfaceDrops(b []byte) (received, sent uint64, ok bool) {
	for row := range bytes.Lines(b) {
		_, rest, found := bytes.Cut(row, []byte(":"))
		if !found {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) < 12 {
			continue
		}
		rx, ok1 := digitsAt(f[3])
		tx, ok2 := digitsAt(f[11])
		if ok1 && ok2 {
			received, sent, ok = received+rx, sent+tx, true
		}
	}
	return received, sent, ok
}
