package gclog

import "bytes"

const maxHops = 32

// text reads a line of words while no record is open. b begins behind the time
// stamps.
func (d *decoder) text(b []byte) {
	if d.hops++; d.hops > maxHops {
		d.unrecognised(b)
		return
	}
	switch b[0] {
	case 'T':
		if has(b, stoppedText) {
			if !d.stoppedLine(b) {
				d.unrecognised(b)
			}
			return
		}
	case 'A':
		if has(b, "Application time: ") {
			return
		}
	case 'J', 'O':
		if i := bytes.Index(b, []byte("JRE (")); i > 0 && contains(b, " VM (") {
			d.jre(b[i+5:])
			return
		}
	case 'C':
		if has(b, "CommandLine flags:") {
			d.flags(b)
			return
		}
		if has(b, "CMS: abort preclean") {
			// The end of the phase follows on the same line.
			if i := bytes.IndexByte(b, '['); i > 0 {
				d.top(b[i:])
			}
			return
		}
	case 's':
		if has(b, "secs]") { // ", 0.08 secs]" that closes a record we never saw open
			if d.Histogram {
				d.Histogram = false
				return
			}
			d.out(d.event(IncompleteEvent))
			if i := bytes.IndexByte(b, ']'); i+1 < len(b) {
				d.top(b[i+1:])
			}
			return
		}
	case 'G':
		if overLimit(b) {
			d.failure(GCOverheadLimit)
			return
		}
	}
	if knownText(b) || contains(b, "[threads: total") || contains(b, "]      [") { // PrintSafepointStatistics
		return
	}
	// Two threads wrote at once: a record may begin in the middle of the line. It
	// does only right behind a time stamp, else any text could pose as one.
	if i := glued(b); i > 0 {
		d.unrecognised(b[:i])
		d.top(b[i:])
		return
	}
	d.unrecognised(b)
}

// overLimit: the collector takes nearly all the time and frees nearly nothing.
func overLimit(b []byte) bool {
	return has(b, "GC time ") && contains(b, "GCTimeLimit") ||
		(has(b, "GC is exceeding ") || has(b, "GC would exceed ")) && contains(b, "overhead limit")
}

// glued finds "1.234: [GC" or "1.234: [Full GC" inside b and answers where the
// bracket is; 0 when there is none.
func glued(b []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(": ["))
		if i < 0 {
			return 0
		}
		i += from
		if i > 3 && isDigit(b[i-1]) && isDigit(b[i-2]) && recordKind(b[i+2:]) != notRecord {
			return i + 2
		}
		from = i + 3
	}
}

// jre reads "1.8.0_05-b13), built on …", the head of every file.
func (d *decoder) jre(b []byte) {
	if i := bytes.IndexByte(b, ')'); i > 0 && i < 64 {
		v := b[:i]
		if j := bytes.Index(v, []byte("-b")); j > 0 {
			v = v[:j]
		}
		d.setJDK(v)
	}
}

// version reads "17.0.15+6-Debian-1deb12u1 (release)".
func (d *decoder) version(b []byte) {
	if i := bytes.IndexAny(b, " +"); i > 0 {
		b = b[:i]
	}
	if len(b) > 0 && len(b) < 64 && isDigit(b[0]) {
		d.setJDK(b)
	}
}

func (d *decoder) setJDK(v []byte) {
	if d.jdk != string(v) {
		d.jdk = string(v)
	}
}

// flags reads the collector from the command line that JDK 7 and 8 print.
func (d *decoder) flags(b []byte) {
	switch {
	case contains(b, "-XX:+UseG1GC"):
		d.Collector = G1
	case contains(b, "-XX:+UseConcMarkSweepGC"):
		d.Collector = CMS
	case contains(b, "-XX:+UseShenandoahGC"):
		d.Collector = Shenandoah
	case contains(b, "-XX:+UseParallelGC"), contains(b, "-XX:+UseParallelOldGC"):
		d.Collector = Parallel
	case contains(b, "-XX:+UseSerialGC"):
		d.Collector = Serial
	}
}

// prefixes of lines that JDK 5 to 8 print between records, by first byte.
var knownPrefixes = func() (t [256][]string) {
	for _, p := range []string{
		"- age", "Desired survivor", "TLAB", "AdaptiveSize", "AdaptiveTuning", "PSAdaptiveSizePolicy", "PSYoung", "PSOldGen", "PSPermGen", "ParOldGen", "PS",
		"Heap", "{Heap", "}", "par new generation", "def new generation", "eden space", "from space", "to   space", "to space", "tenured generation",
		"concurrent mark-sweep", "concurrent-mark-sweep", "the space", "compacting perm gen", "object space", "class space", "Metaspace", "garbage-first heap",
		"region size", "ro space", "rw space", "No shared spaces", "Shenandoah", "Min   ", "Max   ", "Collection set", "committed", "reserved",
		"Statistics for", "----", "Total Free Space", "Max   Chunk", "Number of Blocks", "Av.  Block", "Tree      Height", "Before GC", "After GC",
		"Memory:", "/proc/meminfo", "GC log file", "File ", "GC locker", "GC Warning", "promo", "avg_", "CMS: Large", "CMS: Full", "CMSCollector",
		"VerifyBeforeGC", "VerifyAfterGC", "[Verifying", "Verifying", "Finished", "bailing out", "size[", "demand:", "MemTotal", "MemFree", "Buffers", "Cached", "Swap", "Active", "Inactive", "Dirty", "Writeback", "AnonPages", "Mapped", "Shmem", "Slab", "SReclaimable", "SUnreclaim", "KernelStack", "PageTables", "NFS_Unstable", "Bounce", "WritebackTmp", "CommitLimit", "Committed_AS", "Vmalloc", "HardwareCorrupted", "AnonHugePages", "HugePages", "Hugepagesize", "DirectMap", "Unevictable", "Mlocked", "MemAvailable", "CmaTotal", "CmaFree", "ShmemHugePages", "ShmemPmdMapped",
		"Preclean", "Survivor", "Finalizing", "Unloading class",
		"active_workers_by", "num     #instances", "Total  ", "vmop", "Polling page", "Maximum sync time", "Maximum vm operation", "VM operations coalesced",
		"(concurrent mode", "icms_dc", "secs]", "/0x", "CMS Perm", "CMS perm",
	} {
		t[p[0]] = append(t[p[0]], p)
	}
	return t
}()

