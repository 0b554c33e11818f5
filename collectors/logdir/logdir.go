// Package logdir watches the folders a server logs into: how large, how fast
// they grow, how long until the file system beneath is full, and what deleted
// files still hold.
//
// The story behind it: a server under a load test threw away requests, wrote a
// stack trace for each, and `du -d 1 -h` told its operators afterwards that the
// logs had become 253 GB. Every figure here exists to tell that in the first
// seconds: size as du counts it, bytes written whatever rotation and truncation
// do, free space as the server's own user has it.
//
// On Linux the kernel is asked directly (getdents, statx, fstatfs; openat2
// where a folder lies beneath another process's root). Known to work: Linux 4.11
// (statx) and later; 5.6 brought openat2 and 5.8 the mount's id in statx, and
// both have a fallback. Elsewhere gopsutil answers for the file system and the
// standard library for the folders, which is slower and knows no inode numbers.
//
// A file system can stop answering (a network mount whose server is gone), and
// then a call into it never returns. So each mount has at most one task, Poll
// waits for it a bounded time, and the figures of that mount alone go absent.
package logdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The families of this room.
var (
	sizeBytes = &metric.Family{Name: "logdir_size_bytes", Kind: metric.Gauge, Labels: []string{"dir"}, Source: "getdents, statx",
		Help: "Bytes that the folder takes on its disk, as `du -sx` counts them: blocks, hard links once, folders included."}
	writtenBytes = &metric.Family{Name: "logdir_written_bytes_total", Kind: metric.Counter, Labels: []string{"dir"}, Source: "statx",
		Help: "Bytes written to files of the folder since the sidecar first saw it. Rotation and truncation don't take them back; what is written and truncated between two looks is not seen."}
	fileCount = &metric.Family{Name: "logdir_files", Kind: metric.Gauge, Labels: []string{"dir"}, Source: "getdents",
		Help: "Names in the folder and below it that are no folders."}
	scanAge = &metric.Family{Name: "logdir_scan_age_seconds", Kind: metric.Gauge, Labels: []string{"dir"}, Source: "this room",
		Help: "Age of the last whole read of the folder. The files that change are looked at each poll in between."}
	fsSize = &metric.Family{Name: "logfs_size_bytes", Kind: metric.Gauge, Labels: []string{"mountpoint"}, Source: "statfs",
		Help: "Size of the file system that holds a log folder, or of the quota that binds it there."}
	fsAvail = &metric.Family{Name: "logfs_avail_bytes", Kind: metric.Gauge, Labels: []string{"mountpoint"}, Source: "statfs",
		Help: "Bytes that the server's own user may still write there. Reserved blocks count for root only."}
	fsInodes = &metric.Family{Name: "logfs_inodes", Kind: metric.Gauge, Labels: []string{"mountpoint"}, Source: "statfs",
		Help: "Inodes of the file system. Absent where it has no fixed number of them."}
	fsInodesFree = &metric.Family{Name: "logfs_inodes_free", Kind: metric.Gauge, Labels: []string{"mountpoint"}, Source: "statfs",
		Help: "Inodes that are free. Without one no file can be made, however many bytes are free."}
	fsReadonly = &metric.Family{Name: "logfs_readonly", Kind: metric.Gauge, Labels: []string{"mountpoint"}, Source: "statfs",
		Help: "1 when the file system is mounted read-only, as ext4 does by itself after an error."}
	fsFull = &metric.Family{Name: "logfs_full_seconds", Kind: metric.Gauge, Labels: []string{"mountpoint", "window"}, Source: "statfs",
		Help: "Seconds until nothing is left for the server, at the rate of the last 10s, 60s or 10m. Absent when nothing grows, and beyond ten times the window."}
	deletedOpen = &metric.Family{Name: "logfile_deleted_open_bytes", Kind: metric.Gauge, Labels: []string{"holder"}, Source: "/proc/PID/fd",
		Help: "Bytes on disk of files that are deleted and still open: in use, and seen by no du. The holder is the server or the sidecar itself."}
)

// Metrics are the families of this room.
var Metrics = []*metric.Family{sizeBytes, writtenBytes, fileCount, scanAge, fsSize, fsAvail, fsInodes, fsInodesFree,
	fsReadonly, fsFull, deletedOpen}

