package lab

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Progress is where the lab says what it fetches and why.
var Progress io.Writer = os.Stderr

func say(format string, args ...any) {
	fmt.Fprintf(Progress, "lab: "+format+"\n", args...)
}

// fetchLimit bounds one fetch. A registry that answers at all answers well
// within it, and a hanging one must not eat a CI run.
const fetchLimit = 8 * time.Minute

// once makes the folder name below the cache if it is not there: fill writes
// into a folder beside it, which is renamed when it is whole, so that a fetch
// that was killed leaves nothing that looks good. Two processes don't fetch the
// same thing at once; each thing has its own lock, since fetching a server may
// have to fetch Maven first.
func once(name, what, why string, fill func(ctx context.Context, dir string) error) (string, error) {
	final := filepath.Join(Cache(), name)
	if isDir(final) {
		return final, nil
	}
	unlock, err := cacheLock(strings.ReplaceAll(name, "/", "-"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(final) { // another process was faster
		return final, nil
	}
	// Below the lock nobody else has a half-made folder of this name.
	part := final + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	say("fetching %s (%s)", what, why)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), fetchLimit)
	defer cancel()
	if err := fill(ctx, part); err != nil {
		return "", Missing{fmt.Errorf("%s could not be had: %w", what, err)}
	}
	if err := os.Rename(part, final); err != nil {
		return "", err
	}
	say("  %s: %.1f MB in %.0f s, in %s", what, float64(treeSize(final))/1e6, time.Since(began).Seconds(), final)
	return final, nil
}

// cacheLock takes one of the cache's locks between processes.
func cacheLock(name string) (unlock func(), err error) {
	if unlock, err = lock(filepath.Join(Cache(), "locks", name)); err != nil {
		return nil, fmt.Errorf("cache %s: %w", Cache(), err)
	}
	return unlock, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func treeSize(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := d.Info(); err == nil && st.Mode().IsRegular() {
			n += st.Size()
		}
		return nil
	})
	return n
}

// unpackTarGz unpacks an archive into dir without its top folder. Only folders,
// plain files and links that stay inside are made.
func unpackTarGz(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", archive, err)
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		if name == "" {
			continue
		}
		name = strings.TrimSuffix(name, "/")
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeReg:
			err = unpackFile(root, name, h.FileInfo().Mode().Perm()|0o600, r)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

func unpackFile(root *os.Root, name string, mode os.FileMode, r io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
