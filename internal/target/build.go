package target

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// seen is all that the machine showed about one JVM. What reads it is the same
// on every system; what fills it is in scan_linux.go and scan_other.go.
type seen struct {
	pid, nspid, ppid int
	start            uint64
	started          time.Time
	status           statusFile
	cmdline          []string
	environ          map[string]string
	exe, cwd         string
	maps             mapsFacts
	fds              []descriptor
	fdsDenied        bool
	listeners        []listener
	listenersDenied  bool
	maxFiles         int // soft limit of descriptors, 0 when not known
	maxThreads       int // soft limit of the user's threads, 0 when not known or not in force
	perf             perfSeen
	w                *world
}

// descriptor is an open file of the target.
type descriptor struct {
	number  int
	path    string // as the target names it, without " (deleted)"
	regular bool
	unknown bool // it could not be looked at; only its name is known
	deleted bool
	outside bool // by its name beneath the target's root it is not there, or another file
	writes  bool // opened for writing, or that is not known
}

// perfSeen is the hsperfdata file, if there is one.
type perfSeen struct {
	path   string // as we open it
	reason string

	vmArgs, javaCommand string
	version, vendor, vm string
	begin               time.Time
	dev, ino            uint64
	mapped              bool // the process maps this very file
}

// builder makes a Target out of what was seen.
type builder struct {
	*seen
	o *jvmOptions
	t *Target
	// version of the server, in numbers
	v tomcatVersion
	// taken are descriptors that belong to a log which is known already.
	taken map[string]bool
	// unread says that the settings could not be read, or not whole: what is
	// not found in them may be there all the same.
	unread bool
}

func (b *builder) learn(key, what, from string) {
	b.t.Learned = append(b.t.Learned, Fact{Key: key, What: what, From: from})
}

func (b *builder) blind(source, reason, needs, format string, args ...any) {
	b.t.Blind = append(b.t.Blind, Blind{Source: source, Reason: reason, Needs: needs, Detail: fmt.Sprintf(format, args...)})
}

func (b *builder) find(id, format string, args ...any) {
	b.t.Findings = append(b.t.Findings, Finding{ID: id, Detail: fmt.Sprintf(format, args...)})
}

// build makes the target. It never fails: what can't be learnt is said.
func build(s *seen) *Target {
	o := parseCommand(s.cmdline)
	o.addVMArgs(s.perf.vmArgs)
	o.addJavaCommand(s.perf.javaCommand)
	b := &builder{seen: s, o: &o, taken: map[string]bool{}, t: &Target{
		Kind: JVM,
		Process: Process{
			PID: s.pid, NSPID: s.nspid, StartTicks: s.start, Started: s.started,
			UID: s.status.uid, Root: s.w.root, Cwd: clean(s.cwd, 4096), MainClass: clean(o.main, 200),
		},
		PerfData: PerfData{Path: s.perf.path, Reason: s.perf.reason},
		access:   &s.w.access,
	}}
	b.args()
	b.jdk()
	b.rights()
	switch {
	case b.isTomcat():
		b.tomcat()
	case b.isJetty():
		b.jetty()
	default:
		b.other()
	}
	b.heapDump()
	b.gcLogs()
	b.outputs()
	b.openLogs()
	b.finish()
	return b.t
}

// args keeps the options and the command for the page, masked and cut. What is
// matched elsewhere is never cut.
func (b *builder) args() {
	const limit, most = 256, 200
	all := slices.Clone(b.o.flags)
	if b.o.main != "" {
		if b.o.jar {
			all = append(all, "-jar")
		}
		all = append(append(all, b.o.main), b.o.args...)
	}
	for _, a := range MaskArgs(all[:min(len(all), most)]) {
		b.t.Process.Args = append(b.t.Process.Args, clean(a, limit))
	}
	if len(all) > most {
		b.t.Process.Args = append(b.t.Process.Args, fmt.Sprintf("… and %d more", len(all)-most))
	}
	switch {
	case b.perf.vmArgs != "":
		b.learn("args", "the JVM's options", "java.rt.vmArgs in hsperfdata, which has @argfiles and JAVA_TOOL_OPTIONS too")
	case len(b.cmdline) > 0:
		b.learn("args", "the JVM's options", "/proc/PID/cmdline")
		if b.o.argfile || b.environ["JAVA_TOOL_OPTIONS"] != "" || b.environ["JDK_JAVA_OPTIONS"] != "" {
			b.blind("target", "options_hidden", "hsperfdata", "options in an @argfile, JAVA_TOOL_OPTIONS or JDK_JAVA_OPTIONS are not on the command line, and there is no hsperfdata to tell them")
		}
	}
}

// heapDump is where -XX:+HeapDumpOnOutOfMemoryError writes.
func (b *builder) heapDump() {
	if !b.o.has("HeapDumpOnOutOfMemoryError") {
		return
	}
	name, ok := b.o.flag("-XX:HeapDumpPath=")
	if !ok || name == "" {
		name = "java_pid%p.hprof"
	}
	b.t.HeapDump = clean(b.abs(strings.ReplaceAll(name, "%p", strconv.Itoa(b.nspid))), 4096)
	b.learn("heap_dump", "the heap dump "+b.t.HeapDump, "-XX:+HeapDumpOnOutOfMemoryError")
}

var releaseLine = regexp.MustCompile(`(?m)^([A-Z_]+)="([^"\n]*)"`)

