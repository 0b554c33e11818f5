package applog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Dumps looks for what a dying JVM leaves in its working directory: hs_err_pidN.log
// and java_pidN.hprof. It satisfies collectors.Poller. A file that is there at
// the first look is history and no event; one that appears later is counted
// once, under hs_err_file or heap_dump_file. The log's own lines about the same
// crash are other events, so nothing is counted twice under one name.
type Dumps struct {
	dir    string
	set    *metric.Set
	known  map[string]bool
	looked bool
}

// maxDumps bounds what is remembered of one folder.
const maxDumps = 1000

// NewDumps watches dir, the target's working directory as we see it. An empty
// dir is not known: then nothing is looked for.
func NewDumps(set *metric.Set, dir string) *Dumps {
	set.Lock()
	defer set.Unlock()
	if dir != "" {
		set.Start(EventsTotal, "hs_err_file", "")
		set.Start(EventsTotal, "heap_dump_file", "")
	}
	return &Dumps{dir: dir, set: set, known: map[string]bool{}}
}

// Poll reads the folder once. A working directory may hold anything, so only so
// many names of it are read in one look.
func (d *Dumps) Poll(_ context.Context, _ time.Time) error {
	if d.dir == "" {
		return nil
	}
	f, err := os.Open(d.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the process went away
			return nil
		}
		return fmt.Errorf("look for crash files in %s: %w", d.dir, err)
	}
	defer f.Close()
	counts := map[string]float64{}
	for range 20 {
		names, err := f.Readdirnames(500)
		for _, name := range names {
			if kind := dumpKind(name); kind != "" && !d.known[name] && len(d.known) < maxDumps {
				d.known[name] = true
				if d.looked {
					counts[kind]++
				}
			}
		}
		if err != nil {
			break
		}
	}
	d.looked = true
	d.set.Lock()
	defer d.set.Unlock()
	for kind, n := range counts {
		d.set.Counter(EventsTotal, kind, "").Add(n)
	}
	return nil
}

func dumpKind(name string) string {
	switch {
	case strings.HasPrefix(name, "hs_err_pid") && strings.HasSuffix(name, ".log"):
		return "hs_err_file"
	case strings.HasPrefix(name, "java_pid") && strings.Contains(name, ".hprof"): // .hprof.1 from JDK 12 on
		return "heap_dump_file"
	}
	return ""
}
