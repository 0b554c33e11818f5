//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// stampLayout is juli's, and as long in each instant, so that it can be written
// over.
const stampLayout = "02-Jan-2006 15:04:05.000"

// A block is some MB of a log under a storm, whose time stamps can be renewed:
// lines of yesterday would be treated in another way than a storm's.
type block struct {
	text   []byte
	stamps []int // where they are
}

// others are what is between the rejections: other levels, patterns, events and
// traces, as a server in trouble logs them.
var others = []string{
	"INFO [main] org.apache.catalina.startup.HostConfig.deployDirectory Deployment of web application directory [/opt/app] has finished in [1,234] ms\n",
	"INFO [http-nio-8080-exec-17] com.acme.shop.OrderService.place order placed in 12 ms\n",
	"WARNING [http-nio-8080-exec-4] com.acme.shop.Db.query slow query: 1834 ms\n",
	"SEVERE [http-nio-8080-Acceptor] org.apache.tomcat.util.net.Acceptor.run Socket accept failed\n" +
		"\tjava.io.IOException: Too many open files\n" +
		"\t\tat java.base/sun.nio.ch.ServerSocketChannelImpl.accept0(Native Method)\n" +
		"\t\tat java.base/java.lang.Thread.run(Thread.java:840)\n",
	"SEVERE [http-nio-8080-exec-9] org.apache.catalina.core.StandardWrapperValve.invoke Servlet.service() for servlet [cart] in context with path [/shop] threw exception\n" +
		"\tjava.lang.NullPointerException: Cannot invoke \"com.acme.shop.Cart.lines()\" because \"cart\" is null\n" +
		"\t\tat com.acme.shop.CartServlet.doPost(CartServlet.java:88)\n" +
		"\t\tat jakarta.servlet.http.HttpServlet.service(HttpServlet.java:590)\n" +
		"\t\tat java.base/java.lang.Thread.run(Thread.java:840)\n",
	"WARNING [http-nio-8080-exec-3] com.acme.shop.OrderService.place payment refused: password=hunter2 for customer 4711\n",
}

const rejected = "\tjava.util.concurrent.RejectedExecutionException: The executor's work queue is full\n" +
	"\t\tat org.apache.tomcat.util.threads.ThreadPoolExecutor.executeInternal(ThreadPoolExecutor.java:1373)\n" +
	"\t\tat org.apache.tomcat.util.threads.ThreadPoolExecutor.execute(ThreadPoolExecutor.java:1335)\n" +
	"\t\tat org.apache.catalina.core.StandardThreadExecutor.execute(StandardThreadExecutor.java:162)\n" +
	"\t\tat org.apache.tomcat.util.net.AbstractEndpoint.processSocket(AbstractEndpoint.java:1289)\n" +
	"\t\tat org.apache.tomcat.util.net.NioEndpoint$Poller.processKey(NioEndpoint.java:731)\n" +
	"\t\tat org.apache.tomcat.util.net.NioEndpoint$Poller.run(NioEndpoint.java:707)\n" +
	"\t\tat java.base/java.lang.Thread.run(Thread.java:840)\n"

func newBlock(size int, seed uint64) *block {
	r := rand.New(rand.NewPCG(seed, 2))
	b := &block{}
	var text bytes.Buffer
	for text.Len() < size {
		b.stamps = append(b.stamps, text.Len())
		text.WriteString(stampLayout + " ")
		if r.IntN(100) < 7 {
			text.WriteString(others[r.IntN(len(others))])
			continue
		}
		fmt.Fprintf(&text, "WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [org.apache.tomcat.util.net.NioEndpoint$NioSocketWrapper@%08x:org.apache.tomcat.util.net.NioChannel@%08x:java.nio.channels.SocketChannel[connected local=/10.0.0.5:8080 remote=/10.20.1.%d:%d]] for processing\n%s",
			r.Uint32(), r.Uint32(), r.IntN(256), 1024+r.IntN(60000), rejected)
	}
	b.text = text.Bytes()
	return b
}

func (b *block) renew(now time.Time) {
	stamp := []byte(now.Format(stampLayout))
	for _, at := range b.stamps {
		copy(b.text[at:], stamp)
	}
}

// storm appends blocks to a file at a rate in bytes a second, with what is now
// as their time, and tells what it wrote and how long that took.
func storm(path string, rate float64, length time.Duration) (wrote int64, took time.Duration, err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	blocks := []*block{newBlock(2<<20, 1), newBlock(2<<20, 2), newBlock(2<<20, 3), newBlock(2<<20, 4)}
	began := time.Now()
	for i := 0; time.Since(began) < length; i++ {
		b := blocks[i%len(blocks)]
		b.renew(time.Now())
		n, err := f.Write(b.text)
		wrote += int64(n)
		if err != nil {
			return wrote, 0, err
		}
		time.Sleep(time.Until(began.Add(time.Duration(float64(wrote) / rate * 1e9))))
	}
	return wrote, time.Since(began), nil
}
