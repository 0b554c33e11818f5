//go:build !windows

// Command replay reads one application log to its end and prints what was in
// it. It is the reader of the benchmark until sidecar replay takes its place, and
// has two modes that that one has not: single lines instead of blocks, and a
// file that is still being written.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/applog"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	lines := flag.Bool("lines", false, "hand over single lines, not blocks")
	live := flag.String("live", "", "read this file as it is written")
	limit := flag.Duration("for", 10*time.Second, "how long to read a live file")
	flag.Parse()
	r := &reader{report: applog.NewReport(applog.DefaultConfig()), byLine: *lines, buf: make([]byte, 256<<10)}
	var err error
	if *live != "" {
		err = r.follow(*live, *limit)
	} else {
		err = r.whole(flag.Arg(0))
	}
	if err == nil {
		r.report.Idle(time.Time{})
		if *asJSON {
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", "  ")
			err = e.Encode(r.report.JSON())
		} else {
			err = r.report.WriteText(os.Stdout, 120)
		}
	}
	fmt.Fprintf(os.Stderr, "peak memory: %s\n", peak())
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// maxLine is where a line is too long, as for the follower.
const maxLine = 1 << 20

type reader struct {
	report *applog.Report
	byLine bool
	buf    []byte
	n      int // bytes in buf
	total  int64
}

// step reads once and hands over the whole lines.
func (r *reader) step(f io.Reader) error {
	if r.n == len(r.buf) { // a line longer than the buffer
		if len(r.buf) > maxLine {
			return fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	m, err := f.Read(r.buf[r.n:])
	r.total += int64(m)
	begin := r.n
	r.n += m
	if i := bytes.LastIndexByte(r.buf[begin:r.n], '\n'); i >= 0 {
		end := begin + i + 1
		if r.byLine {
			for b := r.buf[:end]; len(b) > 0; {
				k := bytes.IndexByte(b, '\n')
				r.report.Observe(b[:k])
				b = b[k+1:]
			}
		} else {
			r.report.ObserveBlock(r.buf[:end])
		}
		r.n = copy(r.buf, r.buf[end:r.n])
	}
	return err
}

func (r *reader) whole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		err := r.step(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	if r.n > 0 {
		r.report.Observe(r.buf[:r.n])
	}
	r.report.SetBytes(r.total)
	return nil
}

// follow reads what is appended for a while, looking every 50 ms.
func (r *reader) follow(path string, limit time.Duration) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	for time.Since(began) < limit {
		err := r.step(f)
		if errors.Is(err, io.EOF) {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	fmt.Fprintf(os.Stderr, "live: %d bytes in %v: %.3f cores\n", r.total, limit, cpu.Seconds()/limit.Seconds())
	return nil
}

// peak is the most memory this process had, as the kernel says.
func peak() string {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}
