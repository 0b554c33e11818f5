package collectors

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/expfmt"
)

// figures are all that a Set holds, as text.
func figures(set *metric.Set) string {
	g := metric.NewGathering()
	g.Add(set)
	var b strings.Builder
	enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range g.Snapshot(time.Time{}).Families {
		enc.Encode(f)
	}
	return b.String()
}

// pieces gives at most n bytes a read.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// TestGCLogCutAtEveryByte: a log that is seen ending at every one of its last
// 65,536 bytes (and at every 7th, and at every 4,096th), with pauses between
// that close what is open, and with a restart of the sidecar at many of them,
// gives the figures of the whole; and so does replay, in whatever pieces it
// reads.
func TestGCLogCutAtEveryByte(t *testing.T) {
	corpus := filepath.Join("..", "..", "shared", "corpus", "gclog")
	if _, err := os.Stat(corpus); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("the shared corpus is not here: ", err)
	}
	for _, name := range []string{
		"jdk6-cms-details-concurrent-mode-failure.log", "jdk8-cms-print-fls-statistics.log", "jdk8-g1-tenuring-stopped-apptime.log",
		"own/jdk17-g1-rotation.log", "own/jdk25-zgc-generational-stalls.log", "own/jdk25-shenandoah-generational.log",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(corpus, name))
			if err != nil {
				t.Fatal(err)
			}
			set := metric.ForTarget("t")
			if _, err := follow.Lines(bytes.NewReader(data), gclog.New(set, gclog.DefaultConfig()), follow.Spec{}); err != nil {
				t.Fatal(err)
			}
			want := figures(set)
			if !strings.Contains(want, "gclog_pause_seconds_count") {
				t.Fatal("there are no pauses in it")
			}
			for _, n := range []int{1, 7, 4096} {
				set := metric.ForTarget("t")
				if _, err := follow.Lines(pieces{bytes.NewReader(data), n}, gclog.New(set, gclog.DefaultConfig()), follow.Spec{}); err != nil {
					t.Fatal(err)
				}
				if got := figures(set); got != want {
					t.Errorf("replay in pieces of %d bytes: got\n%s\nwant\n%s", n, got, want)
				}
				if got := followGrowing(t, data, n); got != want {
					t.Errorf("followed in pieces of %d bytes: %s", n, firstDifference(got, want))
				}
			}
		})
	}
}

// followGrowing writes the last 64 KB in pieces and looks after each.
func followGrowing(t *testing.T, data []byte, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gc.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cut := max(0, len(data)-64<<10)
	file.Write(data[:cut])
	var set *metric.Set
	var o *gclog.Observer
	var f *follow.Follower
	begin := func() {
		set = metric.ForTarget("t")
		o = gclog.New(set, gclog.DefaultConfig())
		f = follow.New(follow.Spec{Name: "gc.log", Path: path, From: follow.Start, Lock: set}, o)
	}
	begin()
	now := time.Now()
	look := func() {
		for {
			now = now.Add(10 * time.Millisecond)
			more, err := f.Look(now)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				return
			}
		}
	}
	look()
	for i := 0; cut < len(data); i++ {
		next := min(cut+n, len(data))
		file.Write(data[cut:next])
		cut = next
		look()
		if i%509 == 508 { // killed and started anew
			set.Lock()
			position, err := f.Save()
			if err != nil {
				t.Fatal(err)
			}
			state, err := o.Save()
			if err != nil {
				t.Fatal(err)
			}
			set.Unlock()
			f.Close()
			begin()
			set.Lock()
			if err := o.Load(state); err != nil {
				t.Fatal(err)
			}
			if err := f.Load(position); err != nil {
				t.Fatal(err)
			}
			set.Unlock()
			look()
		}
	}
	// Drained: a last line without its end counts now.
	set.Lock()
	led := f.Ledger()
	set.Unlock()
	if rest := led.Lag; rest > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		o.Observe(data[len(data)-int(rest):])
	}
	f.Close()
	return figures(set)
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("%s, want %s", g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines of figures, want %d", len(g), len(w))
}
