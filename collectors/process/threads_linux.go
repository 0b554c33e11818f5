package process

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A taskReader lists and reads the threads of one process with buffers that are
// used again: no allocation once it has seen as many threads as there are.
type taskReader struct {
	dir  int // /proc/PID/task
	ents [32 << 10]byte
	buf  [1024]byte
	path [40]byte
}

// list appends the tids, sorted. The kernel lists them in the order they were
// made, which is not that of their numbers once these have wrapped.
func (r *taskReader) list(tids []int32) ([]int32, error) {
	tids = tids[:0]
	if _, err := syscall.Seek(r.dir, 0, 0); err != nil {
		return tids, err
	}
	for {
		n, err := syscall.ReadDirent(r.dir, r.ents[:])
		if err != nil {
			return tids, err
		}
		if n <= 0 {
			break
		}
		tids = appendNumbers(tids, r.ents[:n])
	}
	if !slices.IsSorted(tids) {
		slices.Sort(tids)
	}
	return tids, nil
}

// appendNumbers takes the names that are numbers out of a getdents64 buffer.
func appendNumbers(out []int32, b []byte) []int32 {
	const nameAt = int(unsafe.Offsetof(syscall.Dirent{}.Name))
	for len(b) >= nameAt {
		length := int(*(*uint16)(unsafe.Pointer(&b[unsafe.Offsetof(syscall.Dirent{}.Reclen)])))
		if length < nameAt || length > len(b) {
			break
		}
		v, n := int32(0), 0
		for _, c := range b[nameAt:length] {
			if c < '0' || c > '9' {
				if c != 0 {
					n = 0
				}
				break
			}
			v = v*10 + int32(c-'0')
			n++
		}
		if n > 0 && n < 10 {
			out = append(out, v)
		}
		b = b[length:]
	}
	return out
}

// read reads TID/name into the reader's buffer.
func (r *taskReader) read(tid int32, name string) ([]byte, syscall.Errno) {
	return r.readInto(tid, name, r.buf[:])
}

// openAt opens a file beneath an open folder for reading. path ends in a zero byte.
func openAt(dir int, path []byte) (fd uintptr, errno syscall.Errno) {
	fd, _, errno = syscall.Syscall6(syscall.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&path[0])),
		syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	return fd, errno
}

// readAt reads a small file beneath an open folder. path ends in a zero byte.
func readAt(dir int, path []byte, buf []byte) ([]byte, syscall.Errno) {
	fd, errno := openAt(dir, path)
	if errno != 0 {
		return nil, errno
	}
	n, _, errno := syscall.Syscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	syscall.Syscall(syscall.SYS_CLOSE, fd, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return buf[:n], 0
}

// sample reads the threads. Those that are new are always read; of the others
// at most max, in turns.
func (t *threadTable) sample(r *taskReader, max int) error {
	var err error
	if t.tids, err = r.list(t.tids); err != nil {
		return err
	}
	next := t.spare[:0]
	old := t.list
	n := len(t.tids)
	// Threads from turn on, as many as may be read, and round the end.
	first, budget := 0, n
	if n > max {
		first, budget = t.turn%n, max
		t.turn = (first + max) % n
	}
	read := 0
	t.samples++
	var st stat
	for i, tid := range t.tids {
		for len(old) > 0 && old[0].tid < tid {
			old[0].letGo()
			old = old[1:] // gone
		}
		th, fresh := thread{tid: tid}, true
		if len(old) > 0 && old[0].tid == tid {
			th, fresh = old[0], false
			old[0].kept = 0 // it is th's now: nobody may close it twice
			old = old[1:]
		}
		if inTurn := (i-first+n)%n < budget; !inTurn && !fresh {
			next = append(next, th)
			continue
		}
		if th.quiet && !t.moved(&th, r) {
			read++
			next = append(next, th)
			continue
		}
		b, errno := r.read(tid, "stat")
		if errno != 0 || !st.parse(b) {
			th.letGo()
			continue // gone meanwhile
		}
		if th.start != st.start {
			th.letGo() // the tid was used again
		}
		read++
		t.seen(&th, &st, fresh)
		// A thread becomes quiet when it did not run between two looks at its
		// schedstat, which are some samples apart. The stat just read is what holds
		// until it runs again, so it must not be that of a running thread.
		if (t.samples+uint32(tid))%quietAfter == 0 {
			th.quiet = !t.moved(&th, r) && th.state != stateRunning
		}
		next = append(next, th)
	}
	for i := range old {
		old[i].letGo()
	}
	t.spare, t.list = t.list, next
	t.sampled = 1
	if n > 0 {
		t.sampled = min(1, float64(read)/float64(n))
	}
	t.sum()
	return nil
}

// quietAfter is how many samples a thread must sleep through to be quiet.
const quietAfter = 8

// moved reads a thread's schedstat and says whether it has run since the last
// time. Where that can't be told it may have.
func (t *threadTable) moved(th *thread, r *taskReader) bool {
	b, ok := th.again(r)
	if !ok {
		var errno syscall.Errno
		if b, errno = r.read(th.tid, "schedstat"); errno != 0 {
			th.quiet = false
			return true
		}
	}
	run, slices := th.run, th.slices
	if !t.addSchedstat(th, b) {
		th.quiet = false
		return true
	}
	return th.run != run || th.slices != slices
}

// keepMost is of how many threads the schedstat is kept open, in the whole
// program: to find a file of /proc by its name takes three quarters of what it costs
// to read. The kernel keeps a page for each.
const keepMost = 2000

// keeping is how many are kept open, and keepAtMost how many may be: never more
// than a quarter of the descriptors that we may have.
var (
	keeping    atomic.Int32
	keepAtMost = sync.OnceValue(func() int32 {
		var l syscall.Rlimit
		if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
			return 0
		}
		return int32(min(keepMost, l.Cur/4))
	})
)

