package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// rejection is how `grep -c` counts rejections in catalina.out: each record has
// one line that begins with the exception's class.
const rejection = `^.?java\.util\.concurrent\.RejectedExecutionException`

// A row is one line of the closing table. by is what counted the other figure.
type row struct {
	what           string
	sidecar, other figure
	by             string
	within         float64 // the difference that is none
	write          func(float64) string
}

// differs says whether the two figures disagree; what the sidecar does not give
// is no figure of its, and differs too.
func (r row) differs() bool {
	d := r.sidecar.v - r.other.v
	return !r.sidecar.ok || !r.other.ok || d > r.within || d < -r.within
}

// compare waits until the server and the sidecar have come to rest, reads both
// sides and prints the table. It returns how many figures differ.
func (p *parts) compare(ctx context.Context, s *screen, l load, w *watcher) (differ int, err error) {
	var rows []row
	lab.Until(15*time.Second, func() bool {
		rows, err = p.rows(l)
		differ = 0
		for _, r := range rows {
			if r.differs() {
				differ++
			}
		}
		return ctx.Err() != nil || (err == nil && differ == 0)
	})
	if err != nil {
		return differ, err
	}
	if err := ctx.Err(); err != nil {
		return differ, fmt.Errorf("interrupted")
	}
	s.line("%-34s %15s %15s  %s", "", "sidecar", "other", "counted by")
	for _, r := range rows {
		mark := ""
		if r.differs() {
			mark = s.strong("  DIFFERS")
		}
		s.line("%-34s %15s %15s  %s%s", r.what, r.sidecar.text(r.write), r.other.text(r.write), r.by, mark)
	}
	s.line("")
	s.line("%d connections were sent in %.0f s; %d got an answer, the others were closed without one.", l.sent, l.took.Seconds(), l.answers)
	s.line("At most %s threads, %s requests waiting, %s a second into the logs.",
		w.peak.threads.text(count), w.peak.waiting.text(count), size(w.maxSlope))
	if w.fired.IsZero() {
		s.line("%s", s.strong("ExecutorRejectionStorm did not fire."))
	} else {
		s.line("ExecutorRejectionStorm fired in Prometheus%s.", w.delay())
	}
	return differ, nil
}

func (p *parts) rows(l load) ([]row, error) {
	r, err := p.read()
	if err != nil {
		return nil, err
	}
	rejected, err := lab.GrepCount(rejection, p.server.CatalinaOut)
	if err != nil {
		return nil, err
	}
	threads, err := p.server.ThreadsNamed("catalina-exec-")
	if err != nil {
		return nil, err
	}
	du, err := lab.DU(p.server.LogDir)
	if err != nil {
		return nil, err
	}
	known := func(n int) figure { return figure{float64(n), true} }
	return []row{
		{"requests answered", r.requests, known(l.answers + p.asked), "ab, by the bodies it got", 0, count},
		{"requests rejected", r.rejected, known(rejected), "grep -c in catalina.out", 0, count},
		{"threads of catalina-exec", r.threads, known(threads), "jstack | grep -c", 1, count},
		{"bytes in the log folder", r.logs, figure{float64(du), true}, "du -s --block-size=1", 0, count},
	}, nil
}
