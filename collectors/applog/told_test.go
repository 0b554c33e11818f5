package applog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// listener is one that wants WARNING and above and all events.
func listener(out *[]string, pass func(pattern string) bool) Listener {
	return Listener{
		Wanted: func(l Level, event string) bool { return l >= Warning || event != "" },
		Match: func(line []byte) string {
			if bytes.Contains(line, []byte("Deploying")) {
				return "deploy"
			}
			return ""
		},
		Gate: func(l Level, pattern string) func() bool { return func() bool { return pass(pattern) } },
		Record: func(t *Told) {
			*out = append(*out, fmt.Sprintf("%s|%s|%s|%s|%d|%s", t.Level, t.Event, t.Logger, t.Thread, t.At%100000, t.Text))
		},
	}
}

const words = `30-Nov-2026 12:00:01.000 INFO [main] org.apache.catalina.startup.HostConfig.deployDirectory Deploying web application directory [x]
30-Nov-2026 12:00:02.000 INFO [main] org.apache.catalina.startup.HostConfig.deployDirectory nothing
30-Nov-2026 12:00:03.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [a] for processing
	java.util.concurrent.RejectedExecutionException: Work queue full.
		at org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:177)
		at org.apache.tomcat.util.net.AbstractEndpoint.processSocket(AbstractEndpoint.java:1095)
30-Nov-2026 12:00:03.001 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [b] for processing
	java.util.concurrent.RejectedExecutionException: Work queue full.
		at org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:177)
		at org.apache.tomcat.util.net.AbstractEndpoint.processSocket(AbstractEndpoint.java:1095)
30-Nov-2026 12:00:04.000 INFO [http-nio-8080-exec-1] a.b.C.d something
	java.lang.OutOfMemoryError: Java heap space
		at a.b.C.d(C.java:1)
Exception in thread "http-nio-8080-Poller" java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory
	at java.base/java.lang.Thread.start0(Native Method)
Terminating due to java.lang.OutOfMemoryError: Java heap space
30-Nov-2026 12:00:05.000 SEVERE [main] a.b.C.d the last
`

var wantWords = []string{
	"INFO|deploy|org.apache.catalina.startup.HostConfig.deployDirectory|main|1000|30-Nov-2026 12:00:01.000 INFO [main] org.apache.catalina.startup.HostConfig.deployDirectory Deploying web application directory [x]",
	"WARNING|executor_rejected|org.apache.tomcat.util.net.AbstractEndpoint.processSocket|http-nio-8080-Poller|3000|" + lines(3, 6),
	"WARNING|executor_rejected|org.apache.tomcat.util.net.AbstractEndpoint.processSocket|http-nio-8080-Poller|3001|" + lines(7, 10),
	"INFO|out_of_memory_heap|a.b.C.d|http-nio-8080-exec-1|4000|" + lines(11, 13),
	"NONE|exit_on_out_of_memory|||0|" + lines(16, 16),
	"NONE|out_of_memory_threads|||0|" + lines(14, 15),
	"SEVERE||a.b.C.d|main|5000|" + lines(17, 17),
}

// lines are those of words, counted from 1.
func lines(from, to int) string {
	return strings.Join(strings.Split(words, "\n")[from-1:to], "\n")
}

