package logdir

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What root may use is not what the server may use: figures of a real ext4 with
// a large reserve, and of one whose reserve alone is left.
func TestAvailableIsNotFree(t *testing.T) {
	s := fromStatfs(&unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 66053021, Bfree: 58742440, Bavail: 16564735})
	if s.avail != 67849154560 || s.size-s.free != 29944139776 {
		t.Errorf("available %d, used %d", s.avail, s.size-s.free)
	}
	for _, c := range []struct {
		uid  int
		want float64
	}{{0, 4096000000}, {1000, 0}} {
		fake := &slowFS{space: fromStatfs(&unix.Statfs_t{Frsize: 4096, Blocks: 2000000, Bfree: 1000000})}
		r := newRunWith(t, Config{UID: c.uid, Patience: time.Minute}, "/ok/a")
		r.p.sys = fake
		must(t, r.poll(0))
		r.want("logfs_avail_bytes{/ok}", c.want)
		r.want("logfs_size_bytes{/ok}", 8192000000)
		r.want("logfs_readonly{/ok}", 0)
		r.wantAbsent("logfs_inodes{/ok}") // none to count
	}
}

// tmpfs mounts a small file system, where the rights for it are there. Root
// under CI must have them; EINVAL is a kernel without that option.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	must(t, os.Mkdir(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		if os.Getenv("CI") == "true" && os.Geteuid() == 0 && !errors.Is(err, unix.EINVAL) {
			t.Fatalf("mount a tmpfs: %v", err)
		}
		t.Skipf("no tmpfs with %s can be mounted here (it needs root, and a kernel that knows the options): %v", options, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("the poller holds the file system: %v", err)
			unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
	return dir
}

