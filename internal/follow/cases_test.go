package follow

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"
)

// The cases of ../shared/cases that a follower can get wrong, with the numbers
// written there.

func count(l []string, prefix string) (n int) {
	for _, s := range l {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// openFiles is how many descriptors of this process point beneath dir.
func openFiles(t *testing.T, dir string) (all, deleted int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			all++
			if strings.HasSuffix(to, "(deleted)") {
				deleted++
			}
		}
	}
	return all, deleted
}

// P01: the writer goes on in the renamed file before it opens the new one.
func TestRenameDrain(t *testing.T) {
	for _, spec := range []Spec{{Path: "app.log", From: Start}, {Pattern: regexp.MustCompile(`^app\.log`), From: Start}} {
		s := newStand(t, spec)
		lines := seq("L%04d payload", 1, 1000)
		s.append("app.log", joined(lines[:500]))
		s.look()
		s.must(os.Rename(s.path("app.log"), s.path("app.log.1")))
		s.append("app.log.1", joined(lines[500:520]))
		s.look()
		s.look()
		s.append("app.log", joined(lines[520:]))
		s.look()
		s.want(lines...)
		if r := s.f.Ledger().Rotations; r != 1 {
			t.Errorf("%d rotations", r)
		}
		for range 20 {
			s.look()
		}
		if n, _ := openFiles(t, s.dir); n != 1 {
			t.Errorf("%d descriptors after the grace period", n)
		}
	}
}

// P02: equal banners, and regrown past the old place before the next look.
func TestCopyTruncateRegrown(t *testing.T) {
	s := newStand(t, Spec{Path: "catalina.out", From: Start})
	gen := func(tag string, n int) string {
		var b strings.Builder
		for i := range n {
			l := fmt.Sprintf("BANNER line %02d", i)
			if i >= 30 {
				l = fmt.Sprintf("%s %04d", tag, i-30)
			}
			fmt.Fprintf(&b, "%-59s\n", l)
		}
		return b.String()
	}
	rot := func(tag string, n int) {
		old, err := os.ReadFile(s.path("catalina.out"))
		s.must(err)
		s.must(os.WriteFile(s.path("catalina.out.bak"), old, 0o644))
		s.must(os.Truncate(s.path("catalina.out"), 0))
		s.append("catalina.out", gen(tag, n))
	}
	s.append("catalina.out", gen("g1", 100))
	s.look()
	rot("g2", 40)
	s.look()
	if n := len(s.r.text()); n != 140 {
		t.Fatalf("after A: %d lines", n)
	}
	rot("g3", 200)
	s.look()
	if n := len(s.r.text()); n != 340 {
		t.Fatalf("after B: %d lines", n)
	}
	l := s.f.Ledger()
	if l.Truncations != 2 || l.Gaps[GapTruncated] != 2 {
		t.Errorf("%+v", l)
	}
	// What was unread at the truncation is in the copy.
	s.append("catalina.out", "unread\n")
	rot("g4", 31)
	s.look()
	if count(s.r.text(), "unread") != 1 {
		t.Error("the rest of the copy was not read")
	}
}

// P03: the writer keeps its offset, and a hole of a gigabyte.
func TestHole(t *testing.T) {
	s := newStand(t, Spec{Path: "catalina.out", From: Start})
	f, err := os.Create(s.path("catalina.out"))
	s.must(err)
	defer f.Close()
	for i := range 1000 {
		fmt.Fprintf(f, "old line %04d padded to be a bit longer than usual....\n", i)
	}
	at, _ := f.Seek(0, 1)
	s.look()
	s.must(os.Truncate(s.path("catalina.out"), 0))
	f.WriteString("new line A\nnew line B\n")
	s.look()
	if got := s.r.text(); len(got) != 1002 || got[1000] != "new line A" || got[1001] != "new line B" {
		t.Fatalf("%s", brief(got))
	}
	if l := s.f.Ledger(); l.Skipped != at || l.Gaps[GapHole] != 1 {
		t.Errorf("%+v", l)
	}

	s = newStand(t, Spec{Path: "big.out", From: Start})
	s.append("big.out", "first\n")
	s.look()
	s.must(os.Truncate(s.path("big.out"), 0))
	g, err := os.OpenFile(s.path("big.out"), os.O_WRONLY, 0)
	s.must(err)
	defer g.Close()
	_, err = g.WriteAt([]byte("after the hole\n"), 1<<30)
	s.must(err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processCPU()
	s.look()
	spent := processCPU() - start
	runtime.ReadMemStats(&after)
	s.want("first", "after the hole")
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes allocated over the hole", grown)
	}
	if l := s.f.Ledger(); l.Skipped != 1<<30 {
		t.Errorf("skipped %d", l.Skipped)
	}
	t.Log("CPU over a hole of 1 GiB:", spent)
}

