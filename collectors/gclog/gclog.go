// Package gclog reads the garbage collector's log of a JVM, live or from files.
//
// The log is the only place where every stop of the server stands with its
// length and its cause, and no two versions of Java write it alike. Up to 8 it
// is text for people: one bracketed record a collection, cut by line breaks,
// with other threads' lines inside. From 9 on ("unified logging", JEP 158) it
// is one line a message, with any subset of a dozen decorations before it. The
// two are told apart line by line, so one stream may hold both: a server that
// was restarted on a newer Java goes on in the same file.
//
// Known to work, counted against logs of: JDK 6 to 8 with Serial, Parallel,
// CMS (also incremental) and G1; 9 to 25 with Serial, Parallel, CMS (to 13),
// G1, ZGC of one generation (to 23) and of two (from 21), Shenandoah of both
// kinds, Epsilon. What changed between them and mattered:
//
//   - 7u40 puts the cause behind "GC"; 6 has only "(System)".
//   - 7 to 8, G1: the time stands in the header, or alone on a line up to a
//     hundred lines later when ages, ergonomics or references are printed.
//   - 9 to 11, Serial: a Full is printed inside the Young that failed.
//   - 9 and 10: G1 says "Pause Initial Mark (cause)"; 11 says "Pause Young
//     (Concurrent Start)"; CMS says "Pause Initial Mark" without a cause.
//   - 13: the stopped lines became one "Safepoint" line with nanoseconds.
//   - 21: ZGC's messages begin with y:, Y: or O:; cycles interleave.
//   - 22: G1's "To-space exhausted" became "(Evacuation Failure: …)" behind the
//     name, and GCLocker waits ended.
//   - 25: Shenandoah's final roots are concurrent; "Cleanup" left the safepoint
//     line, "Leaving safepoint" and "Threads" came.
//
// A pause is a stop of the world, counted once. One that is printed inside
// another one (a scavenge before a remark) is counted, and adds no time: its
// time is in the other's already. A stopped line measures the same stop again,
// from the first thread's wait to the last one's leave, so it has its own
// family and is never added to the pauses. Concurrent phases, ZGC's cycle
// lines and the tables printed at exit are no pauses, whatever they say.
package gclog

import (
	"fmt"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// PauseBuckets are the classic upper bounds of pauses, in seconds: ZGC stops
// for a tenth of a millisecond, a failing CMS for a minute.
var PauseBuckets = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// stopBuckets are fewer: there is one histogram an operation.
var stopBuckets = []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 5, 10, 60}

