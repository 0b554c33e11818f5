// Package jvm gives a JVM's heap, collections, threads, classes and stops from
// outside: from hsperfdata, the file of counters that HotSpot writes for jstat.
//
// # The story
//
// jstat costs a second JVM of 50 MB for each look, jcmd needs a JDK and a
// signal to the server, the JMX agent runs inside of it. The counters that all
// of them show first lie in a file that the JVM keeps up to date whether or not
// anybody reads it. Reading and decoding it takes some tens of microseconds,
// and the JVM can't notice.
//
// # What it does not have
//
// Code heaps, direct buffers, thread states and what was live after a
// collection are not in the file: those names are absent here, never 0. Thread
// states come from a thread dump, when the settings allow to ask the JVM for one. Most
// collectors update their pools at the end of a collection, Serial and Parallel
// also each 50 ms for eden.
//
// # Versions
//
// Seen: JDK 17.0.15 and 25.0.3 with Serial, Parallel, G1, ZGC (both) and
// Shenandoah. JDK 6 to 11 and CMS are written from knowledge of the format and
// are unverified. What changed: JDK 8 has Metaspace where 7 has a permanent
// generation; JDK 9 renamed the collectors' counters ("PSScavenge" became "Parallel young
// collection pauses" by JDK 13); ZGC became generational in 21 and only so in 24; JDK 25
// dropped the monitors' counters and added CPU time of GC threads.
package jvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// Blind is something that this room can't see, why, and what would mend it.
type Blind struct {
	Source string // "jvm"
	Reason string // a short constant
	Detail string // a sentence
	Needs  string // the right that is missing, or empty
}

// The reasons of a Blind.
const (
	BlindNoPerfData   = "no_perfdata"
	BlindNoPermission = "no_permission"
	BlindOwner        = "other_owner"
	BlindFormat       = "unknown_format"
	BlindCollector    = "unknown_collector"
	BlindCollections  = "collections_not_counted"
)

// Poller reads one JVM. It is a collectors.Poller.
type Poller struct {
	cfg  Config
	set  *metric.Set
	buf  []byte
	data hsperf.Data
	list []space
	args []string // of the flags that were put down
	raw  string

	mu    sync.Mutex
	blind []Blind

	states stateReader
}

// New makes the poller of one JVM.
func New(set *metric.Set, cfg Config) *Poller {
	if cfg.Root == "" {
		cfg.Root = "/proc"
	}
	d := DefaultConfig()
	if cfg.DumpEvery == 0 {
		cfg.DumpEvery = d.DumpEvery
	}
	if cfg.DumpThreads == 0 {
		cfg.DumpThreads = d.DumpThreads
	}
	return &Poller{cfg: cfg, set: set}
}

// Blind lists what could not be seen in the last Poll.
func (p *Poller) Blind() []Blind {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.blind), p.states.blindNow()...)
}

// Poll reads the counters once. It is no error that the JVM has ended.
func (p *Poller) Poll(_ context.Context, now time.Time) error {
	blind, err := p.read()
	if err != nil || blind != nil {
		p.data = hsperf.Data{}
		p.pollStates(now)
		p.clear()
		p.setBlind(blind)
		return err
	}
	p.pollStates(now)
	p.write()
	return nil
}

func (p *Poller) setBlind(b *Blind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blind = p.blind[:0]
	if b != nil {
		p.blind = append(p.blind, *b)
	}
}

func (p *Poller) clear() {
	p.set.Lock()
	p.set.Begin()
	p.writeStates() // a JVM without hsperfdata may still answer
	p.set.Sweep()
	p.set.Unlock()
}

