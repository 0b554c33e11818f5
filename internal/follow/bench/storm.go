//go:build !windows

package main

import (
	"bufio"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"
)

// A storm is what a Tomcat with a full work queue writes: one WARNING and a
// stack trace for each rejected socket, some 2 KB a record, and now and then
// something else between.
type storm struct {
	rng   *rand.Rand
	n     int64
	lines int64
	stamp []byte
}

func newStorm() *storm { return &storm{rng: rand.New(rand.NewPCG(1, 2))} }

var frames = []string{
	"org.apache.tomcat.util.threads.ThreadPoolExecutor.executeInternal(ThreadPoolExecutor.java:1373)",
	"org.apache.tomcat.util.threads.ThreadPoolExecutor.execute(ThreadPoolExecutor.java:1335)",
	"org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:162)",
	"org.apache.tomcat.util.net.AbstractEndpoint.processSocket(AbstractEndpoint.java:1289)",
	"org.apache.tomcat.util.net.SocketWrapperBase$VectoredIOCompletionHandler.completed(SocketWrapperBase.java:1089)",
	"org.apache.tomcat.util.net.Nio2Endpoint$Nio2SocketWrapper$2.completed(Nio2Endpoint.java:612)",
	"java.base/sun.nio.ch.Invoker.invokeUnchecked(Invoker.java:129)",
	"java.base/sun.nio.ch.AsynchronousChannelGroupImpl$1.run(AsynchronousChannelGroupImpl.java:113)",
	"java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)",
	"java.base/java.lang.Thread.run(Thread.java:840)",
}

// record appends one record.
func (s *storm) record(b []byte) []byte {
	if s.n%90 == 0 {
		s.stamp = time.UnixMilli(1774742398000+s.n/90).UTC().AppendFormat(s.stamp[:0], "02-Jan-2006 15:04:05.000")
	}
	s.n++
	b = append(b, s.stamp...)
	if s.rng.IntN(100) < 5 {
		b = append(b, " INFO [http-nio-8080-exec-17] com.acme.shop.OrderService.place order placed in 12 ms\n"...)
		s.lines++
		return b
	}
	b = append(b, " WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@"...)
	b = strconv.AppendUint(b, uint64(s.rng.Uint32()), 16)
	b = append(b, ":org.apache.tomcat.util.net.NioChannel@6d2a1c01:java.nio.channels.SocketChannel[connected local=/10.0.0.5:8080 remote=/10.20.1."...)
	b = strconv.AppendInt(b, int64(s.rng.IntN(256)), 10)
	b = append(b, "]] for processing\n\tjava.util.concurrent.RejectedExecutionException: The executor's work queue is full\n"...)
	s.lines += 2
	for i := range 14 {
		b = append(append(append(b, "\t\tat "...), frames[i%len(frames)]...), '\n')
		s.lines++
	}
	return b
}

// access appends one line of an access log.
func (s *storm) access(b []byte) []byte {
	s.lines++
	b = append(b, "10.20.1."...)
	b = strconv.AppendInt(b, int64(s.rng.IntN(256)), 10)
	b = append(b, ` - - [28/Mar/2026:23:59:58 +0000] "GET /shop/cart/items?id=`...)
	b = strconv.AppendInt(b, int64(s.rng.IntN(1e6)), 10)
	b = append(b, ` HTTP/1.1" 200 `...)
	b = strconv.AppendInt(b, int64(s.rng.IntN(1e5)), 10)
	return append(b, " 1834 1790 http-nio-8080-exec-17\n"...)
}

func writeStorm(path string, size int64) int64 {
	f, err := os.Create(path)
	check(err)
	w := bufio.NewWriterSize(f, 1<<20)
	s := newStorm()
	var b []byte
	for n := int64(0); n < size; n += int64(len(b)) {
		b = s.record(b[:0])
		_, err := w.Write(b)
		check(err)
	}
	check(w.Flush())
	check(f.Close())
	return s.lines
}

type memory struct{ mallocs uint64 }

func (m *memory) read() {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.mallocs = s.Mallocs
}
