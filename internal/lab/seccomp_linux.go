package lab

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Forbid makes a system call fail with errno from now on, in this process and in
// what it starts, as an old kernel (ENOSYS) or a container's filter (EPERM) does.
// It can't be taken back: call it in a child of the test.
func Forbid(call uint32, errno unix.Errno) error {
	load := func(code uint16, jt, jf uint8, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k}
	}
	filter := []unix.SockFilter{
		load(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, 0), // the number of the call
		load(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, call),
		load(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(errno)),
		load(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	// TSYNC: for all threads that Go has by now.
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
