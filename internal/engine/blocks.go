package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// openBlocks opens the blocks of the folder. One that can't be read, or was
// never finished, is removed: it would else be tried at each start.
func (s *store) openBlocks() {
	names, _ := filepath.Glob(filepath.Join(s.dir, "*", "meta.json"))
	for _, name := range names {
		b, err := tsdb.OpenBlock(quiet(s.log), filepath.Dir(name), nil, nil)
		if noDescriptors(err) {
			s.log.Error("a block of samples can't be read now", "block", filepath.Dir(name), "err", err)
			continue
		}
		if err != nil {
			s.log.Error("a block of samples can't be read and is removed", "block", filepath.Dir(name), "err", err)
			os.RemoveAll(filepath.Dir(name))
			continue
		}
		s.blocks = append(s.blocks, b)
	}
	slices.SortFunc(s.blocks, func(a, b *tsdb.Block) int { return cmp.Compare(a.MinTime(), b.MinTime()) })
	unfinished, _ := filepath.Glob(filepath.Join(s.dir, "*.tmp-for-*"))
	for _, name := range unfinished {
		os.RemoveAll(name)
	}
}

// blocksEnd is the time up to which there are blocks.
func (s *store) blocksEnd() int64 {
	if len(s.blocks) == 0 {
		return 0
	}
	return s.blocks[len(s.blocks)-1].MaxTime()
}

// maintain is called after each tick: it tries a lost disk, makes a block of
// the head's older part, and removes what is past the bounds.
func (s *store) maintain(now time.Time) {
	s.mu.RLock()
	bad, head, onDisk := s.bad, s.head, s.wal != nil
	s.mu.RUnlock()
	if bad != nil {
		s.leaveDisk(bad)
	}
	s.returnToDisk(now)
	s.dropEarlier(now)
	if !onDisk {
		if keep := now.Add(-memoryKept).UnixMilli(); head.NumSeries() > 0 && head.MinTime() < keep-blockRange.Milliseconds()/2 {
			if err := head.Truncate(keep); err != nil {
				s.log.Error("BUG: old samples can't be let go", "err", err)
			}
		}
		return
	}
	if head.NumSeries() == 0 {
		return
	}
	over, crowded := s.crowded(now)
	// A WAL that takes half of the room is let go of before a block's time is over.
	span := time.Duration(head.MaxTime()-head.MinTime()) * time.Millisecond
	cut := span > blockRange*3/2 || crowded && span > shortest
	if !cut && !over {
		return
	}
	select {
	case s.work <- struct{}{}:
	default:
		return // one is being written
	}
	s.busy.Add(1)
	// Writing waits for the disk, and the next tick may not.
	go func() {
		defer func() { <-s.work; s.busy.Done() }()
		if !cut {
			s.bound(now, 0)
			return
		}
		// Room is made first: a block is smaller than the WAL it is made of.
		s.bound(now, folderSize(filepath.Join(s.dir, "wal")))
		// The compactor's buffers are twice what all the rest of the engine takes.
		// Were they to come on top of a tick's garbage, and the collector to take
		// them for what is always needed, the sidecar would be that much larger for
		// good: so garbage goes before, little is let come in between, and they go at
		// once after.
		runtime.GC()
		defer debug.SetGCPercent(debug.SetGCPercent(25))
		defer debug.FreeOSMemory()
		if err := s.writeBlock(head, crowded); err != nil {
			s.mu.Lock()
			s.bad = err
			s.mu.Unlock()
		}
		s.bound(now, 0)
	}()
}

// crowded looks every ten seconds whether there is more on disk than may be, and
// whether it is the WAL, which removing blocks does not make smaller.
func (s *store) crowded(now time.Time) (over, wal bool) {
	if d := now.Sub(s.looked); d >= 0 && d < lookEvery {
		return false, false
	}
	s.looked = now
	return s.bytes() > s.size, folderSize(filepath.Join(s.dir, "wal")) > s.size/2
}

