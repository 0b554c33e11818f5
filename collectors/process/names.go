package process

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// commLen is how many bytes of a thread's name the kernel keeps.
const commLen = 15

// A folder tells to which pool a thread belongs, from the 15 bytes of its name.
//
//	http-nio-8080-exec-12 -> (kernel) http-nio-8080-e -> (settings) http-nio-8080-exec
//	qtp1589683045-17      -> (kernel) qtp1589683045-1 -> (folded)   qtp
//
// Names that the settings explain come first, since only they undo the cut.
// Then come the JVM's own threads, and last the general rule: numbers and
// hashes are folded. The number of pools is bounded.
type folder struct {
	known  []known
	leader string // the name of the first thread, which is the launcher's: "java"
	max    int

	labels []string         // by pool number; number 0 is "other"
	byName map[string]int32 // label -> number
	merged map[int32]string // pools that the cut made one, with a sentence
	base   int              // the first so many pools come from the settings
}

// known is a beginning of a thread name that the settings explain.
type known struct {
	prefix string // "http-nio-8080-exec-", or a whole name: "http-nio-8080-Poller"
	label  string
	helper bool // the connector's own thread, which is in no pool
}

const (
	poolOther = "other"
	poolMain  = "main"
	poolGC    = "jvm-gc"
	poolJIT   = "jvm-compiler"
	poolVM    = "jvm-vm"
)

func newFolder(pools []Pool, connectors []Connector, limit int) *folder {
	f := &folder{max: limit, leader: "java", byName: map[string]int32{}, merged: map[int32]string{}}
	f.number(poolOther)
	for _, p := range pools {
		if p.Prefix == "" || p.Virtual {
			continue
		}
		f.know(p.Prefix, p.label(), false)
	}
	for _, c := range connectors {
		for _, base := range threadBases(c) {
			// Tomcat 8.5 also has an AsyncTimeout thread, which the cut makes one with
			// the Acceptor; it is counted there.
			for _, helper := range []string{"Poller", "ClientPoller-", "BlockPoller", "Acceptor", "Acceptor-", "Sendfile"} {
				f.know(base+helper, strings.TrimRight(base+helper, "-"), true)
			}
		}
	}
	for _, p := range pools {
		if p.Prefix != "" && !p.Virtual {
			f.number(p.label())
		}
	}
	f.base = len(f.labels)
	return f
}

func (p Pool) label() string {
	if p.Name != "" {
		return p.Name
	}
	return strings.TrimRight(p.Prefix, "-_ #")
}

func (f *folder) know(prefix, label string, helper bool) {
	for _, k := range f.known {
		if k.prefix == prefix {
			return
		}
	}
	f.known = append(f.known, known{prefix, label, helper})
}

// number gives a label its pool, or "other" when there are too many.
func (f *folder) number(label string) int32 {
	if n, ok := f.byName[label]; ok {
		return n
	}
	if len(f.labels) >= f.max {
		return 0
	}
	n := int32(len(f.labels))
	f.labels = append(f.labels, label)
	f.byName[label] = n
	return n
}

// threadBases are the beginnings that the names of a Tomcat connector's threads
// may have. Tomcat puts the address before the port, and for TLS the
// implementation behind "https" (8.5 and later).
func threadBases(c Connector) []string {
	tail := strconv.Itoa(c.Port) + "-"
	if c.Address != "" {
		tail = c.Address + "-" + tail
	}
	protocol := strings.ToLower(c.Protocol)
	switch {
	case c.Port <= 0 || protocol == "jetty":
		return nil
	case strings.HasPrefix(protocol, "ajp"):
		if protocol == "ajp" {
			protocol = "ajp-nio"
		}
		return []string{protocol + "-" + tail}
	case c.TLS:
		return []string{"https-jsse-" + protocol + "-" + tail, "https-openssl-" + protocol + "-" + tail, "http-" + protocol + "-" + tail}
	}
	return []string{"http-" + protocol + "-" + tail}
}

// pool folds one name.
func (f *folder) pool(comm string) int32 {
	if n, ok := f.fromSettings(comm); ok {
		return n
	}
	if comm == f.leader {
		return f.number(poolMain)
	}
	for _, j := range jvmThreads {
		if startsLike(j.name, comm) {
			return f.number(j.pool)
		}
	}
	return f.number(fold(comm))
}

