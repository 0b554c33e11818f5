package collectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A target is a stranger, and these are the things that one could do to the
// sidecar: make it read or tell another file, take its memory, stop it, or flood
// whoever scrapes it. After each the sidecar must go on: a request that comes
// then is counted. Links out of the target's root are in monitor_test.go and in
// internal/root, a million log files in logdir.

const secret = "THE-SECRET-OF-ANOTHER"

// nasty are names that break whoever puts them somewhere unquoted.
var nasty = []string{
	"\x1b[2J\x1b[31mred", "new\nline", "carriage\rreturn", `quo"te`, `back\slash`, "tab\there", "\xff\xfe\xfd", "nul\x01\x02\x7f",
	`} 1`, `",target="other`, "# HELP x", "\u202eoverride", "<script>alert(1)</script>", ") R 1 1 (", "   ",
}

// soundAfter says that the sidecar still works and that what it tells is sound.
func (r *running) soundAfter() {
	t := r.m.t
	t.Helper()
	r.m.append("access.log", answer(1))
	r.until(answers, 1)
	text := r.text()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the exposition can't be read: %v", err)
	}
	series := 0
	for _, f := range families {
		for _, m := range f.Metric {
			series++
			for _, l := range m.Label {
				if l.GetName() == "target" && l.GetValue() != "tomcat-8080" {
					t.Errorf("%s speaks of another target: %q", f.GetName(), l.GetValue())
				}
			}
		}
	}
	if series > 1500 {
		t.Errorf("%d series of one target", series)
	}
	if !utf8.ValidString(text) || strings.Contains(text, "\x1b") {
		t.Error("the exposition holds a terminal's control characters or is no UTF-8")
	}
	page, err := json.Marshal(r.Status())
	if err != nil {
		t.Fatal("the status can't be written: ", err)
	}
	if strings.Contains(text, secret) || bytes.Contains(page, []byte(secret)) {
		t.Errorf("another's secret is told:\n%s", page)
	}
}

// memory is what the program has taken from the system, after a collection.
func memory() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapInuse
}

// 9,000 threads, each with a name of its own, are more than are read in one
// sample, and none may become a series of its own.
func TestHostileThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 9,000 folders")
	}
	m := newMachine(t)
	for i := range 9000 {
		name := fmt.Sprintf("%d%s%d", rand.IntN(1e6), nasty[i%len(nasty)], i)
		name = name[:min(len(name), 15)] // as the kernel does
		tid := pid + i
		dir := fmt.Sprintf("%s/%d/task/%d", m.proc, pid, tid)
		m.put(dir+"/stat", fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 9000 0 1000 2808832000 44257 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", tid, name))
	}
	r := m.run()
	r.soundAfter()
	pools := 0
	for series := range values(r.text()) {
		if strings.HasPrefix(series, "jvm_threadpool_threads{") {
			pools++
		}
	}
	if pools == 0 || pools > 2*Defaults().Process.MaxPools {
		t.Errorf("%d pools of 9,000 threads with nonsense for names", pools)
	}
}

