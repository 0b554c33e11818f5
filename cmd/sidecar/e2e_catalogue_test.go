package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
)

// elsewhere says why a declared metric need not be there in the end-to-end test
// with a real Tomcat, an NIO connector and G1. What is in no line here must be.
var elsewhere = []struct{ names, why string }{
	{`^accesslog_(first_byte_seconds|pool_requests_total)$`, "the pattern logs neither %F nor %I"},
	{`^accesslog_connection_status_total$`, "the pattern has no %X"},
	{`^(accesslog_event_lag_seconds|logfs_full_seconds)$`, "only while lines come late, or the disk grows towards its end"},
	{`^cgroup_`, "only where the server is in a cgroup of its own, with limits"},
	{`^gclog_`, "the server of this test has no GC log; collectors/gclog's tests on live JVMs have"},
	{`^jetty_`, "Jetty's pool, in TestEndToEndJetty"},
	{`^jvm_threads_(state|deadlocked)$`, "attach is off by default"},
	{`^(ship|notify|engine)_`, "off until it is configured"},
	{`^sidecar_(series_refused|source_errors)_total$`, "nothing was refused and nothing failed"},
	{`^(sidecar_source_blind|target_finding)$`, "nothing may be hidden or wrong"},
	{`^(host|process)_.*pressure|^host_pressure_`, "kernels without PSI"},
	{`^logdir_growth_share$`, "only while the logs grow"},
	{`^tomcat_|^jvm_monitor_|^jvm_tlab_|^jvm_gc_.*cpu`, "by the JDK's version and the connector"},
	{`^jvm_threadpool_sampled_ratio$`, "only with thousands of threads"},
	{`^target_oom_kills_total$`, "cgroups that count them"},
}

// catalogueIsServed holds the declared metrics against the exposition, both
// ways.
func catalogueIsServed(t *testing.T, addr string) {
	t.Helper()
	// A share of a second needs two samples, so what one scrape lacks the next may
	// have.
	served := map[string]bool{}
	for range 3 {
		resp, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllSubmatch(text, -1) {
			served[string(m[1])] = true
		}
		time.Sleep(time.Second)
	}
	declared := map[string]bool{}
	for _, f := range collectors.Catalogue() {
		declared[f.Name] = true
		if served[f.Name] {
			continue
		}
		excused := false
		for _, e := range elsewhere {
			excused = excused || regexp.MustCompile(e.names).MatchString(f.Name)
		}
		if !excused {
			t.Errorf("%s is declared, and neither served nor excused", f.Name)
		}
	}
	for name := range served {
		if !declared[name] {
			t.Errorf("%s is served and not declared", name)
		}
	}
}
