//go:build !linux

package logdir

import (
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/shirou/gopsutil/v3/disk"
)

// portableFS does with the standard library and gopsutil what linuxFS asks the
// kernel for.
type portableFS struct{}

func newFS(Config) fsys { return portableFS{} }

// errNotDir is what open says of a path that is something else.
var errNotDir = errors.New("is not a folder")

type portableNode struct {
	path string
	dir  *os.File
}

func (portableFS) open(_, path string) (node, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if fi, err := d.Stat(); err != nil || !fi.IsDir() {
		d.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Join(err, errNotDir)}
	}
	return &portableNode{path, d}, nil
}

// guess takes each path for a case of its own.
func (portableFS) guess(string) func(string) string { return func(path string) string { return path } }

func (portableFS) mount(n node) (mountRef, error) {
	path := n.(*portableNode).path
	parts, err := disk.Partitions(true)
	if err != nil {
		return mountRef{}, err
	}
	best := ""
	for _, p := range parts {
		rel, err := filepath.Rel(p.Mountpoint, path)
		if err == nil && filepath.IsLocal(rel) && len(p.Mountpoint) > len(best) {
			best = p.Mountpoint
		}
	}
	if best == "" {
		best = filepath.VolumeName(path) + string(filepath.Separator)
	}
	return mountRef{best, best}, nil
}

func (n *portableNode) stat(m *meta) error {
	fi, err := n.dir.Stat()
	if err == nil {
		fillInfo(m, n.path, fi)
	}
	return err
}

func (n *portableNode) statAt(name string, m *meta) error {
	path := filepath.Join(n.path, name)
	fi, err := os.Lstat(path)
	if err == nil {
		fillInfo(m, path, fi)
	}
	return err
}

func (n *portableNode) each(_ []byte, do func(name []byte, m *meta)) (bool, int, error) {
	entries, err := n.dir.ReadDir(512)
	bad := 0
	var m meta
	for _, e := range entries {
		fi, err := e.Info()
		switch {
		case err == nil:
			fillInfo(&m, filepath.Join(n.path, e.Name()), fi)
			do([]byte(e.Name()), &m)
		case !errors.Is(err, fs.ErrNotExist):
			bad++
		}
	}
	if errors.Is(err, io.EOF) {
		return true, bad, nil
	}
	return err != nil, bad, err
}

func (n *portableNode) sub(name string) (node, error) {
	path := filepath.Join(n.path, name)
	if fi, err := os.Lstat(path); err != nil || !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Join(err, errNotDir)}
	}
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &portableNode{path, d}, nil
}

func (n *portableNode) space() (space, error) {
	u, err := disk.Usage(n.path)
	if err != nil {
		return space{}, err
	}
	return space{size: int64(u.Total), avail: int64(u.Free), free: int64(u.Free),
		inodes: u.InodesTotal, inodesFree: u.InodesFree, hasInodes: u.InodesTotal > 0}, nil
}

func (n *portableNode) userQuota(int) (quota, bool) { return quota{}, false }

func (n *portableNode) close() { n.dir.Close() }

// nameIno stands in for an inode number where there is none to be had: a file
// is then known by its path, and a rename looks like a new file.
func nameIno(path string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	return h.Sum64()
}

func commonInfo(m *meta, fi fs.FileInfo) {
	*m = meta{size: fi.Size(), allocated: (fi.Size() + 4095) &^ 4095, nlink: 1, dir: fi.IsDir(),
		regular: fi.Mode().IsRegular(), changed: fi.ModTime().UnixNano()}
}
