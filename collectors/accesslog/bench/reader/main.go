// Command reader is the smallest program around the room: it reads a file in
// blocks, hands each line over by a plain call, and prints the figures. The
// benchmark measures it as a whole process.
//
//	reader [-mode metrics|routes|report|lines|nxtail-metrics] [-unit us] [-pattern P] FILE
//
// nxtail-metrics reads the file through nxadm/tail and hands the same lines to
// the same observer, which shows what the reading alone costs there. -follow
// goes on with what is appended, as the sidecar does beside a live server.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/nxadm/tail"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

type handler interface{ Observe([]byte) bool }

func main() {
	mode := flag.String("mode", "metrics", "metrics, routes, report or lines; nxtail-metrics reads through nxadm/tail")
	unit := flag.String("unit", "us", "unit of %D")
	pattern := flag.String("pattern", `%h %l %u %t "%r" %s %b %D %F %I`, "pattern of AccessLogValve")
	stats := flag.Bool("stats", false, "print allocations to stderr")
	follow := flag.Duration("follow", 0, "keep reading what is appended, for so long")
	profile := flag.String("cpuprofile", "", "write a CPU profile")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "reader:", err)
			os.Exit(1)
		}
		_ = pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	if err := run(*mode, *unit, *pattern, *follow, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
	if *stats {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintf(os.Stderr, "mallocs %d bytes %d\n", m.Mallocs, m.TotalAlloc)
	}
}

type nothing struct{ n int }

func (n *nothing) Observe([]byte) bool { n.n++; return false }

func run(mode, unit, pattern string, follow time.Duration, file string) error {
	m, err := accesslog.Compile(accesslog.FormatTomcat, pattern, accesslog.Options{DurationUnit: unit})
	if err != nil {
		return err
	}
	set := metric.ForTarget("replay")
	cfg := accesslog.DefaultConfig()
	tailed := strings.HasPrefix(mode, "nxtail")
	mode = strings.TrimPrefix(mode, "nxtail-")
	var h handler
	var report *accesslog.Report
	switch mode {
	case "metrics":
		h = accesslog.New(set, m, cfg)
	case "routes":
		cfg.Routes.Fold = true
		h = accesslog.New(set, m, cfg)
	case "report":
		report = accesslog.NewReport(m, accesslog.ReportOptions{})
		h = report
	case "lines":
		h = &nothing{}
	default:
		return fmt.Errorf("mode %q", mode)
	}
	if err := feed(file, h, follow, tailed); err != nil {
		return err
	}
	if report != nil {
		if err := report.WriteText(os.Stderr, 100); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(report.JSON())
	}
	g := metric.NewGathering()
	g.Add(set)
	for _, f := range g.Snapshot(time.Now()).Families {
		for _, m := range f.Metric {
			fmt.Print(f.GetName())
			for _, l := range m.Label {
				fmt.Printf(" %s=%q", l.GetName(), l.GetValue())
			}
			switch {
			case m.Counter != nil:
				fmt.Println("", m.Counter.GetValue())
			case m.Gauge != nil:
				fmt.Println("", m.Gauge.GetValue())
			case m.Histogram != nil:
				fmt.Println(" count", m.Histogram.GetSampleCount(), "sum", m.Histogram.GetSampleSum())
				for _, b := range m.Histogram.Bucket {
					fmt.Println("  le", b.GetUpperBound(), b.GetCumulativeCount())
				}
			}
		}
	}
	return nil
}

// feed reads the file in blocks, or through nxadm/tail.
func feed(file string, h handler, follow time.Duration, tailed bool) error {
	if tailed {
		t, err := tail.TailFile(file, tail.Config{CompleteLines: true, Logger: tail.DiscardingLogger})
		if err != nil {
			return err
		}
		for line := range t.Lines {
			h.Observe([]byte(line.Text))
		}
		return t.Err()
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f, h, follow)
}

// read hands the lines of f over, without their ends.
func read(f *os.File, h handler, follow time.Duration) error {
	buf := make([]byte, 256<<10)
	end := time.Now().Add(follow)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		have += n
		b := buf[:have]
		for {
			i := bytes.IndexByte(b, '\n')
			if i < 0 {
				break
			}
			line := b[:i]
			if i > 0 && line[i-1] == '\r' {
				line = line[:i-1]
			}
			h.Observe(line)
			b = b[i+1:]
		}
		have = copy(buf, b)
		if have == len(buf) { // over-long: give the piece up
			have = 0
		}
		if err == io.EOF {
			if time.Now().Before(end) {
				time.Sleep(250 * time.Millisecond)
				continue
			}
			if have > 0 {
				h.Observe(buf[:have])
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
