package applog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// The real storms: each server is overdriven until it rejects, and what the
// report counts is held against grep and stat of the same file. They are bounded
// in connections and in time, and on loopback only.

// storm is one server's way of rejecting.
type storm struct {
	name string
	run  func(t *testing.T) *lab.Server
	// said is the line that every rejection has once.
	said string
	// least is how many rejections there must be for it to be a storm.
	least  int
	levels string // of the rejections
}

const thrownLine = `^\s*java\.util\.concurrent\.RejectedExecutionException`

func TestRealStorms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	small := &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}
	tomcat := func(version, protocol string, more func(*lab.Tomcat)) storm {
		s := storm{name: "tomcat-" + version + "-" + protocol, said: thrownLine, least: 40, levels: "WARNING"}
		s.run = func(t *testing.T) *lab.Server {
			o := lab.Tomcat{Version: version, Protocol: protocol, Executor: small}
			if more != nil {
				more(&o)
			}
			return lab.StartTomcat(t, o)
		}
		if protocol == "nio2" { // loses most of them: facts of the connector
			s.least = 0
		}
		return s
	}
	storms := []storm{
		// BIO takes as many connections as it has threads unless it is told otherwise.
		tomcat("7.0.109", "bio", func(o *lab.Tomcat) { o.MaxConnections = 1000 }),
		tomcat("7.0.109", "nio", nil),
		tomcat("8.5.32", "nio", nil), // the case of this project
		tomcat("8.5.32", "nio2", nil),
		tomcat("9.0.98", "nio", nil),
		tomcat("9.0.98", "nio2", nil),
		tomcat("10.1.34", "nio", nil),
		tomcat("10.1.34", "nio2", nil),
		tomcat("11.0.24", "nio", nil),
		tomcat("11.0.24", "nio2", nil),
	}
	french := tomcat("10.1.34", "nio", func(o *lab.Tomcat) { o.JVMArgs = []string{"-Duser.language=fr"} })
	french.name += "-fr"
	simple := tomcat("9.0.98", "nio", func(o *lab.Tomcat) { o.Formatter = "java.util.logging.SimpleFormatter" })
	simple.name += "-simple"
	// JsonFormatter is in 11.0 and in later 9.0 and 10.1 than these.
	json := tomcat("11.0.24", "nio", func(o *lab.Tomcat) { o.Formatter = "org.apache.juli.JsonFormatter" })
	json.name, json.said = json.name+"-json", `"throwable": \["java\.util\.concurrent\.RejectedExecutionException`
	storms = append(storms, french, simple, json)
	for _, version := range lab.Jetties {
		storms = append(storms, storm{name: "jetty-" + version, said: `:WARN *:.*QueuedThreadPool.* rejected `, least: 1, levels: "WARN",
			run: func(t *testing.T) *lab.Server {
				return lab.StartJetty(t, lab.Jetty{Version: version, MinThreads: 4, MaxThreads: 12, MaxQueueSize: 10})
			}})
	}
	for _, s := range storms {
		t.Run(s.name, func(t *testing.T) {
			server := s.run(t)
			for range 3 {
				t.Log(lab.Burst(server.Addr, "/slow?ms=300", 150, 3*time.Second))
			}
			text := settled(t, server.CatalinaOut)
			if out := os.Getenv("APPLOG_KEEP"); out != "" {
				_ = os.WriteFile(filepath.Join(out, s.name+".out"), text, 0o644)
			}
			s.check(t, server, text)
		})
	}
}

// settled reads a log that nobody writes any more.
func settled(t *testing.T, path string) []byte {
	t.Helper()
	var last, text []byte
	lab.Until(5*time.Second, func() bool {
		last = text
		text, _ = os.ReadFile(path)
		return len(text) > 0 && len(last) == len(text)
	})
	return text
}

func (s *storm) check(t *testing.T, server *lab.Server, text []byte) {
	r := NewReport(DefaultConfig())
	feed(r, text, 1<<18)
	r.Idle(time.Time{})
	got := r.Result()
	want := uint64(len(regexp.MustCompile("(?m)"+s.said).FindAll(text, -1)))
	t.Logf("%d bytes, %d records, layout %s, events %v, ports %v, %d raw lines", got.Bytes, got.Records, got.Layout, got.Events, got.EventPorts, got.RawLines)
	if int(want) < s.least {
		t.Errorf("%d rejections in the log: no storm\n%s", want, text[:min(len(text), 3000)])
	}
	if got.Events["executor_rejected"] != want {
		t.Errorf("%d rejections counted, grep finds %d\n%s", got.Events["executor_rejected"], want, strings.Join(got.RawSamples, "\n"))
	}
	if got.Bytes != uint64(len(text)) || got.Lines != uint64(bytes.Count(text, []byte("\n"))) {
		t.Errorf("%d bytes in %d lines counted, the file has %d in %d", got.Bytes, got.Lines, len(text), bytes.Count(text, []byte("\n")))
	}
	if got.ByLevel[s.levels] < want {
		t.Errorf("levels %v with %d rejections", got.ByLevel, want)
	}
	// Threads that die at once print over each other: a class may be glued to
	// anything, so grep's number is the upper bound.
	if n := uint64(bytes.Count(text, []byte("ShutdownChannelGroupException\n"))); got.Events["nio2_thread_died"] > n || got.Events["nio2_thread_died"] < n*9/10 {
		t.Errorf("%d dead NIO2 threads counted, %d lines say it", got.Events["nio2_thread_died"], n)
	}
	port := fmt.Sprint(server.Port)
	if want > 0 && strings.HasPrefix(s.name, "tomcat") && got.EventPorts["executor_rejected"][port] != want {
		t.Errorf("ports %v, want %d at %s", got.EventPorts, want, port)
	}
}
