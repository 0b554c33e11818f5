// Package follow makes one pathname into one endless stream of whole lines and
// gaps, whatever happens to the file beneath it.
//
// # The story
//
// A log is renamed away and made anew, several times between two looks; it is
// copied and cut to nothing (copytruncate) and has grown past the old place
// before anyone looks again; its writer keeps its offset and leaves a hole of
// NULs; it is deleted and written on; a link moves on to another release's
// folder; a dated name begins at midnight while yesterday's file still gets its
// last lines. The tools of our field lose lines at each of these, or hold
// deleted files open until the disk is full, and none says what it missed.
//
// So a follower looks at state and not at events: which file the name leads to
// (device, inode, birth time), how large it is, and whether the bytes before
// our place are still the bytes that we read. Every byte the kernel showed us
// is in the ledger as read, skipped, lost or still to come, and every moment
// in which something may have come and gone unseen is a counted gap.
//
//	name ──> stat ──> the file we know? ── yes ──> grown: read on
//	                     │                         shrunk, or other bytes before
//	                     no                        our place: truncated, look for
//	                     │                         the copy and read its rest
//	                     v
//	         the old one is drained until quiet, files that were live in
//	         between are read whole, then the new one from its start
//
// Known to work: logrotate's create, nocreate, copytruncate, compress and
// dateext; log4j, logback and juli rollers; Tomcat's AccessLogValve with dated
// names and with renameOnRotate; Jetty's yyyy_MM_dd files; the GC logs of JDK 8
// (gc.log.N.current), 9 and later (gc.log renamed to gc.log.N).
//
// What it does not do: bytes that are changed in place before our position (a
// mapped file, JDK 8's GC log of one rotating file) are not read again, unless
// the last KB before our place is among them. Then the file can't be told from
// one that was truncated and has grown to its old size: it is read from its
// start, with a gap.
package follow

import (
	"os"
	"regexp"
	"sync"
	"time"
)

// A Handler takes what the stream brings. All methods are called by one
// goroutine, with Spec.Lock held; collectors.Observer satisfies it.
type Handler interface {
	// Observe takes a line without its line end, the callee's until it returns.
	// open says that an entry is unfinished and wants Idle if nothing follows.
	Observe(line []byte) (open bool)
	// Idle says that no line has come for a while.
	Idle(now time.Time)
	// Gap says that bytes were lost, skipped or cut before the next line.
	Gap()
}

// A BlockHandler is a Handler that takes many lines at once. In a storm the same
// kilobyte of stack trace follows each record, and can be compared as one piece.
type BlockHandler interface {
	Handler
	// ObserveBlock takes whole lines, each with its line end, none longer than
	// Spec.MaxLine. It stops in front of a line that begins with a NUL, which is
	// a hole in the file and no line, and says how many bytes and lines it took:
	// to look for NULs and count line ends beforehand would cost a fifth of all
	// that a storm costs. The block is the callee's until it returns; open is what
	// Observe would say of the last line. How the text is cut into blocks changes
	// no figure.
	ObserveBlock(block []byte) (taken, lines int, open bool)
}

// From says where a file that was there before the first start is read from.
type From uint8

const (
	// End starts behind what is there already.
	End From = iota
	// Start reads it from its first byte.
	Start
)

// A Spec names one stream.
type Spec struct {
	// Name is the label "file": the configured or discovered name with date and
	// number taken out.
	Name string
	// Path is the file, where its name does not change. Otherwise it is empty,
	// and every file in Dir whose base name Pattern matches is a part of the
	// stream, in the order of their making.
	Path    string
	Dir     string
	Pattern *regexp.Regexp
	// Rotated matches the base names under which earlier parts of the stream lie
	// in the same folder: where files are looked for that were live between two
	// looks, and copies that copytruncate made. nil means names derived from
	// Path (app.log.1, app.log-20261130, app-2026-11-30.log for app.log), and
	// none with Pattern. With JDK 8's GC logs, Pattern is
	// `^gc\.log\.\d+\.current$` and Rotated is `^gc\.log\.\d+$`.
	Rotated *regexp.Regexp
	// From holds for what exists at the very first start. Files that appear
	// later are read from their start.
	From From
	// Since makes From Start reach back into rotated parts that were written to
	// at or after this time: the start of the JVM, for a GC log whose totals are
	// of the whole life of it. Zero means the live file only.
	Since time.Time
	// MaxLine is the length in bytes past which a line is cut, with a gap.
	// 0 means 1 MiB.
	MaxLine int
	// Encoding is "" (UTF-8 or any superset of ASCII), "utf-16le", "utf-16be"
	// or "gbk".
	Encoding string
	// Open opens a log or a file beside it for reading: every byte of content
	// comes through it. path is Path, a name in Dir, or a file beside what those
	// lead to, with the same /proc/PID/root before it. Whoever follows the logs of
	// another user's process opens them here with that user's rights: looks at
	// names and sizes go by path, and what is opened has to be the file that was
	// looked at. What it refuses is never read, and Ledger.Blind says why:
	// "permission" for fs.ErrPermission, "no_openat2" for root.ErrNoOpenat2,
	// "not_the_targets" for root.ErrNotTheirs, "refused" for any other that is no
	// error of the system. nil means tail.OpenFile.
	Open func(path string) (*os.File, error)
	// Lock is held while lines are handed over and the position moves, and is
	// not held while the file is read.
	Lock sync.Locker

	// Grace is how long a file that is no longer the live one must have been
	// quiet before it is closed. 0 means 15 s: a buffered access log of Tomcat
	// is written out every 10 s.
	Grace time.Duration
	// HoldBytes bounds the disk space of deleted files that are held open. 0
	// means 1 GiB. At most two such files are held in any case.
	HoldBytes int64
	// LagBytes and LagAge are how far reading may fall behind before blocks are
	// skipped. 0 means 1 GiB and 60 s; negative means never. What was there at
	// the start is not counted as falling behind.
	LagBytes int64
	LagAge   time.Duration
}

