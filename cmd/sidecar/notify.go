package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/jvm-sidecar/sidecar/internal/status"
)

// stalledAfter is how old the last snapshot may be before the sidecar counts as
// hung. A tick is a second; a minute is room for a machine that is out of memory
// or out of disk for a while, which is when the sidecar is needed most and must
// not be restarted for being slow.
const stalledAfter = time.Minute

// notifySystemd tells a service manager that the sidecar works: READY=1 with the
// first snapshot, and then, as often as the watchdog wants it, WATCHDOG=1 as
// long as snapshots go on being published. A tick that hangs for good therefore
// ends in a restart, a slow one does not. Without NOTIFY_SOCKET it does nothing.
//
// READY comes with a snapshot and not with the open port, because the port is
// opened first and a port that is taken ends the program within that second.
func notifySystemd(ctx context.Context, current func() *status.Status, log *slog.Logger) {
	if sent, err := systemd.SdNotify(false, "STATUS=Looking at the machine."); !sent {
		if err != nil {
			log.Warn("the service manager can't be told", "err", err)
		}
		return
	}
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not understood", "err", err)
	}
	ready, last := false, ""
	for {
		if say := tell(current(), time.Now(), ready, interval > 0); say.message != "" && say.message != last {
			systemd.SdNotify(false, say.message)
			ready = ready || say.ready
			if !say.beat {
				last = say.message
			}
		}
		wait := heartbeat(interval)
		if !ready {
			// Whoever is ordered after this service waits for it.
			wait = min(wait, 200*time.Millisecond)
		}
		select {
		case <-ctx.Done():
			systemd.SdNotify(false, systemd.SdNotifyStopping)
			return
		case <-time.After(wait):
		}
	}
}

// heartbeat is how often to tell: a third of the watchdog's patience, so that one
// late beat is no death, and never rarer than each ten seconds.
func heartbeat(watchdog time.Duration) time.Duration {
	if watchdog <= 0 {
		return time.Second
	}
	return max(min(watchdog/3, 10*time.Second), 10*time.Millisecond)
}

// say is one message to the service manager. beat says that it is to be sent
// each time, even unchanged.
type say struct {
	message     string
	ready, beat bool
}

func tell(st *status.Status, now time.Time, ready, watched bool) say {
	if st == nil || now.Sub(st.At) > stalledAfter {
		return say{}
	}
	up := 0
	for _, s := range st.Targets {
		if s.Up {
			up++
		}
	}
	out := say{message: fmt.Sprintf("STATUS=Watching %d servers, %d of them up.", len(st.Targets), up)}
	if !ready {
		out.message += "\n" + systemd.SdNotifyReady
		out.ready = true
	}
	if watched {
		out.message += "\n" + systemd.SdNotifyWatchdog
		out.beat = true
	}
	return out
}