func TestHostileServerXML(t *testing.T) {
	laughs := `<!DOCTYPE Server [<!ENTITY a0 "ha">`
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf(`<!ENTITY a%d "&a%d;&a%d;&a%d;&a%d;">`, i, i-1, i-1, i-1, i-1)
	}
	laughs += `]>`
	for name, change := range map[string]func(xml, other string) string{
		"entities that grow": func(xml, _ string) string { return laughs + strings.Replace(xml, "pool", "&a29;", 1) },
		"an entity of itself": func(xml, _ string) string {
			return `<!DOCTYPE S [<!ENTITY a "&b;"><!ENTITY b "&a;">]>` + strings.Replace(xml, "pool", "&a;", 1)
		},
		"an entity of a file": func(xml, o string) string {
			return fmt.Sprintf(`<!DOCTYPE S [<!ENTITY a SYSTEM "file://%s">]>`, o) + strings.Replace(xml, `namePrefix="catalina-exec-"`, `namePrefix="&a;"`, 1)
		},
		"a DTD of a file": func(xml, o string) string { return fmt.Sprintf(`<!DOCTYPE S SYSTEM "file://%s">`, o) + xml },
		"too deep":        func(string, string) string { return strings.Repeat("<a>", 1e6) },
		"too many": func(string, string) string {
			return "<Server>" + strings.Repeat(`<Connector port="1"/>`, 3e5) + "</Server>"
		},
		"connectors": func(xml, _ string) string {
			return strings.Replace(xml, "<Engine", strings.Repeat(`<Connector port="8081" protocol="HTTP/1.1"/>`, 2000)+"<Engine", 1)
		},
		"an attribute of 3 MiB":         func(xml, _ string) string { return strings.Replace(xml, "pool", strings.Repeat("x", 3<<20), 1) },
		"names with control characters": func(xml, _ string) string { return strings.Replace(xml, "catalina-exec-", "&#9;&#10;&#13;&quot;}", 1) },
		"a log of another": func(xml, o string) string {
			return strings.Replace(xml, `directory="logs" prefix="access" suffix=".log"`, fmt.Sprintf(`directory="%s" prefix="%s" suffix=""`, filepath.Dir(o), filepath.Base(o)), 1)
		},
		"cut":    func(xml, _ string) string { return xml[:len(xml)/2] },
		"no XML": func(string, string) string { return string(make([]byte, 1<<20)) },
		"empty":  func(string, string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			other := filepath.Join(filepath.Dir(m.base), "other")
			m.put(other, secret+"\n")
			m.asNobody()
			// Another user's, as far as the target goes: it may not read it itself.
			if err := os.Chmod(other, 0); err != nil {
				t.Fatal(err)
			}
			xml, err := os.ReadFile(m.base + "/conf/server.xml")
			if err != nil {
				t.Fatal(err)
			}
			m.put(m.base+"/conf/server.xml", change(string(xml), other))
			before := memory()
			r := m.run()
			f, err := os.OpenFile(other, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil { // a root's right
				fmt.Fprintln(f, secret)
				f.Close()
			}
			r.look()
			// Without its settings the access log may not be known, and the port
			// neither: what counts is that the target is seen and its output read.
			m.append("catalina.out", rejection(1))
			r.untilSome("applog_events_total", `event="executor_rejected"`)
			if grown := int64(memory()) - int64(before); grown > 96<<20 {
				t.Errorf("%d MiB were taken", grown>>20)
			}
			page, err := json.Marshal(r.Status())
			if err != nil {
				t.Fatal(err)
			}
			if text := r.text(); strings.Contains(text, secret) || bytes.Contains(page, []byte(secret)) {
				t.Errorf("another's secret is told:\n%s", page)
			}
			if n := len(values(r.text())); n > 1500 {
				t.Errorf("%d series", n)
			}
		})
	}
}

// jail puts the target into a root of its own, which is the folder that holds
// its base, so that its /tmp is one of the test's.
func (m *machine) jail() (top string) {
	m.t.Helper()
	top = filepath.Dir(m.base)
	dir := fmt.Sprintf("%s/%d", m.proc, pid)
	os.Remove(dir + "/root")
	m.link(dir+"/root", top)
	m.put(dir+"/cmdline", strings.Join([]string{"java", "-Dcatalina.base=/base", "-Dcatalina.home=/base", "org.apache.catalina.startup.Bootstrap", "start"}, "\x00")+"\x00")
	return top
}

