package lab

import (
	"testing"
	"time"
)

// A Jetty with a bounded queue says so when it rejects; the tests of the
// application log count these records.
func TestBurstOnJetty(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	for _, version := range Jetties {
		t.Run(version, func(t *testing.T) {
			s := StartJetty(t, Jetty{Version: version, MinThreads: 4, MaxThreads: 12, MaxQueueSize: 10, RequestLog: true})
			if got := Burst(s.Addr, "/slow?ms=1", 1, 20*time.Second); got.Answers[200] != 1 {
				t.Fatalf("one request: %v\n%s", got, s.Output())
			}
			got := Burst(s.Addr, "/slow?ms=1000", 200, 5*time.Second)
			t.Log(got)
			if got.Complete() == 0 || got.Complete() == 200 {
				t.Errorf("%d of 200 answered: no overload", got.Complete())
			}
			n, err := GrepCount(`:WARN *:.*QueuedThreadPool.* rejected `, s.CatalinaOut)
			t.Log(n, "records of rejection")
			if err != nil || n == 0 {
				t.Errorf("%d records of rejection (%v)\n%s", n, err, tail(s.Output()))
			}
			if !Until(5*time.Second, func() bool { return CountLines(s.AccessLog(), "GET /slow") > 0 }) {
				t.Error("no request log")
			}
		})
	}
}
