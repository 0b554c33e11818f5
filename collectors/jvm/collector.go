package jvm

import (
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
)

// A collector maps the counters of one garbage collector to the spellings that
// its MXBeans use.
type collector struct {
	name string
	// eden, survivor and old are the pools; an empty name is no pool.
	eden, survivor, old string
	// perm is the pool of JDK 6 and 7 outside of the heap.
	perm string
	// gcs are the MXBean names by number of sun.gc.collector.N.
	gcs [3]string
	// padded says that the JVM may add some bytes to each capacity, so that none
	// is 0 (G1 until JDK 24). How many, its first survivor space tells, which is
	// never used.
	padded bool
	// wholeReserve says that the capacity counter is the reserve and not what is
	// committed.
	wholeReserve bool
	// sharedMax says that each pool may take the whole heap, so that the heap's
	// limit is a pool's and not their sum.
	sharedMax bool
	// dynamicMax says that only the generation has a bound, and that eden and
	// survivor share it as they are sized now.
	dynamicMax bool
	// unbounded says that eden and survivor have no limit of their own.
	unbounded bool
}

var (
	serial   = collector{name: "Serial", eden: "Eden Space", survivor: "Survivor Space", old: "Tenured Gen", perm: "Perm Gen", gcs: [3]string{"Copy", "MarkSweepCompact"}}
	parallel = collector{name: "Parallel", eden: "PS Eden Space", survivor: "PS Survivor Space", old: "PS Old Gen", perm: "PS Perm Gen", gcs: [3]string{"PS Scavenge", "PS MarkSweep"}, dynamicMax: true}
	parNew   = collector{name: "ParNew", eden: "Par Eden Space", survivor: "Par Survivor Space", old: "Tenured Gen", perm: "Perm Gen", gcs: [3]string{"ParNew", "MarkSweepCompact"}}
	// CMS counts each of the two pauses of a cycle as an invocation, as jstat
	// shows it; the MXBean counts cycles. JDK 9 to 13 count pauses as collector 2.
	cms       = collector{name: "CMS", eden: "Par Eden Space", survivor: "Par Survivor Space", old: "CMS Old Gen", perm: "CMS Perm Gen", gcs: [3]string{"ParNew", "ConcurrentMarkSweep"}}
	serialCMS = collector{name: "CMS", eden: "Eden Space", survivor: "Survivor Space", old: "CMS Old Gen", perm: "CMS Perm Gen", gcs: [3]string{"Copy", "ConcurrentMarkSweep"}}
	g1        = collector{name: "G1", eden: "G1 Eden Space", survivor: "G1 Survivor Space", old: "G1 Old Gen", perm: "G1 Perm Gen", gcs: [3]string{"G1 Young Generation", "G1 Old Generation", "G1 Concurrent GC"}, padded: true, unbounded: true, sharedMax: true}
	zgc       = collector{name: "ZGC", old: "ZHeap", gcs: [3]string{"", "", "ZGC Pauses"}}
	zgcYoung  = collector{name: "ZGC", eden: "ZGC Young Generation", old: "ZGC Old Generation", gcs: [3]string{"ZGC Minor Pauses", "", "ZGC Major Pauses"}, sharedMax: true}
	// Shenandoah's collector 1 counts phases, about four a pause, and its time is
	// that of phases too: neither is a figure of its MXBeans (seen on 17 and 25).
	shenandoah = collector{name: "Shenandoah", old: "Shenandoah", wholeReserve: true}
	epsilon    = collector{name: "Epsilon", old: "Epsilon Heap"}
)

// collectorOf tells the collector from the names in the counters: by policy
// where there is one, by the collectors' own names else.
//
//	sun.gc.policy.name      Copy:MSC  ParNew:MSC  ParNew:CMS  ParScav:MSC  GarbageFirst
//	sun.gc.collector.N.name PSScavenge, MCopy, … (to JDK 9), "Z concurrent cycle
//	                        pauses", "ZGC minor collection pauses", "Shenandoah full"
//
// An unknown one (a collector of the future) gives nil: its pools are absent.
func collectorOf(d *hsperf.Data) *collector {
	policy, _ := d.String("sun.gc.policy.name")
	switch policy {
	case "GarbageFirst":
		return &g1
	case "Copy:MSC":
		return &serial
	case "ParScav:MSC":
		return &parallel
	case "ParNew:MSC":
		return &parNew
	case "ParNew:CMS":
		return &cms
	case "Copy:CMS":
		return &serialCMS
	}
	first, _ := d.String("sun.gc.collector.0.name")
	second, _ := d.String("sun.gc.collector.1.name")
	third, _ := d.String("sun.gc.collector.2.name")
	heap, _ := d.String("sun.gc.generation.1.name")
	switch {
	case strings.HasPrefix(first, "ZGC minor"), strings.HasPrefix(third, "ZGC major"):
		return &zgcYoung
	case strings.HasPrefix(third, "Z "), strings.HasPrefix(third, "ZGC"), strings.HasPrefix(second, "Z "), strings.HasPrefix(first, "Z concurrent"):
		return &zgc
	case strings.HasPrefix(second, "Shenandoah"):
		return &shenandoah
	case strings.HasPrefix(first, "G1"):
		return &g1
	case first == "PSScavenge":
		return &parallel
	case first == "" && second == "" && third == "" && heap == "Heap":
		return &epsilon
	}
	return nil
}

