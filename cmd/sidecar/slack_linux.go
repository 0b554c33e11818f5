package main

import (
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how late the kernel may end a sleep of ours, so that it can be
// together with another. What we wait for is a quarter of a second away. With 1 ms
// a loaded second cost a tenth more.
const timerSlack = 4 * time.Millisecond

// relaxed tells the program that it was started again. It is told so that a
// kernel which forgets the slack can't make it start for ever.
const relaxed = "SIDECAR_TIMERS_RELAXED"

// relaxTimers gives all threads of the process their timerSlack. While anything
// runs, the Go runtime's monitor thread sleeps for 20 µs at a time, and its wakings
// were a sixth of what the sidecar costs beside a loaded server. A thread has its
// slack from the one that started it, and that one runs before any code of ours. So
// the program is started once more, as the same process (execve keeps the slack);
// systemd's TimerSlackNSec makes that needless. Where it can't be, all goes on as
// it is.
func relaxTimers(log *slog.Logger) {
	if os.Getenv(relaxed) != "" {
		os.Unsetenv(relaxed)
		return
	}
	runtime.LockOSThread() // the slack is this thread's
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(timerSlack) {
		return
	}
	program, err := os.Executable()
	if err == nil {
		err = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0)
	}
	if err == nil {
		err = unix.Exec(program, os.Args, append(os.Environ(), relaxed+"=1"))
	}
	log.Debug("timers stay as they are", "err", err)
}
