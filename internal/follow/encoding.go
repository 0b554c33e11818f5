package follow

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// encoding is how a file's text is written.
type encoding uint8

const (
	plain   encoding = iota // UTF-8, or anything else in which \n is the byte 0x0A and ASCII is ASCII
	utf16le                 // Windows' "Unicode"
	utf16be
	gbk // no trail byte of GBK is below 0x40, so line ends are found in the raw bytes
)

func parseEncoding(name string) (encoding, error) {
	switch name {
	case "", "utf-8":
		return plain, nil
	case "utf-16le":
		return utf16le, nil
	case "utf-16be":
		return utf16be, nil
	case "gbk":
		return gbk, nil
	}
	return plain, fmt.Errorf("encoding %q is not one of utf-8, utf-16le, utf-16be, gbk", name)
}

// begin looks at the first bytes of a file: a byte-order mark is no part of
// line 1, and the one of UTF-16 says how to read on. It returns the mark's
// length, or -1 if too little is there to tell.
func (st *lineState) begin(b []byte) int {
	marks := []struct {
		mark []byte
		enc  encoding
	}{{[]byte{0xef, 0xbb, 0xbf}, plain}, {[]byte{0xff, 0xfe}, utf16le}, {[]byte{0xfe, 0xff}, utf16be}}
	for _, m := range marks {
		switch {
		case bytes.HasPrefix(b, m.mark):
			st.Begun = true
			if m.enc != plain {
				st.Enc = m.enc
			}
			return len(m.mark)
		case bytes.HasPrefix(m.mark, b):
			return -1
		}
	}
	st.Begun = true
	return 0
}

// wide is block for UTF-16. The text is split at code units, never at bytes:
// U+0A0A and U+010A hold a byte 0x0A that is no line end.
func (s *splitter) wide(st *lineState, b []byte, pos, from int) int {
	lo, hi := 0, 1 // where in a unit the low and the high byte stand
	if st.Enc == utf16be {
		lo, hi = 1, 0
	}
	from = max(pos, from) &^ 1 // the unit that the last block tore is looked at again
	end := len(b) &^ 1
	for from < end {
		i := bytes.IndexByte(b[from:end], '\n')
		if i < 0 {
			break
		}
		u := (from + i) &^ 1
		from = u + 2
		if b[u+lo] != '\n' || b[u+hi] != 0 {
			continue
		}
		switch {
		case st.Cut:
			s.ledger.Skipped += int64(from - pos)
			st.Cut = false
		case u-pos > s.max:
			s.cut(st, b[pos:u])
			s.ledger.Skipped += 2
			st.Cut = false
		default:
			line := s.fromWide(st.Enc, b[pos:u])
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			s.open = s.h.Observe(line)
			s.ledger.Lines++
			s.ledger.Read += int64(from - pos)
		}
		pos = from
	}
	if st.Cut {
		s.ledger.Skipped += int64(end - pos)
		pos = end
	} else if end-pos > s.max {
		s.cut(st, b[pos:end])
		pos = end
	}
	return pos
}

// fromWide makes UTF-8 of UTF-16. What is no valid pair becomes U+FFFD, and
// NUL units (a hole) are left out.
func (s *splitter) fromWide(enc encoding, b []byte) []byte {
	out := s.text[:0]
	unit := func(i int) rune {
		if enc == utf16be {
			return rune(b[i])<<8 | rune(b[i+1])
		}
		return rune(b[i]) | rune(b[i+1])<<8
	}
	for i := 0; i+1 < len(b); i += 2 {
		r := unit(i)
		if r == 0 {
			continue
		}
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if i+3 < len(b) {
				pair = utf16.DecodeRune(r, unit(i+2))
			}
			if pair != utf8.RuneError {
				i += 2
			}
			r = pair
		}
		out = utf8.AppendRune(out, r)
	}
	s.text = out
	return out
}

// fromGBK makes UTF-8 of GBK. ASCII lines are handed on as they are.
func (s *splitter) fromGBK(b []byte) []byte {
	ascii := true
	for _, c := range b {
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return b
	}
	// Two bytes become at most three, and a bad byte becomes U+FFFD: three.
	if need := 3 * len(b); cap(s.text) < need {
		s.text = make([]byte, need)
	}
	s.text = s.text[:cap(s.text)]
	n, _, err := simplifiedchinese.GBK.NewDecoder().Transform(s.text, b, true)
	if err != nil {
		return b
	}
	return s.text[:n]
}
