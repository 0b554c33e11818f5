package root

import (
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxLinks is the kernel's own limit of links in one path.
	maxLinks = 40
	// maxDepth bounds the folders that are held open on the way to a file, and so
	// the descriptors that one hostile path can take.
	maxDepth = 255
)

// walk does by single steps what openat2 does with RESOLVE_IN_ROOT and
// RESOLVE_NO_MAGICLINKS: at is "/" for absolute links, and ".." ends there.
//
//	at ── srv ── logs ── current -> /var/log/app
//	 │                       └ read as text, begins at "at" again
//	 └─── var ── log ── app
//
// Each folder on the way stays open and ".." goes back to the one before, so a
// folder that is renamed or swapped for a link meanwhile leads nowhere new: no
// step ever asks the kernel to follow a link or a "..".
func walk(at int, name string, flags int) (fd int, err error) {
	var way []int // the open folders below at
	drop := func(to int) {
		for _, fd := range way[to:] {
			unix.Close(fd)
		}
		way = way[:to]
	}
	defer func() { drop(0) }()
	here := func() int {
		if len(way) == 0 {
			return at
		}
		return way[len(way)-1]
	}
	rest, links := name, 0
	for {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return openat(here(), ".", flags)
		}
		var one string
		one, rest, _ = strings.Cut(rest, "/")
		switch one {
		case ".":
			continue
		case "..":
			drop(max(len(way)-1, 0))
			continue
		}
		next, err := openat(here(), one, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil {
			unix.Close(next)
			return -1, err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if len(way) >= maxDepth {
				unix.Close(next)
				return -1, unix.ENAMETOOLONG
			}
			way = append(way, next)
		case unix.S_IFLNK:
			to, err := readlink(next)
			unix.Close(next)
			if err != nil {
				return -1, err
			}
			if links++; links > maxLinks {
				return -1, unix.ELOOP
			}
			if to[0] == '/' {
				drop(0)
			}
			rest = to + "/" + rest
		case unix.S_IFREG:
			unix.Close(next)
			// A slash after it, or more names: it is taken for a folder.
			if strings.Trim(rest, "/") != "" {
				return -1, unix.ENOTDIR
			}
			// A swap between the look and the open is caught by the caller's fstat,
			// and a link that took its place by O_NOFOLLOW.
			return openat(here(), one, flags|unix.O_NOFOLLOW)
		default:
			unix.Close(next)
			return -1, ErrNotRegular
		}
	}
}

// readlink reads the link that was opened, whatever its name leads to by now. A
// link on /proc is refused: those of a process (exe, cwd, fd/3) lead anywhere, and
// their text is not where they lead.
func readlink(link int) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(link, &st); err != nil {
		return "", err
	}
	if int64(st.Type) == unix.PROC_SUPER_MAGIC {
		return "", unix.ELOOP
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", buf)
	if err != nil {
		return "", err
	}
	if n == 0 || n == len(buf) {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

func openat(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
