package follow

import (
	"encoding/json"
	"fmt"
	"math"
)

// savedStream is the form of a stream's place in the checkpoint. Half lines are
// not in it: the place is where the half line begins, and it is read again. Only
// the half line that a truncation cut from its file has no other place to be.
type savedStream struct {
	Parts    []savedPart `json:"parts"`
	Done     []savedPart `json:"done,omitempty"`
	Gone     *savedPart  `json:"gone,omitempty"`
	Ledger   savedLedger `json:"ledger"`
	CaughtUp bool        `json:"caught_up,omitempty"`
}

type savedPart struct {
	ident
	Path  string    `json:"path"`
	Dir   string    `json:"dir,omitempty"`
	Mtime int64     `json:"mtime,omitempty"`
	Kept  int64     `json:"kept"`
	Seen  int64     `json:"seen"`
	Sum   uint64    `json:"sum,omitempty"` // of the bytes before Kept, see checksum
	Read  int64     `json:"read"`          // the place of which Sum is
	Carry []byte    `json:"carry,omitempty"`
	Role  role      `json:"role,omitempty"`
	State lineState `json:"state"`
}

type savedLedger struct {
	Written     int64            `json:"written"`
	Read        int64            `json:"read"`
	Skipped     int64            `json:"skipped,omitempty"`
	Lost        int64            `json:"lost,omitempty"`
	Rotations   int64            `json:"rotations,omitempty"`
	Truncations int64            `json:"truncations,omitempty"`
	Lines       int64            `json:"lines"`
	Gaps        map[string]int64 `json:"gaps,omitempty"`
}

// keepDone is how many finished files the checkpoint remembers.
const keepDone = 64

// Save is the stream's place, its files and its ledger. The caller holds
// Spec.Lock, and saves its own counters before it lets go: together they are
// one truth.
func (f *Follower) Save() ([]byte, error) {
	l := &f.led
	out := savedStream{CaughtUp: f.caughtUp || f.continued, Parts: []savedPart{}, Ledger: savedLedger{
		Written: l.Written, Read: l.Read, Skipped: l.Skipped, Lost: l.Lost,
		Rotations: l.Rotations, Truncations: l.Truncations, Lines: l.Lines}}
	for r, n := range l.Gaps {
		if n > 0 {
			if out.Ledger.Gaps == nil {
				out.Ledger.Gaps = map[string]int64{}
			}
			out.Ledger.Gaps[gapNames[r]] = n
		}
	}
	for _, p := range f.parts {
		out.Parts = append(out.Parts, p.save())
	}
	for _, p := range f.done[max(0, len(f.done)-keepDone):] {
		s := p.save()
		out.Done = append(out.Done, s)
	}
	if f.gone != nil {
		s := f.gone.save()
		out.Gone = &s
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("save place in %s: %w", f.spec.Name, err)
	}
	return data, nil
}

func (p *part) save() savedPart {
	s := savedPart{ident: p.id, Path: p.path, Dir: p.dir, Mtime: max(p.last.mtime, p.mtime), Kept: p.kept, Read: p.read, Seen: p.seen, Sum: p.sum, Role: p.role, State: p.state}
	if len(p.tail) > 0 {
		s.Sum = checksum(p.tail)
	}
	s.Carry = p.half[:p.carry]
	return s
}

// Load takes back what Save returned, before the first Look. An error leaves
// the follower as new.
func (f *Follower) Load(state []byte) error {
	var in savedStream
	if err := json.Unmarshal(state, &in); err != nil {
		return fmt.Errorf("load place in %s: %w", f.spec.Name, err)
	}
	var parts, done []*part
	pending := int64(0)
	for _, s := range in.Parts {
		p, err := s.part()
		if err != nil {
			return fmt.Errorf("load place in %s: %w", f.spec.Name, err)
		}
		parts = append(parts, p)
		pending += p.pending()
	}
	for _, s := range in.Done {
		p, err := s.part()
		if err != nil {
			return fmt.Errorf("load place in %s: %w", f.spec.Name, err)
		}
		done = append(done, p)
	}
	var gone *part
	if in.Gone != nil {
		p, err := in.Gone.part()
		if err != nil {
			return fmt.Errorf("load place in %s: %w", f.spec.Name, err)
		}
		gone = p
	}
	l := in.Ledger
	for _, n := range []int64{l.Written, l.Read, l.Skipped, l.Lost, l.Rotations, l.Truncations, l.Lines} {
		if n < 0 {
			return fmt.Errorf("load place in %s: a negative count", f.spec.Name)
		}
	}
	if l.Written-l.Read-l.Skipped-l.Lost != pending {
		return fmt.Errorf("load place in %s: the ledger does not add up", f.spec.Name)
	}
	f.parts, f.done, f.gone, f.restored, f.continued = parts, done, gone, true, in.CaughtUp
	f.led.Written, f.led.Read, f.led.Skipped, f.led.Lost = l.Written, l.Read, l.Skipped, l.Lost
	f.led.Rotations, f.led.Truncations, f.led.Lines = l.Rotations, l.Truncations, l.Lines
	for r, name := range gapNames {
		f.led.Gaps[r] = max(0, l.Gaps[name])
	}
	f.led.Lag = pending
	return nil
}

func (s savedPart) part() (*part, error) {
	ok := s.Kept >= 0 && s.Read >= s.Kept && s.Seen >= s.Read && s.Seen < math.MaxInt64/4 &&
		s.Path != "" && s.Role <= dead && s.State.Enc <= gbk && len(s.Carry) <= 64<<20
	if !ok {
		return nil, fmt.Errorf("a place that can't be: kept %d, read %d, seen %d", s.Kept, s.Read, s.Seen)
	}
	return &part{id: s.ident, path: s.Path, dir: s.Dir, mtime: s.Mtime, kept: s.Kept, read: s.Read, seen: s.Seen, sum: s.Sum,
		half: s.Carry, carry: len(s.Carry), role: s.Role, state: s.State}, nil
}
