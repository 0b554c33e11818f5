package logdir

import (
	"io/fs"
	"syscall"
)

func fillInfo(m *meta, path string, fi fs.FileInfo) {
	commonInfo(m, fi)
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		m.ino = nameIno(path)
		return
	}
	m.dev, m.ino, m.nlink = uint64(st.Dev), st.Ino, uint32(st.Nlink)
	m.allocated = st.Blocks * 512
	m.changed, m.born = st.Ctimespec.Nano(), st.Birthtimespec.Nano()
}