// The reasons for which a folder, a mount or a process can't be seen.
const (
	NoPermission = "no_permission" // a right is missing
	NotThere     = "not_there"     // the folder does not exist, maybe not yet
	MountStuck   = "mount_stuck"   // the file system owes an answer
	PartlyRead   = "partly_read"   // some of the tree could not be read: the size is too small
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

// mountTask is one mount with the folders on it.
type mountTask struct {
	task
	ref     mountRef
	folders []*folder

	// What the last finished task left.
	ok       bool
	space    space
	avail    int64
	forecast forecast
	lastFree int64
	explain  float64
	err      error

	buf   []byte // reused by each task
	roots []root
}

// root is one folder, opened for a task, or why it could not be.
type root struct {
	node node
	err  error
}

// place is where one Dir lies, as far as that is known.
type place struct {
	task       // the search for it
	folder     *folder
	mount      *mountTask
	found      mountRef
	err        error
	searchedAt time.Time
	searching  bool // a search is under way, or ended and not settled yet
	counter    bool // the counter has been shown
}

// A Poller is the source of one server. It satisfies collectors.Poller.
type Poller struct {
	set    *metric.Set
	cfg    Config
	sys    fsys
	clock  func() time.Time // for the cost of a scan, never for a figure
	places []*place
	mounts map[string]*mountTask
	held   []*holder
	blind  []Blind // under the Set's lock
}

// New makes the source of one server. cfg must have passed Check.
func New(set *metric.Set, cfg Config) *Poller {
	cfg = cfg.withDefaults()
	p := &Poller{set: set, cfg: cfg, sys: newFS(cfg), clock: time.Now, mounts: map[string]*mountTask{}, held: holders(cfg)}
	for _, d := range cfg.Dirs {
		t := newTracker(cfg.TrackedFiles)
		p.places = append(p.places, &place{folder: &folder{dir: d, tracker: t}})
	}
	return p
}

// searchEvery is how often a folder's place is looked up anew: a link may be
// pointed elsewhere, a file system mounted over it.
const searchEvery = 30 * time.Second

// Poll looks at everything once. It returns after about Config.Patience at the
// latest, whatever the file systems do.
func (p *Poller) Poll(ctx context.Context, now time.Time) error {
	var started []*task
	for _, pl := range p.places {
		p.search(pl, now, &started)
	}
	wait(ctx, p.cfg.Patience, started)
	for _, pl := range p.places {
		p.settle(pl)
	}
	started = started[:0]
	for _, m := range p.mounts {
		if m.busy() {
			continue
		}
		m.start(now, func() { m.work(p.sys, &p.cfg, now, p.clock) })
		started = append(started, &m.task)
	}
	for _, h := range p.held {
		if h.begin(p.cfg, now, p.clock) {
			started = append(started, &h.task)
		}
	}
	wait(ctx, p.cfg.Patience, started)
	return p.write(now)
}

// search starts the look-up of a folder's mount when it is time for it.
func (p *Poller) search(pl *place, now time.Time, started *[]*task) {
	if pl.searching || pl.mount != nil && (pl.mount.busy() || now.Sub(pl.searchedAt) < searchEvery) {
		return
	}
	pl.searchedAt, pl.searching = now, true
	path := pl.folder.dir.Path
	pl.start(now, func() {
		pl.found, pl.err = mountRef{}, nil
		n, err := p.sys.open(p.cfg.Root, path)
		if err != nil {
			pl.err = err
			return
		}
		defer n.close()
		pl.found, pl.err = p.sys.mount(n)
	})
	*started = append(*started, &pl.task)
}

// settle takes the end of a search: the folder joins the task of its mount.
func (p *Poller) settle(pl *place) {
	if !pl.searching || pl.busy() {
		return
	}
	to := p.mounts[pl.found.key]
	if pl.mount != nil && pl.mount.busy() || pl.err == nil && to != nil && to.busy() {
		return // a task has the folders: settle in the next poll
	}
	pl.searching = false
	if pl.err == nil && to != nil && to == pl.mount {
		return
	}
	p.leave(pl)
	if pl.err != nil {
		pl.folder.lost(pl.err)
		return
	}
	if to == nil {
		to = &mountTask{ref: pl.found}
		p.mounts[pl.found.key] = to
	}
	to.folders = append(to.folders, pl.folder)
	pl.mount = to
}

// leave takes a folder from its mount, and the mount away when it was the last.
func (p *Poller) leave(pl *place) {
	m := pl.mount
	if m == nil {
		return
	}
	pl.mount = nil
	for i, f := range m.folders {
		if f == pl.folder {
			m.folders = append(m.folders[:i], m.folders[i+1:]...)
			break
		}
	}
	if len(m.folders) == 0 {
		delete(p.mounts, m.ref.key)
	}
}

// suspicious is the fall of free space between two looks that calls for whole
// reads when the files we watch don't explain it.
const suspicious = 4 << 20

// work is what the task of a mount does: the space first, because its time is
// now, then the folders within the budget.
func (m *mountTask) work(sys fsys, cfg *Config, now time.Time, clock func() time.Time) {
	m.ok, m.err = false, nil
	if m.buf == nil {
		m.buf = make([]byte, listBuffer)
	}
	begin := clock()
	m.roots = m.roots[:0]
	for _, f := range m.folders {
		n, err := sys.open(cfg.Root, f.dir.Path)
		m.roots = append(m.roots, root{n, err})
		if err == nil {
			m.ask(n, cfg.UID)
		}
	}
	if m.ok {
		fell := float64(m.lastFree - m.space.free)
		for _, f := range m.folders {
			f.suspect = f.suspect || m.lastFree > 0 && fell-m.explain > suspicious
			f.tracker.compressing = m.space.compressing
		}
		m.lastFree, m.explain = m.space.free, 0
		m.forecast.add(now, m.avail)
	}
	for i, f := range m.folders {
		before := f.written
		f.look(m.roots[i].node, m.roots[i].err, cfg, now, limits{clock, max(cfg.ScanBudget-clock().Sub(begin), 0), m.buf})
		m.explain += f.written - before
	}
}

// ask takes the space as it is in one folder. A project quota answers for its
// folder alone: of several on one mount the narrowest binds.
func (m *mountTask) ask(n node, uid int) {
	s, err := n.space()
	if err != nil {
		m.err = err
		return
	}
	avail := s.avail
	if uid == 0 {
		avail = s.free
	}
	if avail = max(avail, 0); !m.ok || avail < m.avail {
		m.ok, m.space, m.avail = true, s, avail
	}
}

// write puts the figures of all that has answered into the Set.
func (p *Poller) write(now time.Time) error {
	var errs []error
	p.set.Lock()
	defer p.set.Unlock()
	p.set.Begin()
	p.blind = p.blind[:0]
	for _, pl := range p.places {
		errs = append(errs, p.writePlace(pl, now))
	}
	for _, m := range p.mounts {
		errs = append(errs, p.writeMount(m, now))
	}
	for _, h := range p.held {
		p.writeHolder(h)
	}
	p.set.Sweep()
	return errors.Join(errs...)
}

func (p *Poller) blindTo(what, reason, detail, needs string) {
	p.blind = append(p.blind, Blind{what, reason, detail, needs})
}

// stuck says whether a task has owed its answer for too long.
func (p *Poller) stuck(t *task, now time.Time) bool {
	return t.busy() && now.Sub(t.started) >= p.cfg.StuckAfter
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
	case p.stuck(&pl.task, now) || m != nil && p.stuck(&m.task, now):
		p.blindTo(dir, MountStuck, "the file system has not answered for "+p.cfg.StuckAfter.String(), "")
		return nil
	case m != nil && m.busy(), m == nil && pl.busy():
		return p.keep(dir)
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
	if f.written > 0 || f.have || pl.counter {
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

// Blind lists what the last Poll could not see. The caller holds the Set's
// lock; the result is valid until the next Poll.
func (p *Poller) Blind() []Blind { return p.blind }

// Save returns the counters for the checkpoint. The caller holds the Set's lock.
func (p *Poller) Save() ([]byte, error) {
	data, err := p.set.Save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(saved{Set: data})
}

type saved struct {
	Set json.RawMessage `json:"set"`
}

// Load takes the counters back into a fresh Poller. What was written while no
// sidecar ran is not added: a start raises no alert about the past. The caller
// holds the Set's lock.
func (p *Poller) Load(data []byte) error {
	var in saved
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("load log folders: %w", err)
	}
	// Gauges of the last run are of another time: only the counters return.
	if err := p.set.Load(in.Set, []*metric.Family{writtenBytes}); err != nil {
		return err
	}
	for _, pl := range p.places {
		if _, ok := p.set.Counter(writtenBytes, pl.folder.dir.Name).Value(); ok {
			pl.counter = true
		}
	}
	return nil
}
