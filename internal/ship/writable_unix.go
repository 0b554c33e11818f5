//go:build unix

package ship

import "golang.org/x/sys/unix"

func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