// fromSettings undoes the cut. Where several known names look alike behind it,
// their pools are one, under what their names have in common.
func (f *folder) fromSettings(comm string) (int32, bool) {
	var first, common string
	merged := false
	for _, k := range f.known {
		if !numbered(k.prefix, comm) {
			continue
		}
		switch {
		case first == "":
			first, common = k.label, k.label
		case k.label != first:
			merged = true
			common = commonPrefix(common, k.label)
		}
	}
	switch {
	case first == "":
		return 0, false
	case !merged:
		return f.number(first), true
	}
	label := strings.TrimRight(common, "-_")
	// What they have in common may end in the middle of a word.
	if i := strings.LastIndexByte(label, '-'); i > 0 && len(common) > 0 && common[len(common)-1] != '-' {
		label = label[:i]
	}
	n := f.number(label)
	if _, said := f.merged[n]; !said {
		f.merged[n] = f.mergedText(comm, label)
	}
	return n, true
}

// mergedText says what the cut made one. The connector's own threads are not
// named: which of them there are differs by version, and no reader asks for them.
func (f *folder) mergedText(comm, label string) string {
	var names []string
	own, silent := false, ""
	for _, k := range f.known {
		switch {
		case !numbered(k.prefix, comm) || contains(names, k.label):
		case k.helper:
			own = true
		default:
			names = append(names, k.label)
			silent = ", and ThreadsExhausted and PoolAtCeiling stay silent for it"
		}
	}
	if len(names) > 1 {
		silent = strings.TrimSuffix(silent, "it") + "them"
	}
	if len(names) > 6 {
		names = append(names[:6], "…")
	}
	if own {
		names = append(names, "the connector's own threads (poller, acceptor)")
	}
	return "the kernel's 15 bytes of a thread name don't tell apart: " + strings.Join(names, ", ") + "; they are counted together as " + label + silent
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// numbered says whether comm can be what the kernel kept of prefix and a number.
func numbered(prefix, comm string) bool {
	if len(comm) < commLen {
		rest, ok := strings.CutPrefix(comm, prefix)
		return ok && digits(rest)
	}
	if head, tail, ok := middleCut(comm); ok {
		tail = strings.TrimRight(tail, "0123456789")
		return strings.HasPrefix(prefix, head) && strings.HasSuffix(prefix, tail)
	}
	if len(prefix) >= len(comm) {
		return strings.HasPrefix(prefix, comm)
	}
	return strings.HasPrefix(comm, prefix) && digits(comm[len(prefix):])
}

// startsLike says whether comm can be what the kernel kept of a name that
// begins with this.
func startsLike(name, comm string) bool {
	if head, _, ok := middleCut(comm); ok && len(name) >= len(head) {
		return strings.HasPrefix(name, head)
	}
	if len(comm) >= commLen && len(name) > len(comm) {
		return strings.HasPrefix(name, comm)
	}
	return strings.HasPrefix(comm, name)
}

// middleCut splits a name that was shortened in its middle: seven bytes, two
// dots, six bytes (JDK-8368124).
func middleCut(comm string) (head, tail string, ok bool) {
	if len(comm) != commLen || comm[7:9] != ".." {
		return "", "", false
	}
	return comm[:7], comm[9:], true
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func commonPrefix(a, b string) string {
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		if a[i] != b[i] {
			return a[:i]
		}
	}
	return a[:n]
}

// jvmThreads are the threads of HotSpot itself, JDK 6 to 25.
var jvmThreads = []struct{ name, pool string }{
	{"GC Thread#", poolGC}, {"GC task thread#", poolGC}, {"G1 ", poolGC}, {"Gang worker#", poolGC},
	{"ParGC Thread#", poolGC}, {"Concurrent Mark-Sweep GC Thread", poolGC}, {"CMS ", poolGC},
	{"ZDirector", poolGC}, {"ZDriver", poolGC}, {"ZStat", poolGC}, {"ZWorker", poolGC}, {"ZUnmapper", poolGC}, {"ZUncommitter", poolGC},
	{"XDirector", poolGC}, {"XDriver", poolGC}, {"XStat", poolGC}, {"XWorker", poolGC}, {"XUnmapper", poolGC}, {"XUncommitter", poolGC},
	{"Shenandoah", poolGC}, {"StringDedup", poolGC}, {"Surrogate Locker Thread", poolGC},
	{"RuntimeWorker", poolGC},
	{"C1 CompilerThread", poolJIT}, {"C2 CompilerThread", poolJIT}, {"JVMCI", poolJIT}, {"Sweeper thread", poolJIT},
	{"VM Thread", poolVM}, {"VM Periodic Task Thread", poolVM}, {"Signal Dispatcher", poolVM}, {"Finalizer", poolVM},
	{"Reference Handler", poolVM}, {"Service Thread", poolVM}, {"Monitor Deflation Thread", poolVM},
	{"Notification Thread", poolVM}, {"Common-Cleaner", poolVM}, {"Attach Listener", poolVM}, {"Low Memory Detector", poolVM},
}

// cutNames are common names longer than the kernel keeps.
var cutNames = []string{
	"Catalina-utility", "AsyncFileHandlerWriter", "FileHandlerLogFilesCleaner", "ContainerBackgroundProcessor",
	"NioBlockingSelector.BlockPoller", "localhost-startStop", "VirtualThread-unblocker", "ForkJoinPool.commonPool-worker",
	"InnocuousThread", "HikariPool-N housekeeper", "mysql-cj-abandoned-connection-cleanup", "Abandoned connection cleanup thread",
	"lettuce-nioEventLoop", "http-client", "HttpClient-N-SelectorManager", "JMX server connection timeout", "RMI TCP Connection",
}

// fold is the general rule: numbers and hashes go, what is left is the pool.
func fold(comm string) string {
	name := clean(comm)
	if strings.HasPrefix(name, "qtp") || strings.Contains(name, "@qtp") {
		return "qtp" // qtp1589683045-15; Jetty 6: 3472934@qtp-2349-1
	}
	if strings.HasPrefix(name, "http-") || strings.HasPrefix(name, "https-") || strings.HasPrefix(name, "ajp-") {
		return foldConnector(name)
	}
	if strings.HasPrefix(name, "ForkJoinPool-") {
		return "ForkJoinPool" // carriers of virtual threads, their scheduler, and other pools
	}
	if len(comm) >= commLen {
		for _, full := range cutNames {
			if startsLike(full, comm) {
				return full
			}
		}
	}
	if i := strings.IndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	name = foldNumbers(name)
	if name == "" {
		return "unnamed"
	}
	return name
}

// foldConnector keeps the port and undoes the cut as far as that can be done
// without the settings: http-nio-8080-e -> http-nio-8080-exec.
func foldConnector(name string) string {
	name = strings.TrimRight(name, "0123456789")
	i := strings.LastIndexByte(strings.TrimRight(name, "-"), '-')
	if i < 0 {
		return strings.TrimRight(name, "-")
	}
	word := strings.TrimRight(name[i+1:], "-")
	for _, helper := range []string{"exec", "Poller", "ClientPoller", "Acceptor", "BlockPoller", "Sendfile", "AsyncTimeout"} {
		if word != "" && strings.HasPrefix(helper, word) && i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
			return name[:i+1] + helper
		}
	}
	return strings.TrimRight(name, "-.")
}

// foldNumbers drops a number at the end and writes N for one between
// separators: pool-3-thread-7 -> pool-N-thread.
func foldNumbers(name string) string {
	name = strings.TrimRight(name, "0123456789")
	name = strings.TrimRight(name, "-_#:. ([")
	var b strings.Builder
	for i := 0; i < len(name); {
		c := name[i]
		separated := i == 0 || strings.IndexByte("-_#:. ([", name[i-1]) >= 0
		if separated && c >= '0' && c <= '9' {
			for i < len(name) && name[i] >= '0' && name[i] <= '9' {
				i++
			}
			b.WriteByte('N')
			continue
		}
		b.WriteByte(c)
		i++
	}
	return b.String()
}

// clean makes a label of bytes that anybody may have chosen. A character that
// the cut went through is dropped.
func clean(comm string) string {
	for len(comm) > 0 {
		if r, n := utf8.DecodeLastRuneInString(comm); r == utf8.RuneError && n == 1 {
			comm = comm[:len(comm)-1]
			continue
		}
		break
	}
	comm = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(comm, "\uFFFD"))
	return strings.TrimSpace(comm)
}
