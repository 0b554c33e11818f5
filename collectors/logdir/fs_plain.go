//go:build !linux && !darwin

package logdir

import "io/fs"

// fillInfo rounds sizes up to 4 KiB, the cluster that file systems mostly have:
// the standard library does not tell what is allocated.
func fillInfo(m *meta, path string, fi fs.FileInfo) {
	commonInfo(m, fi)
	m.ino = nameIno(path)
	if m.dir {
		m.allocated = 0
	}
}
