package jvm

import (
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// What jstat and jcmd say of a JVM that allocates nothing any more must be what
// is exported of it, to the digits that they print.
func TestAgainstJstatAndJcmd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	for major, home := range jdks(t) {
		classes := compile(t, home, "testdata/Steady.java")
		for _, gc := range []string{"Serial", "Parallel", "G1"} {
			t.Run(major+"/"+gc, func(t *testing.T) {
				c := startChild(t, home, classes, "-XX:+Use"+gc+"GC", "-Xmx192m", "-Xms96m")
				run := func(tool string, args ...string) string {
					t.Helper()
					out, err := exec.Command(filepath.Join(home, "bin", tool), args...).Output()
					if err != nil {
						t.Fatalf("%s %v: %v", tool, args, err)
					}
					return string(out)
				}
				pid := strconv.Itoa(c.cmd.Process.Pid)
				// jcmd first: its threads in the JVM are there then for both.
				info := run("jcmd", pid, "GC.heap_info")
				gcTable, classTable := columns(t, run("jstat", "-gc", pid)), columns(t, run("jstat", "-class", pid))
				set := metric.ForTarget("t")
				if err := New(set, c.config()).Poll(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				have := values(set)
				check := func(name string, want, slack float64) {
					t.Helper()
					if v, ok := have[name]; !ok || math.Abs(v-want) > slack {
						t.Errorf("%s = %v (%v), want %v", name, v, ok, want)
					}
				}
				names := map[string][5]string{
					"Serial":   {"Eden Space", "Survivor Space", "Tenured Gen", "Copy", "MarkSweepCompact"},
					"Parallel": {"PS Eden Space", "PS Survivor Space", "PS Old Gen", "PS Scavenge", "PS MarkSweep"},
					"G1":       {"G1 Eden Space", "G1 Survivor Space", "G1 Old Gen", "G1 Young Generation", "G1 Old Generation"},
				}[gc]
				// jstat prints KiB with one decimal, seconds with three.
				kib := func(column string) float64 { return gcTable[column] * 1024 }
				const slack, seconds = 0.051 * 1024, 0.00051
				check("jvm_memory_pool_used_bytes pool="+names[0], kib("EU"), slack)
				check("jvm_memory_pool_committed_bytes pool="+names[0], kib("EC"), slack)
				check("jvm_memory_pool_used_bytes pool="+names[2], kib("OU"), slack)
				check("jvm_memory_pool_committed_bytes pool="+names[2], kib("OC"), slack)
				check("jvm_memory_pool_used_bytes pool="+names[1], kib("S0U")+kib("S1U"), 2*slack)
				check("jvm_memory_pool_used_bytes pool=Metaspace", kib("MU"), slack)
				check("jvm_memory_pool_committed_bytes pool=Metaspace", kib("MC"), slack)
				check("jvm_memory_pool_used_bytes pool=Compressed Class Space", kib("CCSU"), slack)
				check("jvm_gc_collection_seconds_count gc="+names[3], gcTable["YGC"], 0)
				check("jvm_gc_collection_seconds_sum gc="+names[3], gcTable["YGCT"], seconds)
				check("jvm_gc_collection_seconds_count gc="+names[4], gcTable["FGC"], 0)
				check("jvm_gc_collection_seconds_sum gc="+names[4], gcTable["FGCT"], seconds)
				check("jvm_classes_loaded_total", classTable["Loaded"], 0)
				check("jvm_classes_unloaded_total", classTable["Unloaded"], 0)
				// The options as given; jcmd VM.flags has them in bytes.
				check("jvm_flag name=MaxHeapSize value=192m", 1, 0)
				check("jvm_flag name=InitialHeapSize value=96m", 1, 0)
				check("jvm_flag name=Use"+gc+"GC value=true", 1, 0)
				flags := run("jcmd", pid, "VM.flags")
				for _, want := range []string{"-XX:MaxHeapSize=201326592", "-XX:InitialHeapSize=100663296", "-XX:+Use" + gc + "GC"} {
					if !strings.Contains(flags, want) {
						t.Errorf("no %s in %s", want, flags)
					}
				}
				if used := heapInfo(info); used > 0 {
					check("jvm_memory_used_bytes area=heap", used, 4<<20) // it counts to the KiB; eden is sampled
				} else {
					t.Errorf("no used heap in %s", info)
				}
			})
		}
	}
}

// columns reads jstat's two lines; "-" is no figure.
func columns(t *testing.T, out string) map[string]float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("jstat printed %q", out)
	}
	names, numbers := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(names) != len(numbers) {
		t.Fatalf("jstat printed %q", out)
	}
	table := map[string]float64{}
	for i, n := range names {
		if _, twice := table[n]; twice {
			continue // "Bytes" of -class stands twice
		}
		if v, err := strconv.ParseFloat(numbers[i], 64); err == nil {
			table[n] = v
		}
	}
	return table
}

var usedK = regexp.MustCompile(`(?m)^\s*(?:def new generation|tenured generation|DefNew|Tenured|PSYoungGen|ParOldGen|garbage-first heap)\b.*?\bused (\d+)K`)

// heapInfo sums the used KiB of the generations.
func heapInfo(info string) (used float64) {
	for _, m := range usedK.FindAllStringSubmatch(info, -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		used += v * 1024
	}
	return used
}
