package collectors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runJava gives the made-up process other options and another JDK.
func (m *machine) runJava(pid int, version string, options ...string) {
	m.t.Helper()
	home := filepath.Join(m.base, "jdk-"+version)
	m.put(home+"/release", fmt.Sprintf("JAVA_VERSION=%q\n", version))
	dir := fmt.Sprintf("%s/%d", m.proc, pid)
	m.put(dir+"/maps", "7f00-7f01 r-xp 00000000 08:01 123    "+home+"/lib/server/libjvm.so\n")
	args := append([]string{"java"}, options...)
	args = append(args, "-Dcatalina.base="+m.base, "-Dcatalina.home="+m.base, "org.apache.catalina.startup.Bootstrap", "start")
	m.put(dir+"/cmdline", strings.Join(args, "\x00")+"\x00")
}

func legacyPause(uptime float64) string {
	return fmt.Sprintf("%.3f: [GC (Allocation Failure)  65536K->1024K(251392K), 0.0100000 secs]\n", uptime)
}

func unifiedPause(id int, uptime float64) string {
	return fmt.Sprintf("[%.3fs][info][gc] GC(%d) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 5.000ms\n", uptime, id)
}

func (m *machine) rename(from, to string) {
	m.t.Helper()
	if err := os.Rename(filepath.Join(m.base, "logs", from), filepath.Join(m.base, "logs", to)); err != nil {
		m.t.Fatal(err)
	}
}

const legacyYoung = `gclog_collections_total{cause="Allocation Failure",collector="unknown",kind="young",target="tomcat-8080"}`

// TestGCLogOfJDK8Rotates: the live file is gc.log.N.current, which loses its
// suffix when it is full; .current files of runs that crashed lie beside it.
// Each pause of this run is counted once, across laps, a kill of the sidecar in
// between, and a restart of the JVM, which begins at gc.log.0.current again.
func TestGCLogOfJDK8Rotates(t *testing.T) {
	m := newMachine(t)
	m.runJava(pid, "1.8.0_392", "-Xloggc:logs/gc.log", "-XX:+UseGCLogFileRotation", "-XX:NumberOfGCLogFiles=3", "-XX:GCLogFileSize=8K", "-XX:+PrintGCTimeStamps")
	long := time.Unix(1_700_000_000, 0) // before the process was started
	for _, stale := range []string{"gc.log.5.current", "gc.log.6.current"} {
		for i := range 100 {
			m.append(stale, legacyPause(float64(i)))
		}
		if err := os.Chtimes(filepath.Join(m.base, "logs", stale), long, long); err != nil {
			t.Fatal(err)
		}
	}
	m.append("gc.log.0.current", legacyPause(900)+legacyPause(901)+legacyPause(902))
	r := m.run()
	r.until(legacyYoung, 3)
	m.rename("gc.log.0.current", "gc.log.0")
	m.append("gc.log.1.current", legacyPause(950))
	m.append("gc.log.0", legacyPause(940)) // written before the rename was seen
	r.until(legacyYoung, 5)
	r.die()
	m.append("gc.log.1.current", legacyPause(960)) // nobody looks
	m.rename("gc.log.1.current", "gc.log.1")
	m.append("gc.log.2.current", legacyPause(970))
	r = m.run()
	r.until(legacyYoung, 7)
	// The lap is full: gc.log.0 gives way to a new gc.log.0.current.
	m.rename("gc.log.2.current", "gc.log.2")
	if err := os.Remove(filepath.Join(m.base, "logs/gc.log.0")); err != nil {
		t.Fatal(err)
	}
	m.append("gc.log.0.current", legacyPause(980))
	r.until(legacyYoung, 8)
	// The JVM is started anew, and opens gc.log.0.current for writing from its start.
	m.end(pid)
	m.start(pid+1, 900_000)
	m.runJava(pid+1, "1.8.0_392", "-Xloggc:logs/gc.log", "-XX:+UseGCLogFileRotation", "-XX:NumberOfGCLogFiles=3", "-XX:GCLogFileSize=8K", "-XX:+PrintGCTimeStamps")
	r.look()
	m.put(m.base+"/logs/gc.log.0.current", legacyPause(0.5)[:20])
	r.look()
	m.append("gc.log.0.current", legacyPause(0.5)[20:]+legacyPause(1.5))
	r.until(legacyYoung, 10)
	if v, ok := r.value(`gclog_pause_seconds_count{cause="Allocation Failure",collector="unknown",kind="young",target="tomcat-8080"}`); !ok || v != 10 {
		t.Errorf("%v pauses in the histogram (there: %v), want 10", v, ok)
	}
	if v, _ := r.value(`gclog_unrecognised_lines_total{target="tomcat-8080"}`); v != 0 {
		t.Errorf("%v lines are not recognised", v)
	}
	if strings.Contains(r.text(), `target_finding{finding="gc_log_without_rotation"`) {
		t.Error("a log with rotation is called one without")
	}
}

