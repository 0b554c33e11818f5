package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorder is the plainest handler: it keeps what it is given.
type recorder struct {
	lines []string
	gaps  int
	idles int
	open  bool
}

func (r *recorder) Observe(line []byte) bool { r.lines = append(r.lines, string(line)); return r.open }
func (r *recorder) Idle(time.Time)           { r.idles++ }
func (r *recorder) Gap()                     { r.gaps++; r.lines = append(r.lines, "<gap>") }

func (r *recorder) text() []string {
	var out []string
	for _, l := range r.lines {
		if l != "<gap>" {
			out = append(out, l)
		}
	}
	return out
}

// a bench is a folder, a follower and a clock.
type stand struct {
	t    *testing.T
	dir  string
	spec Spec
	f    *Follower
	r    *recorder
	now  time.Time
}

func newStand(t *testing.T, spec Spec) *stand {
	s := &stand{t: t, dir: t.TempDir(), r: &recorder{}, now: time.Unix(1e9, 0)}
	if spec.Path != "" {
		spec.Path = filepath.Join(s.dir, spec.Path)
	} else {
		spec.Dir = filepath.Join(s.dir, spec.Dir)
	}
	s.spec = spec
	s.f = New(spec, s.r)
	t.Cleanup(func() { s.f.Close() })
	return s
}

func (s *stand) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stand) append(name, text string) {
	s.t.Helper()
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	s.must(err)
	_, err = f.WriteString(text)
	s.must(err)
	s.must(f.Close())
}

func (s *stand) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// look lets a second pass and looks until there is no more, and holds the
// ledger against its law each time.
func (s *stand) look() {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	for i := 0; ; i++ {
		more, err := s.f.Look(s.now)
		if err != nil {
			s.t.Log(err)
		}
		s.balance()
		if !more {
			return
		}
		if i > 1e5 {
			s.t.Fatal("it never ends")
		}
	}
}

func (s *stand) balance() {
	s.t.Helper()
	l := s.f.Ledger()
	pending := int64(0)
	for _, p := range s.f.parts {
		pending += p.pending()
	}
	if l.Written != l.Read+l.Skipped+l.Lost+l.Lag || l.Lag != pending || l.Lag < 0 {
		s.t.Fatalf("ledger out of balance: %+v, pending %d", l, pending)
	}
}

// restart saves, stops, and begins anew from what was saved.
func (s *stand) restart() {
	s.t.Helper()
	data, err := s.f.Save()
	s.must(err)
	s.f.Close()
	s.f = New(s.spec, s.r)
	s.must(s.f.Load(data))
}

func (s *stand) want(want ...string) {
	s.t.Helper()
	got := s.r.text()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		s.t.Fatalf("lines\n got %s\nwant %s", brief(got), brief(want))
	}
}

func brief(l []string) string {
	s := strings.Join(l, "|")
	if len(s) > 2000 {
		s = s[:1000] + " … " + s[len(s)-1000:]
	}
	return fmt.Sprintf("%d: %s", len(l), s)
}

func seq(format string, from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func joined(l []string) string { return strings.Join(l, "\n") + "\n" }

func TestBasics(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start})
	s.look()
	if !s.f.CaughtUp() {
		t.Error("nothing there, and not caught up")
	}
	s.append("a.log", "one\ntwo\r\nthr")
	s.look()
	s.want("one", "two")
	s.append("a.log", "ee\n")
	s.look()
	s.want("one", "two", "three")
	s.must(os.Rename(s.path("a.log"), s.path("a.log.1")))
	s.append("a.log.1", "late\n")
	s.append("a.log", "new\n")
	s.look()
	s.want("one", "two", "three", "late", "new")
	s.append("a.log", "half")
	s.look()
	s.restart()
	s.append("a.log", " done\n")
	s.look()
	s.want("one", "two", "three", "late", "new", "half done")
	if l := s.f.Ledger(); l.Rotations != 1 || l.Gaps != [gapReasons]int64{} {
		t.Errorf("%+v", l)
	}
}
