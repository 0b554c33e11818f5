package follow

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"unicode/utf8"
)

// blockSize is how much one read asks for. Larger reads were not faster (64 KB,
// 256 KB and 1 MB cost the same to within 5 %), and this still lies in the
// second-level cache when the lines are looked at.
const blockSize = 256 << 10

// defaultMaxLine is the length past which a line is cut.
const defaultMaxLine = 1 << 20

// lineState is what a file's lines need to be known from one block to the
// next, besides the half line itself.
type lineState struct {
	Cut   bool     `json:"cut,omitempty"`   // the line so far was handed over or dropped: what comes up to the next line end belongs to it
	Holed bool     `json:"holed,omitempty"` // a run of NULs was met and told of
	Begun bool     `json:"begun,omitempty"` // the first bytes were looked at for a byte-order mark
	Enc   encoding `json:"enc,omitempty"`
}

// A splitter cuts blocks into lines and hands them over. It is the one path on
// which lines go, for followed files and for replayed ones.
type splitter struct {
	h      Handler
	blocks BlockHandler // h, where it takes blocks
	ledger *Ledger
	max    int
	open   bool   // what the last Observe said
	text   []byte // decoded line, reused
}

func newSplitter(h Handler, ledger *Ledger, longest int) splitter {
	blocks, _ := h.(BlockHandler)
	return splitter{h: h, blocks: blocks, ledger: ledger, max: longest}
}

// whole hands over the whole lines in b[pos:] as blocks, as far as nothing in
// them needs a closer look: no decoding, no line that may be too long, no hole.
// It returns where it got to; b[:from] is known to hold no line end.
func (s *splitter) whole(st *lineState, b []byte, pos, from int) int {
	if s.blocks == nil || st.Enc != plain {
		return pos
	}
	for {
		piece := b[pos:min(len(b), pos+s.max)] // no line in it is longer than max
		last := bytes.LastIndexByte(piece[min(from-pos, len(piece)):], '\n')
		if last < 0 {
			return pos
		}
		lines := piece[:from-pos+last+1]
		taken, n, open := s.blocks.ObserveBlock(lines)
		s.ledger.Lines += int64(n)
		s.ledger.Read += int64(taken)
		pos += taken
		from = pos
		if taken > 0 {
			s.open, st.Holed = open, false
		}
		if taken < len(lines) {
			return pos // a hole
		}
	}
}

// block hands over the whole lines of b and returns how many bytes it is done
// with; the rest is a half line to which the next block is to be appended.
// b[:from] is known to hold no line end.
//
// What it is done with is counted in the ledger as read (handed over, line ends
// included) or skipped, so the ledger always stands exactly at the position.
func (s *splitter) block(st *lineState, b []byte, from int) int {
	pos := 0
	if !st.Begun && len(b) > 0 {
		n := st.begin(b)
		if n < 0 {
			return 0
		}
		pos = n
		s.ledger.Read += int64(n)
		from = max(from, pos)
	}
	if st.Enc == utf16le || st.Enc == utf16be {
		return s.wide(st, b, pos, from)
	}
	if st.Cut {
		i := bytes.IndexByte(b[pos:], '\n')
		if i < 0 {
			s.ledger.Skipped += int64(len(b) - pos)
			return len(b)
		}
		s.ledger.Skipped += int64(i + 1)
		pos += i + 1
		from = max(from, pos)
		st.Cut = false
	}
	if n := s.whole(st, b, pos, from); n > pos {
		pos, from = n, n
	}
	begin := pos // what lies between begin and pos is handed over and not yet counted
	h, limit, foreign, open, lines := s.h, s.max, st.Enc == gbk, s.open, int64(0)
	for {
		if pos < len(b) && b[pos] == 0 {
			st.Holed = st.Holed && pos == begin
			s.ledger.Read += int64(pos - begin)
			pos += s.hole(st, b[pos:])
			begin, from, open = pos, max(from, pos), s.open
		}
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			break
		}
		end := from + i
		from = end + 1
		if end-pos > limit {
			s.ledger.Read += int64(pos - begin)
			s.cut(st, b[pos:end])
			s.ledger.Skipped++ // its line end
			pos, begin, st.Cut, open = from, from, false, s.open
			continue
		}
		line := b[pos:end]
		if end > pos && b[end-1] == '\r' {
			line = line[:len(line)-1]
		}
		if foreign {
			line = s.fromGBK(line)
		}
		open = h.Observe(line)
		lines++
		pos = from
	}
	s.open = open
	s.ledger.Lines += lines
	if pos > 0 {
		st.Holed = st.Holed && pos == begin
	}
	s.ledger.Read += int64(pos - begin)
	if len(b)-pos > s.max {
		s.cut(st, b[pos:])
		pos = len(b)
	}
	return pos
}

