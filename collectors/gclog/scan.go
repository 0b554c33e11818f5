package gclog

import "bytes"

// A Transition is "before->after(committed)" in bytes.
type Transition struct {
	Before, After, Committed float64
	// Set says that there is a before and an after, Sized that there is a
	// committed size.
	Set, Sized bool
}

var pow10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

func isDigit(c byte) bool { return c-'0' < 10 }

// number reads a decimal number at the start of b. The mark is a point, or a
// comma where the locale of the server has one, and then digits must follow it.
// It answers the digits as one integer, how many stand behind the mark, and how
// many bytes were read: 0 when there is no number. Digits beyond 18 behind the
// mark are let go.
func number(b []byte) (mant uint64, frac, n int) {
	i := 0
	for i < len(b) {
		c := uint64(b[i]) - '0'
		if c > 9 {
			break
		}
		mant = mant*10 + c
		i++
	}
	if i == 0 || i > maxDigits {
		return 0, 0, 0 // nothing of ours is that long
	}
	if i+1 >= len(b) || b[i] != '.' && b[i] != ',' || !isDigit(b[i+1]) {
		return mant, 0, i
	}
	digits := i
	for i++; i < len(b); i++ {
		c := uint64(b[i]) - '0'
		if c > 9 {
			break
		}
		if digits < maxDigits {
			mant = mant*10 + c
			digits++
			frac++
		}
	}
	return mant, frac, i
}

// maxDigits fit into 64 bits.
const maxDigits = 18

// decimal is number as a float, divided by 10^down: the result of one division,
// so correctly rounded.
func decimal(b []byte, down int) (v float64, n int) {
	mant, frac, n := number(b)
	if n == 0 {
		return 0, 0
	}
	return scaled(mant, frac, down), n
}

func scaled(mant uint64, frac, down int) float64 {
	if e := frac + down; e < len(pow10) {
		return float64(mant) / pow10[e]
	}
	return float64(mant) / pow10[frac] / pow10[down]
}

// size reads "17.2M", "800K", "0.0B", "16G" or "512" as bytes.
func size(b []byte) (v float64, n int) {
	mant, frac, n := number(b)
	if n == 0 {
		return 0, 0
	}
	unit := 1.0
	if n < len(b) && b[n] >= 'B' {
		switch b[n] {
		case 'B':
			n++
		case 'K', 'k':
			unit, n = 1<<10, n+1
		case 'M', 'm':
			unit, n = 1<<20, n+1
		case 'G', 'g':
			unit, n = 1<<30, n+1
		case 'T':
			unit, n = 1<<40, n+1
		}
	}
	if frac == 0 {
		return float64(mant) * unit, n
	}
	return float64(mant) * unit / pow10[frac], n
}

// sizeGroup reads "(64M)" or skips "(42%)".
func sizeGroup(b []byte) (v float64, isSize bool, n int) {
	if len(b) == 0 || b[0] != '(' {
		return 0, false, 0
	}
	v, k := size(b[1:])
	if k == 0 || 1+k >= len(b) {
		return 0, false, 0
	}
	switch b[1+k] {
	case ')':
		return v, true, k + 2
	case '%':
		if k+2 < len(b) && b[k+2] == ')' {
			return 0, false, k + 3
		}
	}
	return 0, false, 0
}

// transition reads "a->b", "a->b(c)", "a(x)->b(c)" or "a(1%)->b(2%)". n is 0
// when there is none.
func transition(b []byte) (t Transition, n int) {
	before, i := size(b)
	if i == 0 {
		return t, 0
	}
	_, _, k := sizeGroup(b[i:])
	i += k
	if i+1 >= len(b) || b[i] != '-' || b[i+1] != '>' {
		return t, 0
	}
	i += 2
	after, k := size(b[i:])
	if k == 0 {
		return t, 0
	}
	i += k
	t = Transition{Before: before, After: after, Set: true}
	committed, isSize, k := sizeGroup(b[i:])
	if isSize {
		t.Committed, t.Sized = committed, true
	}
	return t, i + k
}

// group finds the end of "(...)" at the start of b, with parentheses inside it
// balanced ("(System.gc())"), and answers what is inside.
func group(b []byte) (inside []byte, n int) {
	depth := 0
	for i, c := range b {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return b[1:i], i + 1
			}
		}
	}
	return nil, 0
}

func spaces(b []byte) int {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

func trim(b []byte) []byte {
	b = b[spaces(b):]
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

func has(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

func contains(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }

// clean takes away the NUL bytes that a copytruncate leaves at the head of the
// file, and the \r of Windows.
func clean(b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] == '\r' {
		b = b[:len(b)-1]
	}
	return b
}
