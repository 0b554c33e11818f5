package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

const (
	// blockRange is the span of a block, and of what the head holds one and a
	// half of. Ten minutes of a thousand series are some megabytes, so the size
	// bound can be held by removing blocks.
	blockRange = 10 * time.Minute
	// walSegment is the size at which the WAL goes on in a new file. Only whole
	// files are let go, so large ones would outgrow the size bound.
	walSegment = 2 << 20
	// memoryKept is what is kept while there is no disk.
	memoryKept = 30 * time.Minute
	// diskAgain is how often a lost disk is tried.
	diskAgain = 15 * time.Second
	// lookEvery is how often the size on disk is looked at.
	lookEvery = 10 * time.Second
	// shortest is the span of samples below which no block is made, whatever the
	// size: the last of them stay in the head.
	shortest = 2 * time.Minute
	// headRoom is what must fit on the disk for the engine to use it: replaying
	// the WAL writes chunks, and a write that fails there ends the process.
	headRoom = 8 << 20
	// futureKept is how far in the future the newest sample may lie at the
	// start. Beyond that the clock was wrong when it was written, and every
	// sample of today would be refused as too old.
	futureKept = 10 * time.Minute
)

// store is one head that is appended to, the heads before it, and the blocks.
type store struct {
	dir       string // "" for memory only
	retention time.Duration
	size      int64
	log       *slog.Logger

	mu      sync.RWMutex // guards what follows
	head    *tsdb.Head
	wal     *wlog.WL // nil while there is no disk
	earlier []*tsdb.Head
	blocks  []*tsdb.Block // by rising time
	lost    string        // why there is no disk
	tried   time.Time
	bad     error // a commit of a rule failed: the disk is left at the next tick
	changes int   // how often the head was another

	looked time.Time // when the size was looked at; of maintain alone

	busy sync.WaitGroup // a block being written
	work chan struct{}  // holds one token: one block at a time
}

