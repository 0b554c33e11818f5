package collectors

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// fragile is an observer that can't bear one kind of line.
type fragile struct{ lines, gaps int }

func (f *fragile) Observe(line []byte) bool {
	if bytes.Contains(line, []byte("poison")) {
		panic("index out of range")
	}
	f.lines++
	return false
}
func (f *fragile) Idle(time.Time)        {}
func (f *fragile) Gap()                  { f.gaps++ }
func (f *fragile) Save() ([]byte, error) { return []byte("{}"), nil }
func (f *fragile) Load([]byte) error     { return nil }

// TestAParserThatFailsIsSurvived: one line that a parser of ours can't bear was
// once enough to end the watch over every server of the machine.
func TestAParserThatFailsIsSurvived(t *testing.T) {
	f := &fragile{}
	st := &stream{key: "t/applog/x", room: "applog", observer: f, set: metric.ForTarget("t")}
	var said bytes.Buffer
	h := guarded(st, slog.New(slog.NewTextHandler(&said, nil)))
	text := "good\npoison\ngood\npoison\ngood\n"
	ledger, err := follow.Lines(strings.NewReader(text), h, follow.Spec{Lock: st.set})
	if err != nil {
		t.Fatal(err)
	}
	if ledger.Lines != 5 || ledger.Read != int64(len(text)) || ledger.Skipped != 0 {
		t.Errorf("the account is %+v", ledger)
	}
	if f.lines != 3 || f.gaps != 2 || st.bugs.Load() != 2 {
		t.Errorf("%d lines, %d gaps, %d bugs; want 3, 2, 2", f.lines, f.gaps, st.bugs.Load())
	}
	if n := strings.Count(said.String(), "BUG"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, said.String())
	}
	if !st.set.TryLock() {
		t.Error("the lock was kept")
	}
	if fail := st.failure.Load(); fail == nil || errorReason(fail.err) != "bug" {
		t.Errorf("the source is not shown as failed: %v", fail)
	}
}

// TestGuardedLines: a guard that takes blocks hands over what one that takes
// lines did.
func TestGuardedLines(t *testing.T) {
	text := "one\r\n\ntwo\n\x00\x00three\n" + strings.Repeat("x", 100) + "\nfour\r\nfive"
	var want, got recorded
	plain, err := follow.Lines(strings.NewReader(text), &want, follow.Spec{MaxLine: 64})
	if err != nil {
		t.Fatal(err)
	}
	st := &stream{observer: &got, set: metric.ForTarget("t")}
	guarded, err := follow.Lines(strings.NewReader(text), guarded(st, slog.New(slog.DiscardHandler)), follow.Spec{MaxLine: 64})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.said, got.said) || plain != guarded {
		t.Errorf("with a guard %q and %+v, without %q and %+v", got.said, guarded, want.said, plain)
	}
	if len(want.said) != 9 { // seven lines and two gaps
		t.Errorf("%q", want.said)
	}
}

// recorded writes down what it is told.
type recorded struct {
	fragile
	said []string
}

func (r *recorded) Observe(line []byte) bool { r.said = append(r.said, string(line)); return false }
func (r *recorded) Gap()                     { r.said = append(r.said, "<gap>") }

// broken is a poller that fails while it holds its Set's lock.
type brokenPoller struct{ set *metric.Set }

func (b brokenPoller) Poll(context.Context, time.Time) error {
	b.set.Lock()
	panic("nil map")
}

func TestAPollerThatFailsIsSurvived(t *testing.T) {
	set := metric.ForTarget("t")
	w := &watch{room: "process", set: set, poller: brokenPoller{set}}
	pollAll(context.Background(), []*watch{w}, time.Now())
	if !set.TryLock() {
		t.Error("the lock was kept")
	}
	if fail := w.failure.Load(); fail == nil || !errors.Is(fail.err, errBug) {
		t.Errorf("failure %v", fail)
	}
	if got := (*w.errors.Load())["bug"]; got != 1 {
		t.Errorf("%v bugs counted", got)
	}
}
