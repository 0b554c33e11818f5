package collectors

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
)

// A guard stands between a follower and its observer. A mistake of ours in one
// parser must not end the watch over every server: the panic is told once with
// its stack, the source is shown as failed, and what was read is a gap. The
// follower's lock is let go as usual, since nothing unwinds through it.
type guard struct {
	st  *stream
	log *slog.Logger
	// told is whether the first panic was logged.
	told bool
}

// lineGuard is a guard of an observer that takes lines: to stand guard once for a
// block of them costs a twentieth of a parser less than once for each.
type lineGuard struct{ guard }

// blockGuard is a guard of an observer that takes blocks.
type blockGuard struct {
	guard
	blocks follow.BlockHandler
}

// guarded is the handler that the follower of a stream gets.
func guarded(st *stream, log *slog.Logger) follow.BlockHandler {
	g := guard{st: st, log: log}
	if b, ok := st.observer.(follow.BlockHandler); ok {
		return &blockGuard{g, b}
	}
	return &lineGuard{g}
}

func (g *guard) Observe(line []byte) (open bool) {
	defer g.survive("a line of %d bytes", len(line))
	return g.st.observer.Observe(line)
}

func (g *guard) Idle(now time.Time) {
	defer g.survive("idle", 0)
	g.st.idles++
	g.st.observer.Idle(now)
}

func (g *guard) Gap() {
	defer g.survive("a gap", 0)
	g.st.observer.Gap()
}

// ObserveBlock hands over the lines of the block. It ends behind the one that the
// observer failed in.
func (g *lineGuard) ObserveBlock(block []byte) (taken, lines int, open bool) {
	under := 0 // length of the line under way
	defer func() {
		if under > 0 {
			taken, lines, open = taken+under, lines+1, false
		}
	}()
	defer g.survive("a line", 0)
	o := g.st.observer
	for taken < len(block) && block[taken] != 0 {
		under = bytes.IndexByte(block[taken:], '\n') + 1
		line := block[taken : taken+under-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		open = o.Observe(line)
		taken, lines, under = taken+under, lines+1, 0
	}
	return taken, lines, open
}

// ObserveBlock takes the whole block where the observer failed in it: nobody
// knows how far it had come, and no line is to be counted twice.
func (g *blockGuard) ObserveBlock(block []byte) (taken, lines int, open bool) {
	whole := false
	defer func() {
		if !whole {
			taken, lines, open = len(block), bytes.Count(block, []byte{'\n'}), false
		}
	}()
	defer g.survive("a block of %d bytes", len(block))
	taken, lines, open = g.blocks.ObserveBlock(block)
	whole = true
	return taken, lines, open
}

func (g *guard) survive(what string, n int) {
	p := recover()
	if p == nil {
		return
	}
	if n > 0 {
		what = fmt.Sprintf(what, n)
	}
	g.st.failure.Store(&failure{fmt.Errorf("%w: reading %s: %v", errBug, what, p), time.Now()})
	g.st.bugs.Add(1)
	if !g.told {
		g.told = true
		g.log.Error("BUG: a parser failed; its source goes on behind the place, please report this",
			"stream", g.st.key, "what", what, "panic", p, "stack", string(debug.Stack()))
	}
	// The observer's open record can't be trusted. Should Gap fail as well, there
	// is nothing more to close.
	defer func() { recover() }()
	g.st.observer.Gap()
}
