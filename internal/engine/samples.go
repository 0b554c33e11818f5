package engine

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// millis is a time of the store, Unix time in milliseconds. By this name the Seek
// of an iterator of samples is not taken for a misspelt io.Seeker by go vet.
type millis = int64

// picked is one series of a Select.
type picked struct {
	labels labels.Labels
	from   *picks
	pieces []piece // source by source, in each by rising time
}

// piece is one chunk of a series.
type piece struct {
	chunks.Meta
	source *source
}

func (p piece) iterator(again chunkenc.Iterator) (chunkenc.Iterator, error) {
	c, iterable, err := p.source.chunks.ChunkOrIterable(p.Meta)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a chunk of samples: %w", err)
	case iterable != nil:
		return iterable.Iterator(again), nil
	}
	return c.Iterator(again), nil
}

func (p *picked) Labels() labels.Labels { return p.labels }

// Iterator takes one of ours again, with the room it has.
func (p *picked) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	if p.from.newest {
		one, ok := again.(*newest)
		if !ok {
			one = &newest{}
		}
		one.find(p)
		return one
	}
	if p.overlap() {
		// While a block is written, and after an outage of the disk, two sources hold
		// samples of the same time.
		var each []chunkenc.Iterator
		for i := 0; i < len(p.pieces); {
			end := i + 1
			for end < len(p.pieces) && p.pieces[end].source == p.pieces[i].source {
				end++
			}
			each = append(each, &span{mint: p.from.mint, maxt: p.from.maxt, pieces: p.pieces[i:end], last: math.MinInt64})
			i = end
		}
		return storage.ChainSampleIteratorFromIterators(nil, each)
	}
	s, ok := again.(*span)
	if !ok {
		s = &span{}
	}
	*s = span{mint: p.from.mint, maxt: p.from.maxt, pieces: p.pieces, last: math.MinInt64, chunk: s.chunk}
	return s
}

// overlap says whether the sources must be merged sample by sample. The last
// chunk of a head is open, and says that it ends at the end of time.
func (p *picked) overlap() bool {
	for i := 1; i < len(p.pieces); i++ {
		if p.pieces[i].source != p.pieces[i-1].source && p.pieces[i].MinTime <= p.pieces[i-1].MaxTime {
			return true
		}
	}
	return false
}

// span goes through the samples of a series, chunk after chunk.
type span struct {
	mint, maxt int64
	pieces     []piece           // those still to come
	chunk      chunkenc.Iterator // the one being read, or room for the next
	reading    bool
	end        int64 // when the chunk being read ends
	kind       chunkenc.ValueType
	last       int64 // time of the current sample
	err        error
}

func (s *span) Next() chunkenc.ValueType {
	for s.err == nil {
		if s.reading {
			if kind := s.chunk.Next(); kind != chunkenc.ValNone {
				t := s.chunk.AtT()
				if t < s.mint {
					continue
				}
				return s.take(kind, t)
			}
			s.reading = false
			if s.err = s.chunk.Err(); s.err != nil {
				break
			}
		}
		if len(s.pieces) == 0 {
			break
		}
		s.open()
	}
	s.kind = chunkenc.ValNone
	return s.kind
}

// take makes the chunk's sample the current one; none comes after the span.
func (s *span) take(kind chunkenc.ValueType, t int64) chunkenc.ValueType {
	if t > s.maxt {
		s.pieces, s.reading, kind = nil, false, chunkenc.ValNone
	} else {
		s.last = t
	}
	s.kind = kind
	return kind
}

func (s *span) open() {
	p := s.pieces[0]
	s.pieces = s.pieces[1:]
	c, err := p.iterator(s.chunk)
	if err != nil {
		s.err = err
		return
	}
	s.chunk, s.reading, s.end = c, true, p.MaxTime
}

func (s *span) Seek(t millis) chunkenc.ValueType {
	if s.kind != chunkenc.ValNone && s.last >= t {
		return s.kind
	}
	if s.reading && s.end < t {
		s.reading = false
	}
	for !s.reading && len(s.pieces) > 0 && s.pieces[0].MaxTime < t {
		s.pieces = s.pieces[1:]
	}
	for {
		kind := s.Next()
		if kind == chunkenc.ValNone || s.last >= t {
			return kind
		}
	}
}

func (s *span) At() (int64, float64) { return s.chunk.At() }
func (s *span) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	return s.chunk.AtHistogram(h)
}
func (s *span) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return s.chunk.AtFloatHistogram(h)
}
func (s *span) AtT() int64 { return s.last }
func (s *span) Err() error { return s.err }

// newest is the last sample of a span and no other.
type newest struct {
	kind  chunkenc.ValueType
	t     int64
	v     float64
	chunk chunkenc.Iterator // stands on the sample where that is a histogram
	seen  bool
	err   error
}

// find looks from behind. Pieces of several sources may overlap, so it goes on
// while one before may hold something newer.
func (n *newest) find(p *picked) {
	*n = newest{t: math.MinInt64, chunk: n.chunk}
	for i := len(p.pieces) - 1; i >= 0 && n.err == nil; i-- {
		if n.kind != chunkenc.ValNone && p.pieces[i].MaxTime <= n.t {
			continue
		}
		n.look(p.pieces[i], p.from.mint, p.from.maxt)
	}
}

// look takes the last sample of a chunk that lies in the span.
func (n *newest) look(p piece, mint, maxt int64) {
	c, err := p.iterator(nil)
	if err != nil {
		n.err = err
		return
	}
	count, last := 0, 0
	for kind := c.Next(); kind != chunkenc.ValNone; kind = c.Next() {
		count++
		t := c.AtT()
		if t > maxt {
			break
		}
		if t < mint || t <= n.t {
			continue
		}
		n.kind, n.t, last = kind, t, count
		if kind == chunkenc.ValFloat {
			_, n.v = c.At()
		}
	}
	if n.err = c.Err(); n.err != nil || last == 0 || n.kind == chunkenc.ValFloat {
		return
	}
	// A histogram is costly to decode, so it is found first, and read then.
	if c, n.err = p.iterator(nil); n.err != nil {
		return
	}
	for range last {
		c.Next()
	}
	n.chunk = c
}

func (n *newest) Next() chunkenc.ValueType {
	if n.seen || n.err != nil {
		n.kind = chunkenc.ValNone
	}
	n.seen = true
	return n.kind
}

func (n *newest) Seek(t millis) chunkenc.ValueType {
	if n.seen && n.kind != chunkenc.ValNone && n.t >= t {
		return n.kind
	}
	if n.Next() != chunkenc.ValNone && n.t < t {
		n.kind = chunkenc.ValNone
	}
	return n.kind
}

func (n *newest) At() (int64, float64) { return n.t, n.v }
func (n *newest) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	return n.chunk.AtHistogram(h)
}
func (n *newest) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return n.chunk.AtFloatHistogram(h)
}
func (n *newest) AtT() int64 { return n.t }
func (n *newest) Err() error { return n.err }
