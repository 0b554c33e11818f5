// Command replay reads one application log to its end and prints what was in
// it. It is the reader of the benchmark: sidecar replay does the same.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/applog"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	lines := flag.Bool("lines", false, "hand over single lines, not blocks")
	flag.Parse()
	if err := replay(flag.Arg(0), *asJSON, *lines); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// maxLine is where a line is cut, as the follower does.
const maxLine = 1 << 20

func replay(path string, asJSON, byLine bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := applog.NewReport(applog.DefaultConfig())
	buf := make([]byte, 256<<10)
	n := 0
	for {
		if n == len(buf) { // a line longer than the buffer
			if len(buf) >= maxLine {
				return fmt.Errorf("%s: a line of more than %d bytes", path, maxLine)
			}
			buf = append(buf, make([]byte, len(buf))...)
		}
		m, err := f.Read(buf[n:])
		n += m
		if i := bytes.LastIndexByte(buf[n-m:n], '\n'); i >= 0 {
			end := n - m + i + 1
			if byLine {
				for b := buf[:end]; len(b) > 0; {
					k := bytes.IndexByte(b, '\n')
					r.Observe(b[:k])
					b = b[k+1:]
				}
			} else {
				r.ObserveBlock(buf[:end])
			}
			n = copy(buf, buf[end:n])
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if n > 0 {
		r.Observe(buf[:n])
	}
	r.Idle(time.Time{})
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r.JSON())
	}
	return r.WriteText(os.Stdout, 120)
}