func knownText(b []byte) bool {
	b = b[spaces(b):]
	if len(b) == 0 {
		return true
	}
	for _, p := range knownPrefixes[b[0]] {
		if has(b, p) {
			return true
		}
	}
	return false
}

// knownBracket names the bracketed lines that stand outside of a record: the
// details of a G1 pause, whose header was closed before, and the times.
func knownBracket(b []byte) bool {
	n := b[1:]
	if len(n) == 0 {
		return false
	}
	for _, p := range knownBrackets[n[0]] {
		if has(n, p) {
			return true
		}
	}
	return false
}

var knownBrackets = func() (t [256][]string) {
	for _, p := range []string{
		"Times:", "Parallel Time", "GC Worker", "Ext Root", "Update RS", "Scan RS", "Code Root", "Object Copy", "Termination", "Processed Buffers", "Clear CT", "Other:", "Choose CSet",
		"Ref Proc", "Ref Enq", "Redirty", "Humongous", "Free CSet", "Eden:", "Metaspace", "Perm", "SATB", "Evacuation Failure", "Recalculate", "Remove Self", "Restore RemSet", "String Dedup",
		"Preserve CM", "Young Free", "Non-Young", "Root Region", "Thread Roots", "StringTable", "Universe", "JNI", "ObjectSynchronizer", "FlatProfiler", "Management", "SystemDictionary", "CLDG", "CodeCache", "CM RefProcessor", "Wait For", "Satb", "Mark Stack", "G1Ergonomics", "GC concurrent", "CMS-", "Verify", "DerivedPointerTable", "Queue Fixup", "Table Fixup",
		"SoftReference", "WeakReference", "FinalReference", "PhantomReference", "JNI Weak", "Preclean", "Rescan", "weak refs", "class unloading", "scrub", "1 CMS", "YG occupancy", "Finalize Marking", "Unloading", "GC ref-proc", "Worst", "Cleanup", "Deoptimize", "Start New", "GC Ref", "Strong", "Last", "First", "Select", "Hot Card", "End ", "Pause ", "Concurrent ", "ParOldGen", "PSYoungGen", "DefNew", "ParNew", "Tenured", "CMS", "Full GC",
	} {
		t[p[0]] = append(t[p[0]], p)
	}
	return t
}()

// knownBare names the lines of an undecorated unified log that belong to no
// collection.
func knownBare(b []byte) bool {
	if b[0] == ' ' {
		return true
	}
	for _, p := range knownBareLines[b[0]] {
		if has(b, p) {
			return true
		}
	}
	return false
}

var knownBareLines = func() (t [256][]string) {
	for _, p := range []string{
		"Using ", "Safepoint \"", "Allocation Stall (", "Total time for which", "GC Overhead", "GC time ", "GC is exceeding", "GC would exceed", "Cancelling GC", "GC STATISTICS", "under stop-the-world", "enough regions", "Pause ", "All times are", "all workers", "Under allocation pressure", "Allocation pacing", "tune GC heuristics", "to avoid Degenerated", "Dividing", "Alignments", "Clearing All", "Reserved Space", "Workers:", "Mutators:", "- age", "Age table", "successful", "CMS", "Desired survivor", "Workers", "Adding", "Expand", "Shrink", "Resize", "MarkStack", "ParallelGCThreads", "ConcGCThreads", "GC Thread", "Garbage", "Live", "Allocated",
		"Version:", "CPUs:", "Memory:", "Large Page Support", "NUMA", "Compressed Oops", "Heap ", "Pre-touch", "Parallel Workers", "Concurrent ", "Periodic GC", "CDS archive", "Compressed class",
		"Narrow klass", "CardTable", "Min Capacity", "Max Capacity", "Initial Capacity", "Soft Max", "Medium Page", "Available space", "Uncommit", "Address Space", "GC Workers", "Runtime Workers", "Mode:", "Heuristics", "TLAB", "Encoding Range", "Klass ", "Protection zone", "UseCompressed", "Trigger", "Free:", "Pacer", "Metaspace", "garbage-first heap", "Initializing", "Entering safepoint", "Leaving safepoint", "Application time", "Relocation Stall", "Consider", "Minimum heap", "Maximum heap", "Initial heap", "Young ", "Old ",
	} {
		t[p[0]] = append(t[p[0]], p)
	}
	return t
}()