// jdk finds the Java version: in hsperfdata, else in the file "release" of the
// Java folder.
func (b *builder) jdk() {
	j := &b.t.JDK
	j.Version, j.Vendor, j.VM = clean(b.perf.version, 60), clean(b.perf.vendor, 80), clean(b.perf.vm, 80)
	if j.Version != "" {
		b.learn("jdk", "the JDK's version", "java.property.java.version in hsperfdata")
	} else if home := b.javaHome(); home != "" {
		if data, err := b.w.settings(path.Join(home, "release")); err == nil {
			for _, m := range releaseLine.FindAllStringSubmatch(string(data), 50) {
				switch m[1] {
				case "JAVA_VERSION":
					j.Version = clean(m[2], 60)
				case "IMPLEMENTOR":
					j.Vendor = clean(m[2], 80)
				}
			}
			if j.Version != "" {
				b.learn("jdk", "the JDK's version", path.Join(home, "release"))
			}
		}
	}
	j.Major = majorOf(j.Version)
}

// javaHome is two or three folders above libjvm.so, or one above bin/java.
func (b *builder) javaHome() string {
	if p := b.maps.libjvm; p != "" {
		home := path.Dir(path.Dir(path.Dir(p))) // …/lib/server/libjvm.so
		for range 3 {
			if base := path.Base(home); base == "lib" || base == "jre" {
				home = path.Dir(home)
			}
		}
		return home
	}
	if path.Base(path.Dir(b.exe)) == "bin" {
		return path.Dir(path.Dir(b.exe))
	}
	return ""
}

// rights says what a missing right hides.
func (b *builder) rights() {
	if b.fdsDenied {
		b.blind("target", "no_permission", "CAP_SYS_PTRACE, or the user of the process", "the descriptors of process %d can't be read: its log files and ports are taken from its settings alone", b.pid)
	}
	if b.cwd == "" {
		b.blind("target", "no_permission", "CAP_SYS_PTRACE, or the user of the process", "the working directory of process %d can't be read: relative paths in its options can't be resolved", b.pid)
	}
	if b.listenersDenied {
		b.blind("target", "no_permission", "CAP_SYS_PTRACE", "the sockets of process %d's network namespace can't be read", b.pid)
	}
	if b.perf.path == "" {
		needs := ""
		switch b.perf.reason {
		case "no_permission":
			needs = "CAP_DAC_READ_SEARCH, or the user of the process"
		case "not_found":
			if b.o.has("PerfDisableSharedMem") {
				b.perf.reason = "shared_memory_off"
			} else if v, ok := b.o.flag("-XX:-UsePerfData"); ok && v == "" {
				b.perf.reason = "switched_off"
			}
		}
		b.t.PerfData.Reason = b.perf.reason
		b.blind("jvm", "no_perfdata", needs, "%s", perfReason(b.perf.reason))
	}
}

func perfReason(reason string) string {
	switch reason {
	case "no_permission":
		return "hsperfdata is there but may not be read"
	case "no_openat2":
		return "no file of the target is opened, since openat2 is not to be had here"
	case "switched_off":
		return "the JVM runs with -XX:-UsePerfData"
	case "shared_memory_off":
		return "the JVM runs with -XX:+PerfDisableSharedMem"
	case "another_jvms":
		return "the hsperfdata file of that number belongs to another JVM with the same pid in a namespace of its own"
	case "unreadable":
		return "hsperfdata is there but is no such file, or the JVM is still starting"
	}
	return "there is no hsperfdata file: the JVM's user may have no passwd entry (usual in containers), or the file was removed"
}

// openHas says whether a file whose base name begins so is open.
func (b *builder) openHas(prefixes ...string) (string, bool) {
	for _, d := range b.fds {
		base := path.Base(d.path)
		for _, p := range prefixes {
			if strings.HasPrefix(base, p) && strings.HasSuffix(base, ".jar") {
				return d.path, true
			}
		}
	}
	return "", false
}

// value resolves ${…} with the system properties and further maps.
func (b *builder) value(more ...map[string]string) func(string) string {
	lookup := func(k string) (string, bool) {
		if v, ok := b.o.props[k]; ok {
			return v, true
		}
		for _, m := range more {
			if v, ok := m[k]; ok {
				return v, true
			}
		}
		return "", false
	}
	return func(s string) string { return expand(s, lookup) }
}

// abs makes a path of the target's absolute.
func (b *builder) abs(p string) string {
	if p == "" {
		return ""
	}
	if !path.IsAbs(p) {
		if b.cwd == "" {
			return "" // unknown, for lack of rights: better nothing than some other file
		}
		p = path.Join(b.cwd, p)
	}
	return path.Clean(p)
}

// why turns an error into a reason and the right that would mend it.
func why(err error) (reason, needs string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "not_found", ""
	case errors.Is(err, fs.ErrPermission):
		return "no_permission", "CAP_DAC_READ_SEARCH, or the user of the process"
	case errors.Is(err, root.ErrNoOpenat2):
		return "no_openat2", "Linux 5.6, or targets.without_openat2: walk"
	case errors.Is(err, root.ErrNotTheirs):
		return "not_the_targets", "a file that the target itself may read"
	case errors.Is(err, root.ErrNotRegular), errors.Is(err, root.ErrKernel):
		return "not_a_file", ""
	}
	return "unreadable", ""
}

// other is a JVM that is neither Tomcat nor Jetty.
func (b *builder) other() {
	name := b.o.mainName()
	if name == "" || name == "." || name == "/" {
		name = "java"
	}
	b.t.Name = labelName(name)
	b.learn("name", "the name "+b.t.Name, "the main class or jar")
	b.listening(nil)
}

// labelName keeps of a name what is easy to type in a query.
func labelName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.', r == '$':
			return r
		}
		return '_'
	}, s)
	if len(s) > 80 {
		s = s[:80]
	}
	return cmpOr(s, "java")
}

// listening marks the connectors on whose port a socket of the process listens.
func (b *builder) listening(cs []Connector) {
	for i := range cs {
		for _, l := range b.listeners {
			if l.port == cs[i].Port {
				cs[i].Listening = true
			}
		}
	}
}
