// Package process tells what a server is short of without touching it: CPU,
// memory, descriptors, threads by pool, accept queues and unread requests, the
// limits of its cgroup, and whether the machine was the limit.
//
// # The story
//
// A Tomcat at its ceiling looks healthy from outside: the process lives, the
// log is quiet, /proc/PID/stat shows nothing. What is short shows elsewhere: in
// the number of threads called catalina-exec, in the accept queue of the port,
// in established connections whose bytes nobody reads. People look there with
// jstack, top -H and ss; this room looks there each second.
//
// # How it looks
//
// Steady figures come from gopsutil. The hot ones, a thread's name, state and
// CPU time, come from /proc/PID/task/*/stat with reused buffers: for 5,000
// threads gopsutil's Threads() costs three times as much. A
// connection costs a few hundred nanoseconds by netlink sock_diag, which also
// is the only place that has the limit of an accept queue. smaps is never read:
// the kernel holds the memory map's lock while it walks all pages, and a JVM of
// 200 GB stood still for seconds.
//
// # Versions
//
// Known to work with Linux 6.18, JDK 17 and 25, Tomcat 10.1 and Jetty 9.4. The
// kernel keeps 15 bytes of a thread's name. JDK 17 and 25 cut the end off; a
// change of autumn 2025 (JDK-8368124) cuts the middle out instead, and both are
// understood. JDK 6, 7 and early updates of 8 set no name at all. On other
// systems than Linux the room gives what gopsutil can, and says what is missing.
package process

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Config is what the poller of one server works with: what is known about the
// server, and the settings of this room.
type Config struct {
	// Root is where procfs is mounted; empty means /proc.
	Root string `yaml:"-"`
	// CgroupRoot is where the cgroup file systems are; empty means /sys/fs/cgroup.
	CgroupRoot string `yaml:"-"`
	// PID and StartTicks (field 22 of /proc/PID/stat) are the identity of the
	// process. Once they no longer agree, the poller writes nothing any more.
	PID        int    `yaml:"-"`
	StartTicks uint64 `yaml:"-"`
	// Kind is the server's: tomcat, jetty or jvm.
	Kind string `yaml:"-"`
	// Pools are the thread pools that the server's settings name, and Connectors
	// its serving ports.
	Pools      []Pool      `yaml:"-"`
	Connectors []Connector `yaml:"-"`

	// MaxPools bounds the pools that are told apart. Thread names are chosen by
	// whoever wrote the application; pools past the bound become "other".
	MaxPools int `yaml:"max_pools"`
	// MaxThreadReads bounds the threads whose state is read in one sample. With
	// more threads they are read in turns, and jvm_threadpool_sampled_ratio says
	// how many were.
	MaxThreadReads int `yaml:"max_thread_reads"`
	// StallAfter is how long a connector must show no progress before it is
	// called stalled.
	StallAfter time.Duration `yaml:"stall_after"`
}

// A Pool is a thread pool that the settings name.
type Pool struct {
	// Name is the label; empty means Prefix without its trailing dash.
	Name string
	// Prefix is what the names of its threads begin with: "catalina-exec-".
	Prefix string
	// Max is the number of threads it may have, 0 when unknown.
	Max int
	// Ports are the connectors that it serves.
	Ports []int
	// Virtual says that it runs virtual threads, which the kernel doesn't know.
	Virtual bool
}

// A Connector is a serving port.
type Connector struct {
	Port int
	// Address is the one it is bound to as it stands in the settings; it is part
	// of the threads' names. Empty means all.
	Address string
	// Protocol is bio, nio, nio2, apr, ajp-nio and so on, or jetty.
	Protocol string
	TLS      bool
	// Executor names a shared pool; empty means that the connector has its own.
	Executor string
	// AcceptCount, MaxConnections and MaxThreads are configured figures, 0 when
	// unknown. A MaxConnections of -1 is Tomcat's word for no limit.
	AcceptCount    int
	MaxConnections int
	MaxThreads     int
}

// DefaultConfig are the settings in force when nothing is set.
func DefaultConfig() Config {
	return Config{MaxPools: 40, MaxThreadReads: 8000, StallAfter: 6 * time.Second}
}

// Check finds settings that make no sense.
func (c Config) Check() error {
	switch {
	case c.MaxPools < 1 || c.MaxPools > 80:
		return fmt.Errorf("max_pools: %d is not between 1 and 80", c.MaxPools)
	case c.MaxThreadReads < 100:
		return fmt.Errorf("max_thread_reads: %d is less than 100", c.MaxThreadReads)
	case c.StallAfter < 2*time.Second:
		return fmt.Errorf("stall_after: %v is less than 2s", c.StallAfter)
	}
	return nil
}

// Blind is something that this room can't see, why, and what would mend it.
type Blind struct {
	Source string // "process"
	Reason string // a short constant
	Detail string // a sentence
	Needs  string // the right that is missing, or empty
}

