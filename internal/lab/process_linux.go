package lab

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill a child when the test that started it is
// gone, however it went: a server left behind would hold its port, its memory
// and its turn.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// asUser is dieWithParent for a child that runs as another user. Of root's
// rights it keeps the one to read any file.
func asUser(uid uint32) *syscall.SysProcAttr {
	attr := dieWithParent()
	if uid != 0 && os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}
		attr.AmbientCaps = []uintptr{unix.CAP_DAC_OVERRIDE}
	}
	return attr
}

// lock takes a lock file between processes; the kernel drops it when we die.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
