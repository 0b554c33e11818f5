package gclog

// An Event is one fact the log states. The decoder reuses it: whoever is handed
// one keeps what it wants of it before it returns.
type Event struct {
	Type EventType
	// Kind, Cause, Nested, ConcStart and Failures belong to a Pause.
	Kind  Kind
	Cause Cause
	// Nested says that this pause lies inside another one.
	Nested bool
	// ConcStart says that a young pause also began a concurrent cycle.
	ConcStart bool
	// Failure of a Failure.
	Failure Failure
	// Seconds of a Pause, Concurrent, Stopped or Stall.
	Seconds float64
	// Sync is the time to safepoint of a Stopped.
	Sync float64
	// Count of Dropped messages.
	Count uint64
	// Name is the phase of a Concurrent, the operation of a Stopped, the thread
	// of a Stall, the kind of a Cycle; in the line's own bytes.
	Name []byte
	// Gen is what a Heap event is about.
	Gen Generation
	// Heap sizes in bytes of a Heap event.
	Heap Transition
	// Refines says that this Heap event repeats the last one of the same
	// collection with better precision.
	Refines bool
	// Rough says that better sizes than this Heap event's, which are rounded to
	// whole M or G, stand in the log: only how far it fell is worth knowing.
	Rough bool
	// Promoted is how much a young Pause (or an AllocatedEvent behind it) moved to
	// the old generation, in bytes.
	Promoted float64
}

// EventType is what an Event states.
type EventType uint8

const (
	// PauseEvent is a stop of the world by the collector.
	PauseEvent EventType = iota
	// ConcurrentEvent is the end of a phase beside the application.
	ConcurrentEvent
	// StoppedEvent is a safepoint with its whole time.
	StoppedEvent
	// StallEvent is one thread that waited for memory.
	StallEvent
	// RelocationStallEvent is one thread that waited for an object to be moved.
	RelocationStallEvent
	// FailureEvent is a fall-back of the collector.
	FailureEvent
	// HeapEvent is a transition of the heap or a generation.
	HeapEvent
	// CycleEvent is the end of one of ZGC's cycles.
	CycleEvent
	// DroppedEvent is a notice that messages were dropped.
	DroppedEvent
	// IncompleteEvent is a record that will not be whole.
	IncompleteEvent
	// UnrecognisedEvent is a line of no known form.
	UnrecognisedEvent
	// RestartEvent says that another JVM writes from here on.
	RestartEvent
	// AllocatedEvent gives bytes allocated where the log counts them itself.
	AllocatedEvent
)

// Kind is the kind of a pause, a closed set.
type Kind uint8

const (
	KindOther Kind = iota
	KindYoung
	KindMixed
	KindFull
	KindInitialMark
	KindRemark
	KindCleanup
	// KindMark is a CMS mark of a log that does not say which one.
	KindMark
	KindMarkStart
	KindMarkEnd
	KindRelocateStart
	KindInitMark
	KindFinalMark
	KindFinalRoots
	KindInitUpdateRefs
	KindFinalUpdateRefs
	KindInitEvac
	KindFinalEvac
	KindInitTraversal
	KindFinalTraversal
	KindDegenerated
	KindVerify
	kinds
)

var kindNames = [kinds]string{
	"other", "young", "mixed", "full", "initial-mark", "remark", "cleanup", "initial-mark-or-remark",
	"mark-start", "mark-end", "relocate-start",
	"init-mark", "final-mark", "final-roots", "init-update-refs", "final-update-refs",
	"init-evac", "final-evac", "init-traversal", "final-traversal", "degenerated", "verify",
}

func (k Kind) String() string { return kindNames[k] }

// kindByPause maps the words behind "Pause" in unified logging.
var kindByPause = map[string]Kind{
	"Young": KindYoung, "Mixed": KindMixed, "Full": KindFull,
	"Initial Mark": KindInitialMark, "Remark": KindRemark, "Cleanup": KindCleanup,
	"Mark Start": KindMarkStart, "Mark End": KindMarkEnd, "Relocate Start": KindRelocateStart,
	"Init Mark": KindInitMark, "Final Mark": KindFinalMark, "Final Roots": KindFinalRoots,
	"Init Update Refs": KindInitUpdateRefs, "Final Update Refs": KindFinalUpdateRefs,
	"Init Evac": KindInitEvac, "Final Evac": KindFinalEvac,
	"Init Traversal": KindInitTraversal, "Final Traversal": KindFinalTraversal,
	"Degenerated GC": KindDegenerated, "Verify": KindVerify, "Verify Before": KindVerify, "Verify After": KindVerify,
}

