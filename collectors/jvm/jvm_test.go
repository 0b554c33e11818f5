package jvm

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// file builds hsperfdata from "name value" lines; a value in quotes is a string.
func file(t testing.TB, lines string) []byte {
	b := make([]byte, 32)
	n := 0
	for _, l := range strings.Split(strings.TrimSpace(lines), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(l), " ")
		if !ok {
			continue
		}
		nameRoom := (len(name) + 1 + 7) &^ 7
		var e []byte
		if s, isText := strings.CutPrefix(value, `"`); isText {
			s = strings.TrimSuffix(s, `"`)
			e = make([]byte, 24+nameRoom+(len(s)+8)&^7)
			binary.LittleEndian.PutUint32(e[8:], uint32(len(s)+1))
			e[12], e[14] = 'B', byte(hsperf.String)
			copy(e[24+nameRoom:], s)
		} else {
			e = make([]byte, 24+nameRoom+8)
			e[12], e[14] = 'J', byte(hsperf.Events)
			var v int64
			for _, c := range value {
				v = v*10 + int64(c-'0')
			}
			binary.LittleEndian.PutUint64(e[24+nameRoom:], uint64(v))
		}
		binary.LittleEndian.PutUint32(e, uint32(len(e)))
		binary.LittleEndian.PutUint32(e[4:], 24)
		binary.LittleEndian.PutUint32(e[16:], uint32(24+nameRoom))
		copy(e[24:], name)
		b = append(b, e...)
		n++
	}
	copy(b, []byte{0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1})
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[24:], 32)
	binary.LittleEndian.PutUint32(b[28:], uint32(n))
	return b
}

func pollFile(t *testing.T, lines string) (map[string]float64, *Poller) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "4242")
	if err := os.WriteFile(path, file(t, lines), 0o600); err != nil {
		t.Fatal(err)
	}
	set := metric.ForTarget("t")
	p := New(set, Config{PerfPath: path})
	if err := p.Poll(context.Background(), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return values(set), p
}

// space1 are the counters of one space.
func counters(generation, space, used, capacity, most string) string {
	base := "sun.gc.generation." + generation + ".space." + space + "."
	return base + "used " + used + "\n" + base + "capacity " + capacity + "\n" + base + "maxCapacity " + most + "\n"
}

// The spellings by collector, those of real JVMs checked by TestAgainstMXBeans.
// The ones of JDK 6 to 13 here are from knowledge of the format.
func TestSpellings(t *testing.T) {
	young := counters("0", "0", "100", "1000", "2000") + counters("0", "1", "0", "100", "200") + counters("0", "2", "50", "100", "200")
	all := "sun.os.hrt.frequency 1000\n" + young + counters("1", "0", "500", "5000", "9000") +
		"sun.gc.generation.0.maxCapacity 2400\n" +
		"sun.gc.collector.0.invocations 7\nsun.gc.collector.0.time 3500\nsun.gc.collector.1.invocations 2\nsun.gc.collector.1.time 9000\n"
	for _, c := range []struct {
		name, head string
		want       map[string]float64
	}{
		{"CMS of JDK 8", `sun.gc.policy.name "ParNew:CMS"`, map[string]float64{
			"jvm_memory_pool_used_bytes pool=Par Eden Space": 100, "jvm_memory_pool_used_bytes pool=Par Survivor Space": 50,
			"jvm_memory_pool_used_bytes pool=CMS Old Gen": 500, "jvm_gc_collection_seconds_count gc=ParNew": 7,
			"jvm_gc_collection_seconds_sum gc=ConcurrentMarkSweep": 9, "jvm_memory_max_bytes area=heap": 11200}},
		{"Parallel of JDK 6", `sun.gc.policy.name "ParScav:MSC"` + "\n" + `sun.gc.generation.2.name "perm"` + "\n" + counters("2", "0", "30", "60", "90"), map[string]float64{
			"jvm_memory_pool_used_bytes pool=PS Eden Space": 100, "jvm_memory_pool_max_bytes pool=PS Eden Space": 2200,
			"jvm_memory_pool_used_bytes pool=PS Perm Gen": 30, "jvm_memory_pool_max_bytes pool=PS Perm Gen": 90,
			"jvm_gc_collection_seconds_sum gc=PS Scavenge": 3.5, "jvm_memory_used_bytes area=heap": 650}},
		{"Serial", `sun.gc.policy.name "Copy:MSC"`, map[string]float64{
			"jvm_memory_pool_used_bytes pool=Tenured Gen": 500, "jvm_gc_collection_seconds_count gc=MarkSweepCompact": 2}},
		{"ParNew without CMS", `sun.gc.policy.name "ParNew:MSC"`, map[string]float64{
			"jvm_memory_pool_used_bytes pool=Tenured Gen": 500, "jvm_memory_pool_used_bytes pool=Par Eden Space": 100}},
		{"old G1 without a policy name", `sun.gc.collector.0.name "G1 incremental collections"`, map[string]float64{
			"jvm_memory_pool_used_bytes pool=G1 Eden Space": 100, "jvm_gc_collection_seconds_count gc=G1 Young Generation": 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, p := pollFile(t, c.head+"\n"+all)
			for name, v := range c.want {
				if have[name] != v {
					t.Errorf("%s = %v, want %v", name, have[name], v)
				}
			}
			if len(p.Blind()) != 0 {
				t.Errorf("blind: %+v", p.Blind())
			}
		})
	}
}

