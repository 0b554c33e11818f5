package logdir

import (
	"fmt"
	"path"
	"strings"
)

// The findings of this room: settings that fill a disk sooner or later. Each
// function takes plain facts and returns an id and a sentence, both empty when
// there is nothing to find.
const (
	FindingCatalinaOut = "catalina_out_unrotated"
	FindingGCLog       = "gclog_unlimited"
	FindingAccessLog   = "accesslog_kept_forever"
	FindingSystemDisk  = "logs_on_system_disk"
	FindingHeapDump    = "heapdump_would_not_fit"
)

// FindCatalinaOut judges a server's standard output that goes into a file. Tomcat
// never rotates it; somebody else must. names are those of the folder it lies
// in, rotated says that a logrotate file is known to name it.
func FindCatalinaOut(file string, names []string, rotated bool) (id, detail string) {
	if file == "" || rotated {
		return "", ""
	}
	base := path.Base(file)
	for _, n := range names {
		// catalina.out.1, catalina.out-20241130.gz: somebody has rotated it.
		if rest, ok := strings.CutPrefix(n, base); ok && len(rest) > 1 && strings.ContainsAny(rest[:1], ".-_") {
			return "", ""
		}
	}
	return FindingCatalinaOut, file + " grows without end: Tomcat does not rotate it, and no rotated copy lies beside it. " +
		"Let logrotate do it (copytruncate), or send the console elsewhere."
}

// FindGCLog judges the options of the GC log. args are the JVM's, major its
// version. Up to JDK 8 a GC log has no end unless rotation is asked for; from 9
// on it has five files of 20 MB unless that is switched off.
func FindGCLog(args []string, major int) (id, detail string) {
	if major == 0 {
		return "", ""
	}
	if major >= 9 {
		for _, a := range args {
			if !strings.HasPrefix(a, "-Xlog:") || !strings.Contains(a, "gc") {
				continue
			}
			if key := unlimited(a); key != "" {
				return FindingGCLog, a + " has " + key + ", so the GC log is never rotated and grows without end."
			}
		}
		return "", ""
	}
	file, rotation, files := "", false, ""
	for _, a := range args {
		if f, ok := strings.CutPrefix(a, "-Xloggc:"); ok {
			file = f
		}
		switch a {
		case "-XX:+UseGCLogFileRotation":
			rotation = true
		case "-XX:-UseGCLogFileRotation":
			rotation = false
		}
		if n, ok := strings.CutPrefix(a, "-XX:NumberOfGCLogFiles="); ok {
			files = n
		}
	}
	if file == "" || rotation && strings.Trim(files, "0") != "" {
		return "", ""
	}
	return FindingGCLog, "-Xloggc:" + file + " has no limit: -XX:+UseGCLogFileRotation, -XX:NumberOfGCLogFiles= and -XX:GCLogFileSize= give it one."
}

// unlimited finds the output option that switches rotation off, in
// -Xlog:what:file=name:decorators:filecount=5,filesize=20M.
func unlimited(arg string) string {
	options := arg[strings.LastIndexByte(arg, ':')+1:]
	for o := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(o, "=")
		if (key == "filecount" || key == "filesize") && strings.TrimRight(value, "kKmMgG") == "0" {
			return o
		}
	}
	return ""
}

// FindAccessLog judges one access log. A rotatable one makes a file a day, and
// keeps each for ever unless maxDays (Tomcat) or retainDays (Jetty) is set; 0
// and less mean that it is not.
func FindAccessLog(name string, rotatable bool, maxDays int) (id, detail string) {
	switch {
	case maxDays > 0:
		return "", ""
	case !rotatable:
		return FindingAccessLog, "the access log " + name + " is not rotated: one file grows without end."
	}
	return FindingAccessLog, "the access log " + name + " keeps the file of each day for ever: maxDays is not set."
}

// FindSystemDisk judges where a log folder lies: on the file system of the root, a
// full log stops more than this server.
func FindSystemDisk(dir, mountpoint string) (id, detail string) {
	if mountpoint != "/" {
		return "", ""
	}
	return FindingSystemDisk, dir + " lies on the system disk: when the logs fill it, everything on the machine that writes stops."
}

// FindHeapDump judges whether the dump that -XX:+HeapDumpOnOutOfMemoryError
// promises would find room. A dump is about as large as the live heap, so at
// most about the maximum heap; all in bytes, 0 for not known.
func FindHeapDump(dir string, asked bool, maxHeap, avail int64) (id, detail string) {
	if !asked || maxHeap <= 0 || avail < 0 || avail >= maxHeap {
		return "", ""
	}
	return FindingHeapDump, fmt.Sprintf("a heap dump of up to %.1f GB would not fit into %s, where %.1f GB are left: "+
		"the dump would be cut off and the disk full.", float64(maxHeap)/1e9, dir, float64(avail)/1e9)
}
