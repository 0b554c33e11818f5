//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockStorage makes sure that no other sidecar keeps its state in the folder.
// The lock is on a file of our own, and goes with the process.
func lockStorage(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return func() {}, nil // what can't be written is told by the checkpoint
	}
	if dir == homelessStorage() {
		if err := ownFolder(dir); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return func() {}, nil
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("storage.path %s: another sidecar keeps its state there: stop it, or give this one a folder of its own", dir)
	}
	return func() { f.Close() }, nil
}

// ownFolder says whether a folder in a place where everybody may make one is ours
// alone. Whoever made it before us could give us counters of his, or links in it
// that have us write over our own files.
func ownFolder(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(owner.Uid) != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("storage.path %s: it was made by somebody else, or others may write there: give --storage.path a folder of your own", dir)
	}
	return nil
}
