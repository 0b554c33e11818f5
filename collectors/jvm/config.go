package jvm

import (
	"context"
	"fmt"
	"time"
)

// Config is what is known about the JVM, and the settings of this room.
type Config struct {
	// Attach allows to ask the JVM itself for a thread dump, through HotSpot's
	// attach mechanism: for jvm_threads_state and jvm_threads_deadlocked. The JVM
	// gets one signal (SIGQUIT) in its life, if it catches it, and stands still for
	// each dump. Off by default. Needs the JVM's user, or root. With it on, an alert
	// whose rule has the annotation thread_dump: "on" gets one dump when it begins
	// to fire, kept below the storage path in dumps, the last 20 of them.
	Attach bool `yaml:"attach"`
	// DumpEvery is the time between two thread dumps. Default 30 s.
	DumpEvery time.Duration `yaml:"dump_every"`
	// DumpThreads is how many threads a JVM may have for dumps on its own
	// account: the pause grows with them. Above, dumps are on demand only. Default 2000.
	DumpThreads int `yaml:"dump_threads"`

	// Dump takes one thread dump. The Blind says why that can't be done, for
	// good; the error, why it could not be done now. nil means that there is no way.
	Dump func(context.Context) ([]byte, *Blind, error) `yaml:"-"`
	// PerfPath is the hsperfdata file as we open it; through /proc/PID/root for
	// a JVM in another mount namespace. Empty means that there is none.
	PerfPath string `yaml:"-"`
	// NoPerf says why PerfPath is empty.
	NoPerf string `yaml:"-"`
	// PID and StartTicks (field 22 of /proc/PID/stat) are the identity of the
	// process. A file that outlived its JVM (kill -9 leaves it) is not read.
	// Without StartTicks only the file itself is looked at.
	PID        int    `yaml:"-"`
	StartTicks uint64 `yaml:"-"`
	// Root is where procfs is mounted; empty means /proc.
	Root string `yaml:"-"`
	// UID is the JVM's user, and CheckOwner says to refuse a file that belongs to
	// somebody else: a stranger's file under the JVM's number is not its own.
	UID        int  `yaml:"-"`
	CheckOwner bool `yaml:"-"`
}

// leastDumpEvery is the least time between two dumps: each stops the JVM.
const leastDumpEvery = 10 * time.Second

// DefaultConfig is what holds where the settings say nothing.
func DefaultConfig() Config { return Config{DumpEvery: 30 * time.Second, DumpThreads: 2000} }

// Check finds what can't work. The error names the key.
func (c Config) Check() error {
	if c.DumpEvery != 0 && c.DumpEvery < leastDumpEvery {
		return fmt.Errorf("dump_every: %v is less than %v, and each dump stops the JVM", c.DumpEvery, leastDumpEvery)
	}
	if c.DumpThreads < 0 {
		return fmt.Errorf("dump_threads: %d is negative", c.DumpThreads)
	}
	return nil
}
