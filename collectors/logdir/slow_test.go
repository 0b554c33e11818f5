package logdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/root"
)

// slowFS is a world with two mounts, /ok and /nfs, of which the second answers
// only while its gate is open.
type slowFS struct {
	gate  chan struct{} // closed: calls return
	calls atomic.Int32  // calls that wait at the gate
	worst atomic.Int32
	space space
	quota quota
	err   error

	slowOpen bool // open waits at the gate as well
}

func (s *slowFS) pass(path string) {
	if !strings.HasPrefix(path, "/nfs") {
		return
	}
	n := s.calls.Add(1)
	s.worst.Store(max(s.worst.Load(), n))
	<-s.gate
	s.calls.Add(-1)
}

func (s *slowFS) open(_, path string) (node, error) {
	if s.slowOpen {
		s.pass(path)
	}
	return slowNode{s, path}, s.err
}

func (s *slowFS) guess(string) func(string) string {
	return func(path string) string { return strings.Split(path, "/")[1] }
}

func (s *slowFS) mount(n node) (mountRef, error) {
	at := "/" + strings.Split(n.(slowNode).path, "/")[1]
	return mountRef{at, at}, nil
}

func (n slowNode) userQuota(int) (quota, bool) { return n.s.quota, n.s.quota != quota{} }

type slowNode struct {
	s    *slowFS
	path string
}

func (n slowNode) stat(m *meta) error                                  { *m = meta{ino: 1, allocated: 4096, dir: true}; return nil }
func (n slowNode) statAt(string, *meta) error                          { return os.ErrNotExist }
func (n slowNode) sub(string) (node, error)                            { return nil, os.ErrNotExist }
func (n slowNode) space() (space, error)                               { n.s.pass(n.path); return n.s.space, nil }
func (n slowNode) close()                                              {}
func (n slowNode) each([]byte, func([]byte, *meta)) (bool, int, error) { return true, 0, nil }

// One mount stops answering: the rest goes on, no thread is lost to it but one,
// its figures go absent, and come back with its answer.
func TestMountStopsAnswering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &slowFS{gate: make(chan struct{}), space: space{size: 1000, avail: 500, free: 600, inodes: 10, inodesFree: 5, hasInodes: true}}
		set := metric.ForTarget("t")
		p := New(set, Config{UID: 1000, Dirs: []Dir{{Name: "a", Path: "/ok/a"}, {Name: "b", Path: "/nfs/b"}, {Name: "c", Path: "/nfs/c"}}})
		p.sys, p.held = fake, nil
		r := &run{t: t, set: set, p: p, now: time.Now()}

		close(fake.gate)
		must(t, r.poll(time.Second))
		r.want("logdir_size_bytes{b}", 4096)
		r.want("logfs_avail_bytes{/nfs}", 500)

		fake.gate = make(chan struct{})
		begin := time.Now()
		must(t, r.poll(time.Second))
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Errorf("the first poll waited %v", took)
		}
		r.want("logfs_avail_bytes{/nfs}", 500) // not late yet
		synctest.Wait()                        // tasks that have handed over are gone now
		before := runtime.NumGoroutine()
		begin = time.Now()
		for range 100 {
			must(t, r.poll(time.Second))
			r.want("logfs_avail_bytes{/ok}", 500)
			r.want("logdir_size_bytes{a}", 4096)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("100 polls waited %v for a mount known to be stuck", took)
		}
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines, there were %d", n, before)
		}
		if n := fake.worst.Load(); n != 1 {
			t.Errorf("%d calls outstanding on one mount", n)
		}
		r.wantAbsent("logfs_avail_bytes{/nfs}")
		r.wantAbsent("logdir_size_bytes{b}")
		r.wantAbsent("logdir_files{c}")
		r.want("logdir_written_bytes_total{b}", 0) // a counter does not go away
		stuck := map[string]bool{}
		for _, b := range p.Blind() {
			stuck[b.What] = b.Reason == MountStuck
		}
		if !stuck["/nfs"] || !stuck["b"] || !stuck["c"] || len(stuck) != 3 {
			t.Errorf("blind: %+v", p.Blind())
		}

		close(fake.gate)
		synctest.Wait()
		must(t, r.poll(time.Second))
		r.want("logfs_avail_bytes{/nfs}", 500)
		r.want("logdir_size_bytes{b}", 4096)
		if len(p.Blind()) != 0 {
			t.Errorf("still blind: %+v", p.Blind())
		}
	})
}