// A storm fills a real file system to its last byte. In the last two minutes
// each window that speaks is within a fifth of the truth; when the writer gets
// ENOSPC everything goes on, and when an operator truncates the log, that is
// told as well. The storm is uneven: a second's bytes vary by half.
func TestStormFillsFileSystem(t *testing.T) {
	const size, perSecond = 48 << 20, 256 << 10
	dir := tmpfs(t, fmt.Sprintf("size=%d,nr_inodes=100", size))
	fs := func(name string) string { return name + "{" + dir + "}" }
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.want(fs("logfs_size_bytes"), size)
	r.want(fs("logfs_avail_bytes"), size)
	r.want(fs("logfs_inodes"), 100)
	r.want(fs("logfs_inodes_free"), 99)
	if pl := r.p.Places(); len(pl) != 1 || pl[0].Mountpoint != dir || pl[0].Avail != size || pl[0].Dir.Path != dir {
		t.Errorf("places: %+v", pl)
	}

	log, err := os.OpenFile(dir+"/catalina.out", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	must(t, err)
	defer log.Close()
	uneven := []int{perSecond, perSecond * 3 / 2, perSecond / 2, perSecond}
	type told struct {
		at   int
		left map[string]float64
	}
	var all []told
	var total float64
	end := 0.0 // in seconds, to the part of the one in which the last byte went
	for second := 0; err == nil; second++ {
		var n int
		n, err = log.Write(make([]byte, uneven[second%len(uneven)]))
		end = float64(second-1) + float64(n)/float64(uneven[second%len(uneven)])
		total += float64(n)
		must(t, r.poll(time.Second))
		r.want(written, total)
		figures, left := r.figures(), map[string]float64{}
		for _, w := range windows {
			if v, ok := figures["logfs_full_seconds{"+dir+","+w.name+"}"]; ok {
				left[w.name] = v
			}
		}
		all = append(all, told{second, left})
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	spoke := map[string]int{}
	for _, s := range all[5:] {
		truth := end - float64(s.at)
		if truth > 120 || truth < 8 { // in the last seconds the unevenness is all
			continue
		}
		for w, left := range s.left {
			spoke[w]++
			if math.Abs(left-truth) > 0.2*truth {
				t.Errorf("%.1f s before the end, window %s says %.1f s", truth, w, left)
			}
		}
	}
	if spoke["10s"] < 80 || spoke["60s"] < 110 {
		t.Errorf("the windows spoke %v times", spoke)
	}

	r.want(fs("logfs_avail_bytes"), 0)
	r.want("logdir_size_bytes{logs}", du(t, dir))
	for range 11 {
		must(t, r.poll(time.Second))
	}
	r.wantAbsent("logfs_full_seconds{" + dir + ",10s}") // full, and nothing grows any more

	must(t, os.Truncate(dir+"/catalina.out", 0))
	must(t, r.poll(time.Second))
	r.want(fs("logfs_avail_bytes"), size)
	r.want(written, total)
	_, err = log.Write([]byte("and on\n"))
	must(t, err, r.poll(time.Second))
	r.want(written, total+7)
}

// Another file system mounted within the folder belongs to nobody's log.
func TestOtherFileSystemInside(t *testing.T) {
	dir := tmpfs(t, "size=4m")
	write(t, dir+"/inside.log", 1<<20)
	outer := filepath.Dir(dir)
	write(t, outer+"/outside.log", 5000)
	r := newRun(t, outer, dir)
	must(t, r.poll(0))
	r.want("logdir_size_bytes{"+filepath.Base(outer)+"}", du(t, outer))
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want("logdir_files{"+filepath.Base(outer)+"}", 1)
}

// A folder bind-mounted into itself is a loop that no link shows.
func TestBindMountLoop(t *testing.T) {
	dir := tmpfs(t, "size=4m")
	write(t, dir+"/a/b/hidden-by-the-mount.log", 9000)
	write(t, dir+"/a/y.log", 4096)
	if err := unix.Mount(dir, dir+"/a/b", "", unix.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(dir+"/a/b", 0)
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.want("logdir_size_bytes{logs}", 4096) // folders take no blocks on a tmpfs
	r.want("logdir_files{logs}", 1)
}

// A link inside of a server's root points into that root, never into ours.
func TestBeneathRoot(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/data/logs/a.log", 4096)
	write(t, root+"/secret/x", 1)
	must(t, os.MkdirAll(root+"/opt/tomcat", 0o755), os.Symlink("/data/logs", root+"/opt/tomcat/logs"),
		os.Symlink("../../../../../../../../../../../../data/logs", root+"/opt/tomcat/up"))
	r := newRunWith(t, Config{Root: root, Patience: time.Minute}, root+"/opt/tomcat/logs", root+"/opt/tomcat/up", root)
	must(t, r.poll(0))
	want := du(t, root+"/data/logs")
	r.want("logdir_size_bytes{logs}", want)
	r.want("logdir_size_bytes{up}", want)
	r.want("logdir_size_bytes{"+filepath.Base(root)+"}", du(t, root))

	// A path as the server sees it, and one that exists only outside.
	inside := newRunWith(t, Config{Root: root, Patience: time.Minute}, "/data/logs", "/opt/tomcat/up", "/etc")
	must(t, inside.poll(0))
	inside.want("logdir_size_bytes{logs}", want)
	inside.want("logdir_size_bytes{up}", want)
	if b := inside.p.Blind(); len(b) != 1 || b[0].What != "etc" || b[0].Reason != NotThere {
		t.Errorf("blind: %+v", b)
	}

	// What /proc and /sys hold are no logs.
	if err := newRun(t, "/proc/sys").poll(0); err == nil {
		t.Error("a folder of the kernel's was read")
	}
}

func TestDeletedOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalina.out")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 3<<20))
	must(t, err)
	kept, err := os.Create(path + ".kept")
	must(t, err)
	defer kept.Close()
	_, err = kept.Write(make([]byte, 1<<20))
	must(t, err)
	real := newRunWith(t, Config{PID: os.Getpid(), Patience: time.Minute})
	must(t, real.poll(0))
	before := real.figures()["logfile_deleted_open_bytes{server}"]
	must(t, os.Remove(path))
	// The same file twice, and one that lives on under another name.
	twice, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY, 0)
	must(t, err, os.Link(path+".kept", path+".other"), os.Remove(path+".kept"))
	defer twice.Close()
	must(t, real.poll(time.Second))
	real.want("logfile_deleted_open_bytes{server}", before) // every 10 s
	must(t, real.poll(10*time.Second))
	for _, holder := range []string{"server", "sidecar"} { // both are this process
		if got := real.figures()["logfile_deleted_open_bytes{"+holder+"}"]; got != before+3<<20 {
			t.Errorf("%s holds %v, before %v", holder, got, before)
		}
	}

	gone := newRunWith(t, Config{PID: 77, Proc: filepath.Join(t.TempDir(), "none"), Patience: time.Minute})
	must(t, gone.poll(0))
	gone.wantAbsent("logfile_deleted_open_bytes{server}")
}

func TestMountinfo(t *testing.T) {
	rows := parseMountinfo([]byte(`22 28 0:20 / /proc rw,relatime - proc proc rw
36 28 98:0 /mnt1 /srv/with\040space\134x rw,noatime master:1 - ext3 /dev/root rw
broken
x y z
40 28 98:0 /mnt1/deeper /srv/with\040space\134x/in rw - ext3 /dev/root rw`))
	if len(rows) != 3 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for _, c := range []struct {
		id    int
		dev   string
		point string
	}{
		{40, "98:0", `/srv/with space\x/in`},
		{-1, "98:0", `/srv/with space\x`},
		{22, "0:20", "/proc"},
		{7, "1:1", ""},
	} {
		if m, _ := findMount(rows, c.id, c.dev); m.point != c.point {
			t.Errorf("mount %d of %s: %q, want %q", c.id, c.dev, m.point, c.point)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add([]byte(`36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw`))
	f.Add([]byte("1 2 3 4 \\0 6\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range parseMountinfo(b) {
			if r.id < 0 || len(r.point) > len(b) {
				t.Errorf("%+v from %q", r, b)
			}
		}
	})
}

// A tmpfs can bind each user (since Linux 6.6): the kernel's own answer to
// quotactl_fd, not one of ours.
func TestRealUserQuota(t *testing.T) {
	dir := tmpfs(t, "size=8m,usrquota,usrquota_block_hardlimit=3m,usrquota_inode_hardlimit=20")
	write(t, dir+"/a.log", 1<<20)
	must(t, os.Chown(dir+"/a.log", 12345, 12345))
	r := newRunWith(t, Config{UID: 12345, Patience: time.Minute}, dir)
	must(t, r.poll(0))
	r.want("logfs_size_bytes{"+dir+"}", 3<<20)
	r.want("logfs_avail_bytes{"+dir+"}", 2<<20)
	r.want("logfs_inodes_free{"+dir+"}", 19)
	whole := newRun(t, dir) // root
	must(t, whole.poll(0))
	whole.want("logfs_avail_bytes{"+dir+"}", 7<<20)
}

// otherUser is linuxFS, but what is read in an open folder is read with the
// rights of nobody. The thread that took them is not used again: the task's
// goroutine ends locked to it.
type otherUser struct{ linuxFS }

func (o otherUser) open(root, path string) (node, error) {
	n, err := o.linuxFS.open(root, path)
	runtime.LockOSThread()
	unix.Setfsuid(65534)
	return n, err
}

// A folder in the tree that may not be read: the size is too small, and that is
// told with the right that is missing.
func TestPartlyRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give rights up")
	}
	dir := filepath.Join(t.TempDir(), "logs")
	write(t, dir+"/open.log", 4096)
	write(t, dir+"/private/secret.log", 4096)
	must(t, os.Chmod(dir+"/private", 0o700))
	r := newRun(t, dir)
	r.p.sys, r.p.held = otherUser{linuxFS{proc: "/proc"}}, nil
	must(t, r.poll(0))
	r.want("logdir_files{logs}", 1)
	b := r.p.Blind()
	if len(b) != 1 || b[0].What != "logs" || b[0].Reason != PartlyRead || b[0].Needs != "CAP_DAC_READ_SEARCH" {
		t.Errorf("blind: %+v", b)
	}
}

// Deeper than a scan holds folders open: what lies below is left out, and told.
func TestTooDeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	deep := dir + strings.Repeat("/d", maxDepth+20)
	write(t, deep+"/x.log", 1)
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.want("logdir_files{logs}", 0)
	if b := r.p.Blind(); len(b) != 1 || b[0].Reason != PartlyRead || b[0].Needs != "" {
		t.Errorf("blind: %+v", b)
	}
}
