package logdir

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// dqblk is struct if_dqblk of linux/quota.h. Limits are in KiB, the space used
// is in bytes.
type dqblk struct {
	hardBlocks, softBlocks, space     uint64
	hardInodes, softInodes, curInodes uint64
	blockTime, inodeTime              uint64
	valid                             uint32
	_                                 uint32
}

// Commands of quotactl: Q_GETQUOTA of the user table.
const (
	qGetQuota = 0x800007
	usrQuota  = 0
	quotaCmd  = qGetQuota<<8 | usrQuota
)

// userQuota asks for the limits of one user where the folder lies. It answers
// only where quotas are switched on, on Linux 5.14 and later, and about another
// user only with CAP_SYS_ADMIN: no answer means no limit that we know of.
func (n linuxNode) userQuota(uid int) (quota, bool) {
	var q dqblk
	_, _, e := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(n.fd), quotaCmd, uintptr(uid), uintptr(unsafe.Pointer(&q)), 0, 0)
	if e != 0 {
		return quota{}, false
	}
	return quota{bytes: int64(q.hardBlocks) << 10, used: int64(q.space), inodes: q.hardInodes, usedInodes: q.curInodes}, true
}
