package target

import (
	"strconv"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The families of discovery.
var (
	up = &metric.Family{
		Name: "target_up", Kind: metric.Gauge, Source: "/proc",
		Help: "1 while the server's process is there, 0 for 24 hours after it was last seen (a JVM that listened on no port is no server, and leaves without a word), and for a server that the settings list for as long as they do.",
	}
	info = &metric.Family{
		Name: "target_info", Kind: metric.Gauge, Source: "/proc, settings files, hsperfdata",
		Help:   "What the server is: its kind, its version, its Java, its base folder. Always 1.",
		Labels: []string{"kind", "version", "jdk", "jdk_vendor", "vm", "base"},
	}
	restarts = &metric.Family{
		Name: "target_restarts_total", Kind: metric.Counter, Source: "/proc/PID/stat",
		Help: "How often the server came back as another process (pid and start time) since it was first seen.",
	}
	findings = &metric.Family{
		Name: "target_finding", Kind: metric.Gauge, Source: "settings files",
		Help:   "1 for each setting that will hurt under load; the page and sidecar discover give the reason.",
		Labels: []string{"finding"},
	}
	connectorInfo = &metric.Family{
		Name: "tomcat_connector_info", Kind: metric.Gauge, Source: "server.xml",
		Help:   "A connector of the server as its settings have it. Always 1.",
		Labels: []string{"port", "protocol", "executor", "address", "tls"},
	}
	executorQueue = &metric.Family{
		Name: "tomcat_executor_maxqueuesize", Kind: metric.Gauge, Source: "server.xml",
		Help:   "Requests that an Executor of the server lets wait for a thread before it rejects. Absent where there is no bound.",
		Labels: []string{"name"},
	}
)

// Metrics are all families of discovery.
var Metrics = []*metric.Family{up, info, restarts, findings, connectorInfo, executorQueue}

// WriteTo puts a target's figures into its Set. The caller holds the lock, and
// calls Begin before and Sweep after it when the Set holds nothing else.
func (e *Entry) WriteTo(s *metric.Set) {
	s.Counter(restarts).Set(float64(e.Restarts))
	if !e.Up {
		s.Gauge(up).Set(0)
		return
	}
	t := e.Target
	s.Gauge(up).Set(1)
	s.Gauge(info, string(t.Kind), t.Version, t.JDK.Version, t.JDK.Vendor, t.JDK.VM, clean(t.Base, 200)).Set(1)
	WriteFindings(s, t.Findings)
	for _, x := range t.Executors {
		if t.Kind == Tomcat && !x.Virtual && x.MaxQueueSize < unbounded {
			s.Gauge(executorQueue, clean(x.Name, 80)).Set(float64(x.MaxQueueSize))
		}
	}
	for _, c := range t.Connectors {
		port := strconv.Itoa(c.Port)
		if t.Kind == Tomcat {
			s.Gauge(connectorInfo, port, c.Protocol, clean(c.Executor, 80), clean(c.Address, 80), strconv.FormatBool(c.TLS)).Set(1)
		}
	}
}

// WriteFindings puts down what is wrong with a server's settings: what discovery
// found, and what the rooms add to it.
func WriteFindings(s *metric.Set, list []Finding) {
	for _, f := range list {
		s.Gauge(findings, f.ID).Set(1)
	}
}

// PoolLimits are the ceilings of the thread pools that the settings name: the
// prefix of the threads' names, with its trailing dash, and how many there may
// be. They go into the process room as parameters.
func (t *Target) PoolLimits() map[string]int {
	out := map[string]int{}
	for _, x := range t.Executors {
		if !x.Virtual && x.MaxThreads > 0 {
			out[x.NamePrefix] = x.MaxThreads
		}
	}
	for _, c := range t.Connectors {
		if c.ThreadPrefix != "" && c.Executor == "" && c.MaxThreads > 0 {
			out[c.ThreadPrefix] = c.MaxThreads
		}
	}
	return out
}
