package follow

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// P04, within one run: as long as we hold the old file, its number is not given
// away, and what is made under the name is another file.
func TestInodeReuseRunning(t *testing.T) {
	s := newStand(t, Spec{Path: "access.log", From: Start})
	for g := range 20 {
		s.append("access.log", joined(seq(fmt.Sprintf("gen%d request %%d", g), 1, 50+g)))
		s.look()
		s.must(os.Remove(s.path("access.log")))
	}
	s.look()
	if n := len(s.r.text()); n != 20*50+19*20/2 {
		t.Errorf("%d lines", n)
	}
}

// P14: bytes that are no UTF-8 come out as they are; who makes labels of them
// cleans them there.
func TestForeignBytes(t *testing.T) {
	s := newStand(t, Spec{Path: "access.log", From: Start})
	lines := []string{"GET /caf\xe9", "GET /\xff\xfe", "GET /a\xc0\xaf x\xed\xa0\x80y", "\x1b[31mERROR\x1b[0;39m boom"}
	s.append("access.log", joined(lines))
	s.look()
	s.want(lines...)
}

// P49, second half: a write in place that keeps the size. The bytes before our
// place are others now, which is what a file looks like that was truncated and
// has grown to its old size, so it is read again and a gap is told. Further
// back than the last KB nobody looks.
func TestChangedInPlace(t *testing.T) {
	s := newStand(t, Spec{Path: "map.log", From: Start})
	s.append("map.log", "00000000000\n")
	s.look()
	patch := func(at int64, text string) {
		f, err := os.OpenFile(s.path("map.log"), os.O_WRONLY, 0)
		s.must(err)
		_, err = f.WriteAt([]byte(text), at)
		s.must(err)
		s.must(f.Close())
		later := time.Now().Add(time.Duration(len(s.r.lines)) * time.Second)
		s.must(os.Chtimes(s.path("map.log"), later, later)) // the clock of the disk may be too coarse to show it
	}
	patch(0, "mmap write!\n")
	s.look()
	s.want("00000000000", "mmap write!")
	if l := s.f.Ledger(); l.Truncations != 1 || l.Gaps[GapTruncated] != 1 {
		t.Errorf("%+v", l)
	}
	s.append("map.log", strings.Repeat("x", 2*window-1)+"\n")
	s.look()
	n := len(s.r.lines)
	patch(0, "not read aga\n")
	s.look()
	if len(s.r.lines) != n {
		t.Errorf("read again: %q", s.r.lines[n:])
	}
}

// limits.lag in seconds: who is two seconds behind skips to one.
func TestLagAge(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", LagBytes: -1, LagAge: 2 * time.Second})
	s.append("a.log", "")
	s.look()
	line := strings.Repeat("z", 8191) + "\n"
	second := strings.Repeat(line, 2*maxLook/len(line)) // twice what one look reads
	worst := 0.0
	for range 16 {
		s.append("a.log", second)
		s.now = s.now.Add(time.Second)
		if _, err := s.f.Look(s.now); err != nil {
			t.Fatal(err)
		}
		s.balance()
		worst = max(worst, s.f.Ledger().LagSeconds)
	}
	l := s.f.Ledger()
	if worst > 4 || l.Skipped == 0 || l.Gaps[GapSkipped] == 0 || !l.Storm {
		t.Errorf("worst lag %.1f s, %+v", worst, l)
	}
	if l.Gaps[GapSkipped] > 10 {
		t.Errorf("%d gaps in 16 s: many small ones", l.Gaps[GapSkipped])
	}
	for range 30 {
		s.look()
	}
	if l := s.f.Ledger(); l.Storm || l.Lag != 0 || l.LagSeconds != 0 || l.Read+l.Skipped != 16*int64(len(second)) {
		t.Errorf("%+v", l)
	}
	for _, g := range s.r.text() {
		if g != line[:8191] {
			t.Fatalf("a torn line of %d bytes", len(g))
		}
	}
}

