package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/engine"
)

// An alert that asks for a thread dump gets one each time it begins to fire,
// however often the engine says that it still does.
func TestAlertDumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var fail error
		var said bytes.Buffer
		d := newAlertDumps(nil, slog.New(slog.NewTextHandler(&said, nil)))
		d.keep = func(_ context.Context, server, alert string, _ time.Time) (string, error) {
			got = append(got, alert+"/"+server)
			err := fail
			fail = nil
			return "file", err
		}
		alert := func(name, server, dump string, active, resolved time.Time) engine.Alert {
			return engine.Alert{Labels: map[string]string{"alertname": name, "target": server}, Annotations: map[string]string{dumpAnnotation: dump}, ActiveAt: active, ResolvedAt: resolved}
		}
		one, two := time.Unix(100, 0), time.Unix(200, 0)
		see := func(want int, a ...engine.Alert) {
			t.Helper()
			got = nil
			d.see(a)
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(got) != want {
				t.Errorf("%d dumps, want %d: %v", len(got), want, got)
			}
		}
		see(1, alert("A", "t", "on", one, time.Time{}))
		see(0, alert("A", "t", "on", one, time.Time{}))
		see(0, alert("A", "t", "on", one, two)) // resolved
		see(1, alert("A", "t", "on", two, time.Time{}))
		see(0, alert("B", "t", "", one, time.Time{}))
		see(0, alert("B", "", "on", one, time.Time{}))
		// Two at once: one, and the other when it is said again.
		pair := []engine.Alert{alert("C", "t", "on", one, time.Time{}), alert("C", "u", "on", one, time.Time{})}
		see(1, pair...)
		see(1, pair...)
		see(0, pair...)
		fail = attach.TooSoon
		see(2, alert("D", "t", "on", one, time.Time{}))
		time.Sleep(dumpPause)
		// Several alerts of one server within a minute, and one that comes and goes:
		// the dump of the first stands for all.
		see(1, alert("E", "t", "on", one, time.Time{}), alert("F", "t", "on", one, time.Time{}))
		d.see([]engine.Alert{alert("G", "t", "on", one, time.Time{})})
		synctest.Wait()
		see(0, alert("H", "t", "on", one, time.Time{}), alert("G", "t", "on", two, time.Time{}))
		see(0, alert("H", "t", "on", one, time.Time{}))
		see(1, alert("H", "t", "on", two, time.Time{}))
		// Where nobody allowed it, that is said once and no more.
		said.Reset()
		for i := range 3 {
			fail = fmt.Errorf("thread dump of t: %w", collectors.ErrAttachOff)
			see(1, alert("I", "t", "on", one.Add(time.Duration(i)*time.Second), time.Time{}))
			time.Sleep(dumpPause)
		}
		if n := strings.Count(said.String(), "attach"); n != 1 || strings.Contains(said.String(), "WARN") {
			t.Errorf("attach is off: %s", said.String())
		}
	})
}
