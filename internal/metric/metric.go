// Package metric says what a metric is.
//
// A room declares its metrics once, as Families in a list at the top of the
// room, and keeps its figures in a Set. The figures are plain numbers that one
// goroutine at a time changes under the Set's lock: no atomics, no channels,
// no allocation once a series exists. They can be saved into the checkpoint and
// restored from it, which client_golang's own counters can't, and that is why
// they are ours: no published counter may fall across a restart.
//
// What leaves the program is client_golang's data model (package client_model),
// so exposition, content negotiation and OpenMetrics stay the library's.
package metric

import (
	"fmt"
	"strings"
)

// Kind is the type a family has in the exposition.
type Kind uint8

const (
	// Counter only grows while its subject lives. Its name ends in _total.
	Counter Kind = iota
	// Gauge goes up and down, and may be absent: no answer, no sample.
	Gauge
	// Histogram counts observations by value, in classic buckets and, beside
	// them, in a native histogram of schema 3 (each bucket 9 % wider than the
	// one before).
	Histogram
	// Summary has a count and a sum only, as jvm_gc_collection_seconds has.
	Summary
)

func (k Kind) String() string {
	return [...]string{"counter", "gauge", "histogram", "summary"}[k]
}

// Merge says what the figure of two series with equal labels is. It matters
// where one target has several observers of one kind, say two access logs.
type Merge uint8

const (
	// Sum adds. Counters, histograms and summaries always add.
	Sum Merge = iota
	// Max takes the greater of two gauges.
	Max
)

// DefaultLimit is the number of series one Set keeps of a family whose labels
// are open, when the family does not say.
const DefaultLimit = 100

// OtherValue is the label value under which everything beyond a limit is kept.
const OtherValue = "other"

// A Family is the declaration of one metric.
type Family struct {
	// Name with its base unit, and _total for a counter.
	Name string
	// Help is a sentence that a newcomer understands.
	Help string
	Kind Kind
	// Labels are the names of the labels, without target, which the Set adds.
	Labels []string
	// Open names those labels whose values a stranger chooses (paths, thread
	// names, logger names). A series past Limit gets "other" in each of them.
	Open []string
	// Limit bounds the series of this family in one Set. 0 means DefaultLimit
	// where Open is not empty, and no limit where it is.
	Limit int
	// Buckets are the classic upper bounds of a histogram, in rising order and
	// without +Inf.
	Buckets []float64
	// Merge says how gauges with equal labels of two Sets are joined.
	Merge Merge
	// Source says where the figure comes from, for the docs: "hsperfdata",
	// "/proc/PID/stat", "GC log".
	Source string
}

// units are the base units a name may end in, before _total.
var units = []string{"seconds", "bytes", "ratio", "volts", "cores"}

// Unit is the unit the name carries ("seconds", "bytes"), or "".
func (f *Family) Unit() string {
	name := strings.TrimSuffix(f.Name, "_total")
	for _, u := range units {
		if strings.HasSuffix(name, "_"+u) {
			return u
		}
	}
	return ""
}

func (f *Family) limit() int {
	switch {
	case f.Limit > 0:
		return f.Limit
	case len(f.Open) > 0:
		return DefaultLimit
	}
	return 0
}

// LatencyBuckets are the classic buckets of request durations, in seconds.
var LatencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Check finds the mistakes in a catalogue: a name twice, one name that is
// another's plus a suffix the exposition adds, a counter without _total, an
// open label that is no label. A non-nil error is a BUG of ours.
func Check(families []*Family) error {
	names := map[string]bool{}
	for _, f := range families {
		if names[f.Name] {
			return fmt.Errorf("metric %s: declared twice", f.Name)
		}
		names[f.Name] = true
		if f.Help == "" {
			return fmt.Errorf("metric %s: no help", f.Name)
		}
		if total := strings.HasSuffix(f.Name, "_total"); total != (f.Kind == Counter) {
			return fmt.Errorf("metric %s: a counter, and only a counter, ends in _total", f.Name)
		}
		for i, b := range f.Buckets {
			if i > 0 && b <= f.Buckets[i-1] {
				return fmt.Errorf("metric %s: bucket %v is not above the one before", f.Name, b)
			}
		}
		labels := map[string]bool{"target": true}
		for _, l := range f.Labels {
			if labels[l] {
				return fmt.Errorf("metric %s: label %s twice (target is added by the Set)", f.Name, l)
			}
			labels[l] = true
		}
		for _, o := range f.Open {
			if !labels[o] {
				return fmt.Errorf("metric %s: open label %s is not declared", f.Name, o)
			}
		}
	}
	for name := range names {
		for _, suffix := range []string{"_total", "_sum", "_count", "_bucket", "_created", "_info"} {
			if names[name+suffix] {
				return fmt.Errorf("metric %s: %s%s is read as a part of it", name, name, suffix)
			}
		}
	}
	return nil
}
