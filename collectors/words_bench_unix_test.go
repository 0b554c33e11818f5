//go:build unix

package collectors

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"syscall"
	"testing"

	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// BenchmarkStormDeadLoki reads a storm by turns without shipping and with a Loki
// that is dead, and reports the ratio of the whole process' CPU time between
// the two: ns/op on a busy machine says little. The bar is 1.10.
func BenchmarkStormDeadLoki(b *testing.B) {
	var text bytes.Buffer
	for i := 0; text.Len() < 16<<20; i++ {
		fmt.Fprintf(&text, "30-Nov-2026 12:00:%02d.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@%08x:org.apache.tomcat.util.net.NioChannel@%08x:java.nio.channels.SocketChannel[connected local=/10.0.0.5:8080 remote=/10.20.1.%d:%d]] for processing\n", i/20000%60, i%1000, i*7919, i*104729, i%256, 1024+i%60000)
		text.WriteString("\tjava.util.concurrent.RejectedExecutionException: Work queue full.\n")
		for range 14 {
			text.WriteString("\t\tat org.apache.tomcat.util.threads.ThreadPoolExecutor.execute(ThreadPoolExecutor.java:1134)\n")
		}
	}
	blocks := [][]byte{}
	for t := text.Bytes(); len(t) > 0; {
		n := min(len(t), 256<<10)
		if n < len(t) {
			n = bytes.LastIndexByte(t[:n], '\n') + 1
		}
		blocks = append(blocks, t[:n])
		t = t[n:]
	}
	plain := applog.New(metric.NewSet(), applog.DefaultConfig())
	heard := applog.New(metric.NewSet(), applog.DefaultConfig())
	cfg := Defaults()
	cfg.Loki.URL = "http://127.0.0.1:1/loki/api/v1/push"
	s, err := ship.New(cfg.Loki, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	m := &Monitor{ship: s, cfg: cfg}
	m.hearApp(&stream{log: target.LogFile{Name: "catalina.out"}}, &target.Target{Name: "t"}, heard)
	turn := func(o *applog.Observer) float64 {
		before := cpuSeconds()
		for _, block := range blocks {
			o.ObserveBlock(block)
		}
		return cpuSeconds() - before
	}
	turn(plain)
	turn(heard)
	var without, with float64
	b.SetBytes(2 * int64(text.Len()))
	for b.Loop() {
		without += turn(plain)
		with += turn(heard)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	c := s.Counts()
	if c.Shipped+c.Suppressed+c.Dropped+c.Queued != c.Selected {
		b.Errorf("%+v", c)
	}
	b.ReportMetric(with/without, "cpu-ratio")
	b.ReportMetric(with/float64(b.N)/float64(text.Len())*1e9, "cpu-s/GB")
	b.ReportMetric(float64(c.Memory), "queue-B")
	b.ReportMetric(c.Selected, "selected")
	s.Stop(b.Context())
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
