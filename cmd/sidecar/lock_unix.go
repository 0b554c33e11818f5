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
