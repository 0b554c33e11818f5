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
	"fmt"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The families of this room.
var (
	sizeBytes = &metric.Family{Name: "logdir_size_bytes", Kind: metric.Gauge, Labels: []string{"dir"}, Source: "getdents, statx",
		Help: "Bytes that the folder takes on its disk, as `du -sx` counts them: blocks, hard links once, folders included."}
	writtenBytes = &metric.Family{Name: "logdir_written_bytes_total", Kind: metric.Counter, Labels: []string{"dir"}, Source: "statx",
		Help: "Bytes written to files of the folder since the sidecar first saw it. Rotation and truncation don't take them back; what is written and truncated between two looks is not seen. The server's base folder as a whole has none."}
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

// A Poller is the source of one server. It satisfies collectors.Poller.
type Poller struct {
	set    *metric.Set
	cfg    Config
	sys    fsys
	clock  func() time.Time // for the cost of a scan, never for a figure
	places []*place
	mounts map[string]*mountTask
	search map[string]*task // look-ups by the mount that the path's text leads to
	held   []*holder

	guess     func(path string) string
	guessedAt time.Time

	blind []Blind // under the Set's lock
	lie   []Place // the same
}

// New makes the source of one server. cfg must have passed Check.
func New(set *metric.Set, cfg Config) *Poller {
	cfg = cfg.withDefaults()
	p := &Poller{set: set, cfg: cfg, sys: newFS(cfg), clock: time.Now, mounts: map[string]*mountTask{}, search: map[string]*task{}, held: holders(cfg)}
	for _, d := range cfg.Dirs {
		t := newTracker(cfg.TrackedFiles)
		p.places = append(p.places, &place{folder: &folder{dir: d, tracker: t}})
	}
	return p
}

// Poll looks at everything once. It returns after about Config.Patience at the
// latest, whatever the file systems do.
func (p *Poller) Poll(ctx context.Context, now time.Time) error {
	started := p.searches(now)
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
			pl.counter = pl.counts() // an older sidecar counted in the base, too
		}
	}
	return nil
}
