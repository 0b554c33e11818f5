package applog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// stormText is n rejection records as Tomcat's NIO connector writes them, with
// one other record in sixteen.
func stormText(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		if i%16 == 15 {
			fmt.Fprintf(&b, "28-Mar-2026 23:59:58.%03d INFO [http-nio-8080-exec-%d] com.acme.shop.OrderService.place order %d placed in 12 ms\n", i%1000, i%200, i)
			continue
		}
		fmt.Fprintf(&b, "28-Mar-2026 23:59:58.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@%08x:org.apache.tomcat.util.net.NioChannel@%08x:java.nio.channels.SocketChannel[connected local=/10.0.0.5:8080 remote=/10.20.1.%d:%d]] for processing\n", i%1000, i*7919, i*104729, i%256, 1024+i%60000)
		b.WriteString("\tjava.util.concurrent.RejectedExecutionException: Queue capacity is full\n")
		for range 6 {
			b.WriteString("\t\tat org.apache.tomcat.util.threads.ThreadPoolExecutor.execute(ThreadPoolExecutor.java:1134)\n")
		}
	}
	return b.Bytes()
}

func BenchmarkStormLines(b *testing.B) {
	text := stormText(1000)
	o := New(metric.NewSet(), DefaultConfig())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for t := text; len(t) > 0; {
			i := bytes.IndexByte(t, '\n')
			o.Observe(t[:i])
			t = t[i+1:]
		}
	}
}

func BenchmarkStormBlocks(b *testing.B) {
	text := stormText(1000)
	o := New(metric.NewSet(), DefaultConfig())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		o.ObserveBlock(text)
	}
}

// BenchmarkVaried is a log in which no record is like the one before.
func BenchmarkVaried(b *testing.B) {
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text, "2024-06-30 12:00:%02d,%03d %-5s [http-nio-8080-exec-%d] c.e.shop.Cart%d - word%s sold to 'Ann' [x=%d]\n", i%60, i, []string{"INFO", "WARN", "ERROR"}[i%3], i%200, i%9, []string{"a", "b", "c", "d", "e", "f", "g"}[i%7], i)
	}
	t := text.Bytes()
	o := New(metric.NewSet(), DefaultConfig())
	b.SetBytes(int64(len(t)))
	b.ReportAllocs()
	for b.Loop() {
		o.ObserveBlock(t)
	}
}

func BenchmarkJetty(b *testing.B) {
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text, "2026-11-30 12:12:37.%03d:WARN:oejut.QueuedThreadPool:qtp1589683045-%d: QueuedThreadPool[qtp1589683045]@6d7b4f4c{STARTED,4<=12<=12,i=0,r=-1,q=10}[ReservedThreadExecutor@169fe874{reserved=0/1,pending=1}] rejected org.eclipse.jetty.io.ManagedSelector$DestroyEndPoint@%x\n", i, i%12, i*7919)
	}
	t := text.Bytes()
	o := New(metric.NewSet(), DefaultConfig())
	b.SetBytes(int64(len(t)))
	b.ReportAllocs()
	for b.Loop() {
		o.ObserveBlock(t)
	}
}
