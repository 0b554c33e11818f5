//go:build !linux

package lab

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }

// lock does nothing here: the lab's servers are only run on Linux.
func lock(string) (unlock func(), err error) { return func() {}, nil }
