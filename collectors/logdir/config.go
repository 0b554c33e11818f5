package logdir

import (
	"fmt"
	"path/filepath"
	"time"
)

// Kind says what a watched folder holds. It decides how often it is looked at.
type Kind string

const (
	// Logs is a folder the server logs into: looked at each poll.
	Logs Kind = "logs"
	// GCLog is the folder of the GC log.
	GCLog Kind = "gclog"
	// HeapDump is where the JVM would put a heap dump.
	HeapDump Kind = "heapdump"
	// Base is the server's base folder as a whole: read once a minute.
	Base Kind = "base"
)

// A Dir is one watched folder.
type Dir struct {
	// Name is the value of the label dir: the folder as the server names it.
	Name string `yaml:"name"`
	// Path is the folder as the server sees it, or as the sidecar would open it
	// (/proc/PID/root before it). No link leads out of the server's root.
	Path string `yaml:"path"`
	// Kind is logs, gclog, heapdump or base; empty means logs.
	Kind Kind `yaml:"kind"`
}

// Config is what the room is told. The zero value of each setting means its
// default, so a Config literal needs only the folders.
type Config struct {
	// Dirs are the watched folders. Two with one path are read twice.
	Dirs []Dir `yaml:"dirs"`
	// Root is the folder beneath which the server's paths lie: "/" or
	// /proc/PID/root. Empty means "/".
	Root string `yaml:"-"`
	// Proc is the folder of procfs, "/proc" by default.
	Proc string `yaml:"-"`
	// PID is the server; 0 when there is none to look at.
	PID int `yaml:"-"`
	// UID is the server's user. Root may use the blocks that file systems keep
	// in reserve, nobody else may.
	UID int `yaml:"-"`

	// ScanBudget bounds the time per poll in which folders of one mount are
	// read; a large folder takes many polls. Default 50 ms.
	ScanBudget time.Duration `yaml:"scan_budget"`
	// BaseEvery is how often the base folder is read as a whole. Default 1 min.
	BaseEvery time.Duration `yaml:"base_every"`
	// RestEvery is the longest time between two whole reads of a folder in
	// which nothing seems to change. Default 10 min.
	RestEvery time.Duration `yaml:"rest_every"`
	// DeletedEvery is how often the descriptors of the server are searched for
	// deleted files. Default 10 s.
	DeletedEvery time.Duration `yaml:"deleted_every"`
	// Patience is how long one poll waits for file systems to answer. The
	// answer that comes later is taken by a later poll. Default 100 ms.
	Patience time.Duration `yaml:"patience"`
	// StuckAfter is how long a mount may owe an answer before its figures go
	// absent. Default 2 s.
	StuckAfter time.Duration `yaml:"stuck_after"`
	// TrackedFiles bounds how many files of one folder are remembered one by
	// one. Past it, only files that change are. Default 20000.
	TrackedFiles int `yaml:"tracked_files"`
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.ScanBudget, 50*time.Millisecond)
	def(&c.BaseEvery, time.Minute)
	def(&c.RestEvery, 10*time.Minute)
	def(&c.DeletedEvery, 10*time.Second)
	def(&c.Patience, 100*time.Millisecond)
	def(&c.StuckAfter, 2*time.Second)
	if c.TrackedFiles == 0 {
		c.TrackedFiles = 20000
	}
	if c.Root == "" {
		c.Root = "/"
	}
	if c.Proc == "" {
		c.Proc = "/proc"
	}
	return c
}

// Check finds what can't work. The error names the key.
func (c Config) Check() error {
	seen := map[string]bool{}
	for i, d := range c.Dirs {
		switch {
		case d.Name == "":
			return fmt.Errorf("dirs[%d].name: empty", i)
		case !filepath.IsAbs(d.Path):
			return fmt.Errorf("dirs[%d].path: %q is not an absolute path", i, d.Path)
		case seen[d.Name]:
			return fmt.Errorf("dirs[%d].name: %q stands there twice", i, d.Name)
		}
		switch d.Kind {
		case "", Logs, GCLog, HeapDump, Base:
		default:
			return fmt.Errorf("dirs[%d].kind: %q is none of logs, gclog, heapdump, base", i, d.Kind)
		}
		seen[d.Name] = true
	}
	for _, s := range []struct {
		key string
		v   time.Duration
	}{
		{"scan_budget", c.ScanBudget}, {"base_every", c.BaseEvery}, {"rest_every", c.RestEvery},
		{"deleted_every", c.DeletedEvery}, {"patience", c.Patience}, {"stuck_after", c.StuckAfter},
	} {
		if s.v < 0 {
			return fmt.Errorf("%s: %v is negative", s.key, s.v)
		}
	}
	if c.TrackedFiles < 0 {
		return fmt.Errorf("tracked_files: %d is negative", c.TrackedFiles)
	}
	return nil
}

// DefaultConfig is what holds where the settings say nothing.
func DefaultConfig() Config { return Config{}.withDefaults() }
