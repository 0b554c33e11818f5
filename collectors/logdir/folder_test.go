package logdir

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// memFS is one file system in memory, all in one folder /m/logs, for what real
// ones don't show on demand.
type memFS struct {
	files  map[string]*meta
	mtime  int64
	gone   bool
	space  space
	narrow map[string]space // what single folders say of it
	lists  int              // whole reads
	asked  []string         // folders opened by a scan
}

func (f *memFS) open(_, path string) (node, error) {
	if f.gone {
		return nil, os.ErrNotExist
	}
	return &memNode{fs: f, path: path}, nil
}
func (f *memFS) guess(string) func(string) string { return func(string) string { return "/m" } }
func (f *memFS) mount(node) (mountRef, error)     { return mountRef{"/m", "/m"}, nil }
func (f *memFS) put(name string, m meta)          { f.mtime++; f.files[name] = &m }

type memNode struct {
	fs   *memFS
	path string
	done bool
}

func (n *memNode) stat(m *meta) error {
	*m = meta{ino: 1, dev: 1, dir: true, changed: n.fs.mtime}
	return nil
}

func (n *memNode) statAt(name string, m *meta) error {
	if f := n.fs.files[name]; f != nil {
		*m = *f
		return nil
	}
	return os.ErrNotExist
}

func (n *memNode) each(_ []byte, do func([]byte, *meta)) (bool, int, error) {
	if n.done {
		return true, 0, nil
	}
	n.done = true
	n.fs.lists++
	for name, m := range n.fs.files {
		do([]byte(name), m)
	}
	return false, 0, nil
}

func (n *memNode) sub(name string) (node, error) {
	n.fs.asked = append(n.fs.asked, name)
	return nil, os.ErrNotExist
}

func (n *memNode) space() (space, error) {
	if s, ok := n.fs.narrow[n.path]; ok {
		return s, nil
	}
	return n.fs.space, nil
}
func (n *memNode) userQuota(int) (quota, bool) { return quota{}, false }
func (n *memNode) close()                      {}

// memRun watches /m/logs; each look at the room's clock takes a millisecond, so
// that a whole read costs some.
func memRun(t *testing.T, kind Kind) (*run, *memFS) {
	fake := &memFS{files: map[string]*meta{}, mtime: 1000, space: space{size: 1e12, avail: 5e11, free: 5e11}}
	r := newRunWith(t, Config{Patience: time.Minute, Dirs: []Dir{{Name: "logs", Path: "/m/logs", Kind: kind}}})
	ticks := 0
	r.p.sys, r.p.held = fake, nil
	r.p.clock = func() time.Time { ticks++; return time.Unix(0, int64(ticks)*int64(time.Millisecond)) }
	return r, fake
}

func file(ino uint64, size, changed int64) meta {
	return meta{dev: 1, ino: ino, size: size, allocated: size, nlink: 1, regular: true, changed: changed}
}

// Whole reads are as frequent as they are cheap, and as something calls for
// them.
func TestWhenAFolderIsRead(t *testing.T) {
	r, f := memRun(t, Logs)
	for i := range 40 {
		f.put(fmt.Sprint(i), file(uint64(10+i), 100, 500+int64(i)))
	}
	must(t, r.poll(0))
	cost := r.p.places[0].folder.cost
	if f.lists != 1 || cost <= 0 {
		t.Fatalf("%d reads of cost %v", f.lists, cost)
	}
	step := func(what string, after time.Duration, reads int) {
		t.Helper()
		before := f.lists
		must(t, r.poll(after))
		if got := f.lists - before; got != reads {
			t.Errorf("%s: %d reads, want %d", what, got, reads)
		}
	}
	step("at rest", time.Second, 0)
	// One of the sixteen newest is looked at by name, each poll.
	f.files["39"].size += 500
	step("a file that changes is followed", time.Second, 0)
	r.want(written, 500)
	// All of the sixteen are, in turns: the thirteenth newest, within four polls.
	f.files["27"].size += 40
	for range quietTurns {
		step("a file that was quiet", time.Second, 0)
	}
	r.want(written, 540)
	f.files["27"].size -= 40
	for range quietTurns {
		step("and is truncated", time.Second, 0)
	}
	r.want(written, 640)
	// An old one is not; only the space of the disk knows.
	grow := func(name string, n int64) {
		m := f.files[name]
		m.size += n
		m.allocated += n
		m.changed = 2000
		f.space.free -= n
	}
	grow("0", 100<<20)
	step("the disk fills and nobody knows why", suspectFactor*cost, 0)
	step("so it is read at the next look", time.Millisecond, 1)
	r.want(written, 640+100<<20)
	grow("0", 50<<20)
	step("the disk fills and we know why", suspectFactor*cost, 0)
	r.want(written, 640+150<<20)
	step("at rest", suspectFactor*cost, 0)
	// A little each look adds up: 3 MiB, then 6.
	grow("1", 3<<20)
	step("some bytes nobody knows of", suspectFactor*cost, 0)
	grow("1", 3<<20)
	step("some more", suspectFactor*cost, 0)
	step("read at the next look", time.Millisecond, 1)
	r.want(written, 640+156<<20)
	f.put("new", file(99, 7, 3000))
	step("the folder says that it has changed", changeFactor*cost, 1)
	r.want(written, 647+156<<20)
	f.put("newer", file(100, 7, 3000))
	step("changed, too soon after a read", changeFactor*cost/2, 0)
	step("changed", changeFactor*cost/2, 1)
	step("at rest for long", restFactor*cost, 1)

	f.files["5"].size += 77 // nothing tells of it
	step("at rest for long", restFactor*cost, 1)
	r.want(written, 654+77+156<<20)
}

