package collectors

import "testing"

// TestCrashFilesAreCounted: the file of a crash is there when the process is
// gone, and counts at once, once, and still after the next start of the server
// and of the sidecar.
func TestCrashFilesAreCounted(t *testing.T) {
	const (
		crashes = `applog_events_total{event="hs_err_file",port="",target="tomcat-8080"}`
		dumps   = `applog_events_total{event="heap_dump_file",port="",target="tomcat-8080"}`
	)
	m := newMachine(t)
	m.put(m.base+"/hs_err_pid1.log", "of last year")
	r := m.run()
	r.until(crashes, 0)
	m.put(m.base+"/java_pid4711.hprof", "")
	r.until(dumps, 1)
	m.end(pid)
	r.look()
	m.put(m.base+"/hs_err_pid4711.log", "")
	r.until(crashes, 1)
	m.start(pid+1, 900_000)
	r.look()
	r.until(crashes, 1)
	if n := len(r.servers["tomcat-8080"].watches); n != len(pollers) {
		t.Errorf("%d pollers after the restart, want %d", n, len(pollers))
	}
	r.die()
	m.put(m.base+"/hs_err_pid4712.log", "") // nobody looks
	r = m.run()
	r.until(crashes, 2)
	r.until(dumps, 1)
}
