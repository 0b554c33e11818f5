package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// onePerMajor are the machine's JDKs, the first of each major version from 17 on.
func onePerMajor(t *testing.T) (out []lab.JDK) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	_, err := lab.AnyJDK(17)
	lab.Need(t, err)
	for _, j := range lab.JDKs() {
		if j.Major >= 17 && (len(out) == 0 || out[len(out)-1].Major != j.Major) {
			out = append(out, j)
		}
	}
	return out
}

// only makes settings that watch this process and none of the others of the
// machine: with attach on, the others would be asked for dumps too.
func only(pid int) collectors.Config {
	cfg := collectors.Defaults()
	cfg.Targets.Discover = false
	cfg.Targets.Servers = []target.Server{{Name: "watched", Match: target.Match{PID: pid}}}
	return cfg
}

// TestDumpOfRealServers: `sidecar dump` and attach: on, with Tomcat and Jetty
// on each JDK. The servers live and their output is unchanged.
func TestDumpOfRealServers(t *testing.T) {
	for _, j := range onePerMajor(t) {
		for _, c := range []struct {
			name, pool string
			start      func(t *testing.T) *lab.Server
		}{
			{"tomcat", "catalina-exec", func(t *testing.T) *lab.Server {
				return lab.StartTomcat(t, lab.Tomcat{Version: "10.1.34", JDK: j, Executor: &lab.Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}})
			}},
			{"jetty", "qtp", func(t *testing.T) *lab.Server {
				return lab.StartJetty(t, lab.Jetty{Version: "12.0.16", JDK: j})
			}},
		} {
			t.Run(fmt.Sprintf("%s %d", c.name, j.Major), func(t *testing.T) {
				s := c.start(t)
				before := s.Output()
				dumped(t, s, c.name, c.pool)
				states(t, s)
				if gone, err := s.Exited(); gone {
					t.Errorf("the server is dead: %v", err)
				}
				if after := s.Output(); after != before {
					t.Errorf("the server has printed: %s", strings.TrimPrefix(after, before))
				}
			})
		}
	}
}

func dumped(t *testing.T, s *lab.Server, kind, pool string) {
	t.Helper()
	var out, errs bytes.Buffer
	// A JVM gets no signal in its first seconds.
	if !lab.Until(20*time.Second, func() bool {
		out.Reset()
		errs.Reset()
		return Main([]string{"dump", fmt.Sprint(s.PID)}, nil, &out, &errs) == 0
	}) {
		t.Fatalf("no dump: %s", errs.String())
	}
	summary, raw, ok := strings.Cut(out.String(), "\n"+strings.Repeat("-", 80))
	if !ok || !strings.Contains(raw, "Full thread dump") || !strings.Contains(raw, "JNI global ref") {
		t.Errorf("no whole dump behind the summary:\n%s", out.String())
	}
	if !strings.Contains(summary, kind+"-") || !strings.Contains(summary, "\n"+pool+" ") || !strings.Contains(summary, "Stacks that most threads have") {
		t.Errorf("the summary:\n%s", summary)
	}
	for what, want := range map[string]string{"flags": "-XX:MaxHeapSize=", "heap": "used ", "logs": "Log output configuration"} {
		out.Reset()
		if code := Main([]string{"dump", "--what=" + what, fmt.Sprint(s.PID)}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("--what=%s: exit %d, %s%s", what, code, out.String(), errs.String())
		}
	}
	t.Logf("%s", summary[:min(len(summary), 1500)])
}

// states compares the states of a dump with the JVM's own count of threads.
func states(t *testing.T, s *lab.Server) {
	t.Helper()
	cfg := only(s.PID)
	cfg.JVM.Attach = true
	m, err := collectors.New(cfg, collectors.Options{Procfs: "/proc", Storage: t.TempDir(), Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var sum, current, dead float64
	if !lab.Until(30*time.Second, func() bool {
		sum, current, dead = 0, math.NaN(), math.NaN()
		snapshot := m.Snapshot()
		if snapshot == nil {
			return false
		}
		for _, f := range snapshot.Families {
			for _, x := range f.Metric {
				switch f.GetName() {
				case "jvm_threads_state":
					sum += x.Gauge.GetValue()
				case "jvm_threads_current":
					current = x.Gauge.GetValue()
				case "jvm_threads_deadlocked":
					dead = x.Gauge.GetValue()
				}
			}
		}
		return sum > 0 && math.Abs(sum-current) <= 2 && dead == 0
	}) {
		t.Errorf("threads by state %v, in all %v, deadlocked %v", sum, current, dead)
	}
	t.Logf("threads by state %v, in all %v", sum, current)
	path, err := m.KeepDump(ctx, "watched", "../Odd alert", time.Now())
	for err != nil && strings.Contains(err.Error(), "less than a second") {
		path, err = m.KeepDump(ctx, "watched", "../Odd alert", time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) < 500 || !strings.Contains(path, "/dumps/") || strings.Contains(path, "Odd alert") {
		t.Errorf("the kept dump %s: %d bytes, %v", path, len(b), err)
	}
}

func TestDumpOfNobody(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"dump", "no-such-server"}, nil, &out, &errs); code != 1 || !strings.Contains(errs.String(), `no target "no-such-server"`) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