// writeBlock writes the oldest block's worth of the head to disk and lets it go
// from memory and WAL; where room is scarce, all but the newest.
func (s *store) writeBlock(head *tsdb.Head, scarce bool) error {
	width := blockRange.Milliseconds()
	mint := head.MinTime()
	maxt := mint - mint%width + width
	if scarce {
		maxt = min(maxt, head.MaxTime()-shortest.Milliseconds()/2)
	}
	part := tsdb.NewRangeHeadWithIsolationDisabled(head, mint, maxt-1)
	head.WaitForAppendersOverlapping(part.MaxTime())
	compactor, err := tsdb.NewLeveledCompactor(context.Background(), nil, quiet(s.log), []int64{width}, nil, nil)
	if err != nil {
		return err
	}
	ids, err := compactor.Write(s.dir, part, mint, maxt, nil)
	if err != nil {
		return fmt.Errorf("write a block: %w", err)
	}
	for _, id := range ids {
		b, err := tsdb.OpenBlock(quiet(s.log), filepath.Join(s.dir, id.String()), nil, nil)
		if err != nil {
			return fmt.Errorf("open the block just written: %w", err)
		}
		s.mu.Lock()
		s.blocks = append(s.blocks, b)
		s.mu.Unlock()
	}
	return head.Truncate(maxt)
}

// bound removes the oldest blocks past the retention and the size, so many bytes
// of which are to be free.
func (s *store) bound(now time.Time, free int64) {
	s.mu.Lock()
	size := free + folderSize(filepath.Join(s.dir, "wal"))
	for _, b := range s.blocks {
		size += b.Size()
	}
	var gone []*tsdb.Block
	for len(s.blocks) > 0 {
		old := s.blocks[0]
		if size <= s.size && now.Sub(time.UnixMilli(old.MaxTime())) <= s.retention {
			break
		}
		size -= old.Size()
		gone, s.blocks = append(gone, old), s.blocks[1:]
	}
	s.mu.Unlock()
	for _, b := range gone {
		b.Close() // waits for the queries that read it
		if err := os.RemoveAll(b.Dir()); err != nil {
			s.log.Warn("an old block can't be removed", "err", err)
		}
	}
}

func folderSize(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// dropEarlier lets heads go that hold nothing recent.
func (s *store) dropEarlier(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.earlier = slices.DeleteFunc(s.earlier, func(h *tsdb.Head) bool {
		return now.Sub(time.UnixMilli(h.MaxTime())) > memoryKept
	})
}

// bytes is what the store takes on disk.
func (s *store) bytes() (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.dir == "" {
		return 0
	}
	for _, b := range s.blocks {
		n += b.Size()
	}
	return n + folderSize(filepath.Join(s.dir, "wal"))
}

// Querier reads the blocks and heads that hold something of the span.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	q := &querier{mint: mint, maxt: maxt}
	for _, b := range s.blocks {
		if !b.OverlapsClosedInterval(mint, maxt) {
			continue
		}
		from, err := openSource(b)
		if err != nil {
			q.Close()
			return nil, fmt.Errorf("read block %s: %w", b, err)
		}
		q.sources = append(q.sources, from)
	}
	for _, h := range append(slices.Clone(s.earlier), s.head) {
		from, err := headSource(h, mint, maxt)
		if err != nil {
			q.Close()
			return nil, fmt.Errorf("read the head: %w", err)
		}
		if from != nil {
			q.sources = append(q.sources, from)
		}
	}
	return q, nil
}

// headSource reads a head, or of a head that is being cut what will be left.
func headSource(h *tsdb.Head, mint, maxt int64) (*source, error) {
	if maxt < h.MinTime() {
		return nil, nil
	}
	from, err := openSource(tsdb.NewRangeHead(h, mint, maxt))
	if err != nil {
		return nil, err
	}
	closing, again, start := h.IsQuerierCollidingWithTruncation(mint, maxt)
	if !closing {
		return from, nil
	}
	if err := from.close(); err != nil {
		return nil, err
	}
	if !again {
		return nil, nil
	}
	return openSource(tsdb.NewRangeHead(h, start, maxt))
}