// A collector of the future: everything else is shown, and nothing is guessed.
func TestUnknownCollector(t *testing.T) {
	have, p := pollFile(t, `sun.gc.collector.0.name "Quick minor pauses"
sun.gc.collector.0.invocations 7
sun.gc.generation.1.name "old"
sun.os.hrt.frequency 1000000000
sun.rt.safepointTime 2500000000
java.threads.live 12`)
	if b := p.Blind(); len(b) != 1 || b[0].Reason != BlindCollector {
		t.Errorf("blind: %+v", b)
	}
	if have["jvm_threads_current"] != 12 || have["jvm_safepoint_seconds_total"] != 2.5 {
		t.Errorf("have %v", have)
	}
	for name := range have {
		if strings.Contains(name, "memory") || strings.Contains(name, "collection") {
			t.Errorf("%s is a guess", name)
		}
	}
}

// Without the frequency a tick is no time.
func TestNoFrequency(t *testing.T) {
	have, _ := pollFile(t, "sun.rt.safepointTime 2500000000\nsun.rt.safepoints 9\nsun.gc.policy.name \"Copy:MSC\"\nsun.gc.collector.0.time 5\nsun.gc.collector.0.invocations 5")
	if _, ok := have["jvm_safepoint_seconds_total"]; ok || have["jvm_safepoints_total"] != 9 {
		t.Errorf("have %v", have)
	}
}

