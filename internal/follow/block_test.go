package follow

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
)

// blockRecorder takes blocks and cuts them into lines itself.
type blockRecorder struct {
	recorder
	blocks int
}

func (r *blockRecorder) ObserveBlock(b []byte) (taken, lines int, open bool) {
	r.blocks++
	all := len(b)
	for len(b) > 0 && b[0] != 0 {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			panic("a block that does not end with a line")
		}
		r.Observe(bytes.TrimSuffix(line, []byte{'\r'}))
		b = rest
		lines++
	}
	return all - len(b), lines, r.open
}

// TestBlocksAndLinesAreTheSame: whoever takes blocks sees the same lines and
// gaps, and the ledger is the same, as for who takes lines.
func TestBlocksAndLinesAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	whole := 0
	for range 300 {
		var text []byte
		for range r.IntN(60) {
			n := r.IntN(40)
			if r.IntN(12) == 0 {
				n = 60 + r.IntN(200)
			}
			for range n {
				text = append(text, "abc é\x00\r"[r.IntN(6)])
			}
			if r.IntN(20) == 0 {
				text = append(text, make([]byte, r.IntN(30))...)
			}
			text = append(text, []string{"\n", "\r\n"}[r.IntN(2)]...)
		}
		if r.IntN(2) == 0 {
			text = append(text, "no end"...)
		}
		limit := []int{50, 100, 1 << 20}[r.IntN(3)]
		reader := func() io.Reader { return iotest.DataErrReader(bytes.NewReader(text)) }
		var lines recorder
		var blocks blockRecorder
		a, errA := Lines(reader(), &lines, Spec{MaxLine: limit})
		b, errB := Lines(reader(), &blocks, Spec{MaxLine: limit})
		whole += blocks.blocks
		if errA != nil || errB != nil || a != b || !slices.Equal(lines.lines, blocks.lines) || lines.gaps != blocks.gaps {
			t.Fatalf("limit %d, text %q:\nlines  %q %+v\nblocks %q %+v", limit, text, lines.lines, a, blocks.lines, b)
		}
	}
	if whole == 0 {
		t.Error("no text went as a block")
	}
}

var _ BlockHandler = (*blockRecorder)(nil)
