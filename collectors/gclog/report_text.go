package gclog

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/textplot"
)

// WriteText prints the report for people: all files as one log.
func (r *Report) WriteText(w io.Writer, width int) error {
	r.finish()
	p := &printer{w: w, width: max(width, 60)}
	if len(r.files) == 0 {
		p.line("No GC log was read.")
		return p.err
	}
	f := merge(r.files)
	f.covers = r.covers
	p.head(r.files, f)
	if f.pauses == 0 && f.cyclesInAll() == 0 && f.stopped.count == 0 {
		p.line("")
		p.line("No collection stands in it.")
		p.trouble(f)
		return p.err
	}
	p.kinds(f)
	p.plots(f)
	p.longest(f)
	p.stops(f)
	p.memory(f)
	p.causes(f)
	p.concurrent(f)
	p.trouble(f)
	p.advice(f)
	return p.err
}

type printer struct {
	w     io.Writer
	width int
	err   error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) title(s string) {
	p.line("")
	p.line("%s", s)
	p.line("%s", strings.Repeat("─", len([]rune(s))))
}

var longNames = [collectorCount]string{"unknown collector", "Serial", "Parallel", "CMS", "G1", "ZGC", "Shenandoah", "Epsilon"}

func (p *printer) head(files []*fileStats, f *fileStats) {
	jdk := f.jdk
	if jdk == "" {
		jdk = "of unknown version"
	}
	name := longNames[f.collector]
	if f.collector == ZGC && (f.cycles["minor"] > 0 || f.cycles["major"] > 0) {
		name += " (generational)"
	}
	p.line("GC log: %s, JDK %s, %s format", name, jdk, f.format())
	if len(files) > 1 {
		p.line("%d files, in this order:", len(files))
		for _, x := range files {
			p.line("  %s  (%s lines, %d pauses)", x.name, group3(x.lines), x.pauses)
		}
	}
	span := ""
	if f.firstSet {
		span = fmt.Sprintf(", from %s to %s", f.first.text(), f.last.text())
	}
	p.line("%s lines%s", group3(f.lines), span)
	if first, last, ok := f.dated(); ok && first.HasWall {
		p.line("It prints no dates; by the time the file was last written, that is from %v to %v.", first.date(), last.date())
	}
	if f.covers.seconds() > 0 {
		p.line("Covers %s; the collector stopped it for %s: throughput %s", long(f.covers.seconds()), dur(f.seconds), percent(1-f.seconds/f.covers.seconds()))
	} else if f.pauses > 0 {
		p.line("No clock in it: throughput and rates can't be known. Pauses: %s in all.", dur(f.seconds))
	}
	if f.covers.restarts > 0 {
		p.line("The JVM started anew %d time(s) in it.", f.covers.restarts)
	}
}

func (s Stamp) text() string {
	switch v := s.show().(type) {
	case float64:
		if s.Millis && !s.HasUp {
			return fmt.Sprint(s.date())
		}
		if s.HasWall {
			return fmt.Sprintf("%v (%.3f s)", s.date(), v)
		}
		return fmt.Sprintf("%.3f s", v)
	case string:
		return v
	}
	return "?"
}

func (p *printer) kinds(f *fileStats) {
	if f.pauses == 0 {
		if n := f.cyclesInAll(); n > 0 {
			p.title("Cycles")
			p.cycles(f)
			p.line("The log prints no pauses: ZGC's are tagged gc,phases, so use -Xlog:gc*.")
		}
		return
	}
	p.title("Pauses")
	p.line("  %-22s %8s %11s %10s %10s %10s %10s %10s", "kind", "count", "sum", "mean", "p50", "p95", "p99", "max")
	var order []int
	for k := range f.byKind {
		if f.byKind[k].count > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.byKind[b].sum, f.byKind[a].sum) })
	var all kindStats
	for _, k := range order {
		s := &f.byKind[k]
		p.row(Kind(k).String(), s)
		all.merge(s)
	}
	if len(order) > 1 {
		p.row("all", &all)
	}
	if f.nested > 0 {
		p.line("  %d of them lie inside another pause and add no time.", f.nested)
	}
	if f.concStarts > 0 {
		p.line("  %d young pauses also began a concurrent cycle.", f.concStarts)
	}
	p.cycles(f)
}

func (p *printer) cycles(f *fileStats) {
	if f.cyclesInAll() == 0 {
		return
	}
	var parts []string
	for _, n := range sortedKeys(f.cycles) {
		parts = append(parts, fmt.Sprintf("%s %d", n, f.cycles[n]))
	}
	p.line("  Cycles beside the application: %s", strings.Join(parts, ", "))
}