// hole steps over NULs at the start of a line. A file that was truncated while
// its writer kept its offset (java > catalina.out under copytruncate) begins
// with as many of them as the old file had bytes.
func (s *splitter) hole(st *lineState, b []byte) int {
	n := 0
	for n < len(b) && b[n] == 0 {
		n++
	}
	s.tellHole(st)
	s.ledger.Skipped += int64(n)
	return n
}

func (s *splitter) tellHole(st *lineState) {
	if !st.Holed {
		st.Holed = true
		s.gap(GapHole)
	}
}

// cut hands over the head of a line that is too long, tells of the gap behind
// it, and leaves st such that the rest is skipped.
func (s *splitter) cut(st *lineState, b []byte) {
	n := s.max
	if st.Enc == utf16le || st.Enc == utf16be {
		n &^= 1
	} else {
		// A rune is not torn: step back over its continuation bytes.
		for k := n; k > n-utf8.UTFMax && k > 0; k-- {
			if utf8.RuneStart(b[k]) {
				n = k
				break
			}
		}
	}
	line := b[:n]
	switch st.Enc {
	case gbk:
		line = s.fromGBK(line)
	case utf16le, utf16be:
		line = s.fromWide(st.Enc, line)
	}
	s.open = s.h.Observe(line)
	s.ledger.Lines++
	s.ledger.Read += int64(n)
	s.ledger.Skipped += int64(len(b) - n)
	st.Cut = true
	s.gap(GapLong)
}

// last hands over a half line behind which nothing will come.
func (s *splitter) last(st *lineState, b []byte) {
	if len(b) == 0 {
		return
	}
	s.ledger.Read += int64(len(b))
	if st.Cut {
		s.ledger.Read -= int64(len(b))
		s.ledger.Skipped += int64(len(b))
		return
	}
	switch st.Enc {
	case gbk:
		b = s.fromGBK(b)
	case utf16le, utf16be:
		b = s.fromWide(st.Enc, b)
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	s.open = s.h.Observe(b)
	s.ledger.Lines++
}

// gap counts a gap and tells the handler.
func (s *splitter) gap(r GapReason) {
	s.ledger.Gaps[r]++
	s.h.Gap()
	s.open = false
}

// Lines hands over the lines of r, which ends, by the same path as those of a
// followed file: the same cutting of long lines, the same encodings. gzip is
// unpacked. A last line without a line end is a line. Of the spec only MaxLine,
// Encoding and Lock are used. The ledger tells what was handed over.
func Lines(r io.Reader, h Handler, spec Spec) (Ledger, error) {
	var led Ledger
	enc, err := parseEncoding(spec.Encoding)
	if err != nil {
		return led, err
	}
	br := bufio.NewReaderSize(r, 4096) // only looks ahead: larger reads go past its buffer
	if magic, _ := br.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return led, fmt.Errorf("unpack: %w", err)
		}
		r = z
	} else {
		r = br
	}
	s := newSplitter(h, &led, maxLine(spec))
	st := lineState{Enc: enc}
	lock := lockOf(spec)
	buf := make([]byte, blockSize)
	half := 0
	for {
		if len(buf)-half < blockSize/2 {
			buf = append(buf, make([]byte, len(buf))...)
		}
		n, err := r.Read(buf[half:])
		led.Written += int64(n)
		lock.Lock()
		used := s.block(&st, buf[:half+n], half)
		half = copy(buf, buf[used:half+n])
		if err != nil {
			s.last(&st, buf[:half])
		}
		lock.Unlock()
		if err == io.EOF {
			return led, nil
		}
		if err != nil {
			return led, fmt.Errorf("read: %w", err)
		}
	}
}
