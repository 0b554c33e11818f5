package gclog

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Head is what Order needs of one file.
type Head struct {
	// Name is the file's name; its number is the last thing that is asked.
	Name string
	// Head and Tail are some kilobytes of its beginning and of its end.
	Head, Tail []byte
	// ModTime is when it was last written, in Unix seconds; 0 when not known.
	ModTime float64
}

// Order says in which order to read the parts of a rotated log: the result are
// indices into files. Numbers in names can't say it (they go round, and a dead
// run's stay), so the stamps inside do.
//
// Wall clocks are comparable across runs. Where only uptimes are printed, files
// are chained into runs of one JVM, each part beginning where another ended,
// and the runs are ordered by the time of their last write, then by name.
func Order(files []Head) []int {
	parts := make([]part, len(files))
	walls := true
	for i, f := range files {
		parts[i] = part{index: i, head: f}
		p := &parts[i]
		p.first, p.hasFirst = firstStamp(f.Head)
		p.last, p.hasLast = lastStamp(f.Tail)
		if !p.hasLast {
			p.last, p.hasLast = lastStamp(f.Head)
		}
		walls = walls && (!p.hasFirst || p.first.HasWall)
	}
	if walls {
		slices.SortStableFunc(parts, func(a, b part) int {
			return cmp.Or(cmp.Compare(a.first.Wall, b.first.Wall), cmp.Compare(a.first.Uptime, b.first.Uptime), byAge(a.head, b.head))
		})
		return indices(parts)
	}
	// Chain by uptime: the earliest beginning first, each joined to the run whose
	// end is nearest before it.
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.first.Uptime, b.first.Uptime), cmp.Compare(a.last.Uptime, b.last.Uptime), byAge(a.head, b.head))
	})
	var runs [][]part
	for _, p := range parts {
		best, gap := -1, math.Inf(1)
		for i, r := range runs {
			end := r[len(r)-1]
			// The end of a part and the beginning of the next may lie within the same
			// millisecond, or be a little out of order by thread.
			if d := p.first.Uptime - end.last.Uptime; p.hasFirst && end.hasLast && d > -.05 && d < gap {
				best, gap = i, d
			}
		}
		if best < 0 {
			runs = append(runs, []part{p})
		} else {
			runs[best] = append(runs[best], p)
		}
	}
	slices.SortStableFunc(runs, func(a, b []part) int { return byAge(newest(a), newest(b)) })
	return indices(slices.Concat(runs...))
}

type part struct {
	index             int
	head              Head
	first, last       Stamp
	hasFirst, hasLast bool
}

func indices(parts []part) []int {
	out := make([]int, len(parts))
	for i, p := range parts {
		out[i] = p.index
	}
	return out
}

func newest(run []part) Head {
	h := run[0].head
	for _, p := range run[1:] {
		h.ModTime = max(h.ModTime, p.head.ModTime)
		if byAge(h, p.head) < 0 {
			h.Name = p.head.Name
		}
	}
	return h
}

// byAge orders by the last write, then by the name's number; the name without a
// number, or with .current, is the newest.
func byAge(a, b Head) int {
	if math.Abs(a.ModTime-b.ModTime) >= 1 && a.ModTime > 0 && b.ModTime > 0 {
		return cmp.Compare(a.ModTime, b.ModTime)
	}
	return cmp.Or(cmp.Compare(rotation(a.Name), rotation(b.Name)), cmp.Compare(a.Name, b.Name))
}

func rotation(name string) float64 {
	if strings.HasSuffix(name, ".current") {
		return math.Inf(1)
	}
	i := len(name)
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	if i == len(name) || i == 0 || name[i-1] != '.' || len(name)-i > 6 {
		return math.Inf(1)
	}
	v, _ := decimal([]byte(name[i:]), 0)
	return v
}

// firstStamp is the first time that is printed at the start of a line.
func firstStamp(b []byte) (Stamp, bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if s, ok := stampAt(clean(line)); ok {
			return s, true
		}
	}
	return Stamp{}, false
}

// lastStamp is the last one. A tail may begin in the middle of a line, which
// then is no stamped line, or has one all the same.
func lastStamp(b []byte) (Stamp, bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			line, b = b[i+1:], b[:i]
		} else {
			b = nil
		}
		if s, ok := stampAt(clean(line)); ok {
			return s, true
		}
	}
	return Stamp{}, false
}

func stampAt(b []byte) (Stamp, bool) {
	if len(b) == 0 {
		return Stamp{}, false
	}
	if b[0] == '[' {
		var d decorations
		if !d.parse(b) {
			return Stamp{}, false
		}
		s := d.stamp(b)
		return s, s.HasUp || s.HasWall
	}
	s, n := legacyStamp(b)
	return s, n > 0
}

// Sniff says how sure it is, from 0 to 1, that head is the beginning of a GC
// log. It may hold the application's lines as well, and a log of JDK 8 may
// begin with hundreds of stopped lines before the first collection.
func Sniff(head []byte) float64 {
	lines, sure, likely := 0, 0, 0
	for len(head) > 0 && lines < 2000 {
		line := head
		if i := bytes.IndexByte(head, '\n'); i >= 0 {
			line, head = head[:i], head[i+1:]
		} else {
			head = nil
		}
		line = clean(line)
		if len(trim(line)) == 0 {
			continue
		}
		lines++
		switch sniffLine(line) {
		case 2:
			sure++
		case 1:
			likely++
		}
	}
	if lines == 0 || sure+likely == 0 {
		return 0
	}
	share := float64(sure+likely) / float64(lines)
	switch {
	case sure == 0:
		return .4 * share
	case share > .5:
		return min(1, .8+.2*share)
	}
	// The application's stdout with a GC log in it.
	return .3 + share
}

func sniffLine(b []byte) int {
	var d decorations
	if b[0] == '[' && d.parse(b) {
		m := b[d.message:]
		if d.hasTags {
			if t := d.tags; string(t) == "gc" || has(t, "gc,") || string(t) == "safepoint" || has(t, "safepoint,") {
				return 2
			}
			return 1
		}
		return sniffMessage(m)
	}
	if has(b, "GC(") || has(b, `Safepoint "`) || has(b, "Using ") {
		return sniffMessage(b)
	}
	s := b
	if _, n := legacyStamp(b); n > 0 {
		s = b[n:]
	} else {
		s = s[spaces(s):]
	}
	switch {
	case recordKind(s) != notRecord && (contains(b, "secs]") || contains(b, "[ParNew") || contains(b, "[DefNew") || contains(b, "[PSYoung") || contains(b, "(young)") || contains(b, "(mixed)") || contains(b, "[CMS")):
		return 2
	case has(s, stoppedText), has(s, "Application time: "), has(s, "[CMS-concurrent-"), has(s, "[GC concurrent-"),
		has(s, "CommandLine flags: "), contains(b, " JRE (1."), has(s, "[Times: user="), has(s, "[Parallel Time:"), has(s, "[Eden: "), has(s, "{Heap before"):
		return 2
	case len(s) > 0 && s[0] == '[' && knownBracket(s), knownText(s) && len(s) > 3 && s[0] != 'H':
		return 1
	}
	return 0
}

func sniffMessage(m []byte) int {
	switch {
	case has(m, "Using ") && collectorNamed(m[6:]) != CollectorUnknown, has(m, `Safepoint "`):
		return 2
	case has(m, "GC("):
		_, _, n := number(m[3:])
		if n > 0 && has(m[3+n:], ") ") {
			return 2
		}
	}
	return 0
}