// TestTold: what a listener is told, line by line and in blocks of any cut.
func TestTold(t *testing.T) {
	all := func(string) bool { return true }
	run := func(name string, feed func(o *Observer)) {
		var have []string
		o := New(metric.NewSet(), Config{})
		o.Listen(listener(&have, all))
		feed(o)
		o.Idle(time.Time{})
		o.TellOpen()
		if d := cmp.Diff(wantWords, have); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	run("lines", func(o *Observer) {
		for line := range strings.Lines(words) {
			o.Observe([]byte(strings.TrimSuffix(line, "\n")))
		}
	})
	run("one block", func(o *Observer) { o.ObserveBlock([]byte(words)) })
	for _, cut := range []int{3, 4, 5, 8, 9, 12, 14} {
		at := len(strings.Join(strings.Split(words, "\n")[:cut], "\n")) + 1
		run(fmt.Sprint("cut behind line ", cut), func(o *Observer) {
			o.ObserveBlock([]byte(words[:at]))
			o.ObserveBlock([]byte(words[at:]))
		})
	}
	run("CRLF", func(o *Observer) { o.ObserveBlock([]byte(strings.ReplaceAll(words, "\n", "\r\n"))) })
}

// TestToldAfterAKill: a kill at any line, and the listener of the next run is told
// what that of the first was not: each record once and whole.
func TestToldAfterAKill(t *testing.T) {
	all := func(string) bool { return true }
	text := strings.Split(strings.TrimSuffix(words, "\n"), "\n")
	for cut := range len(text) + 1 {
		var have []string
		first, next := New(metric.NewSet(), Config{}), New(metric.NewSet(), Config{})
		first.Listen(listener(&have, all))
		next.Listen(listener(&have, all))
		for _, line := range text[:cut] {
			first.Observe([]byte(line))
		}
		saved, err := first.Save()
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Load(saved); err != nil {
			t.Fatal(err)
		}
		for _, line := range text[cut:] {
			next.Observe([]byte(line))
		}
		next.Idle(time.Time{})
		if d := cmp.Diff(wantWords, have); d != "" {
			t.Errorf("killed behind line %d: %s", cut, d)
		}
	}
}

// TestToldTwoLines: a record whose head has two lines, and one that only the
// end of the reading closes.
func TestToldTwoLines(t *testing.T) {
	var have []string
	o := New(metric.NewSet(), Config{})
	o.Listen(listener(&have, func(string) bool { return true }))
	for _, line := range []string{"Nov 30, 2026 12:00:01 PM a.b.C d", "SEVERE: it broke", "java.io.IOException: x"} {
		o.Observe([]byte(line))
	}
	o.TellOpen()
	o.Idle(time.Time{})
	if len(have) != 1 || !strings.HasSuffix(have[0], "|Nov 30, 2026 12:00:01 PM a.b.C d\nSEVERE: it broke\njava.io.IOException: x") {
		t.Errorf("%q", have)
	}
}

// TestToldGate: the gate is asked once for each wanted record, and where it says
// no, nothing is taken. A listener changes no figure, and a shut gate allocates
// nothing.
func TestToldGate(t *testing.T) {
	head := "30-Nov-2026 12:00:03.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [a] for processing\n"
	rest := "\tjava.util.concurrent.RejectedExecutionException: Work queue full.\n\t\tat a.B.c(B.java:1)\n\t\tat a.B.d(B.java:2)\n"
	block := []byte(strings.Repeat(head+rest, 100))
	asked := 0
	var have []string
	o := New(metric.NewSet(), Config{})
	o.Listen(listener(&have, func(string) bool { asked++; return asked <= 3 }))
	plain := New(metric.NewSet(), Config{})
	for range 10 {
		o.ObserveBlock(block)
		plain.ObserveBlock(block)
	}
	o.Idle(time.Time{})
	plain.Idle(time.Time{})
	if asked != 1000 || len(have) != 3 {
		t.Errorf("asked %d times, told %d", asked, len(have))
	}
	for _, text := range have {
		if !strings.HasSuffix(text, strings.TrimSuffix(head+rest, "\n")) {
			t.Errorf("%q", text)
		}
	}
	for _, f := range Metrics {
		if f.Kind != metric.Counter {
			continue
		}
		want := map[string]float64{}
		plain.set.Each(f, func(values []string, v float64) { want[strings.Join(values, ",")] = v })
		o.set.Each(f, func(values []string, v float64) {
			if w := want[strings.Join(values, ",")]; v != w {
				t.Errorf("%s %v: %v with a listener, %v without", f.Name, values, v, w)
			}
		})
	}
	if n := testing.AllocsPerRun(20, func() { o.ObserveBlock(block) }); n > 0 {
		t.Errorf("%v allocations a block", n)
	}
}