var (
	pauseSeconds = &metric.Family{
		Name: "gclog_pause_seconds", Kind: metric.Histogram, Labels: []string{"collector", "kind", "cause"}, Buckets: PauseBuckets, Source: "GC log",
		Help: "Time for which a collection stopped all application threads. A pause inside another pause is not observed: its time is in the outer one.",
	}
	collectionsTotal = &metric.Family{
		Name: "gclog_collections_total", Kind: metric.Counter, Labels: []string{"collector", "kind", "cause"}, Source: "GC log",
		Help: "Stop-the-world collections and phases, those inside another one included.",
	}
	stoppedSeconds = &metric.Family{
		Name: "gclog_stopped_seconds", Kind: metric.Histogram, Labels: []string{"operation"}, Open: []string{"operation"}, Limit: 16, Buckets: stopBuckets, Source: "GC log",
		Help: "Time for which all application threads were stopped, for whatever reason and with the time to reach the stop. It overlaps the pauses and must not be added to them.",
	}
	safepointSync = &metric.Family{
		Name: "gclog_safepoint_sync_seconds_total", Kind: metric.Counter, Source: "GC log",
		Help: "Time spent waiting until all application threads had stopped.",
	}
	concurrentSeconds = &metric.Family{
		Name: "gclog_concurrent_seconds_total", Kind: metric.Counter, Labels: []string{"phase"}, Open: []string{"phase"}, Limit: 48, Source: "GC log",
		Help: "Time of collector phases that ran beside the application. Phases lie inside cycles, so their sum means nothing.",
	}
	failuresTotal = &metric.Family{
		Name: "gclog_failures_total", Kind: metric.Counter, Labels: []string{"kind"}, Source: "GC log",
		Help: "Times the collector could not do its work as planned and fell back to something slower.",
	}
	stallSeconds = &metric.Family{
		Name: "gclog_allocation_stall_seconds", Kind: metric.Histogram, Labels: []string{"pool"}, Open: []string{"pool"}, Limit: 16, Buckets: PauseBuckets, Source: "GC log",
		Help: "Time for which one thread waited for memory (ZGC). The world goes on, so this is no pause; for the request served it is one.",
	}
	heapBefore = &metric.Family{
		Name: "gclog_heap_before_bytes", Kind: metric.Gauge, Labels: []string{"generation"}, Merge: metric.Max, Source: "GC log",
		Help: "Bytes in use before the last collection.",
	}
	heapAfter = &metric.Family{
		Name: "gclog_heap_after_bytes", Kind: metric.Gauge, Labels: []string{"generation"}, Merge: metric.Max, Source: "GC log",
		Help: "Bytes in use after the last collection: what was still alive, nearly.",
	}
	heapCommitted = &metric.Family{
		Name: "gclog_heap_committed_bytes", Kind: metric.Gauge, Labels: []string{"generation"}, Merge: metric.Max, Source: "GC log",
		Help: "Size of the heap or generation after the last collection.",
	}
	allocatedBytes = &metric.Family{
		Name: "gclog_allocated_bytes_total", Kind: metric.Counter, Source: "GC log",
		Help: "Bytes the application allocated, from the heap before each collection against the heap after the one before.",
	}
	promotedBytes = &metric.Family{
		Name: "gclog_promoted_bytes_total", Kind: metric.Counter, Source: "GC log",
		Help: "Bytes that young collections moved to the old generation.",
	}
	humongousTotal = &metric.Family{
		Name: "gclog_humongous_allocations_total", Kind: metric.Counter, Source: "GC log",
		Help: "Collections that G1 started because of an object larger than half a region.",
	}
	unrecognisedLines = &metric.Family{
		Name: "gclog_unrecognised_lines_total", Kind: metric.Counter, Source: "GC log",
		Help: "Lines of the GC log that are no known form of one. On stdout these are the application's own.",
	}
	incompleteRecords = &metric.Family{
		Name: "gclog_incomplete_records_total", Kind: metric.Counter, Source: "GC log",
		Help: "Collections whose record was begun or ended but never whole: cut, overwritten or mixed up.",
	}
	droppedMessages = &metric.Family{
		Name: "gclog_dropped_messages_total", Kind: metric.Counter, Source: "GC log",
		Help: "Messages the JVM says it dropped because its asynchronous log buffer was full. Pauses may be among them.",
	}
)

// Metrics are the families of this room.
var Metrics = []*metric.Family{
	pauseSeconds, collectionsTotal, stoppedSeconds, safepointSync, concurrentSeconds, failuresTotal, stallSeconds,
	heapBefore, heapAfter, heapCommitted, allocatedBytes, promotedBytes, humongousTotal,
	unrecognisedLines, incompleteRecords, droppedMessages,
}

// Config is the section gclog of the settings file.
type Config struct {
	// MaxRecordLines is how many lines a JDK 8 record may span before it is
	// given up as torn. TLAB statistics print a line a thread.
	MaxRecordLines int `yaml:"max_record_lines"`
	// Mixed says that the lines stand among those of an application, on its
	// standard output: what is not recognised is the application's and counts
	// for nothing, and a line that begins with a tab is a frame of its traces.
	Mixed bool `yaml:"-"`
}

// DefaultConfig is what holds where the settings say nothing.
func DefaultConfig() Config { return Config{MaxRecordLines: 20000} }

// Check says what is wrong with the settings.
func (c Config) Check() error {
	if c.MaxRecordLines < 0 {
		return fmt.Errorf("max_record_lines: %d is below 0", c.MaxRecordLines)
	}
	return nil
}
