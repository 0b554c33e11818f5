package accesslog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// benchLines are lines of a load run: ids, queries, IPv6, several methods.
func benchLines(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	methods := []string{"GET", "GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD"}
	paths := []string{"/shop/orders/items/%d?id=%d&page=3", "/api/v1/users/cart/%d", "/admin/search/reports.do?x=%d", "/static/images/catalog.png?%d",
		"/app;jsessionid=0123456789ABCDEF0123456789ABCDEF.node1/orders/%d", "/api/v2/payments/9b2f8c1e-1234-4bcd-9abc-0123456789ab/lines?ts=%d"}
	hosts := []string{"10.20.0.10", "10.20.1.17", "2001:db8:12:ff::1", "192.0.2.77"}
	out := make([][]byte, n)
	for i := range out {
		status := 200
		switch r.IntN(50) {
		case 0:
			status = 503
		case 1, 2:
			status = 404
		}
		path := fmt.Sprintf(paths[r.IntN(len(paths))], r.IntN(5e6), r.IntN(1e5))
		us := int(4000 * (1 + r.ExpFloat64()))
		out[i] = fmt.Appendf(nil, `%s - - [28/Mar/2026:23:59:%02d +0000] "%s %s HTTP/1.1" %d %d %d %d http-nio-8080-exec-%d`,
			hosts[r.IntN(len(hosts))], 10+i*40/n, methods[r.IntN(len(methods))], path, status, 200+r.IntN(90000), us, us/1300, 1+r.IntN(200))
	}
	return out
}

const loadPattern = `%h %l %u %t "%r" %s %b %D %F %I`

func benchmark(b *testing.B, lines [][]byte, do func([]byte)) {
	size := 0
	for _, l := range lines {
		size += len(l) + 1
	}
	b.SetBytes(int64(size / len(lines)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		do(lines[i%len(lines)])
	}
}

func BenchmarkParse(b *testing.B) {
	m := mustCompile(b, FormatTomcat, loadPattern, Options{ServerVersion: "10.1"})
	var r Record
	benchmark(b, benchLines(4096), func(l []byte) {
		if m.Parse(l, &r) != Accepted {
			b.Fatalf("refused: %s", l)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	m := mustCompile(b, FormatTomcat, loadPattern, Options{ServerVersion: "10.1"})
	o := New(metric.ForTarget("t"), m, DefaultConfig())
	benchmark(b, benchLines(4096), func(l []byte) { o.Observe(l) })
}

func BenchmarkObserveRoutes(b *testing.B) {
	m := mustCompile(b, FormatTomcat, loadPattern, Options{ServerVersion: "10.1"})
	cfg := DefaultConfig()
	cfg.Routes.Fold = true
	o := New(metric.ForTarget("t"), m, cfg)
	benchmark(b, benchLines(4096), func(l []byte) { o.Observe(l) })
}

func BenchmarkReport(b *testing.B) {
	r := NewReport(mustCompile(b, FormatTomcat, loadPattern, Options{ServerVersion: "10.1"}), ReportOptions{})
	benchmark(b, benchLines(4096), func(l []byte) { r.Observe(l) })
}
