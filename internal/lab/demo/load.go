package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// load is what the load tools say of all that they sent.
type load struct {
	sent, answers int
	took          time.Duration
}

// quiet sends a few requests a second for some seconds: the "before" of the
// picture, and what the rules take for usual.
func (p *parts) quiet(ctx context.Context) error {
	path := fmt.Sprintf("/slow?ms=%d", slowMS)
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
		if err := pause(ctx, 400*time.Millisecond); err != nil {
			return err
		}
		t := lab.Burst(p.server.Addr, path, 4, 10*time.Second)
		if t.Answers[200] != 4 {
			return fmt.Errorf("the quiet server did not answer: %v", t)
		}
		p.asked += 4
	}
	return nil
}

// overload runs one ab after the other. Each is let run to its end, so that no
// request of it is still in the server when its answers are counted.
func (p *parts) overload(ctx context.Context) (load, error) {
	url := p.server.URL(fmt.Sprintf("/slow?ms=%d", slowMS))
	var l load
	began := time.Now()
	for time.Since(began) < storm && ctx.Err() == nil {
		r, err := lab.AB(url, perRound, clients, 10*time.Second)
		if err != nil {
			return l, err
		}
		l.sent += r.Complete
		l.answers += r.Answers(len(fmt.Sprintf("slept %d ms\n", slowMS)))
	}
	l.took = time.Since(began)
	return l, ctx.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