// read fills p.data. A blind spot lasts; an error passes; neither and no data
// (errGone) means that the JVM has ended.
func (p *Poller) read() (*Blind, error) {
	blind := func(reason, detail, needs string) *Blind {
		return &Blind{Source: "jvm", Reason: reason, Detail: detail, Needs: needs}
	}
	if p.cfg.PerfPath == "" {
		detail := p.cfg.NoPerf
		if detail == "" {
			detail = "the JVM keeps no hsperfdata file"
		}
		return blind(BlindNoPerfData, detail, ""), nil
	}
	if !alive(p.cfg.Root, p.cfg.PID, p.cfg.StartTicks) {
		return nil, p.ended()
	}
	if p.cfg.CheckOwner {
		if uid, ok := owner(p.cfg.PerfPath); ok && uid != p.cfg.UID {
			return blind(BlindOwner, fmt.Sprintf("%s belongs to user %d and the JVM runs as user %d: it is not this JVM's", p.cfg.PerfPath, uid, p.cfg.UID), ""), nil
		}
	}
	buf, err := hsperf.ReadFile(p.cfg.PerfPath, p.buf)
	p.buf = buf[:0]
	if err == nil {
		err = p.data.Decode(buf)
		if err != nil {
			err = fmt.Errorf("decode %s: %w", p.cfg.PerfPath, err)
		}
	}
	var refusal hsperf.Refusal
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return blind(BlindNoPermission, err.Error(), "the same user as the JVM, or root"), nil
	case errors.Is(err, fs.ErrNotExist):
		if p.cfg.StartTicks == 0 {
			return nil, p.ended()
		}
		return blind(BlindNoPerfData, p.cfg.PerfPath+" is gone though the JVM lives: somebody cleaned the folder", ""), nil
	case errors.As(err, &refusal) && (refusal == hsperf.NotAccessible || refusal == hsperf.Torn):
		return nil, err // a JVM that starts: the next look is better
	case errors.As(err, &refusal):
		return blind(BlindFormat, err.Error(), ""), nil
	}
	return nil, err
}

// ended forgets the figures of a JVM that is no more.
func (p *Poller) ended() error {
	p.data = hsperf.Data{}
	p.raw, p.args = "", nil
	return nil
}

// write puts the figures down under the Set's lock.
func (p *Poller) write() {
	d := &p.data
	set := p.set
	set.Lock()
	defer set.Unlock()
	set.Begin()
	defer set.Sweep()
	if d.Len() == 0 {
		p.setBlind(nil)
		return
	}
	p.writeStates()
	p.writeMemory()
	p.writeTimes()
	p.writeInfo()
	num := func(f *metric.Family, name string) {
		if v, ok := d.Long(name); ok && v >= 0 {
			set.Gauge(f).Set(float64(v))
		}
	}
	num(threadsCurrent, "java.threads.live")
	num(threadsDaemon, "java.threads.daemon")
	num(threadsPeak, "java.threads.livePeak")
	num(tlabFills, "sun.gc.tlab.fills")
	num(tlabSlow, "sun.gc.tlab.slowAlloc")
	count := func(f *metric.Family, name string) {
		if v, ok := d.Long(name); ok && v >= 0 {
			set.Counter(f).Set(float64(v))
		}
	}
	count(threadsStarted, "java.threads.started")
	count(safepoints, "sun.rt.safepoints")
	count(monitorContended, "sun.rt._sync_ContendedLockAttempts")
	count(monitorParks, "sun.rt._sync_Parks")
	count(monitorInflations, "sun.rt._sync_Inflations")
	p.writeClasses()
	// These counters say bytes and count words of the heap, 8 bytes each on all
	// machines with a 64-bit JVM.
	if v, ok := d.Long("sun.gc.tlab.alloc"); ok {
		set.Gauge(tlabAllocated).Set(float64(v) * 8)
	}
	if gc, ok := d.Long("sun.gc.tlab.gcWaste"); ok {
		if refill, ok := d.Long("sun.gc.tlab.refillWaste"); ok {
			set.Gauge(tlabWaste).Set(float64(gc+refill) * 8)
		}
	}
}

func (p *Poller) writeClasses() {
	d, set := &p.data, p.set
	loaded, ok1 := d.Long("java.cls.loadedClasses")
	unloaded, ok2 := d.Long("java.cls.unloadedClasses")
	if !ok1 || !ok2 {
		return
	}
	// Classes from the shared archive are counted apart.
	if v, ok := d.Long("java.cls.sharedLoadedClasses"); ok {
		loaded += v
	}
	if v, ok := d.Long("java.cls.sharedUnloadedClasses"); ok {
		unloaded += v
	}
	set.Gauge(classesCurrent).Set(float64(loaded - unloaded))
	set.Counter(classesLoaded).Set(float64(loaded))
	set.Counter(classesUnloaded).Set(float64(unloaded))
}

