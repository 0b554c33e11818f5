package logdir

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const written = "logdir_written_bytes_total{logs}"

// Each step does something to a folder that has been seen; the counter must
// have grown by so much after the next poll.
func TestWritten(t *testing.T) {
	logs := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "logs")
		write(t, dir+"/catalina.out", 100_000)
		write(t, dir+"/old.log", 5000)
		return dir
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
		want float64
	}{
		{"appended", func(t *testing.T, d string) { write(t, d+"/catalina.out", 777) }, 777},
		{"a new file", func(t *testing.T, d string) { write(t, d+"/new.log", 4321) }, 4321},
		{"a new file in a new folder", func(t *testing.T, d string) { write(t, d+"/a/b/new.log", 4321) }, 4321},
		{"renamed and made anew", func(t *testing.T, d string) {
			write(t, d+"/catalina.out", 1000)
			must(t, os.Rename(d+"/catalina.out", d+"/catalina.out.1"))
			write(t, d+"/catalina.out.1", 20) // the writer still has the old one
			write(t, d+"/catalina.out", 300)
		}, 1320},
		{"moved into the archive", func(t *testing.T, d string) {
			must(t, os.Mkdir(d+"/archive", 0o755), os.Rename(d+"/old.log", d+"/archive/old.log"))
		}, 0},
		{"truncated and grown", func(t *testing.T, d string) {
			must(t, os.Truncate(d+"/catalina.out", 0))
			write(t, d+"/catalina.out", 2500)
		}, 2500},
		{"deleted", func(t *testing.T, d string) { must(t, os.Remove(d+"/old.log")) }, 0},
		{"deleted, and a larger one in its place", func(t *testing.T, d string) {
			// ext4 gives the new file the number of the old one.
			must(t, os.Remove(d+"/catalina.out"))
			write(t, d+"/catalina.out", 150_000)
		}, 150_000},
		{"a hole after a truncation by somebody else", func(t *testing.T, d string) {
			// The writer does not append: it goes on at its old place.
			must(t, os.Truncate(d+"/catalina.out", 0))
			f, err := os.OpenFile(d+"/catalina.out", os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt(make([]byte, 4096), 64<<20)
			must(t, err, f.Close())
		}, 4096},
		{"a second name", func(t *testing.T, d string) { must(t, os.Link(d+"/catalina.out", d+"/c.hard")) }, 0},
		{"times set into the future", func(t *testing.T, d string) {
			at := time.Now().Add(time.Hour * 24 * 365)
			must(t, os.Chtimes(d+"/old.log", at, at))
			write(t, d+"/new.log", 10)
		}, 10},
		{"the folder removed and made anew", func(t *testing.T, d string) {
			must(t, os.RemoveAll(d))
			write(t, d+"/app.log", 700)
		}, 700},
		{"compressed by somebody: bytes written as well", func(t *testing.T, d string) {
			write(t, d+"/old.log.gz", 500)
			must(t, os.Remove(d+"/old.log"))
		}, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := logs(t)
			r := newRun(t, dir)
			must(t, r.poll(0))
			r.want(written, 0)
			c.do(t, dir)
			must(t, r.poll(2*time.Second))
			r.want(written, c.want)
			r.want("logdir_size_bytes{logs}", du(t, dir))
			// And it is counted once.
			must(t, r.poll(time.Hour))
			r.want(written, c.want)

			write(t, dir+"/catalina.out", 11)
			must(t, r.poll(time.Second))
			r.want(written, c.want+11)
		})
	}
}

