package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"golang.org/x/sys/unix"
)

// The whole program, as root, beside two servers of a made-up /proc: one behaves,
// the other does all that docs/security.md names at once. The program must not
// grow, must not read or ship what the other names, must not stop, and must count
// the good one's requests to the last.

const othersSecret = "THE-SECRET-OF-ANOTHER"

// hostileLine is the length of a line without an end, and hostileFiles how many
// logs there are: a million, some 20 s of a plain disk. A slower one gets as many as
// it makes within hostileMaking, and at least fewestFiles. HOSTILE_FILES is another
// number.
const (
	hostileLine   = 1 << 30
	hostileFiles  = 1_000_000
	fewestFiles   = 50_000
	hostileMaking = 40 * time.Second
	// hostileMemory is what the program may take at most, and 512 MiB is what the
	// unit allows.
	hostileMemory = 256 << 20
)

// village is the made-up machine.
type village struct {
	t   *testing.T
	dir string
}

// begin puts what a /proc has beside processes.
func (v village) begin() {
	v.t.Helper()
	v.put("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\nbtime 1764489600\n")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		v.t.Fatal(err)
	}
	v.put("proc/self/mountinfo", string(mounts))
}

func (v village) put(path, text string) {
	v.t.Helper()
	path = filepath.Join(v.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

func (v village) link(path, to string) {
	v.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(v.dir, path)), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Symlink(to, filepath.Join(v.dir, path)); err != nil {
		v.t.Fatal(err)
	}
}

func (v village) add(path, text string) {
	v.t.Helper()
	f, err := os.OpenFile(filepath.Join(v.dir, path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		v.t.Fatal(err)
	}
}

const goodXML = `<Server><Service name="Catalina">
<Executor name="pool" namePrefix="catalina-exec-" maxThreads="10" maxQueueSize="10"/>
<Connector port="PORT" executor="pool" protocol="org.apache.coyote.http11.Http11NioProtocol"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost">
<Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs" prefix="access" suffix=".log" rotatable="false" buffered="false" pattern="%h %l %u %t &quot;%r&quot; %s %b %D"/>
</Host></Engine></Service></Server>`

// process makes a JVM with a Tomcat in it, of the user nobody.
func (v village) process(pid int, base, xml string, threads []string, more ...string) {
	dir := fmt.Sprintf("proc/%d", pid)
	root := filepath.Join(v.dir, base)
	stat := func(id int, name string) string {
		return fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 54 0 1000 2808832000 44257 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", id, name)
	}
	v.put(dir+"/stat", stat(pid, "java"))
	v.put(dir+"/status", fmt.Sprintf("Name:\tjava\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t\nNSpid:\t%d\n", pid))
	args := append([]string{"java", "-Dcatalina.base=/srv", "-Dcatalina.home=/srv"}, more...)
	v.put(dir+"/cmdline", strings.Join(append(args, "org.apache.catalina.startup.Bootstrap", "start"), "\x00")+"\x00")
	v.put(dir+"/environ", strings.Join(more, "\x00"))
	v.put(dir+"/maps", "7f00-7f01 r-xp 00000000 08:01 123    /usr/lib/jvm/java-17/lib/server/libjvm.so\n")
	v.put(dir+"/comm", "java\n")
	v.link(dir+"/root", root)
	v.link(dir+"/cwd", "/srv")
	v.link(dir+"/exe", "/usr/lib/jvm/java-17/bin/java")
	v.put(base+"/srv/conf/server.xml", xml)
	v.put(base+"/srv/logs/catalina.out", "")
	v.put(base+"/srv/logs/access.log", "")
	v.link(dir+"/fd/1", root+"/srv/logs/catalina.out")
	v.link(dir+"/fd/2", root+"/srv/logs/catalina.out")
	for i, name := range threads {
		v.put(fmt.Sprintf("%s/task/%d/stat", dir, pid+i), stat(pid+i, name[:min(len(name), 15)]))
	}
}

// room is how many of so many empty files the disk may be asked for. They must not
// be its last, and where it is no disk each of them would take a kilobyte of memory.
func (v village) room(files int) int {
	v.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(v.dir, &st); err != nil {
		v.t.Fatal(err)
	}
	// Some file systems (btrfs, overlays of it) make inodes as they need them and
	// say 0 of 0.
	if st.Type == unix.TMPFS_MAGIC || st.Files > 0 && st.Ffree < 2*uint64(files) {
		return min(files, fewestFiles)
	}
	return files
}

// wicked makes the other server, and says how many logs it got.
func (v village) wicked(files int) int {
	nasty := []string{"\x1b[2J\x1b[31mred", "new\nline", `quo"te`, `back\slash`, "\xff\xfe\xfd", "nul\x01\x02\x7f", `} 1`, "\u202eoverride", "<script>alert(1)</script>", ") R 1 1 ("}
	var threads []string
	for i := range 9000 {
		threads = append(threads, fmt.Sprintf("%d%s%d", rand.IntN(1e6), nasty[i%len(nasty)], i))
	}
	laughs := `<!DOCTYPE Server [<!ENTITY a0 "ha">`
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf(`<!ENTITY a%d "&a%d;&a%[2]d;&a%[2]d;">`, i, i-1)
	}
	laughs += fmt.Sprintf(`<!ENTITY s SYSTEM "file://%s/secret">]>`, v.dir)
	xml := strings.Replace(goodXML, "PORT", "8081", 1)
	xml = strings.Replace(xml, `name="pool" namePrefix="catalina-exec-"`, `name="&a29;" namePrefix="&s;"`, 1)
	xml = strings.Replace(xml, "<Service", fmt.Sprintf(`<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file://%s/secret" parse="text"/><Service`, v.dir), 1)
	args := []string{"-Xlog:gc:file=" + v.dir + "/secret", "-Xloggc:../../../../secret", "-XX:HeapDumpPath=/proc/1"}
	for _, n := range nasty {
		args = append(args, "-D"+n+"="+n)
	}
	v.process(5000, "wicked", laughs+xml, threads, args...)
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	v.put("wicked/tmp/hsperfdata_nobody/5000", string(random))
	logs := "wicked/srv/logs/"
	// Links to the outside under names that are followed.
	for _, name := range []string{"catalina.2026-01-01.log", "localhost.2026-01-01.log"} {
		v.link(logs+name, "../../../secret")
	}
	for _, n := range nasty {
		v.add(logs+strings.ReplaceAll(n, "/", "")+".log", "x\n")
	}
	began := time.Now()
	for i := range files {
		if i >= fewestFiles && i%1000 == 0 && time.Since(began) > hostileMaking {
			return i
		}
		name := fmt.Sprintf("%scatalina.%04d-%02d-%02d.log", logs, 1000+i/336, i/28%12+1, i%28+1)
		f, err := os.Create(filepath.Join(v.dir, name))
		if err != nil {
			v.t.Fatal(err)
		}
		f.Close()
	}
	return files
}

// lokiStub takes what is shipped.
type lokiStub struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lokiStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	io.Copy(&l.text, io.LimitReader(r.Body, 16<<20))
	w.WriteHeader(http.StatusNoContent)
}