func TestBaseIsReadOnceAMinute(t *testing.T) {
	r, f := memRun(t, Base)
	must(t, r.poll(0))
	for range 59 {
		f.put("x"+fmt.Sprint(f.mtime), file(uint64(f.mtime), 10, f.mtime))
		must(t, r.poll(time.Second))
	}
	if f.lists != 1 {
		t.Errorf("%d reads in a minute", f.lists)
	}
	r.want("logdir_scan_age_seconds{logs}", 59)
	must(t, r.poll(time.Second))
	r.want("logdir_scan_age_seconds{logs}", 0)
	r.want("logdir_files{logs}", 59)
	// The minute's 590 bytes would look like those of one second: in a server whose
	// logs grew by 300 kB a second, all within the base, LogGrowthRunaway fired.
	r.wantAbsent(written)
}

// A checkpoint of a sidecar that counted in the base does not bring its counter back.
func TestBaseOfAnOlderCheckpoint(t *testing.T) {
	old, f := memRun(t, Logs)
	must(t, old.poll(0))
	f.put("x", file(2, 10, 1))
	must(t, old.poll(time.Second))
	old.want(written, 10)
	old.set.Lock()
	data, err := old.p.Save()
	old.set.Unlock()
	must(t, err)
	r, _ := memRun(t, Base)
	r.set.Lock()
	must(t, r.p.Load(data))
	r.set.Unlock()
	must(t, r.poll(time.Second))
	r.wantAbsent(written)
	r.want("logdir_files{logs}", 0)
}

// A folder of another file system is not even opened: it may be a mount that
// hangs.
func TestOtherMountIsNotOpened(t *testing.T) {
	r, f := memRun(t, Logs)
	f.put("nfs", meta{dev: 2, ino: 1 << 40, dir: true})
	f.put("sub", meta{dev: 1, ino: 7, dir: true})
	must(t, r.poll(0))
	if got := strings.Join(f.asked, ","); got != "sub" {
		t.Errorf("opened %s", got)
	}
}

// Names of one inode: the first counts, and when all were seen the inode is
// forgotten.
func TestHardLinksAreForgotten(t *testing.T) {
	s := &scan{tracker: newTracker(10)}
	fr := &frame{}
	for _, ino := range []uint64{5, 6, 5, 5, 6} {
		m := file(ino, 4096, 1)
		m.nlink = 3
		s.add(fr, []byte("x"), &m)
	}
	if s.allocated != 2*4096 || s.files != 5 {
		t.Errorf("%d bytes, %d names", s.allocated, s.files)
	}
	if _, still := s.links[5]; still || len(s.links) != 1 {
		t.Errorf("remembered: %v", s.links)
	}
}

// Two folders of one mount under two project quotas: the narrower one binds.
// What the kernel gives below zero is nothing.
func TestNarrowestQuota(t *testing.T) {
	r, f := memRun(t, Logs)
	r.p = New(r.set, Config{UID: 5, Patience: time.Minute, Dirs: []Dir{{Name: "a", Path: "/m/a"}, {Name: "b", Path: "/m/b"}, {Name: "c", Path: "/m/c"}}})
	r.p.sys, r.p.held = f, nil
	f.narrow = map[string]space{"/m/a": {size: 100, avail: 90}, "/m/b": {size: 50, avail: 20}}
	must(t, r.poll(0))
	r.want("logfs_avail_bytes{/m}", 20)
	r.want("logfs_size_bytes{/m}", 50)
	f.narrow["/m/b"] = space{size: 50, avail: -7}
	must(t, r.poll(time.Second))
	r.want("logfs_avail_bytes{/m}", 0)
}

// The folder is removed; one of the same name has files with the same inode
// numbers on a file system that does not tell births: they are new.
func TestFolderMadeAnewWithOldNumbers(t *testing.T) {
	r, f := memRun(t, Logs)
	f.put("a", file(10, 1000, 1))
	must(t, r.poll(0))
	f.gone = true
	must(t, r.poll(time.Second))
	r.wantAbsent("logdir_size_bytes{logs}")
	r.want(written, 0)
	f.gone = false
	f.put("a", file(10, 1200, 2000))
	must(t, r.poll(time.Second))
	r.want(written, 1200)
}

// The files that are followed by name are those that changed last, in whatever
// order the folder lists them.
func TestNewestAreFollowed(t *testing.T) {
	s := &scan{tracker: newTracker(1000)}
	for i := range 101 {
		m := file(uint64(i+1), 1, int64(i*37%101)) // each of 0 to 100 once
		s.add(&frame{path: "d"}, []byte(fmt.Sprint(m.changed)), &m)
	}
	for i, w := range s.recent[:s.recentN] {
		if want := fmt.Sprint("d/", 100-i); w.path != want || s.recentN != watchedFiles {
			t.Errorf("%d of %d is %s, want %s", i, s.recentN, w.path, want)
		}
	}
}
