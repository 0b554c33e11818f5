package collectors

import (
	"cmp"
	"slices"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// growthShare joins what the files of the log folders grew by (logdir, follow)
// with the bytes of the records counted as events (applog). No room knows both,
// so it lives here.
var growthShare = &metric.Family{Name: "logdir_growth_share", Kind: metric.Gauge, Labels: []string{"file", "event"},
	Open: []string{"file", "event"}, Limit: topFiles * (1 + topEvents), Source: "the snapshot",
	Help: "Share of all bytes lately logged by the server that went into this file (event empty), or into this event's records in it. The largest few only."}

// How many are told: who reads an alert wants the culprit, not a census.
const (
	topFiles  = 3
	topEvents = 3
	// minShare leaves out what nobody would act upon.
	minShare = 0.01
	// minGrowth is the growth, in bytes, below which there is nobody to blame.
	minGrowth = 64 << 10
)

// A Share is a part of the growth, from 0 to 1. Event is empty for the file as
// a whole; an event's share is of all growth as well, so it is never above its
// file's.
type Share struct {
	File, Event string
	Share       float64
}

// Blame says which files, and which events in them, a growth went into. growth
// holds bytes by file, events bytes by event of each file, both over the same
// span. Files come by falling share, each followed by its events. The result is
// empty where nearly nothing grew.
//
// The records of an event are counted when they are read, which is a little
// after the file grew: an event's bytes are therefore held to its file's.
func Blame(growth map[string]float64, events map[string]map[string]float64) []Share {
	total := 0.0
	for _, b := range growth {
		total += max(b, 0)
	}
	if total < minGrowth {
		return nil
	}
	var out []Share
	for _, f := range largest(growth, total, topFiles) {
		out = append(out, Share{File: f.name, Share: f.bytes / total})
		for _, e := range largest(events[f.name], total, topEvents) {
			out = append(out, Share{File: f.name, Event: e.name, Share: min(e.bytes, f.bytes) / total})
		}
	}
	return out
}

type grown struct {
	name  string
	bytes float64
}

// largest are the n largest that reach minShare of total; names decide a draw,
// so that the same figures always make the same series.
func largest(by map[string]float64, total float64, n int) []grown {
	var all []grown
	for name, b := range by {
		if b/total >= minShare {
			all = append(all, grown{name, b})
		}
	}
	slices.SortFunc(all, func(a, b grown) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	return all[:min(n, len(all))]
}
