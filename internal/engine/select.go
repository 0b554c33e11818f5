package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// querier reads the blocks and heads that hold something of a span. It does what
// tsdb's own querier and storage's merge of several do, with two differences that
// are worth a third of the CPU:
//
//   - An instant selector looks for the newest sample of the last five minutes.
//     tsdb's iterators go there through all of them, three hundred at a sample a
//     second, for each series of each rule. Here it is looked for from behind.
//   - Samples come straight from the chunks, and not by way of four iterators
//     around them that trim, skip what was deleted (nobody deletes here), and join
//     blocks with the head.
type querier struct {
	sources    []*source // by rising time
	mint, maxt int64
}

// source is one block or head that is read.
type source struct {
	index  tsdb.IndexReader
	chunks tsdb.ChunkReader
}

func openSource(b tsdb.BlockReader) (*source, error) {
	index, err := b.Index()
	if err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	chunks, err := b.Chunks()
	if err != nil {
		index.Close()
		return nil, fmt.Errorf("open the chunks: %w", err)
	}
	return &source{index, chunks}, nil
}

// close gives a block back, which may be waiting to be removed.
func (s *source) close() error {
	err := s.index.Close()
	if e := s.chunks.Close(); err == nil {
		err = e
	}
	return err
}

func (q *querier) Close() (err error) {
	for _, s := range q.sources {
		if e := s.close(); err == nil {
			err = e
		}
	}
	q.sources = nil
	return err
}

func (q *querier) LabelValues(ctx context.Context, name string, _ *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.words(func(s *source) ([]string, error) { return s.index.SortedLabelValues(ctx, name, ms...) })
}

func (q *querier) LabelNames(ctx context.Context, _ *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.words(func(s *source) ([]string, error) { return s.index.LabelNames(ctx, ms...) })
}

func (q *querier) words(read func(*source) ([]string, error)) ([]string, annotations.Annotations, error) {
	var all []string
	for _, s := range q.sources {
		some, err := read(s)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil, nil
}

// Select finds the series that match and have something in the span.
func (q *querier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	found := &picks{mint: q.mint, maxt: q.maxt}
	if hints != nil {
		found.mint, found.maxt = hints.Start, hints.End
		// Neither a range nor steps: the one newest sample is asked for.
		found.newest = hints.Range == 0 && hints.Step == 0 && hints.Func != "series"
	}
	for _, s := range q.sources {
		if err := found.add(ctx, s, sorted && len(q.sources) == 1, len(q.sources) > 1, ms); err != nil {
			return storage.ErrSeriesSet(err)
		}
	}
	// As in a merge of several, whose order is that of the labels. The order
	// decides in what order values are added up, that is the last bit of a sum.
	if len(q.sources) > 1 {
		slices.SortFunc(found.list, func(a, b *picked) int { return labels.Compare(a.labels, b.labels) })
	}
	found.at = -1
	return found
}

// picks are the series found, a storage.SeriesSet.
type picks struct {
	mint, maxt int64
	newest     bool
	list       []*picked
	byHash     map[uint64][]*picked
	at         int
}

func (p *picks) Next() bool                        { p.at++; return p.at < len(p.list) }
func (p *picks) At() storage.Series                { return p.list[p.at] }
func (p *picks) Err() error                        { return nil }
func (p *picks) Warnings() annotations.Annotations { return nil }

// add takes what one source has. Where there are several, a series of more than
// one becomes one.
func (p *picks) add(ctx context.Context, s *source, sorted, several bool, ms []*labels.Matcher) error {
	postings, err := tsdb.PostingsForMatchers(ctx, s.index, ms...)
	if err != nil {
		return err
	}
	if sorted {
		postings = s.index.SortedPostings(postings)
	}
	var (
		b     labels.ScratchBuilder
		metas []chunks.Meta
	)
	for postings.Next() {
		if err := s.index.Series(postings.At(), &b, &metas); err != nil {
			if err == storage.ErrNotFound { // let go since the postings were read
				continue
			}
			return err
		}
		metas = slices.DeleteFunc(metas, func(m chunks.Meta) bool { return m.MaxTime < p.mint || m.MinTime > p.maxt })
		if len(metas) == 0 {
			continue
		}
		to := p.series(b.Labels(), several)
		for _, m := range metas {
			to.pieces = append(to.pieces, piece{m, s})
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return postings.Err()
}

// series is the one with these labels, a new one where there is none.
func (p *picks) series(l labels.Labels, several bool) *picked {
	var hash uint64
	if several {
		if p.byHash == nil {
			p.byHash = map[uint64][]*picked{}
		}
		hash = l.Hash()
		for _, have := range p.byHash[hash] {
			if labels.Equal(have.labels, l) {
				return have
			}
		}
	}
	one := &picked{labels: l, from: p}
	p.list = append(p.list, one)
	if several {
		p.byHash[hash] = append(p.byHash[hash], one)
	}
	return one
}
