package jvm

import "github.com/jvm-sidecar/sidecar/internal/metric"

// Metrics are the families of this room. Names and labels are those of the
// official Java client (client_java 1.x) wherever it has one, and the values of
// pool and gc are the MXBeans' spellings, so that the usual dashboards of JVMs work.
var Metrics = []*metric.Family{
	memoryUsed, memoryCommitted, memoryMax,
	poolUsed, poolCommitted, poolMax, poolInit,
	collections, gcCPU, gcThreadCPU,
	tlabAllocated, tlabFills, tlabSlow, tlabWaste,
	threadsCurrent, threadsDaemon, threadsPeak, threadsStarted,
	classesCurrent, classesLoaded, classesUnloaded,
	compilationSeconds,
	safepoints, safepointSeconds, safepointSync, applicationSeconds, vmOperations,
	monitorContended, monitorParks, monitorInflations,
	runtimeInfo, flagInfo,
	threadsState, threadsDeadlocked,
}

const source = "hsperfdata"

func gauge(name, help string, labels ...string) *metric.Family {
	return &metric.Family{Name: name, Help: help, Kind: metric.Gauge, Labels: labels, Source: source}
}

func counter(name, help string, labels ...string) *metric.Family {
	return &metric.Family{Name: name, Help: help, Kind: metric.Counter, Labels: labels, Source: source}
}

// Memory. hsperfdata has the heap, Metaspace and the compressed class space; it
// does not have the code heaps, so there is no area="nonheap".
var (
	memoryUsed      = gauge("jvm_memory_used_bytes", "Used bytes of the heap. The collector updates most of it at collections only.", "area")
	memoryCommitted = gauge("jvm_memory_committed_bytes", "Bytes of the heap that the JVM has got from the system.", "area")
	memoryMax       = gauge("jvm_memory_max_bytes", "Bytes that the heap may grow to.", "area")
	poolUsed        = gauge("jvm_memory_pool_used_bytes", "Used bytes of a memory pool.", "pool")
	poolCommitted   = gauge("jvm_memory_pool_committed_bytes", "Bytes of a memory pool that the JVM has got from the system.", "pool")
	poolMax         = gauge("jvm_memory_pool_max_bytes", "Bytes that a memory pool may grow to. Absent where the pool has no bound of its own.", "pool")
	poolInit        = gauge("jvm_memory_pool_init_bytes", "Bytes of a memory pool at the start.", "pool")
)

// Collections.
var (
	collections = &metric.Family{Name: "jvm_gc_collection_seconds", Kind: metric.Summary, Labels: []string{"gc"}, Source: source,
		Help: "Collections, and the seconds they took, by collector. For the concurrent collectors these are the pauses."}
	gcCPU       = counter("jvm_gc_cpu_seconds_total", "CPU time of all threads that collect garbage (JDK 25 and later).")
	gcThreadCPU = counter("jvm_gc_thread_cpu_seconds_total", "CPU time of the JVM's own threads by kind: parallel_workers, conc_mark, conc_refine, service, vm (JDK 25 and later).", "kind")
)

// Allocation between the last two collections: what threads took as their own
// buffers (TLABs).
var (
	tlabAllocated = gauge("jvm_tlab_allocated_bytes", "Bytes that threads took as allocation buffers between the last two collections.")
	tlabFills     = gauge("jvm_tlab_fills", "Allocation buffers that threads took between the last two collections.")
	tlabSlow      = gauge("jvm_tlab_slow_allocations", "Allocations outside of a buffer between the last two collections.")
	tlabWaste     = gauge("jvm_tlab_waste_bytes", "Bytes of allocation buffers left unused between the last two collections.")
)

// Threads, classes, compiler.
var (
	threadsCurrent     = gauge("jvm_threads_current", "Live Java threads, daemons included. Virtual threads are not counted.")
	threadsDaemon      = gauge("jvm_threads_daemon", "Live daemon threads.")
	threadsPeak        = gauge("jvm_threads_peak", "Most live threads since the start.")
	threadsStarted     = counter("jvm_threads_started_total", "Threads started since the start. A steep rise means that somebody makes a thread for each task.")
	classesCurrent     = gauge("jvm_classes_currently_loaded", "Classes that are loaded.")
	classesLoaded      = counter("jvm_classes_loaded_total", "Classes loaded since the start.")
	classesUnloaded    = counter("jvm_classes_unloaded_total", "Classes unloaded since the start.")
	compilationSeconds = counter("jvm_compilation_time_seconds_total", "Time that the just-in-time compilers have worked.")
)

// Stops.
var (
	safepoints         = counter("jvm_safepoints_total", "Safepoints: stops of all threads, for collections and else.")
	safepointSeconds   = counter("jvm_safepoint_seconds_total", "Time for which safepoints stopped the application, getting there included.")
	safepointSync      = counter("jvm_safepoint_sync_seconds_total", "Time it took until all threads had stopped.")
	applicationSeconds = counter("jvm_application_seconds_total", "Time for which the application ran between safepoints.")
	vmOperations       = counter("jvm_vm_operation_seconds_total", "Time that the VM thread spent on operations.")
	monitorContended   = counter("jvm_monitor_contended_total", "Attempts to enter a monitor that another thread held and that could not be had by spinning (up to JDK 24).")
	monitorParks       = counter("jvm_monitor_parks_total", "Times that a thread was put to sleep for a monitor (up to JDK 24).")
	monitorInflations  = counter("jvm_monitor_inflations_total", "Monitors that became heavy because threads contended or waited (up to JDK 24).")
)

// Identity.
var (
	runtimeInfo = gauge("jvm_runtime_info", "The Java runtime; always 1.", "runtime", "vendor", "version")
	flagInfo    = &metric.Family{Name: "jvm_flag", Kind: metric.Gauge, Labels: []string{"name", "value"}, Open: []string{"value"}, Limit: 40, Source: source,
		Help: "Options the JVM was started with, of those that matter under load; always 1."}
)

// From a thread dump, with attach: on.
var (
	threadsState = &metric.Family{Name: "jvm_threads_state", Kind: metric.Gauge, Labels: []string{"state"}, Source: "thread dump",
		Help: "Live Java threads by state, as of the last thread dump. Only with attach: on; absent when the last dump is old."}
	threadsDeadlocked = &metric.Family{Name: "jvm_threads_deadlocked", Kind: metric.Gauge, Source: "thread dump",
		Help: "Threads that wait for each other in a circle, as of the last thread dump. Only with attach: on."}
)
