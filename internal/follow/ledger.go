package follow

import (
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// GapReason says why something may be missing between two lines.
type GapReason uint8

const (
	// GapTruncated: the file was truncated. What was written between the last
	// look, or the end of the copy, and the truncation can't be known.
	GapTruncated GapReason = iota
	// GapRotated: files may have come and gone between two looks.
	GapRotated
	// GapGone: what the checkpoint pointed to is no longer there.
	GapGone
	// GapReleased: a deleted or unreadable file was let go.
	GapReleased
	// GapLong: a line was longer than the limit and was cut.
	GapLong
	// GapSkipped: whole blocks were skipped to keep up.
	GapSkipped
	// GapHole: bytes that were never written, seen as NULs.
	GapHole
	gapReasons
)

var gapNames = [gapReasons]string{"truncated", "rotated", "gone", "released", "long", "skipped", "hole"}

func (r GapReason) String() string { return gapNames[r] }

// A Ledger accounts for every byte the kernel showed us of one stream.
//
// Written = Read + Skipped + Lost + Lag at every moment. Read is what was
// handed over as whole lines, line ends included, so a half line at the end
// still stands in Lag.
type Ledger struct {
	Written, Read, Skipped, Lost int64
	Rotations, Truncations       int64
	Lines                        int64
	Gaps                         [gapReasons]int64

	// What follows is of now and is not restored.
	Lag         int64   // bytes
	LagSeconds  float64 // how long the oldest byte that was not read has been there
	Size        int64   // of the live file
	HasSize     bool    // there is a live file
	DeletedOpen int64   // bytes held in deleted files
	Storm       bool    // blocks are being skipped
	// Blind says why the live file can't be read (Spec.Open names the words,
	// and "not_regular" is a pipe or a device), or is empty.
	Blind string
}

// The families of the followed files. logfile_deleted_open_bytes is the room
// logdir's.
var (
	sizeBytes = &metric.Family{Name: "logfile_size_bytes", Kind: metric.Gauge, Labels: []string{"file"},
		Help: "Size of the log file that is being written now.", Source: "log file"}
	writtenBytes = &metric.Family{Name: "logfile_written_bytes_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "Bytes that appeared in the log, over all its rotations. It equals read + skipped + lost + lag.", Source: "log file"}
	readBytes = &metric.Family{Name: "logfile_read_bytes_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "Bytes of the log that were read and counted as whole lines.", Source: "log file"}
	skippedBytes = &metric.Family{Name: "logfile_skipped_bytes_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "Bytes of the log that were left out on purpose: the rest of over-long lines, holes, and blocks skipped to keep up.", Source: "log file"}
	lostBytes = &metric.Family{Name: "logfile_lost_bytes_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "Bytes that were seen in the log and were gone before they could be read.", Source: "log file"}
	lagBytes = &metric.Family{Name: "logfile_lag_bytes", Kind: metric.Gauge, Labels: []string{"file"},
		Help: "Bytes of the log that are still to be read, an unfinished last line included.", Source: "log file"}
	lagSeconds = &metric.Family{Name: "logfile_lag_seconds", Kind: metric.Gauge, Labels: []string{"file"}, Merge: metric.Max,
		Help: "How long the oldest unread byte of the log has been there; 0 when all is read.", Source: "log file"}
	rotations = &metric.Family{Name: "logfile_rotations_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "How often the log went on in a new file.", Source: "log file"}
	truncations = &metric.Family{Name: "logfile_truncations_total", Kind: metric.Counter, Labels: []string{"file"},
		Help: "How often the log was cut to nothing and began again in the same file.", Source: "log file"}
	gaps = &metric.Family{Name: "logfile_gaps_total", Kind: metric.Counter, Labels: []string{"file", "reason"},
		Help: "Places in the log where lines are missing, or may be because nobody could have seen them come and go.", Source: "log file"}
	stormMode = &metric.Family{Name: "logfile_storm_mode", Kind: metric.Gauge, Labels: []string{"file"}, Merge: metric.Max,
		Help: "1 while the log grows faster than the limits allow to read and blocks of it are skipped.", Source: "log file"}
)

// Metrics is what is told of every followed file. A file's series appear when
// its backlog of the start is read.
var Metrics = []*metric.Family{sizeBytes, writtenBytes, readBytes, skippedBytes, lostBytes, lagBytes, lagSeconds,
	rotations, truncations, gaps, stormMode}

// Publish writes the ledger down under the label file. The caller holds the
// Set's lock.
func (l *Ledger) Publish(set *metric.Set, file string) {
	count := func(f *metric.Family, v int64, more ...string) {
		set.Counter(f, append([]string{file}, more...)...).Set(float64(v))
	}
	count(writtenBytes, l.Written)
	count(readBytes, l.Read)
	count(skippedBytes, l.Skipped)
	count(lostBytes, l.Lost)
	count(rotations, l.Rotations)
	count(truncations, l.Truncations)
	for r, n := range l.Gaps {
		count(gaps, n, gapNames[r])
	}
	set.Gauge(lagBytes, file).Set(float64(l.Lag))
	set.Gauge(lagSeconds, file).Set(l.LagSeconds)
	storm := 0.0
	if l.Storm {
		storm = 1
	}
	set.Gauge(stormMode, file).Set(storm)
	if size := set.Gauge(sizeBytes, file); l.HasSize {
		size.Set(float64(l.Size))
	} else {
		size.Clear()
	}
}
