package lab

import (
	"testing"
	"time"
)

// rejected is the class that every rejection's record ends in, in each version
// and language. Tomcat prints it once a record.
const rejected = `^.?java\.util\.concurrent\.RejectedExecutionException`

// The law of Tomcat's Executor with an NIO connector: of a burst it answers as
// many as it has threads and places in the queue, and closes the rest without a
// byte. What the sidecar counts is held against this.
func TestBurstOnTomcat(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers")
	}
	for _, version := range append(Tomcats, DebianTomcat) {
		t.Run(version, func(t *testing.T) {
			s := StartTomcat(t, Tomcat{Version: version, Executor: &Executor{MaxThreads: 10, MinSpare: 4, MaxQueueSize: 10}})
			if got := Burst(s.Addr, "/slow?ms=1", 1, 20*time.Second); got.Answers[200] != 1 {
				t.Fatalf("one request: %v\n%s", got, s.Output())
			}
			got := Burst(s.Addr, "/slow?ms=1500", 80, 20*time.Second)
			t.Log(got)
			if got.Answers[200] != 20 || got.Complete() != 20 {
				t.Errorf("%d complete answers, want 20", got.Complete())
			}
			if n := got.Closed + got.Reset; n != 60 {
				t.Errorf("%d closed, want 60", n)
			}
			n, err := GrepCount(rejected, s.CatalinaOut)
			if err != nil || n < 60 || n > 63 {
				t.Errorf("%d records of rejection (%v), want 60 or a few more", n, err)
			}
			// A line is written after its answer.
			if !Until(10*time.Second, func() bool { return CountLines(s.AccessLog(), "GET /slow") == 21 }) {
				t.Errorf("%d lines in the access log, want 21", CountLines(s.AccessLog(), "GET /slow"))
			}
			if n, err := s.ThreadsNamed("catalina-exec-"); err != nil || n != 10 {
				t.Errorf("jstack has %d catalina-exec threads (%v), want 10", n, err)
			}
		})
	}
}
