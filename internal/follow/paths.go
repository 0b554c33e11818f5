package follow

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nxadm/tail"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// open opens a log, or a file beside it, for reading. This is the only way in
// which the follower gets at the content of a file.
//
// Without Spec.Open it does not stand in anybody's way: on Windows an ordinary
// open would stop the server from renaming its own log, and that is what tail's
// OpenFile is for.
func (f *Follower) open(path string) (*os.File, error) {
	if f.spec.Open != nil {
		return f.spec.Open(path)
	}
	return tail.OpenFile(path)
}

// resolve follows all links of a path. Beneath /proc/PID/root, which is how a
// process in another mount namespace is seen, an absolute link begins at that
// root again and ".." does not lead out of it, as for the process itself; the
// kernel would take both for ours.
func resolve(p string) (string, error) {
	base, name := root.Split(p)
	if base == "/" {
		return filepath.EvalSymlinks(p)
	}
	const maxLinks = 40 // the kernel's own limit
	done, links := "/", 0
	for rest := name; ; {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return path.Join(base, done), nil
		}
		var one string
		one, rest, _ = strings.Cut(rest, "/")
		if one == ".." {
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, one)
		to, err := os.Readlink(base + next)
		switch {
		case errors.Is(err, syscall.EINVAL):
			done = next // no link
			continue
		case err != nil:
			return "", err
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "readlink", Path: p, Err: syscall.ELOOP}
		}
		if path.IsAbs(to) {
			done = "/"
		}
		rest = to + "/" + rest
	}
}

// statPath looks at what the path leads to, links followed.
func statPath(p string) (stat, error) {
	if base, _ := root.Split(p); base != "/" {
		real, err := resolve(p)
		if err != nil {
			return stat{}, err
		}
		p = real
	}
	s, err := sysStatPath(p)
	if err == nil && seen != nil {
		seen(&s)
	}
	return s, err
}

// listing lets a test deny it. O_NONBLOCK is for a pipe that took the folder's
// name: opening that would wait for a writer.
var listing = func(dir string, do func(name string) (more bool)) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, n := range names {
			if !do(n) {
				return nil
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// eachName goes through the names in a folder, in no order, links of the folder
// followed as statPath does, until do has had enough. There may be a million of
// them, so they are never held all at once.
func eachName(dir string, do func(name string) (more bool)) error {
	dir = cmp.Or(dir, ".")
	if base, _ := root.Split(dir); base != "/" {
		real, err := resolve(dir)
		if err != nil {
			return err
		}
		dir = real
	}
	return listing(dir, do)
}

// blindness says in a word why a live file can't be read; "" is for what the
// next look at the name will tell anyway.
func blindness(err error) string {
	var no syscall.Errno
	switch {
	case err == nil, absent(err), errors.Is(err, errReplaced), errors.Is(err, io.EOF):
		return ""
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, root.ErrNoOpenat2):
		return "no_openat2"
	case errors.Is(err, root.ErrNotTheirs):
		return "not_the_targets"
	case errors.Is(err, errNotRegular), errors.Is(err, root.ErrNotRegular):
		return "not_regular"
	case errors.As(err, &no) && no != syscall.ELOOP && no != syscall.EXDEV:
		return "error"
	}
	// Whoever opens for us said no: the path leads out of the target's root, through
	// a link of /proc, or to a file of the kernel's.
	return "refused"
}
