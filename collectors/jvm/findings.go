package jvm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Finding is a setting that will hurt, with its reason.
type Finding struct {
	ID     string // heap_above_memory
	Detail string
}

// Machine is what a JVM's options are judged by. Figures of 0 are unknown.
type Machine struct {
	Args   []string // the JVM's options, those of @argfiles and JAVA_TOOL_OPTIONS included
	Major  int      // of the JDK
	Memory uint64   // of the machine, in bytes
	Limit  uint64   // of the cgroup, in bytes
	Cores  float64  // that the JVM may use
}

// Findings judges the options a JVM was started with.
func Findings(m Machine) []Finding {
	var out []Finding
	add := func(id, format string, a ...any) { out = append(out, Finding{id, fmt.Sprintf(format, a...)}) }
	flags := map[string]string{}
	for _, f := range flagsOf(m.Args) {
		flags[f.name] = f.value
	}
	findHeap(m, flags, add)
	findRemoved(m, flags, add)
	findGCLog(m, add)
	if v, err := strconv.Atoi(flags["MaxTenuringThreshold"]); err == nil && (v < 0 || v > 16) {
		add("max_tenuring_threshold_out_of_range", "MaxTenuringThreshold=%d: an object's age has four bits, so 0 to 15 are ages and 16 means never promote by age; JDK 9 and later refuse to start with more", v)
	}
	if v, err := strconv.Atoi(flags["ParallelGCThreads"]); err == nil && m.Cores > 0 && float64(v) > m.Cores+0.5 {
		add("gc_threads_above_cores", "ParallelGCThreads=%d with %g cores: collector threads will wait for each other's core within each pause", v, m.Cores)
	}
	return out
}

func findHeap(m Machine, flags map[string]string, add func(string, string, ...any)) {
	most, okMost := parseSize(flags["MaxHeapSize"])
	first, okFirst := parseSize(flags["InitialHeapSize"])
	room, what := m.Memory, "the machine"
	if m.Limit > 0 && (room == 0 || m.Limit < room) {
		room, what = m.Limit, "its cgroup"
	}
	switch {
	case okMost && room > 0 && most > room:
		add("heap_above_memory", "-Xmx%s is more than the %d MiB of %s: the kernel will kill or swap the JVM before its heap is full", flags["MaxHeapSize"], room>>20, what)
	case okMost && room > 0 && most > room/10*9:
		add("heap_near_memory", "-Xmx%s leaves less than a tenth of the %d MiB of %s for Metaspace, threads, code and direct buffers", flags["MaxHeapSize"], room>>20, what)
	}
	if v := flags["MaxHeapSize"]; okMost && v == strings.TrimRight(v, "kKmMgGtT") && most < 1<<24 {
		add("heap_without_unit", "-Xmx%s has no unit, so it means bytes", v)
	}
	if okMost && okFirst && first < most {
		add("initial_heap_below_max", "-Xms%s is below -Xmx%s: the heap grows under load, with full or longer collections on the way", flags["InitialHeapSize"], flags["MaxHeapSize"])
	}
	if okMost && okFirst && first > most {
		add("initial_heap_above_max", "-Xms%s is above -Xmx%s: the JVM refuses to start so", flags["InitialHeapSize"], flags["MaxHeapSize"])
	}
}

// parseSize reads a size as HotSpot does: a number and k, m, g or t.
func parseSize(s string) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	shift := 0
	switch s[len(s)-1] {
	case 'k', 'K':
		shift = 10
	case 'm', 'M':
		shift = 20
	case 'g', 'G':
		shift = 30
	case 't', 'T':
		shift = 40
	}
	if shift > 0 {
		s = s[:len(s)-1]
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil || v > 1<<62>>shift {
		return 0, false
	}
	return v << shift, true
}