// P04: the new log gets the inode number of the old one.
func TestInodeReuse(t *testing.T) {
	for _, births := range []bool{true, false} {
		s := newStand(t, Spec{Path: "access.log", From: Start})
		s.append("access.log", joined(seq("gen1 request %d", 1, 200)))
		s.look()
		data, err := s.f.Save()
		s.must(err)
		s.f.Close()
		was, _ := statPath(s.path("access.log"))
		reused := false
		for range 50 {
			s.must(os.Remove(s.path("access.log")))
			s.append("access.log", "")
			now, _ := statPath(s.path("access.log"))
			if reused = now.id.Ino == was.id.Ino; reused {
				break
			}
		}
		if !reused {
			t.Skip("this file system does not reuse numbers at once")
		}
		s.append("access.log", joined(seq("gen2 request %d", 1, 300)))
		if !births {
			data = regexp.MustCompile(`"birth":\d+`).ReplaceAll(data, []byte(`"birth":0`))
		}
		s.f = New(s.spec, s.r)
		s.must(s.f.Load(data))
		s.look()
		if n := count(s.r.text(), "gen2"); n != 300 {
			t.Errorf("births %v: %d lines of the new file", births, n)
		}
		l := s.f.Ledger()
		if l.Gaps[GapGone]+l.Gaps[GapTruncated]+l.Gaps[GapRotated] == 0 {
			t.Errorf("births %v: no gap told: %+v", births, l)
		}
		s.f.Close()
	}
}

// P05: equal heads, byte-equal copies and empty files are different files.
func TestTwinHeads(t *testing.T) {
	dir := newStand(t, Spec{Path: "x"})
	head := ""
	for i := range 16 {
		head += fmt.Sprintf("%-127s\n", fmt.Sprintf("-- same GC log banner, same flags, line %d", i))
	}
	a := head + joined(seq("a %d", 0, 99))
	files := map[string]string{"gc-a.log": a, "gc-b.log": head + joined(seq("b %d", 0, 99)), "gc-c.log": a,
		"empty-x.log": "", "empty-y.log": "", "empty-z.log": ""}
	total := 0
	for name, text := range files {
		dir.append(name, text)
		r := &recorder{}
		f := New(Spec{Path: dir.path(name), From: Start}, r)
		defer f.Close()
		f.Look(dir.now)
		if text == "" {
			dir.append(name, "one\n")
			f.Look(dir.now.Add(time.Second))
		}
		total += len(r.text())
	}
	if total != 348+3 {
		t.Errorf("%d lines", total)
	}
}

// P06: a link to the folder is moved on while the old file drains.
func TestLinkMoved(t *testing.T) {
	s := newStand(t, Spec{Path: "current/access.log", From: Start})
	s.must(os.MkdirAll(s.path("rel/v1"), 0o755))
	s.must(os.MkdirAll(s.path("rel/v2"), 0o755))
	s.must(os.Symlink("rel/v1", s.path("current")))
	s.look() // dangling: the file is not there yet
	s.append("rel/v1/access.log", joined(seq("v1 %d", 1, 100)))
	s.look()
	s.must(os.Symlink("rel/v2", s.path(".n")))
	s.must(os.Rename(s.path(".n"), s.path("current")))
	s.append("rel/v1/access.log", joined(seq("v1 late %d", 1, 10)))
	s.look()
	s.append("rel/v2/access.log", joined(seq("v2 %d", 1, 50)))
	s.append("rel/v1/access.log", "")
	s.look()
	if n := len(s.r.text()); n != 160 {
		t.Errorf("%d lines", n)
	}
}

// P07: the folder is removed and made anew; or is not there at the start.
func TestFolderRemade(t *testing.T) {
	s := newStand(t, Spec{Path: "logs/app.log", From: Start})
	s.look()
	s.must(os.Mkdir(s.path("logs"), 0o755))
	s.append("logs/app.log", joined(seq("one %d", 1, 10)))
	s.look()
	s.must(os.RemoveAll(s.path("logs")))
	s.must(os.Mkdir(s.path("logs"), 0o755))
	for range 70 {
		s.look()
	}
	s.append("logs/app.log", joined(seq("two %d", 1, 7)))
	s.look()
	if n := len(s.r.text()); n != 17 {
		t.Errorf("%d lines", n)
	}
}