const (
	defaultGrace    = 15 * time.Second
	defaultHold     = 1 << 30
	defaultLagBytes = 1 << 30
	defaultLagAge   = 60 * time.Second

	// maxHeld is how many deleted files one stream keeps open.
	maxHeld = 2
	// idleAfter is how long no line came before an unfinished entry is closed.
	idleAfter = 500 * time.Millisecond
	// rescan is how often a folder is listed although its change time stood
	// still: some network file systems are late with it.
	rescan = 5 * time.Second
	// maxLook bounds what one Look reads, so that the loop keeps its budget.
	maxLook = 4 << 20
	// stormHold is how long storm mode is shown at least: a scrape is to see it.
	stormHold = 15 * time.Second
	// maxDone is how many finished files are remembered.
	maxDone = 4096
	// maxListed is how many files of a folder are looked at as perhaps ours, the
	// newest ones. Fewer than maxDone, so that all of them can be remembered.
	maxListed = 2048
	// listShare: a folder is listed for at most a tenth of the time.
	listShare = 10
)

func maxLine(spec Spec) int {
	if spec.MaxLine > 0 {
		return max(spec.MaxLine, 16)
	}
	return defaultMaxLine
}

// lockOf is the spec's lock, or one that nobody else has.
func lockOf(spec Spec) sync.Locker {
	if spec.Lock == nil {
		return new(sync.Mutex)
	}
	return spec.Lock
}

// A Follower is one stream. Load, Look and Close are called by one goroutine;
// Save, Ledger and CaughtUp by any that holds Spec.Lock.
//
// Only Look changes the fields below, and under the lock; it reads them without.
type Follower struct {
	spec  Spec
	lock  sync.Locker
	h     Handler
	split splitter
	led   Ledger

	// parts are the files that are open or to be opened, oldest first. The last
	// is the live one, unless the name is vacant.
	parts []*part
	// done are those we know and have finished with.
	done []*part
	gone *part // the checkpoint's last file, when it was nowhere to be found

	begun     bool
	encErr    error
	restored  bool
	backlog   int64 // written at the first look; caught up when so much is consumed
	caughtUp  bool
	continued bool      // the state that was loaded had caught up once
	fresh     stat      // what the look at the name told of the live file
	marks     []mark    // when how much was written, for the lag in seconds
	stormAt   time.Time // of the last skip
	now       time.Time // of the look that is under way
	lastLine  time.Time
	buf       *buffer
	dirMtime  int64
	dirStable bool
	scanned   time.Time
	listTook  time.Duration // what the last listing of Dir cost
	crowded   bool          // there were more files than are looked at
	told      string        // the last error returned, so that it is returned once
}

// mark says that at a time so many bytes had been written.
type mark struct {
	at      time.Time
	written int64
}

// New makes a follower that has not looked yet.
func New(spec Spec, h Handler) *Follower {
	f := &Follower{spec: spec, h: h}
	f.lock = lockOf(spec)
	f.split = newSplitter(h, &f.led, maxLine(spec))
	_, f.encErr = parseEncoding(spec.Encoding)
	if f.spec.Grace == 0 {
		f.spec.Grace = defaultGrace
	}
	if f.spec.HoldBytes == 0 {
		f.spec.HoldBytes = defaultHold
	}
	if f.spec.LagBytes == 0 {
		f.spec.LagBytes = defaultLagBytes
	}
	if f.spec.LagAge == 0 {
		f.spec.LagAge = defaultLagAge
	}
	return f
}

// Name is the spec's name.
func (f *Follower) Name() string { return f.spec.Name }

// Ledger is the account up to now. The caller holds Spec.Lock.
func (f *Follower) Ledger() Ledger { return f.led }

// CaughtUp says whether what was there at the start has been read. It stays
// true from then on. The caller holds Spec.Lock.
func (f *Follower) CaughtUp() bool { return f.caughtUp }

// Continued says that the stream goes on from a saved state which had caught
// up once: its figures have been published before.
func (f *Follower) Continued() bool { return f.continued }

// Close lets go of all files. What Save returns stays valid.
func (f *Follower) Close() {
	for _, p := range f.parts {
		p.close()
	}
	for _, p := range f.done {
		p.close()
	}
}