// The machine's clock may be set back: nothing waits for it to come by again,
// and no figure is negative.
func TestClockSetBack(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start})
	s.append("a.log", "one\nha")
	s.look()
	s.now = s.now.Add(-time.Hour)
	s.append("a.log", "lf\nthree\n")
	s.look()
	s.must(os.Rename(s.path("a.log"), s.path("a.log.1")))
	s.append("a.log", "four\n")
	for range 20 {
		s.look()
		if l := s.f.Ledger(); l.LagSeconds < 0 {
			t.Fatalf("%+v", l)
		}
	}
	s.want("one", "half", "three", "four")
	if n, _ := openFiles(t, s.dir); n != 1 {
		t.Errorf("%d descriptors after the grace period", n)
	}
}

// The soak in a small form: a minute of a storm into one file that is rotated
// each second, looked at ten times a second, with an access log beside it. The
// copy survives, so copytruncate is exact too; and where it does not, a gap is
// told each time. The real one is `go run ./internal/follow/bench -only soak`.
func TestSoak(t *testing.T) {
	for _, how := range []string{"rename", "copytruncate", "copy gone"} {
		t.Run(how, func(t *testing.T) {
			storm, access := newStand(t, Spec{Path: "catalina.out", From: Start}), newStand(t, Spec{Path: "access.log", From: Start})
			log := storm.path("catalina.out")
			written, lines, heap := 0, 0, uint64(0)
			put := func(n int) {
				var b bytes.Buffer
				for range n {
					fmt.Fprintf(&b, "%07d storm %s\n", written, strings.Repeat("s", written%90))
					written++
				}
				half := b.Len() / 3 // lines are torn between the two writes
				storm.append("catalina.out", string(b.Bytes()[:half]))
				storm.append("catalina.out", string(b.Bytes()[half:]))
			}
			for second := range 60 {
				for tick := range 10 {
					put(40)
					access.append("access.log", joined(seq(fmt.Sprintf("request %d %%d", lines), 1, 5)))
					lines += 5
					if tick == 4 {
						os.Remove(log + ".2")
						os.Rename(log+".1", log+".2")
						if how == "rename" {
							storm.must(os.Rename(log, log+".1"))
						} else {
							data, err := os.ReadFile(log)
							storm.must(err)
							storm.must(os.WriteFile(log+".1", data, 0o644))
							storm.must(os.Truncate(log, 0))
							if how == "copy gone" {
								storm.must(os.Remove(log + ".1"))
							}
						}
						put(40)
					}
					for _, s := range []*stand{storm, access} {
						s.now = s.now.Add(100 * time.Millisecond)
						if _, err := s.f.Look(s.now); err != nil {
							t.Fatal(err)
						}
						s.balance()
						if l := s.f.Ledger(); l.LagSeconds > 2 {
							t.Fatalf("%.1f s behind", l.LagSeconds)
						}
					}
				}
				if _, deleted := openFiles(t, storm.dir); deleted > 2 {
					t.Fatalf("%d deleted files held", deleted)
				}
				storm.r.lines = storm.r.check(t, how, &heap, second)
			}
			l := storm.f.Ledger()
			got := int(l.Lines)
			switch {
			case how == "rename" && (got != written || l.Gaps != [gapReasons]int64{} || l.Rotations != 60):
				t.Errorf("%d of %d lines, %+v", got, written, l)
			case how == "copytruncate" && (got != written || l.Truncations != 60):
				t.Errorf("%d of %d lines, %+v", got, written, l)
			case how == "copy gone" && (got != written-60*40 || l.Gaps[GapTruncated] != 60):
				t.Errorf("%d of %d lines, %+v", got, written, l)
			}
			if n := int(access.f.Ledger().Lines); n != lines {
				t.Errorf("%d of %d access lines", n, lines)
			}
		})
	}
}

// check takes the lines of a second: they are in order and none is torn. The
// heap is looked at now and then.
func (r *recorder) check(t *testing.T, how string, heap *uint64, second int) []string {
	t.Helper()
	last := ""
	for _, l := range r.text() {
		var n int
		if _, err := fmt.Sscanf(l, "%07d storm", &n); err != nil || len(l) != len("0000000 storm ")+n%90 || l[:7] <= last {
			t.Fatalf("%s: %q after %s", how, l, last)
		}
		last = l[:7]
	}
	if second%20 == 9 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if *heap > 0 && m.HeapAlloc > *heap+4<<20 {
			t.Errorf("the heap grew from %d to %d bytes", *heap, m.HeapAlloc)
		}
		*heap = m.HeapAlloc
	}
	return nil
}
