package applog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Dumps looks for what a dying JVM leaves in its working directory: hs_err_pidN.log
// and java_pidN.hprof. It satisfies collectors.Poller. A file that is there at
// the very first look is history and no event; one that appears later is counted
// once, under hs_err_file or heap_dump_file. The log's own lines about the same
// crash are other events, so nothing is counted twice under one name.
//
// The file of a crash is often finished only when the process is gone already.
// So the one that watches lives on beyond the process, and what it knows is
// saved: the next one counts what appeared in between.
type Dumps struct {
	dir    string
	open   func() (*os.File, error)
	set    *metric.Set
	known  map[string]bool
	looked bool
}

// maxDumps bounds what is remembered of one folder.
const maxDumps = 1000

// NewDumps watches dir, the target's working directory. open opens it for
// listing; nil opens it by its name. An empty dir is not known: then nothing is
// looked for.
func NewDumps(set *metric.Set, dir string, open func() (*os.File, error)) *Dumps {
	if open == nil {
		open = func() (*os.File, error) { return os.Open(dir) }
	}
	set.Lock()
	defer set.Unlock()
	if dir != "" {
		set.Start(EventsTotal, "hs_err_file", "")
		set.Start(EventsTotal, "heap_dump_file", "")
	}
	return &Dumps{dir: dir, open: open, set: set, known: map[string]bool{}}
}

// Poll reads the folder once. A working directory may hold anything, so only so
// many names of it are read in one look.
func (d *Dumps) Poll(_ context.Context, _ time.Time) error {
	if d.dir == "" {
		return nil
	}
	f, err := d.open()
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

// savedDumps is the checkpoint's form.
type savedDumps struct {
	Set   json.RawMessage `json:"set"`
	Dir   string          `json:"dir"`
	Known []string        `json:"known,omitempty"`
}

// Save writes the counters down and which files they counted. It is not called
// while Poll is at work, and the caller holds the Set's lock; so for Load.
func (d *Dumps) Save() ([]byte, error) {
	set, err := d.set.Save()
	if err != nil {
		return nil, err
	}
	s := savedDumps{Set: set, Dir: d.dir}
	if d.looked {
		s.Known = slices.Sorted(maps.Keys(d.known))
	} else {
		s.Dir = "" // nothing is known of the folder yet
	}
	return json.Marshal(s)
}

// Load takes them back. In another folder everything is history again.
func (d *Dumps) Load(data []byte) error {
	var s savedDumps
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load crash files: %w", err)
	}
	if err := d.set.Load(s.Set, Metrics); err != nil {
		return err
	}
	if d.looked = d.dir != "" && s.Dir == d.dir; d.looked {
		for _, name := range s.Known {
			d.known[name] = true
		}
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
