package gclog

import (
	"fmt"
	"math"
	"strings"
)

// advice says what to look at next, most pressing first. Each line states what
// was seen, with its number.
func (p *printer) advice(f *fileStats) {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	full := f.byKind[KindFull]
	if n := f.failures[GCOverheadLimit]; n > 0 {
		say("The collector gave up %d time(s) for lack of progress (GC overhead limit): an OutOfMemoryError is next. Raise -Xmx or find what fills the heap.", n)
	}
	if f.leaks() {
		s, _, of, _ := f.trend()
		say("What stays after %s grows by %s an hour. Take two heap histograms some time apart and compare.", of, signed(s*3600))
	}
	if n := f.stalls.count; n > 0 {
		say("Threads waited %s for memory in %d allocation stalls, the longest %s: raise the heap or lower the allocation rate; pause figures don't show this.", dur(f.stalls.sum), n, dur(f.stalls.max))
	}
	if n := f.failures[ConcurrentModeFailure] + f.failures[ConcurrentModeInterrupted] + f.failures[PromotionFailed]; n > 0 {
		say("CMS or ParNew failed %d time(s) and fell back to a single-threaded full collection (longest %s): start cycles earlier (-XX:CMSInitiatingOccupancyFraction) or give the old generation room.", n, dur(full.max))
	}
	if n := f.failures[ToSpaceExhausted] + f.failures[EvacuationFailure]; n > 0 {
		say("G1 found no free region to copy to %d time(s): raise -Xmx or -XX:G1ReservePercent, or start marking earlier.", n)
	}
	if n := f.failures[Degenerated]; n > 0 {
		say("Shenandoah lost the race %d time(s) and finished its cycle stopped (longest %s): more heap, or fewer allocations.", n, dur(f.byKind[KindDegenerated].max))
	}
	if n := f.byCause[causeSystem].count; n > 0 {
		say("Somebody called System.gc() %d time(s), %s in all: look for RMI or direct buffers; -XX:+ExplicitGCInvokesConcurrent softens it.", n, dur(f.byCause[causeSystem].sum))
	}
	for c, s := range f.byCause {
		switch Cause(c).String() {
		case "Metadata GC Threshold":
			if s.count > 5 {
				say("Metaspace was the reason %d times: a class loader leak, or -XX:MetaspaceSize is too small.", s.count)
			}
		case "Last ditch collection":
			if s.count > 0 {
				say("Metaspace is exhausted (last ditch collection): look for class loaders that stay.")
			}
		case "Diagnostic Command", "Heap Dump Initiated GC", "Heap Inspection Initiated GC":
			if s.count > 0 {
				say("%d collection(s) were asked for from outside (%s): an operator or an agent, not the load.", s.count, Cause(c))
			}
		case "G1 Humongous Allocation":
			if float64(s.count) > .2*float64(f.pauses) && f.pauses > 20 {
				say("Objects larger than half a region began %d of %d collections: raise -XX:G1HeapRegionSize.", s.count, f.pauses)
			}
		}
	}
	if full.count > 2 && float64(full.count) > .2*float64(f.pauses) && f.collector != Shenandoah {
		say("%d of %d pauses are full collections: the heap is too small for what lives in it.", full.count, f.pauses)
	}
	if f.stopped.count > 0 && f.sync > .5*f.stopped.sum && f.sync > .1 {
		say("Threads took %s to stop, more than the stops themselves: look for long loops without a safepoint, swapping, or a starved processor.", dur(f.sync))
	}
	if f.stopped.sum > 2*f.seconds && f.stopped.sum-f.seconds > .5 {
		say("Most stopped time (%s of %s) is not the collector's: see the operations.", dur(f.stopped.sum-f.seconds), dur(f.stopped.sum))
	}
	if f.covers.seconds() > 0 && f.seconds/f.covers.seconds() > .05 {
		say("The collector stopped the application for %s of the time.", percent(f.seconds/f.covers.seconds()))
	}
	if f.promoted > 0 && f.promoted < f.allocated && f.promoted/f.allocated > .2 {
		say("%s of what was allocated lived long enough to be promoted: a larger young generation may help.", percent(f.promoted/f.allocated))
	}
	if f.dropped > 0 {
		say("The log is not whole: raise -XX:AsyncLogBufferSize.")
	}
	p.title("What to look at next")
	if len(out) == 0 {
		p.line("  Nothing stands out.")
	}
	for _, o := range out {
		p.wrap(o)
	}
}

// wrap prints one item over as many lines as it needs.
func (p *printer) wrap(s string) {
	line := "  - "
	n := 0
	for _, word := range strings.Fields(s) {
		if n > 0 && len([]rune(line))+1+len([]rune(word)) > p.width {
			p.line("%s", line)
			line, n = "    ", 0
		}
		if n > 0 {
			line += " "
		}
		line += word
		n++
	}
	p.line("%s", line)
}

// dur writes seconds for people: 0.123 ms, 12.3 ms, 1.23 s, 75.8 s.
func dur(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0:
		return "0 s"
	case v < .0001:
		return fmt.Sprintf("%.1f µs", v*1e6)
	case v < .01:
		return fmt.Sprintf("%.2f ms", v*1e3)
	case v < 1:
		return fmt.Sprintf("%.1f ms", v*1e3)
	case v < 100:
		return fmt.Sprintf("%.2f s", v)
	}
	return fmt.Sprintf("%.0f s", v)
}

// long writes a span of time: 12.3 s, 4 min 5 s, 3 h 2 min, 5 d 3 h.
func long(v float64) string {
	s := int64(math.Min(v, 1e15))
	switch {
	case v < 120:
		return fmt.Sprintf("%.3g s", v)
	case v < 7200:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case v < 2*86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
}

func bytesText(v float64) string {
	for _, u := range []string{"B", "KiB", "MiB", "GiB"} {
		if math.Abs(v) < 1024 {
			if u == "B" {
				return fmt.Sprintf("%.0f B", v)
			}
			return fmt.Sprintf("%.1f %s", v, u)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.1f TiB", v)
}

func signed(v float64) string {
	if v > 0 {
		return "+" + bytesText(v)
	}
	return bytesText(v)
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", v*100) }

// group3 writes 1234567 as 1 234 567.
func group3(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
