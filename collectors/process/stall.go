package process

import "time"

// The reasons of connector_stalled.
const (
	stallQueue    = "accept_queue" // the accept queue is full and threads are idle
	stallPoller   = "poller"       // the Poller thread is gone
	stallAcceptor = "acceptor"     // the Acceptor thread is gone
	stallThread   = "thread"       // one of the two is gone, their names being one after the kernel's cut
	stallUnread   = "unread"       // requests that nobody reads, and idle threads
)

// stallSample is one verdict.
type stallSample struct {
	port    int
	reason  string
	stalled bool
}

// stallInput is what one sample knows of a connector.
//
// A stalled connector and a busy one look alike from most sides: both have a
// full accept queue, unread bytes and sleeping threads. What tells them apart is
// that a stalled one has threads to spare and gives them nothing to do:
//
//	            queue full   threads      their turns on a core   verdict
//	healthy     no           idle         none                    -
//	busy        yes          all in use   many                    -
//	hung below  yes          all in use   none                    - (the back end hangs, not the connector)
//	stalled     yes          idle         none                    accept_queue
type stallInput struct {
	now       time.Time
	listening bool
	queue     float64
	full      bool // the accept queue overflows
	knowFull  bool
	waiting   int  // connections with unread bytes
	untouched int  // those of which nothing was ever read
	busy      int  // connections that may be in progress in a thread of the pool
	closing   int  // those of them whose client has gone
	died      bool // threads of NIO2 died since the last sample
	atLimit   bool // maxConnections is reached, and not accepting is right
	threads   int
	aside     int // those of them that may serve no request
	max       int // 0 when unknown
	knowPool  bool
	turns     uint64 // how often the pool's threads have had a core
	knowTurns bool
	served    float64 // lines of the access log
	hasLines  bool
	knowLines bool // and each answer is a line at once

	pollers, acceptors int
	helpers            helperView
}

// helperView says how well a connector's own threads can be told apart.
type helperView uint8

const (
	helpersUnseen   helperView = iota // not at all
	helpersTogether                   // pollers holds the number of both
	helpersApart
)

// stallState remembers a connector between samples.
type stallState struct {
	queue, unread       since
	died                time.Time // when threads of NIO2 died last
	lost                bool      // and what they had in hand may be nobody's
	served              float64   // of the last sample
	pollers, acceptors  most
	noPoller, noAccepor time.Time
}

// most is the largest number of threads that a connector has had for three
// samples on end. A new thread runs a moment under the name of the one that
// made it, and it is the Poller that makes a pool's threads: counted once, such a
// moment would say for ever that a thread is missing. Seen with Tomcat 9.0.98.
type most struct {
	last [2]int
	n    int
}

func (m *most) see(n int) {
	m.n = max(m.n, min(n, m.last[0], m.last[1]))
	m.last = [2]int{n, m.last[0]}
}

// since is a suspicion: when it began and what progress would be measured from.
type since struct {
	at     time.Time
	turns  uint64
	served float64
}

// diedLately is how long after a death of NIO2's threads a stall is looked for
// that may be its work.
const diedLately = time.Minute

// forget takes out what a connector of NIO2 has lost. When its pool rejects an
// event, the thread that had it dies, and its connections are read by nobody and
// closed by nobody: they stay in close_wait for ever and look like requests in a
// thread. It may accept no more, and then its accept queue need not be full.
// Seen with Tomcat 10.1.60 on JDK 17: 49 of 100 in the queue, all threads idle.
func (s *stallState) forget(in *stallInput) {
	if in.died {
		s.died = in.now
	}
	lately := !s.died.IsZero() && in.now.Sub(s.died) < diedLately
	s.lost = lately || s.lost && (!s.queue.at.IsZero() || !s.unread.at.IsZero())
	if s.lost {
		in.busy -= in.closing
		in.full = in.full || in.queue > 0
	}
}

// suspicious says whether progress needs to be measured in this sample.
func (in *stallInput) suspicious() bool {
	return in.knowPool && in.listening && !in.atLimit && in.spare() && (in.full || in.waiting > 0)
}

// answers says whether the access log has grown since the last sample. That is
// progress enough: a server at its limit looks suspicious each second, and what
// would measure its threads' progress costs it a little too.
func (s *stallState) answers(in *stallInput) bool {
	grown := in.hasLines && in.served > s.served
	s.served = in.served
	return grown
}

// spare says that a thread is idle or could be made: the connections that may be
// in progress don't fill the pool. Where the kernel's cut has put a connector's
// own helpers into its pool there are more threads than the pool may have, and no
// more than that many serve. A pool without any thread belongs to a server that
// has opened its port and is not done starting: Tomcat does so before it deploys.
func (in *stallInput) spare() bool {
	if in.threads == 0 {
		return false
	}
	serving := in.threads - in.aside
	if in.max > 0 {
		serving = min(serving, in.max)
	}
	return in.busy < serving || in.threads < in.max
}

// judge takes a sample and appends the verdicts that it allows.
func (s *stallState) judge(in *stallInput, after time.Duration, add func(reason string, stalled bool)) {
	if !in.listening {
		*s = stallState{}
		return
	}
	idle := in.suspicious()
	queue := s.queue.held(in, idle && in.full, after)
	// A thread that sleeps before it reads a large body leaves bytes unread too,
	// so the bytes count only where nothing of the connection was ever read, or
	// where there are more of them than threads.
	unread := s.unread.held(in, idle && (in.untouched > 0 || in.waiting > in.threads), after)
	if in.knowPool {
		if in.knowFull {
			add(stallQueue, queue)
		}
		add(stallUnread, unread)
	}
	s.judgeThreads(in, after/2, add)
}

func (s *stallState) judgeThreads(in *stallInput, after time.Duration, add func(string, bool)) {
	s.pollers.see(in.pollers)
	s.acceptors.see(in.acceptors)
	pollers, acceptors := s.pollers.n, s.acceptors.n
	switch in.helpers {
	case helpersTogether:
		if pollers > 0 {
			add(stallThread, missing(&s.noPoller, in.now, in.pollers < pollers, after))
		}
	case helpersApart:
		// Where the sidecar came after the death, the other thread tells that there
		// should be one.
		if pollers > 0 || acceptors > 0 {
			add(stallPoller, missing(&s.noPoller, in.now, in.pollers < max(pollers, 1), after))
			add(stallAcceptor, missing(&s.noAccepor, in.now, in.acceptors < max(acceptors, 1), after))
		}
	}
}

// held says whether a suspicion has lasted long enough without any progress.
func (s *since) held(in *stallInput, suspect bool, after time.Duration) bool {
	if !suspect {
		*s = since{}
		return false
	}
	progress := s.at.IsZero() ||
		(in.hasLines && in.served > s.served) ||
		(in.knowTurns && (in.turns < s.turns || in.turns-s.turns > uint64(in.threads/4+1)))
	if progress || (!in.knowLines && !in.knowTurns) {
		*s = since{at: in.now, turns: in.turns, served: in.served}
		return false
	}
	return in.now.Sub(s.at) >= after
}

func missing(at *time.Time, now time.Time, gone bool, after time.Duration) bool {
	if !gone {
		*at = time.Time{}
		return false
	}
	if at.IsZero() {
		*at = now
	}
	return now.Sub(*at) >= after
}
