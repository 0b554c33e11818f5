// Package collectors holds the list of sources and the two loops that feed
// them: poll every tick, follow every file.
//
// The whole plug-in surface is the two interfaces below. A room under this
// folder implements one of them, declares its metrics in a list called Metrics,
// and is named in two adjacent lines here. Rooms don't know each other, nor the
// loops, nor where their lines come from.
package collectors

import (
	"context"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/collectors/logdir"
	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/notify"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// The list of sources: each room's metrics, and what makes it for a server.
var (
	pollers = []struct {
		room string
		make func(*Monitor, *target.Target) *watch
	}{
		{"process", watchProcess},
		{"jvm", watchJVM},
		{"logdir", watchLogDir},
		{"applog", watchDumps},
	}
	logs = []struct {
		room string
		want func(*Monitor, *target.Target) []wanted
	}{
		{"gclog", gcLogs},
		{"accesslog", accessLogs},
		{"applog", appLogs},
	}
	catalogue = [][]*metric.Family{
		target.Metrics, process.Metrics, jvm.Metrics, logdir.Metrics,
		gclog.Metrics, accesslog.Metrics, applog.Metrics, follow.Metrics, ship.Metrics, ownMetrics, {growthShare},
		engine.Metrics, notify.Metrics,
	}
)

// Catalogue is every metric that the sidecar can emit.
func Catalogue() (all []*metric.Family) {
	for _, room := range catalogue {
		all = append(all, room...)
	}
	return all
}

// A Poller reads the state of the world once a tick: /proc, hsperfdata, a
// folder's size.
//
// Poll is called from one goroutine and need not be safe for concurrent use. It
// reads first and takes its Set's lock only to write the figures down. It
// returns within its context's deadline. An error says what could not be read
// and is counted in sidecar_source_errors_total; a process that went away while
// it was read is no error. What did not fail is still published.
type Poller interface {
	Poll(ctx context.Context, now time.Time) error
}

// An Observer turns the lines of one followed file into figures.
//
// All methods are called with the lock of the observer's Set held, by one
// goroutine at a time.
type Observer interface {
	// Observe takes one line, without its line end (\n or \r\n). The line is the
	// callee's until Observe returns; whoever wants to keep a part copies it.
	// A record is counted at its first deciding line, never at its end. The
	// result says whether an entry is unfinished: then Idle will be called when
	// no further line comes.
	Observe(line []byte) (open bool)
	// Idle says that no line has come for a while (some hundred milliseconds):
	// close what is open. now is the tick's time.
	Idle(now time.Time)
	// Gap says that bytes were lost or skipped before the next line: what was
	// open can't be completed.
	Gap()
	// Save returns the counters and the open state for the checkpoint, and Load
	// takes them back into a fresh observer. Together with the position in the
	// file, which the loop saves at the same instant, they are one truth.
	Save() ([]byte, error)
	Load(data []byte) error
}