// Files that are not this JVM's, and what is said of each. All series must go.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	good := file(t, "java.threads.live 12")
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	proc := filepath.Join(dir, "proc")
	if err := os.MkdirAll(filepath.Join(proc, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	stat := "7 (java (x) 1) S 1 7 7 0 -1 4194304 0 0 0 0 5 6 0 0 20 0 3 0 9100000 1 1\n"
	if err := os.WriteFile(filepath.Join(proc, "7/stat"), []byte(stat), 0o644); err != nil {
		t.Fatal(err)
	}
	starting := append([]byte{}, good...)
	starting[7] = 0
	for _, c := range []struct {
		name   string
		cfg    Config
		reason string
		fails  bool
	}{
		{"no file", Config{NoPerf: "started with -XX:-UsePerfData"}, BlindNoPerfData, false},
		{"the folder was cleaned", Config{PerfPath: filepath.Join(dir, "none"), Root: proc, PID: 7, StartTicks: 9100000}, BlindNoPerfData, false},
		{"the JVM is gone", Config{PerfPath: write("1", good), Root: proc, PID: 7, StartTicks: 8981900}, "", false},
		{"somebody else's", Config{PerfPath: write("2", good), CheckOwner: true, UID: os.Getuid() + 1}, BlindOwner, false},
		{"no hsperfdata", Config{PerfPath: write("3", []byte(strings.Repeat("no such thing ", 9)))}, BlindFormat, false},
		{"empty", Config{PerfPath: write("4", nil)}, BlindFormat, false},
		{"starting", Config{PerfPath: write("5", starting)}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := metric.ForTarget("t")
			set.Gauge(threadsCurrent).Set(99)
			p := New(set, c.cfg)
			if err := p.Poll(context.Background(), time.Unix(0, 0)); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			reason := ""
			if b := p.Blind(); len(b) == 1 {
				reason = b[0].Reason
			}
			if reason != c.reason {
				t.Errorf("blind %q, want %q", reason, c.reason)
			}
			if left := values(set); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	// The same process, still there: it is read.
	set := metric.ForTarget("t")
	p := New(set, Config{PerfPath: filepath.Join(dir, "1"), Root: proc, PID: 7, StartTicks: 9100000})
	if err := p.Poll(context.Background(), time.Unix(0, 0)); err != nil || values(set)["jvm_threads_current"] != 12 {
		t.Errorf("%v, %v", err, values(set))
	}
}

func TestFlags(t *testing.T) {
	have, _ := pollFile(t, `java.rt.vmArgs "-Xmx4096m -Xms1g -XX:+UseG1GC -XX:-UseG1GC -Dpassword=hunter2 -Xlog:gc*:file=gc.log -XX:SomeSecret=1"
java.property.java.vm.name "OpenJDK 64-Bit Server VM"
java.property.java.vm.vendor "Somebody"
java.property.java.version "1.8.0_392"
sun.rt.internalVersion "OpenJDK 64-Bit Server VM (25.392-b08) for linux-amd64 JRE (1.8.0_392-b08), built"`)
	for _, name := range []string{"jvm_flag name=MaxHeapSize value=4096m", "jvm_flag name=InitialHeapSize value=1g", "jvm_flag name=UseG1GC value=false",
		"jvm_flag name=Xlog value=gc*:file=gc.log", "jvm_runtime_info runtime=OpenJDK Runtime Environment vendor=Somebody version=1.8.0_392-b08"} {
		if have[name] != 1 {
			t.Errorf("%s is missing in %v", name, have)
		}
	}
	if len(have) != 5 {
		t.Errorf("more than that: %v", have)
	}
}

func TestFindings(t *testing.T) {
	const log = "-Xlog:gc*:file=gc.log"
	for _, c := range []struct {
		args  string
		major int
		want  string
	}{
		{"-Xmx4g -Xms4g " + log, 17, ""},
		{"-Xmx4g -Xms4g", 17, "no_gc_log"},
		{"-Xmx9g -Xms9g " + log, 17, "heap_above_memory"},
		{"-Xmx7900m -Xms7900m " + log, 17, "heap_near_memory"},
		{"-Xmx1024 -Xms1024 " + log, 17, "heap_without_unit"},
		{"-Xmx4g -Xms64m " + log, 17, "initial_heap_below_max"},
		{"-Xmx1g -Xms2g " + log, 17, "initial_heap_above_max"},
		{"-XX:MaxPermSize=256m -Xloggc:gc.log -XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=5", 8, "flag_ignored"},
		{"-XX:MaxPermSize=256m -Xloggc:gc.log -XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=5", 7, ""},
		{"-Xloggc:gc.log", 8, "gc_log_without_rotation"},
		{log + "::filecount=0", 17, "gc_log_without_rotation"},
		{"-Xlog:gc", 17, "gc_log_on_stdout"},
		{"-XX:MaxTenuringThreshold=31 -Xloggc:gc.log -XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=5", 8, "max_tenuring_threshold_out_of_range"},
		{"-Xloggc:gc.log -XX:+UseGCLogFileRotation", 8, "gc_log_without_rotation"},
		{"-XX:ParallelGCThreads=16 " + log, 17, "gc_threads_above_cores"},
		{"-XX:ParallelGCThreads=4 " + log, 17, ""},
	} {
		var have []string
		for _, f := range Findings(Machine{Args: strings.Fields(c.args), Major: c.major, Memory: 64 << 30, Limit: 8 << 30, Cores: 4}) {
			have = append(have, f.ID)
		}
		if strings.Join(have, " ") != c.want {
			t.Errorf("%s (JDK %d): %v, want %q", c.args, c.major, have, c.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPoll(b *testing.B) {
	path := filepath.Join(b.TempDir(), "4242")
	lines := `sun.gc.policy.name "Copy:MSC"` + "\n" + counters("0", "0", "100", "1000", "2000") + counters("0", "1", "0", "100", "200") +
		counters("0", "2", "50", "100", "200") + counters("1", "0", "500", "5000", "9000")
	for i := range 200 {
		lines += "sun.ci.filler" + string(rune('a'+i%26)) + strings.Repeat("x", i) + " 1\n"
	}
	if err := os.WriteFile(path, file(b, lines), 0o600); err != nil {
		b.Fatal(err)
	}
	p := New(metric.ForTarget("t"), Config{PerfPath: path})
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Poll(context.Background(), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzFlags(f *testing.F) {
	f.Add("-Xmx4g -Xms -XX:+ -XX:= -XX:a=b -Xlog:gc:: -Xlog: -Xss")
	f.Add("-Xlog:gc*:file=x:time:filesize=0")
	f.Fuzz(func(t *testing.T, s string) {
		args := strings.Fields(s)
		Findings(Machine{Args: args, Major: 8, Memory: 1 << 30, Cores: 2})
		if p := pairs(flagsOf(args)); len(p)%2 != 0 {
			t.Error("half a pair")
		}
	})
}

// values are the series of a Set: "name label=value" -> value; a summary as
// name_count and name_sum.
func values(set *metric.Set) map[string]float64 {
	set.Lock()
	defer set.Unlock()
	g := metric.NewGathering()
	g.Add(set)
	out := map[string]float64{}
	for _, f := range g.Snapshot(time.Time{}).Families {
		for _, m := range f.Metric {
			labels := ""
			for _, l := range m.Label {
				if l.GetName() != "target" {
					labels += " " + l.GetName() + "=" + l.GetValue()
				}
			}
			switch {
			case m.Gauge != nil:
				out[f.GetName()+labels] = m.Gauge.GetValue()
			case m.Counter != nil:
				out[f.GetName()+labels] = m.Counter.GetValue()
			case m.Summary != nil:
				out[f.GetName()+"_count"+labels] = float64(m.Summary.GetSampleCount())
				out[f.GetName()+"_sum"+labels] = m.Summary.GetSampleSum()
			}
		}
	}
	return out
}