func TestHostilePerfdata(t *testing.T) {
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	// A true head, and then nonsense: entries that lead outside of themselves.
	head := func(rest []byte) []byte {
		b := []byte{0xca, 0xfe, 0xc0, 0xc0, 0, 2, 0, 1, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0xff, 0xff}
		return append(b, rest...)
	}
	for name, place := range map[string]func(t *testing.T, path, other string) error{
		"random":       func(t *testing.T, path, _ string) error { return os.WriteFile(path, random, 0o600) },
		"head, random": func(t *testing.T, path, _ string) error { return os.WriteFile(path, head(random[:1<<15]), 0o600) },
		"head, zeros":  func(t *testing.T, path, _ string) error { return os.WriteFile(path, head(make([]byte, 1<<15)), 0o600) },
		"empty":        func(t *testing.T, path, _ string) error { return os.WriteFile(path, nil, 0o600) },
		"a terabyte": func(t *testing.T, path, _ string) error {
			if err := os.WriteFile(path, head(nil), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
		"a link out":  func(t *testing.T, path, other string) error { return os.Symlink(other, path) },
		"a link away": func(t *testing.T, path, _ string) error { return os.Symlink("/dev/zero", path) },
		"a pipe":      func(t *testing.T, path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":    func(t *testing.T, path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			top := m.jail()
			other := filepath.Join(t.TempDir(), "other")
			m.put(other, secret)
			dir := top + "/tmp/hsperfdata_app"
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := place(t, fmt.Sprintf("%s/%d", dir, pid), other); err != nil {
				if name == "a terabyte" {
					t.Skip("no file so large here: ", err)
				}
				t.Fatal(err)
			}
			before := memory()
			r := m.run()
			r.look()
			r.soundAfter()
			if grown := int64(memory()) - int64(before); grown > 64<<20 {
				t.Errorf("%d MiB were taken", grown>>20)
			}
			// Else the test would prove nothing: these four are opened and read.
			if p := r.Status().Targets[0].Target.PerfData; strings.Contains("random head, random head, zeros empty", name) && p.Reason == "not_found" {
				t.Errorf("it was not looked at: %+v", p)
			}
			for series := range values(r.text()) {
				if strings.HasPrefix(series, "jvm_memory_") {
					t.Errorf("nonsense became %s", series)
				}
			}
		})
	}
}

// Names of files and folders are the target's, and go into labels, the page and
// the log.
func TestHostileNames(t *testing.T) {
	m := newMachine(t)
	for i, name := range nasty {
		name = strings.ReplaceAll(name, "/", "")
		m.append(name+".log", rejection(i))
		m.link(fmt.Sprintf("%s/%d/fd/%d", m.proc, pid, 10+i), m.base+"/logs/"+name+".log")
	}
	for i := range 3000 {
		m.append(fmt.Sprintf("%s%d.log", nasty[i%9][:2], i), "x\n")
	}
	dir := fmt.Sprintf("%s/%d", m.proc, pid)
	m.put(dir+"/comm", "ja\x1bva\n")
	m.put(dir+"/environ", strings.Join(nasty, "\x00"))
	args := []string{"java", "-Dcatalina.base=" + m.base, "-Dcatalina.home=" + m.base}
	for _, n := range nasty {
		args = append(args, "-D"+n+"="+n, "-Xlog:gc:file="+n, "-Xloggc:../../../../etc/shadow")
	}
	m.put(dir+"/cmdline", strings.Join(append(args, "org.apache.catalina.startup.Bootstrap", "start"), "\x00")+"\x00")
	m.asNobody()
	r := m.run()
	r.look()
	r.soundAfter()
	if os.Getuid() != 0 {
		return
	}
	for _, s := range r.Status().Targets[0].Sources {
		if strings.Contains(s.Path, "shadow") && s.Ledger != nil && s.Ledger.Read > 0 {
			t.Errorf("%s was read", s.Path)
		}
	}
}

// A line of 256 MiB without an end, and then lines again. (The file has a hole:
// it takes no room on the disk.)
func TestHostileLine(t *testing.T) {
	m := newMachine(t)
	r := m.run()
	r.until(rejections, 0)
	before := memory()
	path := m.base + "/logs/catalina.out"
	if err := os.Truncate(path, 256<<20); err != nil {
		t.Fatal(err)
	}
	m.append("catalina.out", "\n"+rejection(1))
	r.untilSome("applog_events_total", `event="executor_rejected"`)
	if grown := int64(memory()) - int64(before); grown > 32<<20 {
		t.Errorf("%d MiB were taken for one line", grown>>20)
	}
	r.soundAfter()
}