// A file that was made elsewhere before we looked is moved in: it takes space
// here, but nobody has written it here.
func TestMovedIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	outside := filepath.Join(t.TempDir(), "big")
	write(t, outside, 1<<20)
	write(t, dir+"/a.log", 1)
	root, err := newFS(Config{}).open("/", dir)
	must(t, err)
	defer root.close()
	var big, a meta
	parent, err := newFS(Config{}).open("/", filepath.Dir(outside))
	must(t, err, parent.statAt("big", &big))
	parent.close()
	if big.born == 0 {
		t.Skip("this file system does not tell when a file was made")
	}
	// File times step by some milliseconds: write until the folder is younger.
	for must(t, root.statAt("a.log", &a)); a.changed <= big.born; must(t, root.statAt("a.log", &a)) {
		write(t, dir+"/a.log", 1)
	}
	r := newRun(t, dir)
	must(t, r.poll(0))
	must(t, os.Rename(outside, dir+"/big"))
	must(t, r.poll(time.Second))
	r.want("logdir_size_bytes{logs}", du(t, dir))
	r.want(written, 0)
}

// The folder appears only after the sidecar: all that is in it is new.
func TestFolderAppearsLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	r := newRun(t, dir)
	must(t, r.poll(0))
	r.wantAbsent("logdir_size_bytes{logs}")
	if b := r.p.Blind(); len(b) != 1 || b[0].Reason != NotThere || b[0].What != "logs" {
		t.Errorf("blind: %+v", b)
	}
	write(t, dir+"/app.log", 7000)
	must(t, r.poll(time.Second))
	r.want(written, 7000)
	if b := r.p.Blind(); len(b) != 0 {
		t.Errorf("still blind: %+v", b)
	}
}

// More files than are remembered: what changes is counted all the same.
func TestMoreFilesThanTracked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	for i := range 50 {
		write(t, filepath.Join(dir, "f"+string(rune('A'+i))), 10)
	}
	r := newRunWith(t, Config{TrackedFiles: 4, Patience: time.Minute}, dir)
	must(t, r.poll(0))
	must(t, r.poll(time.Hour))
	write(t, dir+"/new", 1000)
	must(t, r.poll(time.Hour))
	r.want(written, 1000)
	write(t, dir+"/new", 500)
	must(t, r.poll(time.Second))
	r.want(written, 1500)
	must(t, r.poll(time.Hour))
	r.want(written, 1500)
	if n := len(r.p.places[0].folder.tracker.known); n > 4 {
		t.Errorf("%d files remembered, 4 were allowed", n)
	}
}

func TestSaveLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	write(t, dir+"/a.log", 100)
	first := newRun(t, dir)
	must(t, first.poll(0))
	write(t, dir+"/a.log", 5000)
	must(t, first.poll(time.Second))
	first.set.Lock()
	data, err := first.p.Save()
	first.set.Unlock()
	must(t, err)

	write(t, dir+"/a.log", 1<<20) // while no sidecar ran
	second := newRun(t, dir)
	second.set.Lock()
	must(t, second.p.Load(data))
	second.set.Unlock()
	second.want(written, 5000)
	second.wantAbsent("logdir_size_bytes{logs}")
	must(t, second.poll(0))
	second.want(written, 5000)
	write(t, dir+"/a.log", 1)
	must(t, second.poll(time.Second))
	second.want(written, 5001)

	if err := newRun(t, dir).p.Load([]byte("{")); err == nil {
		t.Error("half a checkpoint was taken")
	}
}

// Files that come and go while they are read are no error.
func TestVanishing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	write(t, dir+"/stays", 4096)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(dir, "v", string(rune('a'+i%26)))
			os.MkdirAll(filepath.Dir(name), 0o755)
			if f, err := os.Create(name); err == nil {
				io.WriteString(f, "x")
				f.Close()
			}
			os.Remove(name)
			os.RemoveAll(filepath.Dir(name))
		}
	}()
	r := newRun(t, dir)
	for range 300 {
		if err := r.poll(time.Second); err != nil {
			t.Error(err)
		}
		if b := r.p.Blind(); len(b) > 0 {
			t.Errorf("blind: %+v", b)
		}
	}
	close(stop)
	<-stopped
	must(t, r.poll(time.Hour))
	r.want("logdir_size_bytes{logs}", du(t, dir))
}
