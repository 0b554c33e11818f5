package process

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// keptOpen counts the schedstats that this process has open.
func keptOpen(t *testing.T) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); strings.HasSuffix(to, "/schedstat") {
			n++
		}
	}
	return n
}

// Of threads that sleep the schedstat is kept open: one that wakes is seen to run
// in the next sample, one that ends is let go of, and at the end nothing is left.
func TestSleepingThreadsAreKeptOpen(t *testing.T) {
	const many = 20
	var wake [many][2]int
	tids := make(chan int32, many)
	var ended sync.WaitGroup
	for i := range wake {
		if err := syscall.Pipe2(wake[i][:], syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		ended.Add(1)
		go func() {
			defer ended.Done()
			runtime.LockOSThread() // and never unlocked: the thread ends with us
			tids <- int32(syscall.Gettid())
			for b := make([]byte, 1); ; {
				if n, _ := syscall.Read(wake[i][0], b); n == 0 {
					return
				}
				tids <- 0
			}
		}()
	}
	ours := map[int32]bool{}
	for range many {
		ours[<-tids] = true
	}
	time.Sleep(100 * time.Millisecond) // until all are in their read
	before := keptOpen(t)
	p := New(metric.ForTarget("self"), selfConfig(t))
	defer p.Close()
	sample := func() (kept int, turns map[int32]uint64) {
		t.Helper()
		if err := p.Poll(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		all := 0
		turns = map[int32]uint64{}
		for _, th := range p.world.threads.list {
			if th.kept > 0 {
				all++
			}
			if ours[th.tid] {
				turns[th.tid] = th.slices
				if th.kept > 0 {
					kept++
				}
			}
		}
		if n := keptOpen(t) - before; n != all {
			t.Errorf("%d are open, %d are known to be", n, all)
		}
		return kept, turns
	}
	for range 3 * quietAfter {
		sample()
	}
	kept, slept := sample()
	if kept != many {
		t.Fatalf("%d are kept open of %d that sleep", kept, many)
	}
	for i := range wake {
		syscall.Write(wake[i][1], []byte("x"))
	}
	for range many {
		<-tids
	}
	_, woke := sample()
	for tid := range ours {
		if woke[tid] <= slept[tid] {
			t.Errorf("thread %d ran and is not seen to: %d turns, %d before", tid, woke[tid], slept[tid])
		}
	}
	for i := range wake {
		syscall.Close(wake[i][1])
	}
	ended.Wait()
	time.Sleep(100 * time.Millisecond) // the goroutines' end is a little before the threads'
	delete(ours, int32(os.Getpid()))   // Go never ends a process' first thread
	if kept, left := sample(); kept != 0 || len(left) != 0 {
		t.Errorf("of those that ended %d are in the list and %d kept open", len(left), kept)
	}
	// One that was the last of the list, which no other thread comes after.
	fd, err := syscall.Open("/proc/self/schedstat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	keeping.Add(1)
	p.world.threads.list = append(p.world.threads.list, thread{tid: math.MaxInt32, kept: int32(fd) + 1})
	sample()
	for i := range wake {
		syscall.Close(wake[i][0])
	}
	p.Close()
	if n := keptOpen(t); n != before || int(keeping.Load()) != before {
		t.Errorf("%d are open and %d counted after the end, %d before", n, keeping.Load(), before)
	}
}
