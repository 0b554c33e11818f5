package applog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestRestoredInTheMiddleOfARecord: a kill may come at any line, and the record
// that was open, and all that come after it, are counted as if it had not.
func TestRestoredInTheMiddleOfARecord(t *testing.T) {
	var lines []string
	for i := range 6 {
		lines = append(lines,
			fmt.Sprintf("30-Nov-2026 12:00:%02d.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@%x:java.nio.channels.SocketChannel[connected local=/127.0.0.1:8080 remote=/127.0.0.1:%d]] for processing", i, i, 30000+i),
			"\tjava.util.concurrent.RejectedExecutionException: Queue capacity is full",
			"\t\tat org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:172)")
	}
	for cut := range lines {
		a := New(metric.ForTarget("t"), Config{Ports: []int{8080}})
		for _, l := range lines[:cut] {
			a.Observe([]byte(l))
		}
		data, err := a.Save()
		if err != nil {
			t.Fatal(err)
		}
		b := New(metric.ForTarget("t"), Config{Ports: []int{8080}})
		if err := b.Load(data); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines[cut:] {
			b.Observe([]byte(l))
		}
		if got, _ := b.set.Counter(EventsTotal, "executor_rejected", "8080").Value(); got != 6 {
			t.Errorf("cut before line %d (%.40s): %v rejections, want 6", cut, strings.TrimSpace(lines[cut]), got)
		}
		if got, _ := b.set.Counter(Records, "WARNING").Value(); got != 6 {
			t.Errorf("cut before line %d: %v records, want 6", cut, got)
		}
	}
}