func (p *Poller) writeMemory() {
	d, set := &p.data, p.set
	c := collectorOf(d)
	p.list = p.list[:0]
	if c != nil {
		p.list = c.spaces(p.list, d)
		p.setBlind(nil)
	} else {
		name, _ := d.String("sun.gc.collector.0.name")
		p.setBlind(&Blind{Source: "jvm", Reason: BlindCollector, Detail: fmt.Sprintf("the collector %q is not known to this version: its pools and collections are not shown", name)})
	}
	var used, committed int64
	for i := range p.list {
		used += p.list[i].used
		committed += p.list[i].committed
	}
	if len(p.list) > 0 {
		set.Gauge(memoryUsed, "heap").Set(float64(used))
		if !c.wholeReserve {
			set.Gauge(memoryCommitted, "heap").Set(float64(committed))
		}
		if most, ok := c.heapMax(d, p.list, committed); ok {
			set.Gauge(memoryMax, "heap").Set(float64(most))
		}
	}
	p.list = outside(p.list, c, d)
	for i := range p.list {
		s := &p.list[i]
		set.Gauge(poolUsed, s.name).Set(float64(s.used))
		if s.committed >= 0 {
			set.Gauge(poolCommitted, s.name).Set(float64(s.committed))
		}
		if s.max >= 0 {
			set.Gauge(poolMax, s.name).Set(float64(s.max))
		}
		if s.init >= 0 {
			set.Gauge(poolInit, s.name).Set(float64(s.init))
		}
	}
	if c == nil {
		return
	}
	if c == &shenandoah {
		p.setBlind(&Blind{Source: "jvm", Reason: BlindCollections, Detail: "Shenandoah's hsperfdata counts phases, not pauses or cycles, and has no committed size: these come from the GC log"})
	}
	ticks, ok := frequency(d)
	for i, name := range c.gcs {
		if name == "" {
			continue
		}
		n, ok1 := d.Long(gcKeys[i].invocations)
		t, ok2 := d.Long(gcKeys[i].time)
		if ok && ok1 && ok2 {
			*set.Summary(collections, name) = metric.Sums{Count: uint64(n), Sum: float64(t) / ticks}
		}
	}
}

var gcKeys = [3]struct{ invocations, time string }{
	{"sun.gc.collector.0.invocations", "sun.gc.collector.0.time"},
	{"sun.gc.collector.1.invocations", "sun.gc.collector.1.time"},
	{"sun.gc.collector.2.invocations", "sun.gc.collector.2.time"},
}

// frequency is how many ticks are a second in this file. Without it no time is
// a time.
func frequency(d *hsperf.Data) (float64, bool) {
	v, ok := d.Long("sun.os.hrt.frequency")
	return float64(v), ok && v > 0
}

// times are the counters in ticks.
var times = []struct {
	family *metric.Family
	name   string
	label  string
}{
	{compilationSeconds, "java.ci.totalTime", ""},
	{safepointSeconds, "sun.rt.safepointTime", ""},
	{safepointSync, "sun.rt.safepointSyncTime", ""},
	{applicationSeconds, "sun.rt.applicationTime", ""},
	{vmOperations, "sun.threads.vmOperationTime", ""},
	{gcCPU, "sun.threads.total_gc_cpu_time", ""},
	{gcThreadCPU, "sun.threads.cpu_time.gc_parallel_workers", "parallel_workers"},
	{gcThreadCPU, "sun.threads.cpu_time.gc_conc_mark", "conc_mark"},
	{gcThreadCPU, "sun.threads.cpu_time.gc_conc_refine", "conc_refine"},
	{gcThreadCPU, "sun.threads.cpu_time.gc_service", "service"},
	{gcThreadCPU, "sun.threads.cpu_time.vm", "vm"},
}

func (p *Poller) writeTimes() {
	hz, ok := frequency(&p.data)
	if !ok {
		return
	}
	for _, t := range times {
		v, ok := p.data.Long(t.name)
		switch {
		case !ok || v < 0:
		case t.label == "":
			p.set.Counter(t.family).Set(float64(v) / hz)
		default:
			p.set.Counter(t.family, t.label).Set(float64(v) / hz)
		}
	}
}