func (p *printer) row(name string, s *kindStats) {
	if s.timed == 0 {
		p.line("  %-22s %8d %11s", name, s.count, "(nested)")
		return
	}
	p.line("  %-22s %8d %11s %10s %10s %10s %10s %10s", name, s.count, dur(s.sum), dur(s.sum/float64(s.timed)),
		dur(s.quantile(.5)), dur(s.quantile(.95)), dur(s.quantile(.99)), dur(s.max))
}

func (p *printer) plots(f *fileStats) {
	if !f.bins.set || f.bins.used < 2 {
		return
	}
	n := f.bins.used
	pauses, heap, low := make([]float64, n), make([]float64, n), make([]float64, n)
	anyHeap, anyPause := false, false
	for i := range n {
		b := f.bins.bins[i]
		pauses[i], heap[i], low[i] = math.NaN(), math.NaN(), math.NaN()
		if b.pauses > 0 {
			pauses[i] = b.pauseMax
			anyPause = true
		}
		if b.heapCount > 0 {
			heap[i], low[i] = b.heapMax, b.heapMin
			anyHeap = true
		}
	}
	from, to := "", fmt.Sprintf("+%s", long(f.bins.width*float64(n)))
	if f.covers.seconds() == 0 {
		from, to = "first pause", "last pause"
	} else {
		from = f.first.text()
	}
	room := min(p.width-14, n)
	if anyPause && p.err == nil {
		p.title("Longest pause over time")
		p.err = textplot.Plot(p.w, pauses, room, 6, dur, from, to)
	}
	if anyHeap && p.err == nil {
		p.title("Heap before and after collections over time")
		p.err = textplot.Plot(p.w, fill(heap), room, 6, bytesText, from, to)
		if p.err == nil {
			p.line("  after:")
			p.err = textplot.Plot(p.w, fill(low), room, 4, bytesText, from, to)
		}
	}
}

// fill carries a level over the bins in which nothing was collected.
func fill(v []float64) []float64 {
	last := math.NaN()
	for i := range v {
		if math.IsNaN(v[i]) {
			v[i] = last
		} else {
			last = v[i]
		}
	}
	return v
}

func (p *printer) longest(f *fileStats) {
	if len(f.longest) == 0 {
		return
	}
	p.title("Longest pauses")
	for _, l := range f.longest[:min(5, len(f.longest))] {
		cause := ""
		if l.cause != "" {
			cause = " (" + l.cause + ")"
		}
		p.line("  %10s  %-18s at %s%s", dur(l.seconds), l.kind, l.at.text(), cause)
	}
}

func (p *printer) stops(f *fileStats) {
	if f.stopped.count == 0 && f.stalls.count == 0 && f.relocStalls.count == 0 {
		return
	}
	p.title("Stops and stalls")
	if f.stopped.count > 0 {
		p.line("  Stopped %s times for %s; collector's pauses in the log: %s. The one holds the other: don't add.", group3(f.stopped.count), dur(f.stopped.sum), dur(f.seconds))
		if f.sync > 0 {
			p.line("  Of it %s was waiting for the threads to stop.", dur(f.sync))
		}
		for _, l := range f.longestStops[:min(5, len(f.longestStops))] {
			wait := ""
			if l.sync > 0 {
				wait = fmt.Sprintf(", %s of it to get there", dur(l.sync))
			}
			p.line("  %10s  %-28s at %s%s", dur(l.seconds), l.kind, l.at.text(), wait)
		}
		if len(f.operations) > 1 {
			p.line("  By operation:")
			for _, n := range top(f.operations, 6) {
				c := f.operations[n]
				p.line("    %-34s %7d  %10s  max %s", n, c.count, dur(c.sum), dur(c.max))
			}
		}
	}
	if f.stalls.count > 0 {
		p.line("  Allocation stalls: %d threads waited %s in all, the longest %s. No pause shows these.", f.stalls.count, dur(f.stalls.sum), dur(f.stalls.max))
	}
	if f.relocStalls.count > 0 {
		p.line("  Relocation stalls: %d, %s in all, the longest %s.", f.relocStalls.count, dur(f.relocStalls.sum), dur(f.relocStalls.max))
	}
}