// again reads the schedstat that is kept open of a quiet thread, and opens it
// where there is room.
func (th *thread) again(r *taskReader) ([]byte, bool) {
	if th.kept == 0 {
		if !th.quiet {
			return nil, false
		}
		if keeping.Add(1) > keepAtMost() {
			keeping.Add(-1)
			return nil, false
		}
		fd, errno := openAt(r.dir, r.pathOf(th.tid, "schedstat"))
		if errno != 0 {
			keeping.Add(-1)
			return nil, false
		}
		th.kept = int32(fd) + 1
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_PREAD64, uintptr(th.kept-1), uintptr(unsafe.Pointer(&r.buf[0])), uintptr(len(r.buf)), 0, 0, 0)
	if errno != 0 || n == 0 {
		th.letGo() // the thread is gone
		return nil, false
	}
	return r.buf[:n], true
}

// letGo closes what is kept open of the thread.
func (th *thread) letGo() {
	if th.kept > 0 {
		syscall.Close(int(th.kept - 1))
		th.kept = 0
		keeping.Add(-1)
	}
}

// letGo closes what is kept open of all threads.
func (t *threadTable) letGo() {
	for i := range t.list {
		t.list[i].letGo()
	}
}

// slowReads is how many threads the slow round reads at each sample, and
// slowRound in how many samples it goes round where there are fewer.
const (
	slowReads = 50
	slowRound = 10
)

// slow reads the context switches of a part of the threads, so that a large
// server costs no more than a small one.
func (t *threadTable) slow(r *taskReader) {
	n := len(t.list)
	reads := min((n+slowRound-1)/slowRound, slowReads)
	if t.samples == 1 {
		reads = n // or the history of each would look like news of the second it is read in
	}
	for range reads {
		t.slowTurn++
		th := &t.list[t.slowTurn%n]
		if th.quiet && th.counted == th.slices {
			continue // it has not run since: it can't have switched
		}
		// The two lines wanted are the last of a file that is longer than the buffer.
		if b, errno := r.readInto(th.tid, "status", r.ents[:8<<10]); errno == 0 {
			if v, ok := number(b, "voluntary_ctxt_switches:"); ok && v >= th.voluntary {
				t.voluntary += v - th.voluntary
				th.voluntary = v
			}
			if v, ok := number(b, "nonvoluntary_ctxt_switches:"); ok && v >= th.involuntary {
				t.involuntary += v - th.involuntary
				th.involuntary = v
			}
			th.counted = th.slices
		}
	}
}

func (r *taskReader) readInto(tid int32, name string, buf []byte) ([]byte, syscall.Errno) {
	return readAt(r.dir, r.pathOf(tid, name), buf)
}

// pathOf is TID/name with a zero byte, until the next one.
func (r *taskReader) pathOf(tid int32, name string) []byte {
	p := strconv.AppendInt(r.path[:0], int64(tid), 10)
	p = append(p, '/')
	p = append(p, name...)
	return append(p, 0)
}

// addSchedstat takes the three numbers of schedstat: time on a core, time
// waiting for one, both in nanoseconds, and turns.
func (t *threadTable) addSchedstat(th *thread, b []byte) bool {
	run, rest, ok := firstNumber(b)
	if !ok {
		return false
	}
	wait, rest, ok := firstNumber(rest)
	if !ok {
		return false
	}
	slices, _, ok := firstNumber(rest)
	if !ok {
		return false
	}
	if wait >= th.delay {
		t.delay += wait - th.delay
		th.delay = wait
	}
	th.run, th.slices = run, slices
	return true
}

// turns adds up how often the threads of a pool have had a core. It is read
// only while a connector is suspected to be stalled.
func (t *threadTable) turns(r *taskReader, pool int32) (sum uint64, ok bool) {
	for i := range t.list {
		th := &t.list[i]
		if th.pool != pool {
			continue
		}
		b, errno := r.read(th.tid, "schedstat")
		if errno != 0 {
			continue
		}
		run := th.run
		if !t.addSchedstat(th, b) {
			continue
		}
		if th.run != run {
			th.quiet = false // its state and CPU time are due again
		}
		sum += th.slices
		ok = true
	}
	return sum, ok
}

func firstNumber(b []byte) (v uint64, rest []byte, ok bool) {
	v, ok = digitsAt(b)
	if !ok {
		return 0, nil, false
	}
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return v, b[i:], true
}
