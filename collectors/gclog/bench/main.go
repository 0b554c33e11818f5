// Command bench makes long GC logs out of short ones and reads them, for the
// comparison in compare.sh.
//
//	bench make SECONDS-LOG SIZE-IN-MB > LONG-LOG   repeats a log, its uptimes and ids moved on
//	bench observe LOG                              counts it as the daemon does
//	bench report LOG                               sums it up as replay does
//	bench json LOG                                 the same as JSON
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "make":
		mb, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		data, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		return repeat(os.Stdout, data, mb<<20)
	case len(args) == 2 && args[0] == "observe":
		set := metric.ForTarget("bench")
		o := gclog.New(set, gclog.DefaultConfig())
		if err := read(args[1], o.Observe); err != nil {
			return err
		}
		o.Idle(time.Time{})
		g := metric.NewGathering()
		g.Add(set)
		var pauses uint64
		var seconds float64
		for _, m := range g.Snapshot(time.Time{}).Family("gclog_pause_seconds").GetMetric() {
			pauses += m.Histogram.GetSampleCount()
			seconds += m.Histogram.GetSampleSum()
		}
		fmt.Printf("%d pauses, %.6f s\n", pauses, seconds)
		return nil
	case len(args) == 2 && (args[0] == "report" || args[0] == "json"):
		r := gclog.NewReport()
		r.Begin(args[1])
		if err := read(args[1], r.Observe); err != nil {
			return err
		}
		if args[0] == "json" {
			return json.NewEncoder(os.Stdout).Encode(r.JSON())
		}
		return r.WriteText(os.Stdout, 100)
	}
	return fmt.Errorf("usage: bench make LOG MB | observe LOG | report LOG | json LOG")
}

func read(name string, observe func([]byte) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadSlice('\n')
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 {
			observe(line)
		}
		switch err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

var (
	unifiedUptime = regexp.MustCompile(`^\[(\d+\.\d{3})s\]`)
	legacyUptime  = regexp.MustCompile(`(?:^|[:\] )])(\d+\.\d{3}): `)
	gcID          = regexp.MustCompile(`GC\((\d+)\)`)
)

// repeat writes the log again and again. Every round begins where the one
// before ended, so that the whole looks like one long run.
func repeat(w io.Writer, data []byte, size int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	shift, ids, written := 0.0, 0, 0
	for written < size {
		last, maxID := 0.0, 0
		for _, line := range bytes.SplitAfter(data, []byte("\n")) {
			move := func(re *regexp.Regexp) {
				line = replace(re, line, func(v []byte) []byte {
					t, err := strconv.ParseFloat(string(v), 64)
					if err != nil {
						return v
					}
					last = max(last, t)
					return strconv.AppendFloat(nil, t+shift, 'f', 3, 64)
				})
			}
			if unifiedUptime.Match(line) {
				move(unifiedUptime)
			} else {
				move(legacyUptime)
			}
			line = replace(gcID, line, func(v []byte) []byte {
				n, err := strconv.Atoi(string(v))
				if err != nil {
					return v
				}
				maxID = max(maxID, n+1)
				return strconv.AppendInt(nil, int64(n+ids), 10)
			})
			// Only the first round says which JVM this is.
			if shift > 0 && (bytes.Contains(line, []byte("Using ")) && !bytes.Contains(line, []byte("workers")) || bytes.Contains(line, []byte("JRE ("))) {
				continue
			}
			n, err := out.Write(line)
			if err != nil {
				return err
			}
			written += n
		}
		shift += last + 1
		ids += maxID
	}
	return out.Flush()
}

// replace puts other text in the place of the first group of every match.
func replace(re *regexp.Regexp, line []byte, with func([]byte) []byte) []byte {
	found := re.FindAllSubmatchIndex(line, -1)
	if found == nil {
		return line
	}
	var out []byte
	at := 0
	for _, m := range found {
		out = append(out, line[at:m[2]]...)
		out = append(out, with(line[m[2]:m[3]])...)
		at = m[3]
	}
	return append(out, line[at:]...)
}