// P08: the new log can't be read at first.
func TestUnreadable(t *testing.T) {
	denied := false
	open := func(name string) (*os.File, error) {
		if denied && strings.HasSuffix(name, "app.log") {
			return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES} // root sees no EACCES
		}
		return os.Open(name)
	}
	s := newStand(t, Spec{Path: "app.log", From: Start, Open: open})
	s.append("app.log", joined(seq("a %d", 1, 5)))
	s.look()
	s.must(os.Rename(s.path("app.log"), s.path("app.log.1")))
	s.append("app.log", joined(seq("b %d", 1, 5)))
	denied = true
	s.append("app.log.1", "late\n")
	told := 0
	for range 4 {
		s.now = s.now.Add(time.Second)
		if _, err := s.f.Look(s.now); err != nil {
			told++
		}
	}
	if told != 1 || s.f.Ledger().Blind != "permission" {
		t.Errorf("told %d times, blind %q", told, s.f.Ledger().Blind)
	}
	denied = false
	s.append("app.log", joined(seq("c %d", 1, 5)))
	s.look()
	s.want(slices.Concat(seq("a %d", 1, 5), []string{"late"}, seq("b %d", 1, 5), seq("c %d", 1, 5))...)
	if b := s.f.Ledger().Blind; b != "" {
		t.Errorf("still blind: %s", b)
	}
}

// P09: one file with three names is read once.
func TestThreeNames(t *testing.T) {
	s := newStand(t, Spec{Dir: "logs", Pattern: regexp.MustCompile(`\.log$|^current`), From: Start})
	s.must(os.Mkdir(s.path("logs"), 0o755))
	s.append("logs/app.log", "")
	s.must(os.Symlink("app.log", s.path("logs/current.log")))
	s.must(os.Link(s.path("logs/app.log"), s.path("logs/app-hard.log")))
	s.look()
	s.append("logs/app.log", joined(seq("line %d", 1, 50)))
	s.look()
	s.must(os.Remove(s.path("logs/app-hard.log")))
	s.append("logs/app.log", joined(seq("line %d", 51, 100)))
	s.look()
	s.want(seq("line %d", 1, 100)...)
	if n, _ := openFiles(t, s.dir); n != 1 {
		t.Errorf("%d descriptors", n)
	}
}

// P10: the rotated file is packed beside the live one.
func TestPackedBeside(t *testing.T) {
	for _, spec := range []Spec{{Path: "app.log", From: Start}, {Pattern: regexp.MustCompile(`^app\.log`), From: Start}} {
		s := newStand(t, spec)
		text := joined(seq("line %d", 1, 1000))
		s.append("app.log", text)
		s.look()
		s.must(os.Rename(s.path("app.log"), s.path("app.log.1")))
		s.append("app.log", joined(seq("next %d", 1, 50)))
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write([]byte(text))
		w.Close()
		s.append("app.log.1.gz.tmp", z.String()[:20])
		s.append("app.log.1.part", z.String()) // packed, and not named so
		s.look()
		s.append("app.log.1.gz", z.String())
		s.must(os.Remove(s.path("app.log.1.gz.tmp")))
		s.must(os.Remove(s.path("app.log.1")))
		for range 3 {
			s.look()
		}
		if n := len(s.r.text()); n != 1050 {
			t.Errorf("%d lines: %s", n, brief(s.r.text()[1000:]))
		}
	}
}

// P11: a line of 5 MiB, and one that is truncated before it ends.
func TestGiantLine(t *testing.T) {
	s := newStand(t, Spec{Path: "app.log", From: Start})
	s.append("app.log", "INFO a\nINFO b\nINFO c\nERROR dump ")
	for range 80 {
		s.append("app.log", strings.Repeat("x", 65536))
		s.look()
	}
	s.append("app.log", "\nINFO 5\nINFO 6\nINFO 7\n")
	s.look()
	got := s.r.text()
	if len(got) != 7 || len(got[3]) != 1<<20 || !strings.HasPrefix(got[3], "ERROR dump x") || got[6] != "INFO 7" {
		t.Errorf("%d lines", len(got))
	}
	if l := s.f.Ledger(); l.Gaps[GapLong] != 1 || s.r.gaps != 1 {
		t.Errorf("%+v", l)
	}
	s.append("app.log", strings.Repeat("z", 100<<10))
	s.look()
	s.must(os.Truncate(s.path("app.log"), 0))
	s.append("app.log", "INFO 8\n")
	s.look()
	if got := s.r.text(); len(got) != 8 || got[7] != "INFO 8" {
		t.Errorf("%d lines", len(got))
	}
	if l := s.f.Ledger(); l.Lost != 100<<10 {
		t.Errorf("%+v", l)
	}
}

