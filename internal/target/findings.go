package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file judges the settings: what will hurt under load, each with its
// reason and what to do about it.

// Finding ids that need more than the settings, such as the kernel's
// somaxconn, are found by the scanner; all others are here or in the readers of
// the files.
func (b *builder) findings() {
	t := b.t
	shared := map[string]Executor{}
	for _, x := range t.Executors {
		shared[x.Name] = x
		if x.MaxQueueSize >= unbounded && !x.Virtual {
			b.find("queue_unbounded", "the queue of %s has no bound: under overload requests wait there without end, nothing is rejected and nothing is logged; set maxQueueSize", pool(x.Name))
		}
	}
	for _, c := range t.Connectors {
		if t.Kind == Tomcat && c.Executor == "" && c.MaxThreads > 0 && c.MaxQueueSize == 0 && !strings.HasSuffix(c.Protocol, "bio") {
			b.find("queue_unbounded", "the connector on port %d has a pool of its own, whose queue has no bound: under overload up to maxConnections=%d requests wait there and nothing is logged", c.Port, c.MaxConnections)
		}
		if x, ok := shared[c.Executor]; ok && strings.HasSuffix(c.Protocol, "nio2") {
			switch {
			case !x.Virtual && !b.v.executorIsService():
				b.find("nio2_without_executor", "the connector on port %d is NIO2 and can't run on the executor %q, which NIO2 takes from Tomcat 9.0.87 and 10.1.20 on only: it serves with threads without a bound, and maxThreads=%d and maxQueueSize do not hold; use NIO", c.Port, x.Name, x.MaxThreads)
			case x.MaxQueueSize < unbounded:
				b.find("nio2_bounded_executor", "the connector on port %d is NIO2 on the executor %q with maxQueueSize=%d: when that queue is full, NIO2 loses events, rejected clients hang and the connector may stop for good; use NIO, or an unbounded queue", c.Port, x.Name, x.MaxQueueSize)
			}
		}
		if c.MaxConnections > 0 && b.maxFiles > 0 && c.MaxConnections > b.maxFiles {
			b.find("max_connections_above_descriptors", "the connector on port %d allows %d connections, but the process has %d descriptors: accepting will fail with \"Too many open files\" before the limit is reached", c.Port, c.MaxConnections, b.maxFiles)
		}
	}
	limits := t.PoolLimits()
	for _, prefix := range slices.Sorted(maps.Keys(limits)) {
		n := limits[prefix]
		if b.maxThreads > 0 && n > b.maxThreads {
			b.find("max_threads_above_limit", "the pool %q may grow to %d threads, but the user of the process may have %d in all (ulimit -u): the JVM will fail with \"unable to create native thread\"", prefix, n, b.maxThreads)
		}
		if b.maxFiles > 0 && n > b.maxFiles {
			b.find("max_threads_above_descriptors", "the pool %q may grow to %d threads, but the process has %d descriptors, and each request needs one", prefix, n, b.maxFiles)
		}
	}
	for _, a := range t.AccessLogs {
		if !a.Counted {
			continue
		}
		if !hasDuration(a) && a.Pattern != "" || a.Format == "jetty-ncsa" && !hasDuration(a) {
			b.find("access_log_without_duration", "%s", withoutDuration(a, b.v))
		}
		if a.Buffered && t.Kind == Tomcat {
			b.find("access_log_buffered", "the access log %s is buffered: at low rates its lines come in lumps every 10 s; set buffered=\"false\" on the valve to see them at once", a.Name)
		}
	}
	if t.Kind != JVM && len(t.AccessLogs) == 0 && !b.unread {
		b.find("no_access_log", "the server writes no access log: requests, status and latency can't be counted")
	}
}

func pool(name string) string { return fmt.Sprintf("the pool %q", name) }

// withoutDuration says what to put into the settings instead.
func withoutDuration(a AccessLog, v tomcatVersion) string {
	switch a.Format {
	case "jetty-ncsa":
		return fmt.Sprintf("the request log %s has no duration: set jetty.requestlog.loglatency=true in start.ini", a.Name)
	case "jetty":
		return fmt.Sprintf("the request log %s has no duration: set jetty.requestlog.formatString=%s %%D in start.ini", a.Name, a.Pattern)
	case "w3c":
		return fmt.Sprintf("the access log %s has no duration: add time-taken to the pattern of its valve", a.Name)
	case "json":
		return fmt.Sprintf("the access log %s has no duration: add %%D to the pattern of its valve", a.Name)
	}
	// Duration, time to first byte (from Tomcat 7 on), and the thread, which tells
	// the pool.
	pattern := strings.ReplaceAll(a.Pattern, `"`, "&quot;")
	for _, code := range []string{"%D", "%F", "%I"} {
		if !strings.Contains(pattern, code) && !(code == "%F" && v.major > 0 && v.major < 7) {
			pattern += " " + code
		}
	}
	return fmt.Sprintf("the access log %s has no duration: put pattern=\"%s\" on its valve in server.xml", a.Name, pattern)
}

// maskAll masks secrets in everything that came from settings.
func (b *builder) maskAll() {
	t := b.t
	for i := range t.Learned {
		t.Learned[i].What = clean(MaskText(t.Learned[i].What), 500)
		t.Learned[i].From = clean(MaskText(t.Learned[i].From), 500)
	}
	for i := range t.Findings {
		t.Findings[i].Detail = clean(MaskText(t.Findings[i].Detail), 1000)
	}
	for i := range t.Blind {
		t.Blind[i].Detail = clean(MaskText(t.Blind[i].Detail), 500)
	}
}

// findingUnreadable is for a server.xml that can't be read as XML.
const findingUnreadable = "server_xml_unreadable"