func (l *lokiStub) holds(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(text))
}

func TestHostileBesideHealthy(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a million files and a line of a gigabyte")
	}
	if os.Getuid() != 0 {
		t.Skip("without root there is no secret that the sidecar could read for the server")
	}
	lab.Exclusive(t) // so many files keep the disk busy, and others measure seconds
	files := hostileFiles
	if n, err := strconv.Atoi(os.Getenv("HOSTILE_FILES")); err == nil {
		files = n
	}
	dir, err := os.MkdirTemp("", "hostile") // t.TempDir is closed to nobody
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	v := village{t, dir}
	v.begin()
	v.put("secret", strings.Repeat(othersSecret+"\n", 100))
	if err := os.Chmod(dir+"/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	v.process(4000, "good", strings.Replace(goodXML, "PORT", "8080", 1), nil)
	began := time.Now()
	files = v.wicked(v.room(files))
	t.Logf("%d files made in %.0f s", files, time.Since(began).Seconds())

	loki := &lokiStub{}
	push := httptest.NewServer(loki)
	defer push.Close()
	v.put("sidecar.yml", fmt.Sprintf("loki: {url: %q, encoding: json}\n", push.URL+"/loki/api/v1/push"))
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr, log := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(dir, "log")
	sidecar, err := lab.StartProgram("sidecar", log, program, "run", "--path.procfs="+dir+"/proc", "--config.file="+dir+"/sidecar.yml",
		"--web.listen-address="+addr, "--storage.path="+dir+"/state")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		sidecar.Stop()
		if said, _ := os.ReadFile(log); t.Failed() {
			t.Logf("%s", said[:min(len(said), 4000)])
		} else if bytes.Contains(said, []byte("BUG")) || bytes.Contains(said, []byte(othersSecret)) {
			t.Errorf("its log: %s", said)
		}
	}()
	var m lab.Scrape
	until := func(limit time.Duration, what string, ok func() bool) {
		t.Helper()
		began := time.Now()
		if !lab.Until(limit, func() bool {
			if gone, how := sidecar.Exited(); gone {
				t.Fatalf("the sidecar ended: %v", how)
			}
			var err error
			m, err = lab.ReadMetrics(addr)
			return err == nil && ok()
		}) {
			t.Fatalf("within %v not seen: %s", limit, what)
		}
		t.Logf("%s after %.1f s", what, time.Since(began).Seconds())
	}
	wicked := ""
	until(4*time.Minute, "both servers", func() bool {
		for _, s := range m {
			if name := s.Labels["target"]; s.Labels["__name__"] == "target_up" && name != "tomcat-8080" {
				wicked = name
			}
		}
		_, requests := m.Sum("accesslog_requests_total", "target", "tomcat-8080")
		_, events := m.Sum("applog_events_total", "target", wicked)
		return wicked != "" && requests && events
	})
	// The good one goes on all the while: a request for each block of the line.
	requests := 0
	request := func() {
		requests++
		v.add("good/srv/logs/access.log", fmt.Sprintf("127.0.0.1 - - [30/Nov/2026:10:00:00 +0000] \"GET /%d HTTP/1.1\" 500 5 7\n", requests))
	}
	block := strings.Repeat("a", 1<<20)
	for range hostileLine / len(block) {
		v.add("wicked/srv/logs/catalina.out", block)
		request()
	}
	// And a gigabyte that was never written: a hole.
	st, err := os.Stat(filepath.Join(dir, "wicked/srv/logs/catalina.out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "wicked/srv/logs/catalina.out"), st.Size()+hostileLine); err != nil {
		t.Fatal(err)
	}
	const rejected = "\n30-Nov-2026 10:00:00.000 SEVERE [http-nio-8081-Acceptor] org.apache.tomcat.util.net.NioEndpoint.processSocket Error allocating socket processor\n" +
		" java.util.concurrent.RejectedExecutionException: The executor's work queue is full\n\tat org.apache.tomcat.util.net.X.y(X.java:1)\n"
	v.add("wicked/srv/logs/catalina.out", rejected+rejected)
	until(120*time.Second, "the record after the line", func() bool {
		request()
		n, _ := m.Sum("applog_events_total", "target", wicked, "event", "executor_rejected")
		return n >= 1
	})
	request()
	until(20*time.Second, "each request of the good one", func() bool {
		n, _ := m.Sum("accesslog_requests_total", "target", "tomcat-8080")
		return n == float64(requests)
	})
	// Line and hole stand in the account of the file to the last byte.
	sum := func(name string) float64 {
		n, _ := m.Sum(name, "target", wicked, "file", "catalina.out")
		return n
	}
	written := sum("logfile_written_bytes_total")
	if rest := sum("logfile_read_bytes_total") + sum("logfile_skipped_bytes_total") + sum("logfile_lost_bytes_total") + sum("logfile_lag_bytes"); written < 2*hostileLine || rest != written {
		t.Errorf("%v bytes were written, and %v are accounted for", written, rest)
	}
	// What it looked at, told and sent.
	// Of one pattern ten lines a second pass, so the first is sure to.
	if !lab.Until(20*time.Second, func() bool { return loki.holds("GET /1 ") }) {
		t.Error("the good one's lines are not shipped")
	}
	if loki.holds(othersSecret) {
		t.Error("the secret was shipped")
	}
	for _, path := range []string{"/metrics", "/status.json", "/"} {
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if bytes.Contains(text, []byte(othersSecret)) {
			t.Errorf("%s tells the secret", path)
		}
		if path == "/status.json" && !json.Valid(text) {
			t.Errorf("%s is no JSON", path)
		}
		if bytes.ContainsRune(text, '\x1b') {
			t.Errorf("%s holds a terminal's control characters", path)
		}
	}
	// How many files there are is told, too, once all of them were looked at. A scan
	// takes its time on purpose: seen were 16,000 names a second.
	until(time.Minute+time.Duration(files/4000)*time.Second, "the number of files", func() bool {
		n, _ := m.Sum("logdir_files", "target", wicked)
		return n >= float64(files)
	})
	perTarget := map[string]int{}
	for _, s := range m {
		perTarget[s.Labels["target"]]++
	}
	if perTarget[wicked] > 1500 || perTarget["tomcat-8080"] > 1500 || len(perTarget) > 3 {
		t.Errorf("series: %v", perTarget)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", sidecar.PID))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kb, _ := strconv.Atoi(string(peak[1]))
	took, _ := m.Sum("sidecar_process_cpu_seconds_total")
	t.Logf("at most %d MiB were resident and %.0f s of CPU used; %d series of the wicked one", kb>>10, took, perTarget[wicked])
	if kb<<10 > hostileMemory {
		t.Errorf("at most %d MiB were resident, want %d", kb>>10, hostileMemory>>20)
	}
}