// P12: a line in three writes, cut inside a rune and inside the status.
func TestTornLine(t *testing.T) {
	s := newStand(t, Spec{Path: "access.log", From: Start})
	l := "192.0.2.7 - - [30/Jun/2024:12:00:00 +0000] \"GET /café HTTP/1.1\" 200 2326 41"
	a, b := strings.Index(l, "\xc3")+1, strings.Index(l, " 200 ")+3
	for _, part := range []string{l[:a], l[a:b], l[b:]} {
		s.append("access.log", part)
		s.look()
		s.want()
	}
	s.append("access.log", "\n")
	s.look()
	s.want(l)
}

// P13: UTF-16 with units that hold a byte 0x0A, in odd pieces, over a restart.
func TestUTF16(t *testing.T) {
	lines := []string{"2024-06-30 12:00:00,001 INFO start", "2024-06-30 12:00:00,002 ERROR \u010a\u0a0a\u0a00 bad",
		"2024-06-30 12:00:00,003 WARN \u4e0a\u0d0a", "2024-06-30 12:00:00,004 INFO end \U0001f600"}
	for _, big := range []bool{false, true} {
		for _, declared := range []bool{false, true} {
			var order binary.AppendByteOrder = binary.LittleEndian
			name := "utf-16le"
			if big {
				order, name = binary.BigEndian, "utf-16be"
			}
			spec := Spec{Path: "win.log", From: Start}
			text := strings.Join(lines, "\r\n") + "\r\n"
			if declared {
				spec.Encoding = name
			} else {
				text = "\ufeff" + text
			}
			var raw []byte
			for _, u := range utf16.Encode([]rune(text)) {
				raw = order.AppendUint16(raw, u)
			}
			s := newStand(t, spec)
			for i := 0; i < len(raw); i += 7 {
				s.append("win.log", string(raw[i:min(i+7, len(raw))]))
				s.look()
				if i%21 == 0 {
					s.restart()
				}
			}
			s.want(lines...)
			if l := s.f.Ledger(); l.Read != int64(len(raw)) {
				t.Errorf("%+v", l)
			}
		}
	}
}

func TestGBK(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start, Encoding: "gbk"})
	s.append("a.log", "plain\n\xd1\xcf\xd6\xd8 x\n\xff\xff bad\n")
	s.look()
	if got := s.r.text(); len(got) != 3 || got[1] != "严重 x" || !strings.HasSuffix(got[2], " bad") {
		t.Errorf("%q", got)
	}
}

// P16: stop, lines arrive, start; and what is there before the first start.
func TestRestart(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log"})
	s.append("a.log", "old history\nhalf")
	s.look()
	s.want()
	s.append("a.log", " of it\n"+joined(seq("req %d", 1, 600)))
	s.look()
	s.restart()
	s.append("a.log", joined(seq("req %d", 601, 1100)))
	if s.f.CaughtUp() {
		t.Error("caught up before the first look")
	}
	s.look()
	if !s.f.CaughtUp() {
		t.Error("not caught up")
	}
	s.want(seq("req %d", 1, 1100)...)
}

// P22: dated names; the new one appears, the old one still gets lines.
func TestMidnight(t *testing.T) {
	s := newStand(t, Spec{Pattern: regexp.MustCompile(`^localhost_access_log\.\d{4}-\d\d-\d\d\.txt$`), From: Start})
	day := func(n int) string {
		return time.Date(2024, 6, n, 0, 0, 0, 0, time.UTC).Format("localhost_access_log.2006-01-02.txt")
	}
	s.append(day(30), joined(seq("23:59:5%d", 0, 9)))
	s.look()
	s.append(day(31), joined(seq("00:00:0%d", 0, 4)))
	s.append(day(30), joined(seq("late %d", 7, 9)))
	s.look()
	if n := len(s.r.text()); n != 18 {
		t.Errorf("%d lines", n)
	}
	for d := 32; d < 60; d++ {
		s.append(day(d), "x\n")
		for range 20 {
			s.look()
		}
		s.restart()
	}
	if n := len(s.r.text()); n != 18+28 {
		t.Errorf("%d lines after a month", n)
	}
	// Lines for a day that was finished with are found all the same.
	s.append(day(58), "very late\n")
	for range 8 {
		s.look()
	}
	if count(s.r.text(), "very late") != 1 {
		t.Error("a very late line was lost")
	}
}