// removed are options that do nothing from a JDK on: it takes them without heed,
// or starts only because IgnoreUnrecognizedVMOptions is on. PrintGCDetails still
// works up to 25, as a deprecated spelling.
var removed = []struct {
	name    string
	ignored int
	instead string
}{
	{"PermSize", 8, "MetaspaceSize"},
	{"MaxPermSize", 8, "MaxMetaspaceSize"},
	{"UseConcMarkSweepGC", 14, "UseG1GC or UseZGC"},
	{"UseParNewGC", 9, "UseG1GC"},
	{"CMSIncrementalMode", 8, "UseG1GC"},
	{"CMSInitiatingOccupancyFraction", 14, "InitiatingHeapOccupancyPercent with G1"},
	{"UseCMSInitiatingOccupancyOnly", 14, "InitiatingHeapOccupancyPercent with G1"},
	{"UseParallelOldGC", 15, "UseParallelGC"},
	{"PrintGCDateStamps", 9, "-Xlog:gc*:file=…:time"},
	{"PrintGCTimeStamps", 9, "-Xlog:gc*:file=…:uptime"},
	{"PrintGCApplicationStoppedTime", 9, "-Xlog:safepoint"},
	{"PrintTenuringDistribution", 9, "-Xlog:gc+age=trace"},
	{"UseGCLogFileRotation", 9, "filecount and filesize in -Xlog"},
	{"NumberOfGCLogFiles", 9, "filecount in -Xlog"},
	{"GCLogFileSize", 9, "filesize in -Xlog"},
	{"UseCGroupMemoryLimitForHeap", 10, "UseContainerSupport, which is on"},
	{"AggressiveOpts", 11, "nothing: it did little by then"},
	{"UseBiasedLocking", 18, "nothing"},
	{"ZGenerational", 24, "nothing: ZGC is generational"},
}

func findRemoved(m Machine, flags map[string]string, add func(string, string, ...any)) {
	if m.Major == 0 {
		return
	}
	for _, r := range removed {
		if _, used := flags[r.name]; !used || m.Major < r.ignored {
			continue
		}
		add("flag_ignored", "-XX:%s does nothing since JDK %d; use %s", r.name, r.ignored, r.instead)
	}
}

var fileSize = regexp.MustCompile(`filesize=([0-9]+[kKmMgG]?)`)

// findGCLog looks for a GC log and its rotation.
func findGCLog(m Machine, add func(string, string, ...any)) {
	var old, unified, toFile, rotated, asked, files bool
	for _, a := range m.Args {
		switch {
		case strings.HasPrefix(a, "-Xloggc:"):
			old, toFile = true, true
		case a == "-XX:+UseGCLogFileRotation", a == "-XX:-UseGCLogFileRotation":
			asked = a[len("-XX:")] == '+'
		case strings.HasPrefix(a, "-XX:NumberOfGCLogFiles="):
			files = strings.Trim(strings.TrimPrefix(a, "-XX:NumberOfGCLogFiles="), "0") != ""
		case strings.HasPrefix(a, "-Xlog:") && strings.Contains(strings.SplitN(a[len("-Xlog:"):], ":", 2)[0], "gc"):
			unified = true
			parts := strings.Split(a[len("-Xlog:"):], ":")
			if len(parts) > 1 && parts[1] != "" && parts[1] != "stdout" && parts[1] != "stderr" {
				toFile = true
				// Unified logging rotates by itself: 5 files of 20 MB by default.
				rotated = !strings.Contains(a, "filecount=0")
				if f := fileSize.FindStringSubmatch(a); f != nil {
					if n, ok := parseSize(f[1]); ok && n == 0 {
						rotated = false
					}
				}
			}
		}
	}
	rotation := asked && files // up to JDK 8 both options are needed
	switch {
	case !old && !unified:
		add("no_gc_log", "the JVM writes no GC log: pauses, their causes and allocation can't be seen; add %s", gcLogAdvice(m.Major))
	case !toFile:
		add("gc_log_on_stdout", "the GC log goes to standard output, between the application's lines; add %s", gcLogAdvice(m.Major))
	case m.Major > 0 && m.Major < 9 && !rotation, m.Major == 0 && old && !rotation, unified && toFile && !rotated && !old:
		add("gc_log_without_rotation", "the GC log grows without end: nothing rotates it")
	}
}

func gcLogAdvice(major int) string {
	if major > 0 && major < 9 {
		return "-Xloggc:gc.log -XX:+PrintGCDetails -XX:+PrintGCDateStamps -XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=5 -XX:GCLogFileSize=20m"
	}
	return "-Xlog:gc*,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m"
}

// ParseSize reads a size as the JVM's options write it (512m, 4g) in bytes; 0
// is no size.
func ParseSize(s string) int64 {
	v, _ := parseSize(s)
	return int64(v)
}