// Collector is the collector that wrote the log.
type Collector uint8

const (
	CollectorUnknown Collector = iota
	Serial
	Parallel
	CMS
	G1
	ZGC
	Shenandoah
	Epsilon
	collectorCount
)

var collectorNames = [collectorCount]string{"unknown", "serial", "parallel", "cms", "g1", "zgc", "shenandoah", "epsilon"}

func (c Collector) String() string { return collectorNames[c] }

// Failure is a fall-back of the collector, a closed set.
type Failure uint8

const (
	PromotionFailed Failure = iota
	ConcurrentModeFailure
	ConcurrentModeInterrupted
	ToSpaceExhausted
	EvacuationFailure
	Degenerated
	FullAfterDegenerated
	GCOverheadLimit
	failureCount
)

var failureNames = [failureCount]string{
	"promotion_failed", "concurrent_mode_failure", "concurrent_mode_interrupted", "to_space_exhausted",
	"evacuation_failure", "degenerated", "full_after_degenerated", "gc_overhead_limit",
}

func (f Failure) String() string { return failureNames[f] }

// Generation is what a heap size is about.
type Generation uint8

const (
	Heap Generation = iota
	Young
	Old
	Perm
	Metaspace
	generations
)

var generationNames = [generations]string{"heap", "young", "old", "perm", "metaspace"}

func (g Generation) String() string { return generationNames[g] }

// Cause is an index in the closed list of causes; 0 is none.
type Cause uint8

// causeNames are the causes HotSpot has had from JDK 6 to 25, as they are
// printed. Anything else is "other".
var causeNames = [...]string{
	"", "other",
	"Allocation Failure", "Ergonomics", "System.gc()", "GCLocker Initiated GC",
	"Metadata GC Threshold", "Metadata GC Clear Soft References", "Last ditch collection",
	"G1 Evacuation Pause", "G1 Humongous Allocation", "G1 Preventive Collection", "G1 Compaction Pause", "G1 Periodic Collection",
	"CMS Initial Mark", "CMS Final Remark", "CMS Concurrent Mark", "CMS Generation Full",
	"Permanent Generation Full", "Old Generation Expanded On Last Scavenge", "Old Generation Too Full To Scavenge",
	"Heap Inspection Initiated GC", "Heap Dump Initiated GC", "Diagnostic Command", "JvmtiEnv ForceGarbageCollection",
	"Adaptive Size Ergonomics", "Allocation Profiler", "FullGCAlot", "ScavengeAlot", "No GC",
	"WhiteBox Initiated Young GC", "WhiteBox Initiated Concurrent Mark", "WhiteBox Initiated Full GC",
	"Update Allocation Context Stats", "Concurrent GC", "Upgrade To Full GC", "Stop VM",
	"CodeCache GC Threshold", "CodeCache GC Aggressive",
	"Timer", "Warmup", "Proactive", "Allocation Rate", "Allocation Stall", "High Usage",
}

const (
	causeNone  Cause = 0
	causeOther Cause = 1
)

var (
	causes          = map[string]Cause{}
	causeSystem     Cause
	causeHumongous  Cause
	causeCMSInitial Cause
	causeCMSRemark  Cause
	causeErgonomics Cause
)

func init() {
	for i, n := range causeNames {
		causes[n] = Cause(i)
	}
	delete(causes, "")
	causeSystem = causes["System.gc()"]
	causes["System"] = causeSystem // JDK 6
	causeHumongous = causes["G1 Humongous Allocation"]
	causeCMSInitial = causes["CMS Initial Mark"]
	causeCMSRemark = causes["CMS Final Remark"]
	causeErgonomics = causes["Ergonomics"]
}

// causeNamed looks a cause up; the last one is remembered, for they come in
// rows. causeNone is one that is not in the list.
func (d *decoder) causeNamed(name []byte) Cause {
	if d.lastCause != causeNone && causeNames[d.lastCause] == string(name) {
		return d.lastCause
	}
	c := causes[string(name)]
	d.lastCause = c
	return c
}

func (c Cause) String() string { return causeNames[c] }

// isG1 says whether only G1 has this cause.
func (c Cause) isG1() bool {
	n := causeNames[c]
	return len(n) > 3 && n[:3] == "G1 "
}
