// Package root opens what a watched process names (a path in its arguments, a
// link in its folders) beneath that process' own root, and nowhere else.
//
// The sidecar may run with more rights than its target. A target could
// therefore use it as a pair of eyes: a GC log called /etc/shadow, a log folder
// that is a link to /proc/self, a container whose /tmp/hsperfdata_app points
// out of the container. So each open here goes through openat2 with
// RESOLVE_IN_ROOT, which treats the target's root as "/" for absolute links and
// for ".." too, and refuses the magic links of /proc on the way. What was
// opened must then be a regular file, and none of the kernel's own file
// systems. Whether the target itself could have read the file is a further
// question, for which there is Cred.
//
// Kernels before 5.6 have no openat2, and some seccomp filters forbid it. Nothing
// is opened there unless AllowWalk says so: then each name of a path is opened by
// itself, links are read and not followed, and what they say is taken beneath the
// target's root. That leads out of it as little as openat2 does, but it is many
// calls where openat2 is one, and it is our reading of a path, not the kernel's.
package root

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
)

// Refusals of Open beyond those of the file system.
var (
	ErrNoOpenat2  = errors.New("openat2 is not to be had here, and without it nothing of a target is opened unless targets.without_openat2 is walk")
	ErrNotRegular = errors.New("not a regular file")
	ErrKernel     = errors.New("a file of the kernel's, not on a disk")
	ErrNotTheirs  = errors.New("the target itself may not read it")
)

// walkAllowed is what the settings say of kernels without openat2. It is one for
// the process, as the kernel is.
var walkAllowed atomic.Bool

// AllowWalk says whether a path may be walked name by name where there is no
// openat2. Otherwise each Open there fails with ErrNoOpenat2.
func AllowWalk(yes bool) { walkAllowed.Store(yes) }

// WalkAllowed is what AllowWalk said last.
func WalkAllowed() bool { return walkAllowed.Load() }

// Open opens a regular file for reading. name is an absolute path as the target
// sees it; dir is the folder that is "/" for the target: "/" or /proc/PID/root.
// It never blocks on a pipe and never follows a link out of dir.
func Open(dir, name string) (*os.File, error) {
	f, err := open(dir, clean(name), false)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path.Join(dir, name), Err: err}
	}
	return f, nil
}

// OpenDir opens a folder for listing, under the same rules.
func OpenDir(dir, name string) (*os.File, error) {
	f, err := open(dir, clean(name), true)
	if err != nil {
		return nil, err
	}
	if err := checkKernel(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path.Join(dir, name), Err: err}
	}
	return f, nil
}

// Split parts a path that leads through /proc/PID/root into that root and the
// name inside it. Any other path is inside "/".
func Split(p string) (dir, name string) {
	for rest, at := p, 0; ; {
		i := strings.Index(rest, "/root/")
		if i < 0 {
			return "/", p
		}
		end := at + i + len("/root")
		base := path.Base(p[:at+i])
		if base != "" && strings.Trim(base, "0123456789") == "" {
			return p[:end], p[end:]
		}
		at = end
		rest = p[at:]
	}
}

// clean makes the name one that starts with a slash and has no "..": what is
// left for the kernel to resolve are links.
func clean(name string) string { return path.Clean("/" + strings.ReplaceAll(name, "\x00", "")) }

// Cred is who the target is, as /proc/PID/status tells.
type Cred struct {
	UID    int
	GID    int
	Groups []int
}

// MayRead says whether a process with these credentials could have opened a file
// with that owner and mode itself. Access lists are not looked at, so the answer
// may be a "no" too many; a file that the target holds open needs no asking.
func (c Cred) MayRead(f Facts) bool {
	switch {
	case c.UID == 0:
		return true
	case c.UID == f.UID:
		return f.Mode&0o400 != 0
	}
	in := f.GID == c.GID
	for _, g := range c.Groups {
		in = in || g == f.GID
	}
	if in {
		return f.Mode&0o040 != 0
	}
	return f.Mode&0o004 != 0
}