func top(m map[string]*causeStats, n int) []string {
	keys := sortedKeys(m)
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(m[b].sum, m[a].sum) })
	return keys[:min(n, len(keys))]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *printer) memory(f *fileStats) {
	if !f.hasHeap {
		return
	}
	p.title("Memory")
	size := ""
	if f.hasSize {
		size = " of " + bytesText(f.committed)
	}
	p.line("  Heap after the last collection: %s%s; the most before one: %s", bytesText(f.heapAfter), size, bytesText(f.heapMax))
	for g := Young; g < generations; g++ {
		if t := f.generatns[g]; t.Set {
			p.line("    %-10s %s -> %s", g, bytesText(t.Before), bytesText(t.After))
		}
	}
	if f.covers.seconds() > 0 && f.allocated > 0 {
		p.line("  Allocated %s: %s a second", bytesText(f.allocated), bytesText(f.allocated/f.covers.seconds()))
	}
	if f.covers.seconds() > 0 && f.promoted > 0 {
		share := ""
		if f.allocated > f.promoted {
			share = fmt.Sprintf(" (%s of what was allocated)", percent(f.promoted/f.allocated))
		}
		p.line("  Promoted %s: %s a second%s", bytesText(f.promoted), bytesText(f.promoted/f.covers.seconds()), share)
	}
	if s, fit, of, ok := f.trend(); ok {
		p.line("  Trend of the heap after %s: %s an hour (fit %.2f)%s", of, signed(s*3600), fit, f.suspicion())
	}
}

// trend prefers what full collections leave: the rest is garbage of the hour.
func (f *fileStats) trend() (perSecond, fit float64, of string, ok bool) {
	if s, fit, ok := f.afterFull.slope(); ok {
		return s, fit, "full collections", true
	}
	s, fit, ok := f.afterAny.slope()
	return s, fit, "collections", ok
}

// suspicion of a leak, in words.
func (f *fileStats) suspicion() string {
	if f.leaks() {
		return ": rising all the time, a leak may be suspected"
	}
	return ""
}

// leaks: the floor of the heap, which is the least that any collection left,
// rose from third to third of the time, by a good part of the heap in all. The
// warm-up of a server looks the same for its first minute, so less than that
// says nothing.
func (f *fileStats) leaks() bool {
	s, _, _, ok := f.trend()
	n := f.bins.used
	if !ok || s <= 0 || f.covers.seconds() < 60 || n < 12 {
		return false
	}
	var floor [3]float64
	for i := range floor {
		floor[i] = math.Inf(1)
		for _, b := range f.bins.bins[i*n/3 : (i+1)*n/3] {
			if b.heapCount > 0 {
				floor[i] = min(floor[i], b.heapMin)
			}
		}
	}
	base := max(f.committed, f.heapMax)
	return base > 0 && floor[0] < floor[1] && floor[1] < floor[2] && !math.IsInf(floor[2], 0) && floor[2]-floor[0] > .2*base
}

func (p *printer) causes(f *fileStats) {
	var order []int
	for c := range f.byCause {
		if c > 0 && f.byCause[c].count > 0 {
			order = append(order, c)
		}
	}
	if len(order) == 0 {
		return
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.byCause[b].sum, f.byCause[a].sum) })
	p.title("Causes")
	labels, values := make([]string, len(order)), make([]float64, len(order))
	for i, c := range order {
		s := f.byCause[c]
		labels[i] = fmt.Sprintf("%-30s %6d %10s", Cause(c), s.count, dur(s.sum))
		values[i] = s.sum
	}
	for i := range labels {
		p.line("  %s %s", labels[i], strings.TrimRight(textplot.Bar(values[i], values[0], min(24, max(8, p.width-54))), " "))
	}
}

func (p *printer) concurrent(f *fileStats) {
	if len(f.concurrent) == 0 {
		return
	}
	p.title("Beside the application (no pauses)")
	for _, n := range top(f.concurrent, 8) {
		c := f.concurrent[n]
		p.line("  %-38s %6d %10s  max %s", phaseLabel([]byte(n)), c.count, dur(c.sum), dur(c.max))
	}
}

func (p *printer) trouble(f *fileStats) {
	any := f.dropped+f.incomplete+f.unrecognised > 0
	for _, n := range f.failures {
		any = any || n > 0
	}
	if !any {
		return
	}
	p.title("Trouble")
	for i, n := range f.failures {
		if n > 0 {
			p.line("  %-30s %d", Failure(i), n)
		}
	}
	if f.dropped > 0 {
		p.line("  The JVM dropped %s messages of its log; pauses may be among them.", group3(f.dropped))
	}
	if f.incomplete > 0 {
		p.line("  %d records are torn and could not be counted.", f.incomplete)
	}
	if f.unrecognised > 0 {
		p.line("  %s lines are of no known form, such as:", group3(f.unrecognised))
		for _, e := range f.examples {
			p.line("    %s", printable(e, p.width-4))
		}
	}
}

// printable keeps what a stranger wrote from moving the cursor.
func printable(s string, width int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > width {
			break
		}
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r < 0xa0 {
			r = '·'
		}
		b.WriteRune(r)
	}
	return b.String()
}