const unifiedYoung = `gclog_collections_total{cause="G1 Evacuation Pause",collector="g1",kind="young",target="tomcat-8080"}`

// TestGCLogNamedByPidAndTime: %p and %t make another file at each start of the
// JVM, and rotated ones get a number behind. All are one stream.
func TestGCLogNamedByPidAndTime(t *testing.T) {
	m := newMachine(t)
	const option = "-Xlog:gc*:file=logs/gc-%p-%t.log:uptime,level,tags:filecount=3,filesize=10k"
	m.runJava(pid, "17.0.15", option)
	const head = "[0.010s][info][gc] Using G1\n"
	first := fmt.Sprintf("gc-%d-2026-11-30_12-00-00.log", pid)
	m.append(fmt.Sprintf("gc-%d-2026-11-30_12-00-00.log", pid+7), head+unifiedPause(0, 1)) // another JVM's
	m.append(first, head+unifiedPause(0, 1))
	m.link(fmt.Sprintf("%s/%d/fd/4", m.proc, pid), filepath.Join(m.base, "logs", first))
	r := m.run()
	r.until(unifiedYoung, 1)
	m.append(first, unifiedPause(1, 2))
	m.rename(first, first+".0")
	m.append(first, unifiedPause(2, 3))
	r.until(unifiedYoung, 3)
	m.end(pid)
	r.look()
	m.start(pid+1, 900_000)
	m.runJava(pid+1, "17.0.15", option)
	second := fmt.Sprintf("gc-%d-2026-11-30_13-00-00.log", pid+1)
	m.append(second, head+unifiedPause(0, 1))
	m.link(fmt.Sprintf("%s/%d/fd/4", m.proc, pid+1), filepath.Join(m.base, "logs", second))
	r.look()
	r.until(unifiedYoung, 4)
	r.die()
	m.append(second, unifiedPause(1, 2))
	r = m.run()
	r.until(unifiedYoung, 5)
}

// TestGCLogOnStdout: without a file the collector's lines stand among the
// application's. They are found there, the application's lines are no noise, and
// the file's bytes are not told twice.
func TestGCLogOnStdout(t *testing.T) {
	m := newMachine(t)
	m.runJava(pid, "17.0.15", "-Xlog:gc*")
	r := m.run()
	r.until(rejections, 0)
	m.append("catalina.out", "[0.010s][info][gc] Using G1\n"+rejection(1)+unifiedPause(0, 1)+rejection(2)+unifiedPause(1, 2)+"hello\n")
	r.until(unifiedYoung, 2)
	r.until(rejections, 2)
	if v, ok := r.value(`gclog_unrecognised_lines_total{target="tomcat-8080"}`); !ok || v != 0 {
		t.Errorf("%v lines are not recognised (there: %v)", v, ok)
	}
	size, err := os.Stat(m.base + "/logs/catalina.out")
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := r.value(`logfile_read_bytes_total{file="catalina.out",target="tomcat-8080"}`); v != float64(size.Size()) {
		t.Errorf("%v bytes are told, the file has %v", v, size.Size())
	}
	if strings.Contains(r.text(), `source="gclog"`) && strings.Contains(r.text(), `sidecar_source_blind{reason="not_enabled",source="gclog"`) {
		t.Error("the GC log is called off")
	}
	r.die()
	m.append("catalina.out", unifiedPause(2, 3))
	r = m.run()
	r.until(unifiedYoung, 3)
}
