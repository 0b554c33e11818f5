package target

import (
	"strings"
	"testing"
)

// NIO2 runs on a shared Executor only where that is an ExecutorService. Before, a
// full queue can wedge nothing, but the limits of the Executor do not hold either.
func TestFindingsOfNIO2ByVersion(t *testing.T) {
	ten := Executor{Name: "p", MaxThreads: 10, MaxQueueSize: 10}
	open := Executor{Name: "p", MaxThreads: 200, MaxQueueSize: unbounded}
	virtual := Executor{Name: "p", MaxQueueSize: unbounded, Virtual: true}
	for _, c := range []struct {
		version  string
		executor Executor
		protocol string
		want     string
	}{
		{"8.5.100", ten, "nio2", "nio2_without_executor"},
		{"9.0.86", ten, "nio2", "nio2_without_executor"},
		{"9.0.87", ten, "nio2", "nio2_bounded_executor"},
		{"9.0.98", ten, "ajp-nio2", "nio2_bounded_executor"},
		{"10.0.27", ten, "nio2", "nio2_without_executor"},
		{"10.1.19", ten, "nio2", "nio2_without_executor"},
		{"10.1.20", ten, "nio2", "nio2_bounded_executor"},
		{"11.0.24", ten, "nio2", "nio2_bounded_executor"},
		{"", ten, "nio2", "nio2_bounded_executor"}, // not known: the newest is the likeliest
		{"9.0.70", open, "nio2", "nio2_without_executor"},
		{"10.1.34", open, "nio2", ""},
		{"9.0.86", virtual, "nio2", ""},
		{"9.0.70", ten, "nio", ""},
	} {
		b := &builder{seen: &seen{}, t: &Target{Kind: Tomcat, Executors: []Executor{c.executor}, Connectors: []Connector{{Port: 8080, Protocol: c.protocol, Executor: "p"}}}, v: parseTomcatVersion(c.version)}
		b.findings()
		got := ""
		for _, f := range b.t.Findings {
			if strings.HasPrefix(f.ID, "nio2") {
				got += f.ID
			}
		}
		if got != c.want {
			t.Errorf("Tomcat %q, %s, maxQueueSize=%d: %q, want %q", c.version, c.protocol, c.executor.MaxQueueSize, got, c.want)
		}
	}
}
