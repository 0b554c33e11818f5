package follow

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The property test of streams whose live name has a date in it. Nothing is
// removed, so nothing may be lost: whatever the order of new days, late lines
// into yesterday's file, half lines, a second name for a file, slow looks,
// kills and restarts, each line comes out once, and there is no gap.
func TestDatedSchedules(t *testing.T) {
	n := uint64(*schedules) / 2
	if testing.Short() {
		n = min(n, 100)
	}
	for seed := *firstSeed; seed < *firstSeed+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runDated(t, seed) })
	}
}

type dayWorld struct {
	*stand
	rng   *rand.Rand
	day   int
	rest  string // of a torn line
	lines []string
	log   []string
	save  []byte
	saved int
}

func (d *dayWorld) name(day int) string {
	return time.Date(2024, 6, 1+day, 0, 0, 0, 0, time.UTC).Format("localhost_access_log.2006-01-02.txt")
}

func (d *dayWorld) line() string {
	l := fmt.Sprintf("L%05d %s", len(d.lines), strings.Repeat("x", d.rng.IntN(50)))
	d.lines = append(d.lines, l)
	return l + "\n"
}

// write writes some lines into today's file, the last of them perhaps torn.
func (d *dayWorld) write() {
	for range 1 + d.rng.IntN(10) {
		d.rest += d.line()
	}
	k := len(d.rest)
	if d.rng.IntN(2) == 0 {
		k = d.rng.IntN(k + 1)
	}
	d.append(d.name(d.day), d.rest[:k])
	d.rest = d.rest[k:]
}

func (d *dayWorld) step(running bool) {
	what := d.rng.IntN(10)
	d.log = append(d.log, fmt.Sprintf("%d (day %d, %d lines)", what, d.day, len(d.lines)))
	switch {
	case what < 3:
		d.write()
	case what < 5: // midnight
		d.append(d.name(d.day), d.rest)
		d.rest = ""
		d.day++
		if d.rng.IntN(2) == 0 {
			d.append(d.name(d.day), d.line())
		}
	case what < 6 && d.day > 0: // late lines
		if _, err := os.Stat(d.path(d.name(d.day - 1))); err == nil {
			d.append(d.name(d.day-1), d.line())
		}
	case what < 7: // a second name that matches too
		os.Link(d.path(d.name(d.day)), d.path("x"+d.name(d.day)))
	case !running:
	case what < 9:
		d.look()
	case d.rng.IntN(2) == 0:
		data, err := d.f.Save()
		d.must(err)
		d.save, d.saved = data, len(d.r.lines)
	case d.save != nil:
		d.f.Close()
		d.r.lines = d.r.lines[:d.saved]
		for range d.rng.IntN(4) {
			d.step(false)
		}
		d.f = New(d.spec, d.r)
		d.must(d.f.Load(d.save))
		d.look()
	}
}

func runDated(t *testing.T, seed uint64) {
	d := &dayWorld{rng: rand.New(rand.NewPCG(seed, 11)), stand: newStand(t, Spec{
		Pattern: regexp.MustCompile(`^x?localhost_access_log\.\d{4}-\d\d-\d\d\.txt$`), From: Start, Grace: 3 * time.Second})}
	if seed%2 == 0 {
		d.look() // the first file comes after us
	}
	d.write()
	d.look()
	for range 40 {
		d.step(true)
	}
	d.append(d.name(d.day), d.rest)
	for range 12 {
		d.look()
	}
	out := map[string]int{}
	for _, l := range d.r.lines {
		out[l]++
	}
	for _, l := range d.lines {
		if out[l] != 1 {
			t.Errorf("%.6s came out %d times", l, out[l])
		}
		delete(out, l)
	}
	if len(out) > 0 || d.f.Ledger().Gaps != [gapReasons]int64{} {
		t.Errorf("never written: %v; gaps %v", out, d.f.Ledger().Gaps)
	}
	if t.Failed() {
		list, _ := filepath.Glob(d.path("*"))
		t.Logf("seed %d\n%s\n%s", seed, strings.Join(d.log, "\n"), strings.Join(list, "\n"))
	}
}
