package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// held is a rule that is pending from the first second of the sidecar on: its
// own presence is the condition. It holds for 20 s here and for five minutes in
// the case.
const held = `
groups:
  - name: held
    interval: 1s
    rules:
      - {alert: Held, expr: sidecar_build_info == 1, for: 20s, labels: {severity: warning}, annotations: {summary: held}}
`

const heldFor = 20 * time.Second

// holder is a sidecar without servers that evaluates held, and can be killed.
type holder struct {
	t       *testing.T
	program string
	args    []string
	log     string
	run     *lab.Child
	api     *lab.Prometheus
	calls   chan called
}

func newHolder(t *testing.T, program, outage string) *holder {
	t.Helper()
	dir := t.TempDir()
	rules := filepath.Join(dir, "held.yml")
	if err := os.WriteFile(rules, []byte(held), 0o644); err != nil {
		t.Fatal(err)
	}
	// A machine of its own, on which no server runs.
	if err := os.MkdirAll(filepath.Join(dir, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "proc/stat"), []byte("cpu  1 2 3 4 5 6 7 8 9 10\nbtime 1764489600\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	url, calls := hook(t)
	h := &holder{t: t, program: program, log: filepath.Join(dir, "log"), calls: calls, api: &lab.Prometheus{Addr: fmt.Sprintf("127.0.0.1:%d", port)}}
	h.args = []string{"run", "--web.listen-address=" + h.api.Addr, "--storage.path=" + filepath.Join(dir, "state"), "--path.procfs=" + filepath.Join(dir, "proc"),
		"--config.file=" + settings(t, "engine: {pack: none, rule_files: [%q], outage: %s}\nnotify: {webhooks: [{name: test, url: %q}]}\n", rules, outage, url)}
	t.Cleanup(func() {
		h.run.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(h.log)
			t.Logf("the sidecar's own log:\n%s", said)
		}
	})
	return h
}

func (h *holder) start() {
	h.t.Helper()
	var err error
	if h.run, err = lab.StartProgram("sidecar", h.log, h.program, h.args...); err != nil {
		h.t.Fatal(err)
	}
}

// state waits until the alert is in this state and returns when that was seen
// and since when it is active.
func (h *holder) state(limit time.Duration, want string) (seen, active time.Time) {
	h.t.Helper()
	last := ""
	if !lab.Until(limit, func() bool {
		alerts, err := h.api.Alerts("Held")
		if err != nil || len(alerts) != 1 {
			last = fmt.Sprint(len(alerts), " alerts, ", err)
			return false
		}
		last, seen, active = alerts[0].State, time.Now(), alerts[0].ActiveAt
		return last == want
	}) {
		h.t.Fatalf("Held is not %s within %v: %s", want, limit, last)
	}
	return seen, active
}

// What cases/44-alert-for-over-restart.md asks, of the whole program and with
// kill -9: a hold goes on over a reload and over a restart, and a gap that is too
// long voids it.
func TestCase44AlertForOverRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the sidecar for a minute")
	}
	program, err := lab.Build(t.TempDir(), "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	const slow = 4 * time.Second // what a busy machine may add to a start or a tick
	within := func(t *testing.T, what string, got, least, most time.Duration) {
		t.Helper()
		t.Logf("%s: after %.1f s", what, got.Seconds())
		if got < least || got > most {
			t.Errorf("%s: after %v, want %v to %v", what, got, least, most)
		}
	}
	t.Run("a reload", func(t *testing.T) {
		t.Parallel()
		h := newHolder(t, program, "1m")
		h.start()
		_, active := h.state(20*time.Second, "pending")
		time.Sleep(time.Until(active.Add(12 * time.Second)))
		pid, err := os.FindProcess(h.run.PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := pid.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		seen, _ := h.state(40*time.Second, "firing")
		within(t, "fires", seen.Sub(active), heldFor-time.Second, heldFor+slow)
	})
	t.Run("kill -9 while pending, and while firing", func(t *testing.T) {
		t.Parallel()
		h := newHolder(t, program, "1m")
		h.start()
		_, active := h.state(20*time.Second, "pending")
		time.Sleep(time.Until(active.Add(12 * time.Second)))
		h.run.Kill()
		const away = 4 * time.Second
		time.Sleep(away)
		h.start()
		seen, _ := h.state(40*time.Second, "firing")
		// The time away does not count, and from the start it would be 36 s.
		within(t, "fires", seen.Sub(active), heldFor, heldFor+away+slow)
		if c, ok := await(t, h.calls, 10*time.Second, "Held", "", "firing"); ok && c.severity != "warning" {
			t.Errorf("%+v", c)
		}
		if !lab.Until(10*time.Second, func() bool {
			told, err := os.ReadFile(filepath.Join(filepath.Dir(h.log), "state/told.json"))
			return err == nil && len(told) > 10
		}) {
			t.Fatal("what was told is not kept")
		}
		h.run.Kill()
		time.Sleep(away)
		began := time.Now()
		h.start()
		seen, _ = h.state(20*time.Second, "firing")
		within(t, "fires again", seen.Sub(began), 0, 2*time.Second+slow)
		time.Sleep(3 * time.Second)
		select {
		case c := <-h.calls:
			t.Errorf("told once more: %s %s", c.status, c.name)
		default:
		}
	})
	t.Run("away for too long", func(t *testing.T) {
		t.Parallel()
		h := newHolder(t, program, "3s")
		h.start()
		_, active := h.state(20*time.Second, "pending")
		time.Sleep(time.Until(active.Add(12 * time.Second)))
		h.run.Kill()
		time.Sleep(8 * time.Second)
		h.start()
		back := time.Now()
		seen, anew := h.state(40*time.Second, "firing")
		within(t, "fires", seen.Sub(back), heldFor, heldFor+2*slow)
		if anew.Before(back) {
			t.Errorf("active since %v, before the restart at %v", anew, back)
		}
	})
}
