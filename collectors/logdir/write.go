package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/root"
)

// The reasons for which a folder, a mount or a process can't be seen.
const (
	NoPermission = "no_permission" // a right is missing
	NotThere     = "not_there"     // the folder does not exist, maybe not yet
	MountStuck   = "mount_stuck"   // the file system owes an answer
	PartlyRead   = "partly_read"   // some of the tree could not be read: the size is too small
	NoOpenat2    = "no_openat2"    // the kernel lacks it, and no other way is allowed
	ReadFailed   = "read_failed"   // any other error of the file system
)

// A Blind is one thing that can't be seen.
type Blind struct {
	// What is the folder (its label), the mount point or the holder.
	What string
	// Reason is one of the constants above, Detail a sentence.
	Reason, Detail string
	// Needs is the right that would mend it, if one would.
	Needs string
}

// Blind lists what the last Poll could not see. The caller holds the Set's
// lock; the result is valid until the next Poll.
func (p *Poller) Blind() []Blind { return p.blind }

// A Place says where one folder lies, for the findings about disks.
type Place struct {
	Dir        Dir
	Mountpoint string // as the server sees it
	Avail      int64  // bytes that the server's user may write there
}

// Places lists the folders whose file system answered in the last Poll. The
// caller holds the Set's lock; the result is valid until the next Poll.
func (p *Poller) Places() []Place { return p.lie }

// write puts the figures of all that has answered into the Set.
func (p *Poller) write(now time.Time) error {
	var errs []error
	p.set.Lock()
	defer p.set.Unlock()
	p.set.Begin()
	p.blind, p.lie = p.blind[:0], p.lie[:0]
	for _, pl := range p.places {
		errs = append(errs, p.writePlace(pl, now))
	}
	for _, m := range p.mounts {
		errs = append(errs, p.writeMount(m, now))
	}
	for _, h := range p.held {
		p.writeHolder(h, now)
	}
	p.set.Sweep()
	return errors.Join(errs...)
}

func (p *Poller) blindTo(what, reason, detail, needs string) {
	p.blind = append(p.blind, Blind{what, reason, detail, needs})
}

// stuck says whether a task has owed its answer for too long.
func (p *Poller) stuck(t *task, now time.Time) bool {
	return t != nil && t.busy() && now.Sub(t.started) >= p.cfg.StuckAfter
}

// writePlace writes one folder's figures. While its mount's task is under way
// and not stuck yet, they are those of the poll before.
func (p *Poller) writePlace(pl *place, now time.Time) error {
	dir := pl.folder.dir.Name
	if pl.counter { // a counter stays as long as its server does
		p.set.Counter(writtenBytes, dir)
	}
	m := pl.mount
	switch {
	case p.stuck(pl.search, now) || m != nil && p.stuck(&m.task, now):
		p.blindTo(dir, MountStuck, "the file system has not answered for "+p.cfg.StuckAfter.String(), "")
		return nil
	case m != nil && m.busy(), m == nil && pl.search.busy():
		return p.keep(dir)
	}
	if m != nil && m.ok {
		p.lie = append(p.lie, Place{pl.folder.dir, m.ref.point, m.avail})
	}
	f := pl.folder
	if f.err != nil {
		return p.failed(dir, f.err)
	}
	if f.partly != (scanMisses{}) && f.have {
		needs := ""
		if f.partly.denied > 0 {
			needs = "CAP_DAC_READ_SEARCH"
		}
		p.blindTo(dir, PartlyRead, fmt.Sprintf("%d names could not be read, %d folders lie too deep: the size is too small", f.partly.bad, f.partly.deep), needs)
	}
	if pl.counts() && (f.written > 0 || f.have || pl.counter) {
		p.set.Start(writtenBytes, dir).Add(f.written)
		f.written, pl.counter = 0, true
	}
	if f.have {
		p.set.Gauge(sizeBytes, dir).Set(float64(f.allocated))
		p.set.Gauge(fileCount, dir).Set(float64(f.files))
		p.set.Gauge(scanAge, dir).Set(max(now.Sub(f.readAt).Seconds(), 0))
	}
	return nil
}

// keep names the gauges of a folder so that they stay as they are.
func (p *Poller) keep(dir string) error {
	for _, f := range []*metric.Family{sizeBytes, fileCount, scanAge} {
		p.set.Gauge(f, dir) // stays absent where it was
	}
	return nil
}

// failed tells of a folder that can't be read. Not being there and missing
// rights are lasting, the rest are errors of the moment.
func (p *Poller) failed(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.blindTo(dir, NotThere, err.Error(), "")
		return nil
	case errors.Is(err, fs.ErrPermission):
		p.blindTo(dir, NoPermission, err.Error(), "CAP_DAC_READ_SEARCH")
		return nil
	case errors.Is(err, root.ErrNoOpenat2):
		p.blindTo(dir, NoOpenat2, err.Error(), "Linux 5.6, or targets.without_openat2: walk")
		return nil
	}
	p.blindTo(dir, ReadFailed, err.Error(), "")
	return fmt.Errorf("read folder %s: %w", dir, err)
}

func (p *Poller) writeMount(m *mountTask, now time.Time) error {
	at := m.ref.point
	if p.stuck(&m.task, now) {
		p.blindTo(at, MountStuck, "the file system has not answered for "+p.cfg.StuckAfter.String(), "")
		return nil
	}
	if m.busy() {
		for _, f := range []*metric.Family{fsSize, fsAvail, fsInodes, fsInodesFree, fsReadonly} {
			p.set.Gauge(f, at)
		}
		for _, w := range windows {
			p.set.Gauge(fsFull, at, w.name)
		}
		return nil
	}
	if !m.ok {
		if m.err == nil {
			return nil // none of its folders could be opened: each says so
		}
		return fmt.Errorf("ask file system %s: %w", at, m.err)
	}
	p.set.Gauge(fsSize, at).Set(float64(m.space.size))
	p.set.Gauge(fsAvail, at).Set(float64(m.avail))
	if m.space.hasInodes {
		p.set.Gauge(fsInodes, at).Set(float64(m.space.inodes))
		p.set.Gauge(fsInodesFree, at).Set(float64(m.space.inodesFree))
	}
	readonly := 0.0
	if m.space.readonly {
		readonly = 1
	}
	p.set.Gauge(fsReadonly, at).Set(readonly)
	for _, w := range windows {
		if left, ok := m.forecast.full(w.span); ok {
			p.set.Gauge(fsFull, at, w.name).Set(left)
		}
	}
	return nil
}
