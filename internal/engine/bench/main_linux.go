// Command bench measures what the engine costs, on figures that a sidecar had
// beside a Tomcat in overload, multiplied to a thousand series.
//
//	go run ./internal/engine/bench               all tables, some six minutes
//	go run ./internal/engine/bench -only beside
//
//	beside   the engine, and a Prometheus that scrapes and evaluates the same, side by side in real time: CPU and memory
//	hours    two hours of samples in as much time as that takes: memory, and what is on disk
//	panels   query_range of 15 minutes of each panel of the dashboards and each chart of the page
//	binary   the size of the stripped binary
//
// CPU is user and system time by the kernel's account. Machines differ: the ratio
// counts. Other work on the machine stretches the times of panels; their CPU time
// tells how much.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/rules"
	"golang.org/x/sys/unix"
)

var (
	series  = flag.Int("series", 1000, "series")
	hours   = flag.Float64("hours", 2, "hours of samples of the table hours")
	seconds = flag.Int("seconds", 90, "length of the table beside")
	minutes = flag.Int("minutes", 40, "minutes of samples before the table panels")
	match   = flag.String("match", "", "only these panels: a part of the table's name or of a query")
	profile = flag.String("profile", "", "write CPU and heap profiles into this folder")
	role    = flag.String("role", "", "what a child of the table beside does")
	folder  = flag.String("folder", "", "where that child keeps its samples")
)

func main() {
	only := flag.String("only", "", "beside, hours, panels, binary, or nothing for all")
	flag.Parse()
	if *role != "" {
		check(child(*role))
		return
	}
	for _, table := range []struct {
		name string
		run  func() error
	}{{"binary", tableBinary}, {"beside", tableBeside}, {"hours", tableHours}, {"panels", tablePanels}} {
		if *only == "" || *only == table.name {
			check(table.run())
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func head(title string) {
	fmt.Printf("\n%s\n\n| work | measured | bar | |\n| --- | --- | --- | --- |\n", title)
}

// row prints one line of a table, with its bar.
func row(what, figure, bar string, held bool) {
	mark := "held"
	switch {
	case bar == "":
		mark = ""
	case !held:
		mark = "MISSED"
	}
	fmt.Printf("| %s | %s | %s | %s |\n", what, figure, bar, mark)
}

// open starts an engine as the sidecar does.
func open(dir string, at time.Time) (*engine.Engine, error) {
	return engine.Open(engine.DefaultConfig(), engine.Options{
		Dir: dir, Job: "sidecar", Instance: "here:10404", Pack: rules.Files, Start: at, Log: slog.New(slog.DiscardHandler),
		Notify: func([]engine.Alert) {},
	})
}

// tableHours runs the engine's ticks one after the other. What it allocates and
// keeps for a tick does not depend on how long a tick lasts.
func tableHours() error {
	dir, err := os.MkdirTemp("", "engine-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, err := newWorld(*series)
	if err != nil {
		return err
	}
	at := time.Now().Add(-time.Duration(*hours * float64(time.Hour)))
	ticks := int(*hours * 3600)
	// What the process has without an engine, making snapshots.
	for i := range 300 {
		w.snapshot(i, at)
	}
	before := resident(os.Getpid())
	e, err := open(dir, at)
	if err != nil {
		return err
	}
	defer e.Close()
	stop, err := profileInto("hours.prof")
	if err != nil {
		return err
	}
	var used time.Duration
	most, end, disk := 0.0, 0.0, 0.0
	for i := range ticks {
		at = at.Add(time.Second)
		snap := w.snapshot(i, at)
		a := cpu()
		e.Append(snap)
		used += cpu() - a
		if i%10 == 0 {
			end = resident(os.Getpid())
			most = max(most, end)
		}
	}
	disk = onDisk(dir)
	stop()
	if *profile != "" {
		f, err := os.Create(*profile + "/heap.prof")
		if err != nil {
			return err
		}
		runtime.GC()
		if err := pprof.WriteHeapProfile(f); err != nil {
			return err
		}
	}
	head(fmt.Sprintf("%d series a second for %g h, the rules for load runs", w.series, *hours))
	row("CPU for each second of samples", fmt.Sprintf("%.1f ms", ms(used)/float64(ticks)), "", true)
	row("resident without an engine", fmt.Sprintf("%.1f MB", before), "", true)
	row("resident on top of it, at most", fmt.Sprintf("%.1f MB", most-before), "45 MB", most-before <= 45)
	row("resident on top of it, at the end", fmt.Sprintf("%.1f MB", end-before), "45 MB", end-before <= 45)
	row("on disk", fmt.Sprintf("%.1f MB", disk/1e6), "256 MB", disk <= 256e6)
	return nil
}

// profileInto profiles the CPU until stop is called, where a folder was given.
func profileInto(name string) (stop func(), err error) {
	if *profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(*profile, name))
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(f)
}

func tableBinary() error {
	dir, err := os.MkdirTemp("", "engine-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	size, err := engineBinary(dir)
	if err != nil {
		return err
	}
	head("The binary")
	row("stripped", fmt.Sprintf("%.2f MB", float64(size)/1e6), "35 MB", size <= 35e6)
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// cpu is the CPU time of this process.
func cpu() time.Duration { return cpuOf(os.Getpid()) }

// cpuOf is the CPU time of a process so far, by its own clock: the account of all
// its threads in nanoseconds.
func cpuOf(pid int) time.Duration {
	// A process' CPU clock is made of its number: ~pid << 3 | 2 (CPUCLOCK_SCHED).
	var ts unix.Timespec
	check(unix.ClockGettime(int32(^pid<<3|2), &ts))
	return time.Duration(ts.Nano())
}

// resident is what the kernel says a process has in memory, in MB.
func resident(pid int) float64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	check(err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	check(err)
	return float64(pages*os.Getpagesize()) / 1e6
}

func onDisk(dir string) (n float64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += float64(info.Size())
			}
		}
		return nil
	})
	return n
}
