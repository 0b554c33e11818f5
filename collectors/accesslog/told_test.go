package accesslog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestTold: failed and slow requests are told, others are not, and cost nothing.
func TestTold(t *testing.T) {
	m, err := Compile(FormatTomcat, `%h %l %u %t "%r" %s %b %D %I`, Options{ServerKind: "tomcat", ServerVersion: "10.1.60"})
	if err != nil {
		t.Fatal(err)
	}
	o := New(metric.NewSet(), m, DefaultConfig())
	var have []string
	o.Listen(Listener{Status: 500, Slow: 2,
		Match: func(line []byte) string {
			if bytes.Contains(line, []byte("/pay ")) {
				return "pay"
			}
			return ""
		},
		Told: func(t *Told) { have = append(have, fmt.Sprintf("%s %d %d %s", t.Event, t.Status, t.At, t.Thread)) }})
	line := func(path string, status, micros int) []byte {
		return fmt.Appendf(nil, `192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] "GET %s HTTP/1.1" %d 12 %d http-nio-8080-exec-1`, path, status, micros)
	}
	good := line("/", 200, 1000)
	o.Observe(good)
	o.Observe(line("/", 503, 1000))
	o.Observe(line("/", 200, 2500000))
	o.Observe(line("/", 404, 1000))
	o.Observe(line("/pay", 200, 1000))
	o.Observe([]byte("\x16\x03\x01 no request"))
	want := []string{
		"request_failed 503 1796040000000 http-nio-8080-exec-1",
		"request_slow 200 1796040000000 http-nio-8080-exec-1",
		"pay 200 1796040000000 http-nio-8080-exec-1",
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	if n := testing.AllocsPerRun(100, func() { o.Observe(good) }); n > 0 {
		t.Errorf("%v allocations a line that is not told", n)
	}
}