// P25: fifty rotations, each rotated file removed: no hoard of deleted files.
func TestDeletedFiles(t *testing.T) {
	s := newStand(t, Spec{Path: "app.log", From: Start})
	line := strings.Repeat("y", 62) + "\n"
	for g := range 50 {
		s.append("app.log", strings.Repeat(line, 1000+g))
		s.look()
		s.must(os.Rename(s.path("app.log"), s.path("app.log.1")))
		s.must(os.Remove(s.path("app.log.1")))
		s.append("app.log", "")
		s.look()
		if _, deleted := openFiles(t, s.dir); deleted > 2 {
			t.Fatalf("%d deleted files held", deleted)
		}
	}
	if n := len(s.r.text()); n != 50*1000+49*50/2 {
		t.Errorf("%d lines", n)
	}
	for range 20 {
		s.look()
	}
	if _, deleted := openFiles(t, s.dir); deleted != 0 {
		t.Errorf("%d deleted files held after the grace period", deleted)
	}
	// And a bound in bytes.
	s = newStand(t, Spec{Path: "app.log", From: Start, HoldBytes: 64 << 10})
	s.append("app.log", strings.Repeat(line, 4000))
	s.look()
	s.must(os.Remove(s.path("app.log")))
	s.append("app.log", "new\n")
	s.look()
	s.look()
	if _, deleted := openFiles(t, s.dir); deleted != 0 {
		t.Error("held past its bytes")
	}
	if l := s.f.Ledger(); l.Gaps[GapRotated] != 1 || l.DeletedOpen != 0 || l.Lost != 0 {
		t.Errorf("%+v", l)
	}
}

// P27: JDK 8's rotation, with stale .current files and an old lap around.
func TestGCCurrent(t *testing.T) {
	s := newStand(t, Spec{Pattern: regexp.MustCompile(`^gc\.log\.\d+\.current$`), Rotated: regexp.MustCompile(`^gc\.log\.\d+$`), From: Start})
	for _, n := range []int{5, 6} {
		p := fmt.Sprintf("gc.log.%d.current", n)
		s.append(p, joined(seq("stale %d", 1, 100)))
		s.must(os.Chtimes(s.path(p), time.Unix(1.7e9, 0), time.Unix(1.7e9, 0)))
	}
	s.append("gc.log.1", joined(seq("lap %d", 1, 50)))
	s.must(os.Chtimes(s.path("gc.log.1"), time.Unix(1.71e9, 0), time.Unix(1.71e9, 0)))
	s.append("gc.log.0.current", joined(seq("gc %d", 1, 3)))
	s.look()
	s.must(os.Rename(s.path("gc.log.0.current"), s.path("gc.log.0")))
	s.must(os.Remove(s.path("gc.log.1")))
	s.append("gc.log.1.current", joined(seq("gc %d", 4, 5)))
	s.look()
	s.want(seq("gc %d", 1, 5)...)
	// A whole lap between two looks, and a stale file that is begun anew.
	s.must(os.Rename(s.path("gc.log.1.current"), s.path("gc.log.1")))
	s.append("gc.log.2", "gc 6\n")
	s.append("gc.log.3.current", "gc 7\n")
	s.look()
	s.must(os.WriteFile(s.path("gc.log.5.current"), []byte("gc 8\n"), 0o644))
	for range 12 {
		s.look()
	}
	s.want(seq("gc %d", 1, 8)...)
}

// The unified GC log: the live name is the same, and Since reaches back into
// the parts of this JVM's life.
func TestGCSince(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	s := newStand(t, Spec{Path: "gc.log", From: Start, Since: start})
	at := func(p string, d time.Duration) {
		s.must(os.Chtimes(s.path(p), start.Add(d), start.Add(d)))
	}
	s.append("gc.log.3", "dead run\n")
	at("gc.log.3", -time.Minute)
	s.append("gc.log.4", "one\n")
	at("gc.log.4", time.Minute)
	s.append("gc.log.0", "two\n")
	at("gc.log.0", 2*time.Minute)
	s.append("gc.log", "three\n")
	s.look()
	s.want("one", "two", "three")
}

