package logdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// search looks for descriptors of regular files that have no name any more.
// The link's text tells which ones are worth a stat; none is opened.
func (h *holder) search(proc string) {
	who := "self"
	if h.pid > 0 {
		who = strconv.Itoa(h.pid)
	}
	h.ok, h.denied, h.bytes = false, false, 0
	dir := filepath.Join(proc, who, "fd")
	d, err := os.Open(dir)
	if err != nil {
		h.denied = errors.Is(err, fs.ErrPermission)
		return // a process that is gone is no error
	}
	defer d.Close()
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			path := dir + "/" + name
			to, err := os.Readlink(path)
			if err != nil {
				if errors.Is(err, fs.ErrPermission) {
					h.denied = true
					return
				}
				continue
			}
			// memfd and System V memory look deleted from their birth.
			if !strings.HasSuffix(to, " (deleted)") || strings.HasPrefix(to, "/memfd:") || strings.HasPrefix(to, "/SYSV") {
				continue
			}
			var st unix.Stat_t
			if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
				continue
			}
			if id := (inode{uint64(st.Dev), st.Ino}); !seen[id] {
				seen[id] = true
				h.bytes += st.Blocks * 512
			}
		}
		if err != nil {
			h.ok = errors.Is(err, io.EOF)
			return
		}
	}
}
