package follow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nxadm/tail"
	"github.com/nxadm/tail/watch"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Ten minutes of a log that is renamed every seven seconds, by the loop of the
// product, in a moment of real time.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.log")
		r := &recorder{}
		f := New(Spec{Path: path, From: Start}, r)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { f.Run(ctx, nil, nil) })
		var want []string
		for i := range 600 {
			l := fmt.Sprintf("line %d", i)
			want = append(want, l)
			w, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(w, l)
			w.Close()
			if i%7 == 6 {
				os.Rename(path, path+".1")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		cancel()
		wg.Wait()
		f.Close()
		if strings.Join(r.lines, "|") != strings.Join(want, "|") {
			t.Errorf("%s", brief(r.lines))
		}
		// Several renames fell between two looks only if the follower slept.
		if l := f.Ledger(); l.Rotations < 80 || l.Gaps != [gapReasons]int64{} {
			t.Errorf("%+v", l)
		}
	})
}

// The whole process' CPU is the measure, and an overdrawn account is paid back
// in time before anybody reads on.
func TestPacer(t *testing.T) {
	now, cpu := time.Unix(1e9, 0), time.Duration(0)
	p := &Pacer{cores: 0.5, cpu: func() time.Duration { return cpu }, now: func() time.Time { return now }, at: now}
	p.credit = p.full()
	busy := time.Duration(0)
	for busy < 20*time.Second {
		if d := p.wait(); d > 0 {
			now = now.Add(d)
			busy += d
			continue
		}
		now, cpu, busy = now.Add(10*time.Millisecond), cpu+10*time.Millisecond, busy+10*time.Millisecond
	}
	if share := cpu.Seconds() / busy.Seconds(); share < 0.45 || share > 0.55 {
		t.Errorf("%.2f cores", share)
	}
	// Somebody else burns a minute of CPU: a piece is read every second still.
	cpu += time.Minute
	if d := p.wait(); d > time.Second {
		t.Errorf("waits %v", d)
	}
}

func TestMetrics(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Fatal(err)
	}
	set := metric.ForTarget("tomcat-8080")
	l := Ledger{Written: 10, Read: 7, Lag: 3, HasSize: true}
	l.Publish(set, "catalina.out")
	if n := set.Len(); n != len(Metrics)-1+int(gapReasons) {
		t.Errorf("%d series", n)
	}
	if v, ok := set.Counter(gaps, "catalina.out", "long").Value(); v != 0 || !ok {
		t.Error("a closed counter does not start at 0")
	}
}

// nxadm/tail throws the half line away when it opens the name anew, and never
// reads the rest of the old file. The schedule is the plainest rotation there
// is: the server had written half a line when its log was renamed, and writes
// the other half into the file it still has open.
func TestTailFileLosesHalfLine(t *testing.T) {
	schedule := func(dir string, pause func()) {
		path := filepath.Join(dir, "a.log")
		w, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		w.WriteString("one\nhal")
		pause() // the reader has come to the end
		os.Rename(path, path+".1")
		os.WriteFile(path, []byte("two\n"), 0o644)
		w.WriteString("f\nlate\n")
		pause()
	}

	s := newStand(t, Spec{Path: "a.log", From: Start})
	schedule(s.dir, s.look)
	s.want("one", "half", "late", "two")

	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var tf *tail.Tail
		var theirs []string
		schedule(dir, func() {
			if tf == nil {
				var err error
				tf, err = tail.TailFile(filepath.Join(dir, "a.log"), tail.Config{Follow: true, ReOpen: true, Poll: true, CompleteLines: true, Logger: tail.DiscardingLogger})
				if err != nil {
					t.Fatal(err)
				}
			}
			// Ten seconds of the bubble's time, in which it looks four times a second.
			for range 40 {
				time.Sleep(watch.POLL_DURATION)
				synctest.Wait()
				for ready(tf.Lines, &theirs) {
					synctest.Wait()
				}
			}
		})
		tf.Stop()
		time.Sleep(2 * watch.POLL_DURATION) // its watcher sees that
		if got := strings.Join(theirs, "|"); got != "one|two" {
			t.Errorf("nxadm/tail gave %q: if it has been mended, say so in docs/decisions.md", got)
		}
	})
}

// ready takes a line if there is one.
func ready(lines chan *tail.Line, to *[]string) bool {
	select {
	case l, ok := <-lines:
		if ok {
			*to = append(*to, l.Text)
		}
		return ok
	default:
		return false
	}
}

// pieces is a reader that gives what it has in pieces of the given sizes.
type pieces struct {
	b, sizes []byte
	i        int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := len(p.b)
	if len(p.sizes) > 0 {
		n = 1 + int(p.sizes[p.i%len(p.sizes)])
		p.i++
	}
	n = copy(b, p.b[:min(n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// However the bytes arrive, the lines are the same, and every byte is in the
// ledger.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("one\r\ntwo\nhalf"), []byte{0, 1, 2}, byte(0))
	f.Add([]byte("\xff\xfea\x00\n\x00\x0a\x0a\x0a\x00"), []byte{2}, byte(0))
	f.Add([]byte("\x00\x00\x00x\n\x00\x00"+strings.Repeat("é", 40)+"\nx"), []byte{6, 1}, byte(0))
	f.Add([]byte(strings.Repeat("\xd1\xcf", 40)+"\n"), []byte{1}, byte(3))
	f.Fuzz(func(t *testing.T, data, sizes []byte, enc byte) {
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			return
		}
		spec := Spec{MaxLine: 32, Encoding: []string{"", "utf-16le", "utf-16be", "gbk"}[enc%4]}
		whole, parts := &recorder{}, &recorder{}
		a, err := Lines(&pieces{b: data}, whole, spec)
		b, err2 := Lines(&pieces{b: data, sizes: sizes}, parts, spec)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if strings.Join(whole.lines, "\n") != strings.Join(parts.lines, "\n") || a != b {
			t.Fatalf("%q in pieces %v\n%q %+v\n%q %+v", data, sizes, whole.lines, a, parts.lines, b)
		}
		if a.Read+a.Skipped != int64(len(data)) {
			t.Fatalf("%q: %+v", data, a)
		}
		for _, l := range whole.lines {
			if len(l) > 3*32 {
				t.Fatalf("a line of %d bytes", len(l))
			}
		}
	})
}

// BenchmarkLook is the product's path over 64 MB of short lines.
func BenchmarkLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.log")
	line := strings.Repeat("x", 107) + "\n"
	if err := os.WriteFile(path, bytes.Repeat([]byte(line), 64<<20/len(line)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		var c counting
		f := New(Spec{Path: path, From: Start}, &c)
		for more := true; more; {
			more, _ = f.Look(time.Unix(1e9, 0))
		}
		f.Close()
		if int(c) != 64<<20/len(line) {
			b.Fatal(c)
		}
	}
}

type counting int

func (c *counting) Observe([]byte) bool { *c++; return false }
func (c *counting) Idle(time.Time)      {}
func (c *counting) Gap()                {}

// BenchmarkIdleLook is one look at a file that does not change.
func BenchmarkIdleLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.log")
	if err := os.WriteFile(path, []byte("one line\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	var c counting
	f := New(Spec{Path: path, From: Start}, &c)
	defer f.Close()
	now := time.Unix(1e9, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		f.Look(now)
	}
}

// BenchmarkStat is the part of it that is the kernel's.
func BenchmarkStat(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.log")
	os.WriteFile(path, nil, 0o644)
	b.ReportAllocs()
	for b.Loop() {
		sysStatPath(path)
	}
}