func openStore(dir string, cfg Config, now time.Time, log *slog.Logger) (*store, error) {
	s := &store{dir: dir, retention: cfg.Retention, size: cfg.Size, log: log, work: make(chan struct{}, 1), tried: now}
	err := fmt.Errorf("no folder was given")
	if dir != "" {
		err = s.openDisk(now)
	}
	if err != nil {
		if dir != "" {
			log.Error("samples are kept in memory only", "dir", dir, "err", err)
		}
		s.lost = err.Error()
		if s.head, err = memoryHead(dir); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// openDisk opens what is in the folder and makes its head the current one.
func (s *store) openDisk(now time.Time) error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	// Made while there is room, for the day when there is none.
	if err := os.MkdirAll(filepath.Join(s.dir, "memory", "chunks_head"), 0o750); err != nil {
		return err
	}
	if err := probe(filepath.Join(s.dir, "probe")); err != nil {
		return fmt.Errorf("less than %d MB can be written: %w", headRoom>>20, err)
	}
	s.openBlocks()
	if err := probeDescriptors(s.dir); err != nil {
		return err
	}
	head, wal, err := diskHead(s.dir, s.blocksEnd(), s.log)
	if noDescriptors(err) {
		return err
	}
	if err != nil {
		// What can't be read is put aside: alerts of now are worth more than the
		// samples of before.
		s.log.Error("the samples of before can't be read, beginning anew", "err", err)
		if err := os.RemoveAll(filepath.Join(s.dir, "wal")); err != nil {
			return err
		}
		if head, wal, err = diskHead(s.dir, s.blocksEnd(), s.log); err != nil {
			return err
		}
	}
	if newest := time.UnixMilli(max(head.MaxTime(), s.blocksEnd())); newest.Sub(now) > futureKept {
		s.log.Error("the samples of before are of the future, beginning anew", "newest", newest)
		wal.Close()
		for _, b := range s.blocks {
			b.Close()
			os.RemoveAll(b.Dir())
		}
		s.blocks = nil
		if err := os.RemoveAll(filepath.Join(s.dir, "wal")); err != nil {
			return err
		}
		if head, wal, err = diskHead(s.dir, 0, s.log); err != nil {
			return err
		}
	}
	s.head, s.wal, s.lost = head, wal, ""
	return nil
}

// noDescriptors says that nothing is wrong with the file that wasn't opened.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// probe shows that so much can be written as is needed.
func probe(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	// Written and not only allocated: some file systems promise more than they
	// have.
	piece := make([]byte, 256<<10)
	for n := 0; n < headRoom; n += len(piece) {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// probeDescriptors shows that the files of a replay can be opened. One that can't
// ends the process, as a write that fails there.
func probeDescriptors(dir string) error {
	for range 16 {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
	}
	return nil
}

func headOptions(dir string) *tsdb.HeadOptions {
	o := tsdb.DefaultHeadOptions()
	o.ChunkRange = blockRange.Milliseconds()
	o.ChunkDirRoot = dir
	o.ChunkWriteBufferSize = 64 << 10
	o.ChunkWriteQueueSize = 0 // a goroutine and a map that nothing would use
	o.StripeSize = 512        // 16,384 take megabytes for a thousand series
	o.WALReplayConcurrency = 1
	o.EnableNativeHistograms.Store(true)
	return o
}

// diskHead replays the WAL into a new head. The head's own chunk files are not
// kept: the WAL holds all of the head, and replays in a fraction of a second.
func diskHead(dir string, from int64, log *slog.Logger) (*tsdb.Head, *wlog.WL, error) {
	if err := os.RemoveAll(filepath.Join(dir, "chunks_head")); err != nil {
		return nil, nil, err
	}
	wal, err := wlog.NewSize(quiet(log), nil, filepath.Join(dir, "wal"), walSegment, compression.Snappy)
	if err != nil {
		return nil, nil, err
	}
	head, err := tsdb.NewHead(nil, quiet(log), wal, nil, headOptions(dir), nil)
	if err != nil {
		wal.Close()
		return nil, nil, err
	}
	if err := head.Init(from); err != nil {
		// A WAL that ends in the middle of a record, after kill -9 say, is cut
		// there.
		if err := wal.Repair(err); err != nil {
			wal.Close()
			return nil, nil, err
		}
	}
	return head, wal, nil
}

// ErrNoFolder says that not even an empty folder can be made, which tsdb insists
// on also for what stays in memory.
var ErrNoFolder = errors.New("no folder can be made for the engine, in the storage path or elsewhere")

// spareFolders are where else that folder may be, for a moment.
var spareFolders = []string{os.TempDir(), "/dev/shm", "/tmp", "/var/tmp", "/run"}

// memoryHead is a head without WAL. The folder it asks for stays empty. Outside
// of the engine's own it is new, so that nobody can have put files there, and is
// removed as soon as it is open.
func memoryHead(dir string) (*tsdb.Head, error) {
	var errs []error
	if dir != "" {
		head, err := emptyHead(filepath.Join(dir, "memory"))
		if err == nil {
			return head, nil
		}
		errs = append(errs, err)
	}
	for _, place := range spareFolders {
		d, err := os.MkdirTemp(place, "sidecar-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		head, err := emptyHead(d)
		// Not RemoveAll, which opens the folder: descriptors may be what is short.
		os.Remove(filepath.Join(d, "chunks_head"))
		os.Remove(d)
		if err == nil {
			return head, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoFolder, errs[0])
}

func emptyHead(dir string) (*tsdb.Head, error) {
	head, err := tsdb.NewHead(nil, nil, nil, nil, headOptions(dir), nil)
	if err != nil {
		return nil, err
	}
	return head, head.Init(0)
}

// Appender is one commit to the head that is current now.
func (s *store) Appender(ctx context.Context) storage.Appender {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &appender{Appender: s.head.Appender(ctx), store: s}
}

// appender tells the store of a commit that failed. The rules commit by
// themselves and only log it.
type appender struct {
	storage.Appender
	store *store
}

func (a *appender) Commit() error {
	err := a.Appender.Commit()
	if err != nil {
		a.store.mu.Lock()
		a.store.bad = err
		a.store.mu.Unlock()
	}
	return err
}

// leaveDisk goes on in a new head without WAL. The head so far stays readable,
// so a rate over the last ten seconds sees both sides of the change.
func (s *store) leaveDisk(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = nil
	if s.wal == nil {
		return
	}
	head, err := memoryHead(s.dir)
	if err != nil {
		// The next tick tries again; so long the disk is all there is.
		s.log.Error("the disk does not take samples any more, and they can't be kept in memory", "disk", why, "err", err)
		return
	}
	s.log.Error("the disk does not take samples any more; rules go on in memory", "err", why)
	s.wal.Close()
	s.wal, s.lost = nil, why.Error()
	s.earlier = append(s.earlier, s.head)
	s.head = head
	s.changes++
}

// returnToDisk tries the disk again. What was kept in memory stays readable
// until it is old, and is on no disk.
func (s *store) returnToDisk(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wal != nil || s.dir == "" || now.Sub(s.tried) < diskAgain {
		return
	}
	s.tried = now
	memory := s.head
	for _, b := range s.blocks {
		b.Close()
	}
	s.blocks = nil
	if err := s.openDisk(now); err != nil {
		s.head, s.lost = memory, err.Error()
		return
	}
	s.log.Info("the disk takes samples again")
	// The head from before the trouble was read back from its WAL.
	s.earlier = []*tsdb.Head{memory}
	s.changes++
}

// changed counts the heads there were. References into one are no good in the
// next.
func (s *store) changed() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changes
}

// newest is the time of the newest sample, zero when there is none.
func (s *store) newest() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.blocksEnd()
	if m := s.head.MaxTime(); m > t && s.head.NumSeries() > 0 {
		t = m
	}
	if t <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(t).UTC()
}

// close ends the WAL. The head itself is not closed: that would write its
// chunks to disk, which the WAL holds already.
func (s *store) close() {
	s.busy.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wal != nil {
		if err := s.wal.Close(); err != nil {
			s.log.Error("the end of the WAL may be lost", "err", err)
		}
		s.wal = nil
	}
	for _, b := range s.blocks {
		b.Close()
	}
	s.blocks = nil
}
