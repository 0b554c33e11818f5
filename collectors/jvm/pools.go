package jvm

import (
	"regexp"
	"strings"
)

// The pools of the JVM's own threads have the names that the room process
// gives them.
var vmPools = []struct{ name, pool string }{
	{"GC ", "jvm-gc"}, {"G1 ", "jvm-gc"}, {"Gang worker", "jvm-gc"}, {"ParGC ", "jvm-gc"}, {"CMS ", "jvm-gc"}, {"Concurrent Mark-Sweep", "jvm-gc"},
	{"ZDirector", "jvm-gc"}, {"ZDriver", "jvm-gc"}, {"ZStat", "jvm-gc"}, {"ZWorker", "jvm-gc"}, {"ZUn", "jvm-gc"}, {"XDirector", "jvm-gc"},
	{"XDriver", "jvm-gc"}, {"XStat", "jvm-gc"}, {"XWorker", "jvm-gc"}, {"XUn", "jvm-gc"}, {"Shenandoah", "jvm-gc"}, {"StringDedup", "jvm-gc"},
	{"RuntimeWorker", "jvm-gc"}, {"Surrogate Locker", "jvm-gc"},
	{"C1 CompilerThread", "jvm-compiler"}, {"C2 CompilerThread", "jvm-compiler"}, {"JVMCI", "jvm-compiler"}, {"Sweeper thread", "jvm-compiler"},
	{"VM Thread", "jvm-vm"}, {"VM Periodic Task Thread", "jvm-vm"}, {"Signal Dispatcher", "jvm-vm"}, {"Finalizer", "jvm-vm"},
	{"Reference Handler", "jvm-vm"}, {"Service Thread", "jvm-vm"}, {"Monitor Deflation Thread", "jvm-vm"}, {"Notification Thread", "jvm-vm"},
	{"Common-Cleaner", "jvm-vm"}, {"Attach Listener", "jvm-vm"}, {"Low Memory Detector", "jvm-vm"},
}

// hidden are Java threads that the JVM hides from its own counts and MXBeans:
// a sum over states would else be more than jvm_threads_current.
var hidden = []string{"C1 CompilerThread", "C2 CompilerThread", "JVMCI", "Sweeper thread", "Service Thread", "Monitor Deflation Thread", "StringDedup"}

func isHidden(name string) bool {
	for _, h := range hidden {
		if strings.HasPrefix(name, h) {
			return true
		}
	}
	return false
}

var (
	// 1589683045-15, 3-thread-7, 5e91993f: numbers between separators, and hashes.
	number   = regexp.MustCompile(`(^|[-_#:. (\[])[0-9]+`)
	identity = regexp.MustCompile(`@[0-9a-f]+`)
	last     = regexp.MustCompile(`[-_#:. (\[]*[0-9]+$`)
)

// poolOf folds a thread's whole name into the name of its pool. A dump has the
// whole name, where the kernel keeps 15 bytes of it: so connectors keep their
// port, and need no settings to be told apart.
func poolOf(t *Thread) string {
	name := strings.TrimSpace(t.Name)
	for _, v := range vmPools {
		if strings.HasPrefix(name, v.name) {
			return v.pool
		}
	}
	switch {
	case !t.Java:
		return "jvm-vm"
	case strings.HasPrefix(name, "qtp"), strings.Contains(name, "@qtp"):
		if strings.Contains(name, "-acceptor-") {
			return "qtp-acceptor"
		}
		return "qtp"
	case strings.HasPrefix(name, "http-"), strings.HasPrefix(name, "https-"), strings.HasPrefix(name, "ajp-"):
		name = last.ReplaceAllString(name, "") // the number of the thread; the port stands before exec
	case strings.HasPrefix(name, "ForkJoinPool"):
		return "ForkJoinPool"
	default:
		name = identity.ReplaceAllString(name, "")
		name = last.ReplaceAllString(name, "")
		name = number.ReplaceAllString(name, "${1}N")
	}
	if name = strings.TrimRight(name, "-_#:. (["); name == "" {
		return "unnamed"
	}
	return name
}
