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
