package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// tsdbQuerier reads the same blocks and heads by tsdb's and storage's own means.
func tsdbQuerier(t *testing.T, s *store, mint, maxt int64) storage.Querier {
	t.Helper()
	var parts []storage.Querier
	add := func(b tsdb.BlockReader) {
		q, err := tsdb.NewBlockQuerier(b, mint, maxt)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, q)
	}
	for _, b := range s.blocks {
		add(b)
	}
	for _, h := range append(slices.Clone(s.earlier), s.head) {
		add(tsdb.NewRangeHead(h, mint, maxt))
	}
	return storage.NewMergeQuerier(parts, nil, storage.ChainedSeriesMerge)
}

// read is all that a select gives, as text: series by series, each sample.
func read(t *testing.T, set storage.SeriesSet) (out []string) {
	t.Helper()
	var it chunkenc.Iterator
	for set.Next() {
		s := set.At()
		it = s.Iterator(it)
		line := s.Labels().String()
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			line += " " + sampleText(it, kind)
		}
		if err := it.Err(); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func sampleText(it chunkenc.Iterator, kind chunkenc.ValueType) string {
	if kind == chunkenc.ValFloat {
		ts, v := it.At()
		return fmt.Sprintf("%d:%x", ts, v)
	}
	ts, h := it.AtFloatHistogram(nil)
	return fmt.Sprintf("%d:%s", ts, h)
}

// What is read is what tsdb's own querier reads: over blocks and a head, and over
// heads whose samples lie in between each other's, as after an outage of the disk.
func TestSelect(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	r := rand.New(rand.NewPCG(7, 8))
	live := func(n int) {
		for range n {
			w.set.Gauge(testGauge).Set(r.Float64())
			w.set.Counter(testCounter, string(rune('a'+r.IntN(3)))).Inc()
			w.set.Histogram(testHist).Observe(r.ExpFloat64())
			if r.IntN(200) == 0 {
				w.set.Remove(testGauge)
			}
			w.ticks(1)
			w.e.store.busy.Wait()
		}
	}
	live(17 * 60)
	w.e.store.leaveDisk(errors.New("the disk is full"))
	live(60) // it comes back after fifteen seconds, with the head from before
	s := w.e.store
	if len(s.blocks) == 0 || len(s.earlier) == 0 {
		t.Fatalf("%d blocks and %d earlier heads make no case", len(s.blocks), len(s.earlier))
	}
	spans := 150
	if testing.Short() {
		spans = 25
	}
	for n := range spans {
		sameSelect(t, s, r, n)
	}
}

// sameSelect reads one span of one metric in three ways.
func sameSelect(t *testing.T, s *store, r *rand.Rand, n int) {
	t.Helper()
	mint := begin.Add(time.Duration(r.IntN(19*60*1000)) * time.Millisecond).UnixMilli()
	maxt := mint + int64(r.IntN(10*60*1000))
	if n%3 == 0 {
		mint = begin.Add(17 * time.Minute).UnixMilli()
	}
	name := []string{"test_level_bytes", "test_events_total", "test_seconds", "test_seconds_bucket", "ALERTS"}[n%5]
	m := labels.MustNewMatcher(labels.MatchEqual, "__name__", name)
	ours, err := s.Querier(mint, maxt)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close() // a block that is read can't be closed
	theirs := tsdbQuerier(t, s, mint, maxt)
	defer theirs.Close()
	hints := &storage.SelectHints{Start: mint, End: maxt, Range: 1}
	got, want := read(t, ours.Select(t.Context(), false, hints, m)), read(t, theirs.Select(t.Context(), false, hints, m))
	if !slices.Equal(got, want) {
		t.Fatalf("%s from %d to %d:\n%.500s\ntsdb:\n%.500s", name, mint, maxt, got, want)
	}
	// The newest alone.
	hints.Range = 0
	a, b := ours.Select(t.Context(), true, hints, m), theirs.Select(t.Context(), true, hints, m)
	var it chunkenc.Iterator
	for b.Next() {
		last := ""
		own := b.At().Iterator(nil)
		for kind := own.Next(); kind != chunkenc.ValNone; kind = own.Next() {
			last = sampleText(own, kind)
		}
		if last == "" {
			continue
		}
		found := ""
		for found == "" && a.Next() {
			it = a.At().Iterator(it)
			if kind := it.Seek(mint); kind != chunkenc.ValNone {
				found = a.At().Labels().String() + sampleText(it, kind)
			}
		}
		if want := b.At().Labels().String() + last; found != want {
			t.Fatalf("the newest of %s from %d to %d: %s, tsdb: %s", name, mint, maxt, found, want)
		}
	}
	// By leaps.
	a, b = ours.Select(t.Context(), true, &storage.SelectHints{Start: mint, End: maxt, Range: 1}, m), theirs.Select(t.Context(), true, &storage.SelectHints{Start: mint, End: maxt, Range: 1}, m)
	for a.Next() && b.Next() {
		x, y := a.At().Iterator(nil), b.At().Iterator(nil)
		for at := mint; at <= maxt+1000; at += int64(r.IntN(40_000)) {
			k, l := x.Seek(at), y.Seek(at)
			if k != l || k != chunkenc.ValNone && sampleText(x, k) != sampleText(y, l) {
				t.Fatalf("%s: seek %d: %v, tsdb: %v", a.At().Labels(), at, k, l)
			}
			if k == chunkenc.ValNone {
				break
			}
			if r.IntN(2) == 0 && x.Next() != y.Next() {
				t.Fatalf("%s: next after %d", a.At().Labels(), at)
			}
		}
	}
}

// What was there stays there, once, while samples come and the head is cut into
// blocks: each answer about a span of the past is the same.
func TestQueryWhileItGrows(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	grow := func(n int) {
		for range n {
			w.set.Gauge(testGauge).Set(float64(w.now.Unix()))
			w.set.Histogram(testHist).Observe(.5)
			w.ticks(1)
		}
	}
	grow(6 * 60)
	then := w.now
	stop := make(chan struct{})
	asked := make(chan int)
	go func() {
		n := 0
		defer func() { asked <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			for expr, want := range map[string]float64{"count_over_time(test_level_bytes[5m])": 300, "test_level_bytes": float64(then.Unix() - 1), "histogram_count(increase(test_seconds[2m]))": 120} {
				r, err := w.e.Query(t.Context(), expr, then)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := r.Vector()
				exact := !strings.Contains(expr, "increase") // which extrapolates
				if err != nil || len(v) != 1 || v[0].H != nil || exact && v[0].F != want || math.Abs(v[0].F-want) > 1.5 {
					t.Errorf("%s: %v %v, want %v", expr, v, err, want)
					return
				}
			}
			n++
		}
	}()
	grow(20 * 60)
	w.e.store.busy.Wait()
	close(stop)
	if n := <-asked; n < 10 || len(w.e.store.blocks) < 1 {
		t.Errorf("asked %d times over %d blocks", n, len(w.e.store.blocks))
	}
}
