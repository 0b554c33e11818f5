//go:build unix

package jvm

import (
	"os"
	"syscall"
)

// owner is the user a file belongs to; links are not followed.
func owner(path string) (int, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
