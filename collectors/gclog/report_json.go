package gclog

import "math"

// summary is the JSON form of one file, stable for scripts.
type summary struct {
	Kind      string            `json:"kind"`
	File      string            `json:"file,omitempty"`
	Collector string            `json:"collector"`
	JDK       string            `json:"jdk"`
	Format    string            `json:"format"`
	Pauses    pauseSummary      `json:"pauses"`
	Nested    uint64            `json:"nested"`
	Full      uint64            `json:"full"`
	Failures  map[string]uint64 `json:"failures"`
	Stalls    countSeconds      `json:"stalls"`
	Stopped   stoppedSummary    `json:"stopped"`
	HeapAfter *float64          `json:"heap_after_bytes"`
	Committed *float64          `json:"committed_bytes"`
	First     any               `json:"first"`
	Last      any               `json:"last"`

	Unrecognised uint64 `json:"unrecognised_lines"`
	Incomplete   uint64 `json:"incomplete_records"`
	Dropped      uint64 `json:"dropped_messages"`

	Lines          uint64                  `json:"lines"`
	Restarts       int                     `json:"restarts"`
	Elapsed        *float64                `json:"elapsed_seconds"`
	Throughput     *float64                `json:"throughput_ratio"`
	ConcStarts     uint64                  `json:"concurrent_starts"`
	Causes         map[string]uint64       `json:"causes"`
	Cycles         map[string]uint64       `json:"cycles"`
	Concurrent     map[string]countSeconds `json:"concurrent"`
	RelocStalls    countSeconds            `json:"relocation_stalls"`
	AllocatedBytes float64                 `json:"allocated_bytes"`
	PromotedBytes  float64                 `json:"promoted_bytes"`
	FirstDate      any                     `json:"first_date,omitempty"`
	LastDate       any                     `json:"last_date,omitempty"`
	// Derived says that the dates are not the log's, which prints only uptimes,
	// but worked out from the time the file was last written.
	Derived bool `json:"dates_derived,omitempty"`
}

type pauseSummary struct {
	Count   uint64               `json:"count"`
	Seconds float64              `json:"seconds"`
	Max     float64              `json:"max_seconds"`
	ByKind  map[string]uint64    `json:"by_kind"`
	Kinds   map[string]quantiles `json:"kinds"`
}

type quantiles struct {
	Count   uint64  `json:"count"`
	Nested  uint64  `json:"nested"`
	Seconds float64 `json:"seconds"`
	Mean    float64 `json:"mean_seconds"`
	P50     float64 `json:"p50_seconds"`
	P95     float64 `json:"p95_seconds"`
	P99     float64 `json:"p99_seconds"`
	Max     float64 `json:"max_seconds"`
}

type countSeconds struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
}

type stoppedSummary struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
	Sync    float64 `json:"sync_seconds"`
}

// JSON is what --json prints: one object for one file, an array for several.
func (r *Report) JSON() any {
	r.finish()
	if len(r.files) == 1 {
		return r.files[0].summary()
	}
	all := make([]summary, 0, len(r.files))
	for _, f := range r.files {
		all = append(all, f.summary())
	}
	return all
}

// exactly rounds away the dust of adding, far below what a log prints.
func exactly(v float64) float64 { return math.Round(v*1e9) / 1e9 }

func (f *fileStats) summary() summary {
	s := summary{
		Kind: "gclog", File: f.name, Collector: f.collector.String(), JDK: f.jdk, Format: f.format(),
		Pauses: pauseSummary{Count: f.pauses, Seconds: exactly(f.seconds), Max: exactly(f.max), ByKind: map[string]uint64{}, Kinds: map[string]quantiles{}},
		Nested: f.nested, Full: f.byKind[KindFull].count,
		Failures:     map[string]uint64{},
		Stalls:       countSeconds{f.stalls.count, exactly(f.stalls.sum)},
		Stopped:      stoppedSummary{f.stopped.count, exactly(f.stopped.sum), exactly(f.sync)},
		Unrecognised: f.unrecognised, Incomplete: f.incomplete, Dropped: f.dropped,
		Lines: f.lines, Restarts: f.covers.restarts, ConcStarts: f.concStarts,
		Causes: map[string]uint64{}, Cycles: f.cycles, Concurrent: map[string]countSeconds{},
		RelocStalls:    countSeconds{f.relocStalls.count, exactly(f.relocStalls.sum)},
		AllocatedBytes: math.Round(f.allocated), PromotedBytes: math.Round(f.promoted),
	}
	for k := range f.byKind {
		ks := &f.byKind[k]
		if ks.count == 0 {
			continue
		}
		s.Pauses.ByKind[Kind(k).String()] = ks.count
		q := quantiles{Count: ks.count, Nested: ks.nesting, Seconds: exactly(ks.sum), Max: exactly(ks.max)}
		if ks.timed > 0 {
			q.Mean = exactly(ks.sum / float64(ks.timed))
			q.P50, q.P95, q.P99 = exactly(ks.quantile(.5)), exactly(ks.quantile(.95)), exactly(ks.quantile(.99))
		}
		s.Pauses.Kinds[Kind(k).String()] = q
	}
	for i, n := range f.failures {
		if n > 0 {
			s.Failures[Failure(i).String()] = n
		}
	}
	for i, c := range f.byCause {
		if c.count > 0 && i > 0 {
			s.Causes[Cause(i).String()] = c.count
		}
	}
	for name, c := range f.concurrent {
		l := phaseLabel([]byte(name))
		s.Concurrent[l] = countSeconds{s.Concurrent[l].Count + c.count, exactly(s.Concurrent[l].Seconds + c.sum)}
	}
	if f.hasHeap {
		v := math.Round(f.heapAfter)
		s.HeapAfter = &v
	}
	if f.hasSize {
		v := math.Round(f.committed)
		s.Committed = &v
	}
	if f.firstSet {
		s.First, s.Last = f.first.show(), f.last.show()
		if f.first.HasUp && f.first.HasWall {
			s.FirstDate, s.LastDate = f.first.date(), f.last.date()
		} else if first, last, ok := f.dated(); ok {
			s.FirstDate, s.LastDate, s.Derived = first.date(), last.date(), true
		}
	}
	if f.covers.seconds() > 0 {
		v := exactly(f.covers.seconds())
		s.Elapsed = &v
		if t := 1 - f.seconds/f.covers.seconds(); t >= 0 {
			s.Throughput = &t
		}
	}
	return s
}

func (f *fileStats) format() string {
	if f.unified {
		return "unified"
	}
	return "legacy"
}

// show is the stamp as the log has it: the uptime as a number, or the date.
func (s Stamp) show() any {
	switch {
	case s.HasUp:
		return exactly(s.Uptime)
	case s.HasWall && s.Millis:
		return exactly(s.Wall)
	case s.HasWall:
		return s.date()
	}
	return nil
}