// A mount that hangs when the sidecar starts must not stop the others either.
func TestMountHangsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &slowFS{gate: make(chan struct{}), slowOpen: true}
		set := metric.ForTarget("t")
		p := New(set, Config{Dirs: []Dir{{Name: "a", Path: "/ok/a"}, {Name: "b", Path: "/nfs/b"}, {Name: "c", Path: "/nfs/c"}}})
		p.sys, p.held = fake, nil
		r := &run{t: t, set: set, p: p, now: time.Now()}
		for range 5 {
			must(t, r.poll(time.Second))
		}
		if n := fake.worst.Load(); n != 1 {
			t.Errorf("%d calls outstanding on one mount", n)
		}
		if b := p.Blind(); len(b) != 2 || b[0].Reason != MountStuck {
			t.Errorf("blind: %+v", b)
		}
		r.want("logdir_size_bytes{a}", 4096)
		r.wantAbsent("logdir_size_bytes{b}")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, p.Poll(ctx, r.now.Add(time.Second)))
		close(fake.gate)
	})
}

func TestErrorsAreTold(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
		fails  bool
	}{
		{fmt.Errorf("open: %w", os.ErrNotExist), NotThere, false},
		{fmt.Errorf("open: %w", os.ErrPermission), NoPermission, false},
		{fmt.Errorf("open: %w", root.ErrNoOpenat2), NoOpenat2, false},
		{errors.New("input/output error"), ReadFailed, true},
	} {
		set := metric.ForTarget("t")
		p := New(set, Config{Dirs: []Dir{{Name: "a", Path: "/ok/a"}}})
		p.sys, p.held = &slowFS{err: c.err}, nil
		if err := p.Poll(t.Context(), time.Unix(0, 0)); (err != nil) != c.fails {
			t.Errorf("%v: Poll says %v", c.err, err)
		}
		if b := p.Blind(); len(b) != 1 || b[0].Reason != c.reason {
			t.Errorf("%v: blind %+v", c.err, b)
		}
		if n := set.Len(); n != 0 {
			t.Errorf("%v: %d series", c.err, n)
		}
	}
}

// A folder of many files takes several polls, and the figures of the last whole
// read stay, with their age, while the next is under way.
func TestLargeFolderInSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	for i := range 3000 {
		f, err := os.Create(filepath.Join(mustDir(t, dir), fmt.Sprintf("file-with-a-longer-name-%04d", i)))
		must(t, err, f.Close())
	}
	write(t, dir+"/live.log", 10)
	r := newRunWith(t, Config{ScanBudget: time.Nanosecond, Patience: time.Minute}, dir)
	polls := 0
	for ; polls < 50; polls++ {
		must(t, r.poll(time.Second))
		if _, ok := r.figures()["logdir_files{logs}"]; ok {
			break
		}
		r.wantAbsent("logdir_size_bytes{logs}")
	}
	if polls < 3 {
		t.Fatalf("3000 files in %d steps: no steps at all", polls+1)
	}
	r.want("logdir_files{logs}", 3001)
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want("logdir_scan_age_seconds{logs}", float64(polls))

	// A new whole read is due; the live log is followed all the same.
	write(t, dir+"/live.log", 9000)
	must(t, r.poll(time.Hour))
	r.want(written, 9000)
	r.want("logdir_size_bytes{logs}", du(t, dir))
	if age := r.figures()["logdir_scan_age_seconds{logs}"]; age < 3600 {
		t.Errorf("age %v of an hour-old read", age)
	}
}

func mustDir(t *testing.T, dir string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// A quota of the server's user is narrower than the file system.
func TestUserQuota(t *testing.T) {
	whole := space{size: 1000, avail: 500, free: 600, inodes: 100, inodesFree: 50, hasInodes: true}
	for _, c := range []struct {
		name                       string
		uid                        int
		q                          quota
		size, avail, inodes, ifree float64
	}{
		{"none", 1000, quota{}, 1000, 500, 100, 50},
		{"not limited", 1000, quota{used: 300, usedInodes: 5}, 1000, 500, 100, 50},
		{"narrow", 1000, quota{bytes: 400, used: 300, inodes: 10, usedInodes: 9}, 400, 100, 10, 1},
		{"over it", 1000, quota{bytes: 400, used: 450, inodes: 10, usedInodes: 12}, 400, 0, 10, 0},
		{"wider than what is left", 1000, quota{bytes: 900, used: 10, inodes: 90, usedInodes: 1}, 900, 500, 90, 50},
		{"root is not bound", 0, quota{bytes: 400, used: 300}, 1000, 600, 100, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRunWith(t, Config{UID: c.uid, Patience: time.Minute}, "/ok/a")
			r.p.sys, r.p.held = &slowFS{space: whole, quota: c.q}, nil
			must(t, r.poll(0))
			r.want("logfs_size_bytes{/ok}", c.size)
			r.want("logfs_avail_bytes{/ok}", c.avail)
			r.want("logfs_inodes{/ok}", c.inodes)
			r.want("logfs_inodes_free{/ok}", c.ifree)
		})
	}
}