// P49: nothing tells us of a write through another name; a look does.
func TestOtherName(t *testing.T) {
	s := newStand(t, Spec{Path: "app.log", From: Start})
	s.append("app.log", "start\n")
	s.must(os.Mkdir(s.path("other"), 0o755))
	s.must(os.Link(s.path("app.log"), s.path("other/app.log")))
	s.look()
	s.append("other/app.log", "through the other name\n")
	s.look()
	s.want("start", "through the other name")
}

// P50: a storm of one error, and one rare line behind it.
func TestStorm(t *testing.T) {
	s := newStand(t, Spec{Path: "catalina.out", From: Start})
	var b strings.Builder
	for i := range 200000 {
		fmt.Fprintf(&b, "30-Jun-2024 12:00:%02d.%03d SEVERE [http-nio-8080-Acceptor] Socket accept failed\n\tjava.io.IOException: Too many open files\n\t\tat java.base/sun.nio.ch.Net.accept(Native Method)\n", i/4000, i%1000)
	}
	b.WriteString("30-Jun-2024 12:00:50.000 WARNING [http-nio-8080-exec-1] Executor rejected socket\n")
	s.append("catalina.out", b.String())
	s.look()
	got := s.r.text()
	if len(got) != 600001 || count(got, "\tjava.io.IOException") != 200000 {
		t.Errorf("%d lines", len(got))
	}
}

// Behind its limits, the follower skips whole blocks, says so, and comes back.
func TestStormMode(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", LagBytes: 4 << 20})
	s.append("a.log", "")
	s.look()
	line := strings.Repeat("z", 99) + "\n"
	s.append("a.log", strings.Repeat(line, 200_000)) // 20 MB at once
	s.now = s.now.Add(time.Second)
	more, err := s.f.Look(s.now)
	s.must(err)
	s.balance()
	l := s.f.Ledger()
	if !l.Storm || l.Skipped < 15<<20 || l.Gaps[GapSkipped] != 1 || !more && l.Lag > 0 {
		t.Errorf("%+v", l)
	}
	s.look()
	for _, g := range s.r.text() {
		if g != line[:99] {
			t.Fatalf("a torn line came out: %d bytes", len(g))
		}
	}
	for range 16 {
		s.look()
	}
	if l = s.f.Ledger(); l.Storm || l.Lag != 0 || l.Read+l.Skipped != 20_000_000 {
		t.Errorf("%+v", l)
	}
	// By age: a minute behind.
	s.append("a.log", line)
	s.look()
	if s.f.Ledger().LagSeconds != 0 {
		t.Error("lag when all is read")
	}
}

// An unfinished entry is closed after some quiet.
func TestIdle(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start})
	s.r.open = true
	s.append("a.log", "ERROR head\n")
	s.now = s.now.Add(100 * time.Millisecond)
	s.f.Look(s.now)
	if s.r.idles != 0 {
		t.Error("idle at once")
	}
	s.look()
	s.look()
	if s.r.idles != 1 {
		t.Errorf("%d idles", s.r.idles)
	}
}

// A last line without its end is a line once its file has had its day.
func TestLastLine(t *testing.T) {
	s := newStand(t, Spec{Path: "a.log", From: Start})
	s.append("a.log", "one\nlast")
	s.look()
	s.want("one")
	s.must(os.Rename(s.path("a.log"), s.path("a.log.1")))
	s.append("a.log", "two\n")
	for range 20 {
		s.look()
	}
	s.want("one", "two", "last")
}

func TestLines(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	text := "one\r\ntwo\n" + strings.Repeat("l", 40) + "\nlast"
	w.Write([]byte(text))
	w.Close()
	for _, in := range []string{text, z.String()} {
		r := &recorder{}
		led, err := Lines(strings.NewReader(in), r, Spec{MaxLine: 20})
		if err != nil || strings.Join(r.lines, "|") != "one|two|"+strings.Repeat("l", 20)+"|<gap>|last" {
			t.Errorf("%v %q", err, r.lines)
		}
		if led.Written != int64(len(text)) || led.Read+led.Skipped != led.Written {
			t.Errorf("%+v", led)
		}
	}
}