// space is one pool's figures, in bytes. A negative one is absent.
type space struct {
	name                       string
	used, committed, max, init int64
	heap                       bool
}

// names of the counters, built once: a poll builds no strings.
type spaceKeys struct{ used, capacity, max, init string }

func keysOf(generation, space string) spaceKeys {
	base := "sun.gc.generation." + generation + ".space." + space + "."
	return spaceKeys{base + "used", base + "capacity", base + "maxCapacity", base + "initCapacity"}
}

var (
	edenKeys  = keysOf("0", "0")
	s0Keys    = keysOf("0", "1")
	s1Keys    = keysOf("0", "2")
	oldKeys   = keysOf("1", "0")
	permKeys  = keysOf("2", "0")
	metaKeys  = spaceKeys{used: "sun.gc.metaspace.used", capacity: "sun.gc.metaspace.capacity"}
	classKeys = spaceKeys{used: "sun.gc.compressedclassspace.used", capacity: "sun.gc.compressedclassspace.capacity", max: "sun.gc.compressedclassspace.maxCapacity"}
)

func (k spaceKeys) read(d *hsperf.Data, name string, pad int64) (space, bool) {
	s := space{name: name, max: -1, init: -1}
	var ok1, ok2 bool
	s.used, ok1 = d.Long(k.used)
	s.committed, ok2 = d.Long(k.capacity)
	s.committed -= pad
	if k.max != "" {
		if v, ok := d.Long(k.max); ok {
			s.max = v - pad
		}
	}
	if k.init != "" {
		// Serial and Parallel write 0 for eden and the survivors, which is no size.
		if v, ok := d.Long(k.init); ok && v > pad {
			s.init = v - pad
		}
	}
	return s, ok1 && ok2 && s.used >= 0 && s.committed >= 0
}

// spaces appends the pools that the counters have.
func (c *collector) spaces(out []space, d *hsperf.Data) []space {
	var pad int64
	if c.padded {
		pad, _ = d.Long(s0Keys.capacity)
	}
	var eden, survivor space
	var hasEden, hasSurvivor bool
	if c.eden != "" {
		eden, hasEden = edenKeys.read(d, c.eden, pad)
	}
	if c.survivor != "" {
		survivor, hasSurvivor = c.survivors(d, pad)
	}
	if c.dynamicMax && hasEden && hasSurvivor {
		if young, ok := d.Long("sun.gc.generation.0.maxCapacity"); ok {
			s0, _ := d.Long(s0Keys.capacity)
			s1, _ := d.Long(s1Keys.capacity)
			eden.max = young - s0 - s1
		}
		survivor.max = survivor.committed
	}
	if c.unbounded {
		eden.max, survivor.max = -1, -1
	}
	add := func(s space, ok bool) {
		if ok {
			s.heap = true
			out = append(out, s)
		}
	}
	add(eden, hasEden)
	add(survivor, hasSurvivor)
	if c.old != "" {
		old, ok := oldKeys.read(d, c.old, pad)
		if c.wholeReserve {
			old.committed = -1
		}
		add(old, ok)
	}
	return out
}

// survivors is the pool of the two survivor spaces. Of the two one is empty
// between collections; the MXBean shows the other one.
func (c *collector) survivors(d *hsperf.Data, pad int64) (space, bool) {
	a, ok1 := s0Keys.read(d, c.survivor, pad)
	b, ok2 := s1Keys.read(d, c.survivor, pad)
	if !ok1 || !ok2 {
		return space{}, false
	}
	if b.used > 0 || c.padded { // G1 uses the second one only
		a, b = b, a
	}
	a.used += b.used
	return a, true
}

// heapMax is what the heap may grow to, as the memory MXBean says it.
func (c *collector) heapMax(d *hsperf.Data, pools []space, committed int64) (int64, bool) {
	var sum, most int64
	bounded := len(pools) > 0
	for i := range pools {
		sum += max(pools[i].max, 0)
		most = max(most, pools[i].max)
		bounded = bounded && pools[i].max >= 0
	}
	switch {
	case c.sharedMax:
		return most, most > 0
	case c.dynamicMax:
		// Parallel keeps a survivor space free: as large as one can get, a third of
		// the young generation (MinSurvivorRatio) in steps of 512 KiB.
		young, ok1 := d.Long("sun.gc.generation.0.maxCapacity")
		old, ok2 := d.Long(oldKeys.max)
		if !ok1 || !ok2 {
			return 0, false
		}
		return max(young+old-young/3&^(512<<10-1), committed), true
	}
	return sum, bounded
}

// outside appends the pools outside of the heap.
func outside(out []space, c *collector, d *hsperf.Data) []space {
	if s, ok := metaKeys.read(d, "Metaspace", 0); ok {
		// Its reserved room is no limit: absent, as the MXBean's -1.
		out = append(out, s)
	}
	if s, ok := classKeys.read(d, "Compressed Class Space", 0); ok {
		out = append(out, s)
	}
	if c != nil && c.perm != "" {
		if name, _ := d.String("sun.gc.generation.2.name"); name == "perm" || name == "Perm" {
			if s, ok := permKeys.read(d, c.perm, 0); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
