package follow

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// What Spec.Open refuses is told in a word, and neither its bytes nor its size
// get out; once it is allowed, it is read from its start.
func TestOpenRefuses(t *testing.T) {
	var no error
	open := func(name string) (*os.File, error) {
		if no != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: no}
		}
		return os.Open(name)
	}
	for want, err := range map[string]error{"permission": syscall.EACCES, "not_the_targets": root.ErrNotTheirs,
		"refused": root.ErrKernel, "refused ": syscall.ELOOP, "error": syscall.EMFILE} {
		s := newStand(t, Spec{Path: "a.log", From: Start, Open: open})
		no = err
		s.append("a.log", "secret\n")
		s.append("a.log.1", "older secret\n")
		told := 0
		for range 5 {
			s.now = s.now.Add(time.Second)
			if _, err := s.f.Look(s.now); err != nil {
				told++
			}
		}
		l := s.f.Ledger()
		if l.Blind != strings.TrimSpace(want) || told != 1 || l.HasSize || l.Read != 0 || want != "error" && l.Written != 0 {
			t.Errorf("%v: told %d times, %+v", err, told, l)
		}
		no = nil
		s.look()
		s.want("secret")
		if l := s.f.Ledger(); l.Blind != "" {
			t.Errorf("%v: still blind", err)
		}
	}
}

// The name shows one file and the opening gets another, as where a link means
// one thing to us and another to the target: nothing of it is read.
func TestOpenElsewhere(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start, Open: func(name string) (*os.File, error) { return os.Open(name + ".other") }})
	s.append("a.log", "ours\n")
	s.append("a.log.other", "theirs\n")
	for range 6 {
		s.look()
	}
	s.want()
	if b := s.f.Ledger().Blind; b != "refused" {
		t.Errorf("blind %q", b)
	}
}

// Every open goes through Spec.Open: none of the ways to a file beside the log
// (a rotated one, a copy, a packed one, a stale one) goes past it.
func TestOpenIsTheOnlyWay(t *testing.T) {
	var opened []string
	spec := Spec{Path: "a.log", From: Start, Since: time.Unix(1, 0), Open: func(name string) (*os.File, error) {
		opened = append(opened, filepath.Base(name))
		return os.Open(name)
	}}
	s := newStand(t, spec)
	s.append("a.log.3", "zero\n")
	s.append("a.log", "one\n")
	s.look()
	s.must(os.Rename(s.path("a.log"), s.path("a.log.2")))
	s.append("a.log.1", "two\n")
	s.append("a.log", "three\n")
	s.append("a.log.gz", "\x1f\x8b rest")
	s.look()
	s.append("a.log.copy", "three\nfour\n")
	s.must(os.Truncate(s.path("a.log"), 0))
	s.append("a.log", "five\n")
	s.look()
	s.want("zero", "one", "two", "three", "four", "five")
	for _, name := range []string{"a.log", "a.log.1", "a.log.3", "a.log.copy"} {
		if !strings.Contains(strings.Join(opened, " ")+" ", name+" ") {
			t.Errorf("%s was not opened by Open: %v", name, opened)
		}
	}
}

// A folder that may be entered and not listed: the rotation is followed by the
// file that is held, and what came between is a gap.
func TestFolderNotListed(t *testing.T) {
	defer func(was func(string, func(string) bool) error) { listing = was }(listing)
	s := newStand(t, Spec{Path: "a.log", From: Start})
	s.append("a.log", "one\n")
	s.look()
	listing = func(dir string, _ func(string) bool) error {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.EACCES}
	}
	s.must(os.Rename(s.path("a.log"), s.path("a.log.2")))
	s.append("a.log.2", "two\n")
	s.append("a.log.1", "unseen\n")
	s.append("a.log", "three\n")
	s.look()
	s.want("one", "two", "three")
	if l := s.f.Ledger(); l.Gaps[GapRotated] != 1 || l.Rotations != 1 {
		t.Errorf("%+v", l)
	}
}

// Beneath /proc/PID/root a link begins at that root again, and leads nowhere
// else. The folder stands for one: the tail of the path is what tells.
func TestResolveBeneathRoot(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "7", "root")
	for _, d := range []string{"data/logs", "var/log"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"var/log/abs": "/data/logs", "var/log/up": "../../../../../../data/logs", "var/log/loop": "loop", "var/log/etc": "/etc/passwd"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Skip(err)
		}
	}
	real := filepath.Join(base, "data/logs/a.log")
	if err := os.WriteFile(real, []byte("line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, via := range []string{"data/logs", "var/log/abs", "var/log/up"} {
		p := filepath.Join(base, via, "a.log")
		if got, err := resolve(p); err != nil || got != real {
			t.Errorf("%s: %s %v", via, got, err)
		}
		if st, err := statPath(p); err != nil || st.size != 5 {
			t.Errorf("%s: %+v %v", via, st, err)
		}
		n := 0
		if err := eachName(filepath.Join(base, via), func(string) bool { n++; return true }); err != nil || n != 1 {
			t.Errorf("%s: %d names, %v", via, n, err)
		}
	}
	for _, name := range []string{"loop", "etc"} {
		if _, err := statPath(filepath.Join(base, "var/log", name)); err == nil {
			t.Errorf("%s leads out", name)
		}
	}
}
