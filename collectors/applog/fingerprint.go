package applog

import "bytes"

// A fingerprint is a message without what differs from one occurrence to the
// next. These are variables, and are printed as "*":
//
//   - what stands in [] or {}, to the bracket that matches ("[*]", "{*}");
//   - what stands in quotes that open a word ('*', "*");
//   - every word with a digit in it, and what hangs on it by . , : - / or _
//     (addresses, dates, counts with grouping, UUIDs);
//   - a word of eight or more hex digits, and any word behind an @ (a hash code).
//
// A fingerprint ends after maxPattern bytes; two messages that differ only
// behind them are one pattern.
const (
	maxPattern = 200
	// maxReach is how far the end of a bracket or a quote is looked for.
	maxReach = 2048
)

// vari is the kind of a variable: its bracket or quote, or 'w' for a word.
type vari byte

// wordByte is what words are made of; letters beyond ASCII are.
var wordByte = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = isAlpha(c) || isDigit(c) || c == '_' || c >= 0x80
	}
	return t
}()

// variable says whether a variable begins at m[i], which is at the start of a
// word or no word byte, and where it ends. open is a bracket or quote that
// nothing closes.
func variable(m []byte, i int) (end int, kind vari, open bool) {
	c := m[i]
	switch c {
	case '[', '{':
		if end = closing(m, i); end < 0 {
			return i, 0, true
		}
		if end == i+2 {
			return i, 0, false // [] is nothing's value
		}
		return end, vari(c), false
	case '"', '\'':
		if i > 0 && wordByte[m[i-1]] {
			return i, 0, false // an apostrophe
		}
		k := i + 1
		for {
			n := bytes.IndexByte(m[k:min(len(m), i+maxReach)], c)
			if n < 0 {
				return i, 0, true
			}
			k += n + 1
			// An apostrophe inside of a quoted text does not end it.
			if k == len(m) || !wordByte[m[k]] {
				return k, vari(c), false
			}
		}
	}
	if !wordByte[c] {
		return i, 0, false
	}
	end, digit, hex := word(m, i)
	if !digit && !(hex && end-i >= 8) && !(i > 0 && m[i-1] == '@') {
		return i, 0, false
	}
	for end+1 < len(m) && joins[m[end]] && wordByte[m[end+1]] {
		end, _, _ = word(m, end+1)
	}
	return end, 'w', false
}

var joins = [256]bool{'.': true, ',': true, ':': true, '-': true, '/': true}

// word returns the end of the word at m[i], and what it is made of.
func word(m []byte, i int) (end int, digit, hex bool) {
	hex = true
	for end = i; end < len(m) && wordByte[m[end]]; end++ {
		c := m[end]
		if isDigit(c) {
			digit = true
		} else if (c|0x20)-'a' >= 6 {
			hex = false
		}
	}
	return end, digit, hex
}

// closing returns the position behind the bracket that matches m[i], or -1. It
// hops from closing bracket to closing bracket: a socket in a rejection has some
// 200 bytes and two of them.
func closing(m []byte, i int) int {
	o, c := m[i], m[i]+2 // in ASCII ] is [ + 2, and } is { + 2
	limit := m[:min(len(m), i+maxReach)]
	depth := 1
	k := i + 1
	for {
		n := bytes.IndexByte(limit[k:], c)
		if n < 0 {
			return -1
		}
		if n > 0 {
			depth += bytes.Count(limit[k:k+n], []byte{o})
		}
		k += n + 1
		if depth--; depth == 0 {
			return k
		}
	}
}

// A template is a fingerprint in the form in which further messages are held
// against it.
type template struct {
	segs []seg
	// fast says that comparing segment by segment is as good as making the
	// fingerprint again. It is not when the fingerprint was cut, or when a
	// bracket or quote was left open: a longer message might close it.
	fast bool
}

// seg is literal text and the variable that follows it; kind is 0 at the end.
type seg struct {
	lit  []byte
	kind vari
}

// fingerprint appends m's fingerprint to dst. When t is not nil it is filled.
func fingerprint(dst, m []byte, t *template) []byte {
	start, lit := len(dst), 0 // lit: where the literal that is being read began in m
	fast, cut := true, false
	i := 0
	for i < len(m) {
		end, kind, open := variable(m, i)
		if open {
			fast = false
		}
		if kind != 0 {
			if t != nil {
				t.segs = append(t.segs, seg{lit: bytes.Clone(m[lit:i]), kind: kind})
			}
			switch kind {
			case 'w':
				dst = append(dst, '*')
			case '[', '{':
				dst = append(dst, byte(kind), '*', byte(kind)+2)
			default:
				dst = append(dst, byte(kind), '*', byte(kind))
			}
			i, lit = end, end
		} else if wordByte[m[i]] {
			k := i
			for k < len(m) && wordByte[m[k]] {
				k++
			}
			dst = append(dst, m[i:min(k, i+maxPattern)]...)
			i = k
		} else {
			dst = append(dst, m[i])
			i++
		}
		if len(dst)-start >= maxPattern && i < len(m) {
			dst, cut = append(dst[:start+maxPattern], "…"...), true
			break
		}
	}
	if t != nil {
		t.fast = fast && !cut
		t.segs = append(t.segs, seg{lit: bytes.Clone(m[lit:i])})
	}
	return dst
}

// matches says whether m has this fingerprint. It is exact: a literal that is
// equal byte for byte is cut into the same words, and at its end the variable
// is read by the same rule.
func (t *template) matches(m []byte) bool {
	for i := range t.segs {
		s := &t.segs[i]
		if len(m) < len(s.lit) || string(m[:len(s.lit)]) != string(s.lit) {
			return false
		}
		m = m[len(s.lit):]
		if s.kind == 0 {
			return len(m) == 0
		}
		if len(m) == 0 {
			return false
		}
		// The byte before decides about quotes and hash codes, so the literal's
		// last one must be in view.
		end, kind := 0, vari(0)
		if s.kind == '[' || s.kind == '{' {
			if m[0] != byte(s.kind) {
				return false
			}
			if end = closing(m, 0); end <= 2 {
				return false
			}
			kind = s.kind
		} else {
			end, kind = s.wordAt(m)
		}
		if kind != s.kind {
			return false
		}
		m = m[end:]
	}
	return false
}

// wordAt reads a quoted text or a word with the literal's last byte before it.
func (s *seg) wordAt(m []byte) (int, vari) {
	if n := len(s.lit); n > 0 && s.kind == 'w' && s.lit[n-1] == '@' {
		end, _, _ := word(m, 0)
		if end == 0 {
			return 0, 0
		}
		for end+1 < len(m) && joins[m[end]] && wordByte[m[end+1]] {
			end, _, _ = word(m, end+1)
		}
		return end, 'w'
	}
	end, kind, open := variable(m, 0)
	if open {
		return 0, 0
	}
	return end, kind
}