// The reasons of a Blind.
const (
	BlindFDs       = "fds_no_permission"
	BlindIO        = "io_no_permission"
	BlindHidden    = "process_hidden"
	BlindNames     = "no_native_thread_names"
	BlindMerged    = "thread_names_merged"
	BlindVirtual   = "virtual_threads"
	BlindLimit     = "listen_limit_other_namespace"
	BlindNamespace = "network_namespace_unknown"
	BlindPlatform  = "platform"
)

// Poller reads one process. It is a collectors.Poller.
type Poller struct {
	cfg    Config
	set    *metric.Set
	world  world // what the platform needs
	folder *folder
	stall  map[int]*stallState

	mu     sync.Mutex // guards what other goroutines ask for
	blind  []Blind
	gone   bool
	served map[int]answered // by port; absent when unknown
	died   deaths
}

// deaths are those of NIO2's threads that the server's log has told of.
type deaths struct {
	known bool
	total float64
	newer bool // there were more since the last sample
}

// New makes the poller of one process. Zero settings are the defaults.
func New(set *metric.Set, cfg Config) *Poller {
	d := DefaultConfig()
	if cfg.Root == "" {
		cfg.Root = "/proc"
	}
	if cfg.CgroupRoot == "" {
		cfg.CgroupRoot = "/sys/fs/cgroup"
	}
	if cfg.MaxPools == 0 {
		cfg.MaxPools = d.MaxPools
	}
	if cfg.MaxThreadReads == 0 {
		cfg.MaxThreadReads = d.MaxThreadReads
	}
	if cfg.StallAfter == 0 {
		cfg.StallAfter = d.StallAfter
	}
	p := &Poller{cfg: cfg, set: set, stall: map[int]*stallState{}, served: map[int]answered{}}
	p.folder = newFolder(cfg.Pools, cfg.Connectors, cfg.MaxPools)
	p.world.init(&p.cfg)
	return p
}

// Poll reads the process and writes its figures. It is no error that the
// process has ended: then all series go away.
func (p *Poller) Poll(ctx context.Context, now time.Time) error { return p.poll(ctx, now) }

// answered is what the access log tells of a port: its lines so far, and whether
// each answer is a line at once.
type answered struct {
	lines  float64
	atOnce bool
}

// Served tells how many access-log lines a port has had since the start of the
// sidecar. atOnce says that the server does not buffer them: then none means that
// nobody was answered, whereas new ones always mean that somebody was. Where nobody
// calls it, a stall is judged without the access log.
func (p *Poller) Served(port int, lines float64, atOnce bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served[port] = answered{lines, atOnce}
}

// Died tells how many threads of NIO2 the server's log has said to have died, in
// all. What was there at the first call is history. Only this tells a connector
// that has lost its requests from one whose threads are all taken.
func (p *Poller) Died(total float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died.newer = p.died.newer || p.died.known && total > p.died.total
	p.died.known, p.died.total = true, total
}

// Blind lists what could not be seen in the last Poll.
func (p *Poller) Blind() []Blind {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.blind)
}

// Gone says that the process of this identity has ended.
func (p *Poller) Gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// saved is what the checkpoint keeps of a poller: the counters that this room
// adds up itself, and whose they are.
type saved struct {
	PID         int                  `json:"pid"`
	Start       uint64               `json:"start"`
	Pools       map[string]savedPool `json:"pools"`
	Voluntary   uint64               `json:"voluntary"`
	Involuntary uint64               `json:"involuntary"`
	Delay       uint64               `json:"delay"`
}

// Save writes down the counters that are sums over threads, which no file of
// the kernel's keeps. It is called between Polls.
func (p *Poller) Save() ([]byte, error) {
	s := saved{PID: p.cfg.PID, Start: p.cfg.StartTicks, Pools: map[string]savedPool{}}
	p.world.save(p.folder, &s)
	return json.Marshal(s)
}

// Load takes the counters back before the first Poll. Those of another process
// are left alone, which is no error: a restarted server begins at 0.
func (p *Poller) Load(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load counters of threads: %w", err)
	}
	if s.PID == p.cfg.PID && s.Start == p.cfg.StartTicks {
		p.world.load(&s)
	}
	return nil
}

// Close gives back what the poller holds open.
func (p *Poller) Close() error { return p.world.close() }

// finish publishes the state that other goroutines ask for.
func (p *Poller) finish(blind []Blind, gone bool) {
	p.mu.Lock()
	p.blind, p.gone = blind, gone
	p.mu.Unlock()
}

// sweep removes all series: there is nothing to say about a process that ended.
func (p *Poller) sweep() {
	p.set.Lock()
	p.set.Begin()
	p.set.Sweep()
	p.set.Unlock()
}
