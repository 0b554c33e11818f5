package applog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Recent is what the page shows of one log: the last entries and what was made
// of them, newest last.
type Recent struct {
	Layout string
	Lines  []RecentLine
	// Raw are the last lines that belonged to no record.
	Raw []string
}

// A RecentLine is one entry, or a run of equal ones.
type RecentLine struct {
	Line   string // its first line, cut to 512 bytes
	Level  string
	Logger string
	// Event is the first event it told, Thrown the exception under it.
	Event, Thrown string
	Pattern       string
	// Again is how many of the same kind followed at once.
	Again uint64
}

const (
	ringSize = 24
	ringLine = 512
)

// ring keeps the last entries. Its slots are used again, so that a storm
// allocates nothing; in a storm of one kin only a number is counted up.
type ring struct {
	slots [ringSize]slot
	next  int
	last  *slot
	raws  [ringSize][]byte
	nraw  int
}

type slot struct {
	line   []byte
	k      *kin
	event  *eventState
	thrown string
	again  uint64
	used   bool
}

func (r *ring) record(k *kin, line []byte, rec *record) {
	if r.last != nil && r.last.k == k {
		r.last.again++
		return
	}
	s := &r.slots[r.next%ringSize]
	r.next++
	*s = slot{line: append(s.line[:0], line[:min(len(line), ringLine)]...), k: k, used: true}
	if rec.n > 0 {
		s.event = rec.events[0]
	}
	r.last = s
}

func (r *ring) threw(class string, rec *record) {
	if r.last != nil && r.last.k == rec.k && r.last.thrown == "" {
		r.last.thrown = class
		if rec.n > 0 {
			r.last.event = rec.events[0]
		}
	}
}

func (r *ring) raw(line []byte) {
	s := &r.raws[r.nraw%ringSize]
	*s = append((*s)[:0], line[:min(len(line), ringLine)]...)
	r.nraw++
}

// Recent copies the last entries. The caller holds the Set's lock.
func (o *Observer) Recent() Recent {
	out := Recent{Layout: o.Layout()}
	r := &o.recent
	for i := r.next; i < r.next+ringSize; i++ {
		s := &r.slots[i%ringSize]
		if !s.used {
			continue
		}
		l := RecentLine{Line: show(s.line), Level: s.k.level.String(), Logger: s.k.logger, Thrown: s.thrown, Pattern: s.k.pattern, Again: s.again}
		if s.event != nil {
			l.Event = s.event.name
		}
		out.Lines = append(out.Lines, l)
	}
	for i := max(0, r.nraw-ringSize); i < r.nraw; i++ {
		out.Raw = append(out.Raw, show(r.raws[i%ringSize]))
	}
	return out
}

// A PatternCount is how often records of one kind came.
type PatternCount struct {
	Level, Logger, Pattern string
	Records                uint64
	// New says that the kind was seen for the first time since the log is read.
	New bool
}

// Frequent are the n most frequent kinds of records since the log is read. The
// caller holds the Set's lock.
func (o *Observer) Frequent(n int) []PatternCount {
	all := make([]*kin, 0, len(o.kins))
	for _, k := range append(slices.Collect(maps.Values(o.kins)), &o.spill) {
		if k.count > 0 {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *kin) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.pattern, b.pattern))
	})
	out := make([]PatternCount, 0, min(n, len(all)))
	for _, k := range all[:min(n, len(all))] {
		out = append(out, PatternCount{k.level.String(), k.logger, show([]byte(k.pattern)), k.count, k.fresh})
	}
	return out
}

// Layout names the layouts in use, the last one first.
func (o *Observer) Layout() string {
	var names []string
	for _, l := range o.layouts {
		names = append(names, l.name())
	}
	return strings.Join(names, ", ")
}

// show makes text of a line that may hold anything.
func show(b []byte) string {
	return strings.ToValidUTF8(string(bytes.TrimRight(b, "\r\n")), "\uFFFD")
}
