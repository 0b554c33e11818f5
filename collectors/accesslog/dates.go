package accesslog

import (
	"time"
)

// civil is a date and time as a line spells it, gathered from one or several
// fields (%{yyyy-MM-dd}t %{HH:mm:ss}t.%{msec_frac}t).
type civil struct {
	year, month, day, hour, minute, second, ms int
	zone                                       int // seconds east
	has                                        uint8
	pm, half                                   bool
}

const (
	hasDate uint8 = 1 << iota
	hasClock
	hasMillis
	hasZone
)

// A dateOp is one piece of a Java date format.
type dateOp struct {
	letter byte // of SimpleDateFormat, 0 for a literal
	n      int  // how many of it
	lit    string
}

// dateOps compiles a format of SimpleDateFormat or DateTimeFormatter. It is nil
// for a format we can't read back.
func dateOps(format string) []dateOp {
	var ops []dateOp
	lit := func(s string) {
		if n := len(ops); n > 0 && ops[n-1].letter == 0 {
			ops[n-1].lit += s
		} else {
			ops = append(ops, dateOp{lit: s})
		}
	}
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\'':
			j := i + 1
			for j < len(format) && format[j] != '\'' {
				j++
			}
			if j >= len(format) {
				return nil
			}
			if j == i+1 {
				lit("'")
			} else {
				lit(format[i+1 : j])
			}
			i = j + 1
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			j := i
			for j < len(format) && format[j] == c {
				j++
			}
			switch c {
			case 'y', 'u', 'M', 'L', 'd', 'H', 'k', 'h', 'K', 'm', 's', 'S', 'a', 'Z', 'X', 'z', 'E':
			default:
				return nil
			}
			if c == 'u' {
				c = 'y'
			}
			if c == 'L' {
				c = 'M'
			}
			ops = append(ops, dateOp{letter: c, n: j - i})
			i = j
		default:
			lit(format[i : i+1])
			i++
		}
	}
	return ops
}

// parse reads b from its start and says how many bytes it took, or -1.
func (t *civil) parse(ops []dateOp, b []byte) int {
	p := 0
	for i := range ops {
		o := &ops[i]
		rest := b[p:]
		var v, n int
		switch o.letter {
		case 0:
			if len(rest) < len(o.lit) || string(rest[:len(o.lit)]) != o.lit {
				return -1
			}
			p += len(o.lit)
			continue
		case 'M':
			if o.n >= 3 {
				if v, n = monthName(rest, o.n); n == 0 {
					return -1
				}
				t.month = v
				p += n
				continue
			}
		case 'a':
			if len(rest) < 2 || rest[1]|0x20 != 'm' {
				return -1
			}
			t.pm, t.half = rest[0]|0x20 == 'p', true
			p += 2
			continue
		case 'E', 'z':
			for n < len(rest) && (isLetter(rest[n]) || rest[n] == '.') {
				n++
			}
			if o.letter == 'z' && (string(rest[:n]) == "UTC" || string(rest[:n]) == "GMT" || string(rest[:n]) == "Z") {
				t.zone = 0
				t.has |= hasZone
				if n < len(rest) && (rest[n] == '+' || rest[n] == '-') { // GMT+02:00
					m, z := zoneOffset(rest[n:])
					t.zone, n = z, n+m
				}
			}
			if n == 0 {
				return -1
			}
			p += n
			continue
		case 'Z', 'X':
			n, v = zoneOffset(rest)
			if n == 0 {
				return -1
			}
			t.zone = v
			t.has |= hasZone
			p += n
			continue
		}
		// A number: as many digits as there are letters when another field
		// follows at once (HHmmss), all the digits otherwise.
		width := 19
		if i+1 < len(ops) && ops[i+1].letter != 0 {
			width = max(o.n, 1)
		}
		for n < len(rest) && n < width && rest[n] >= '0' && rest[n] <= '9' {
			v = v*10 + int(rest[n]-'0')
			n++
		}
		if n == 0 || n > 9 {
			return -1
		}
		switch o.letter {
		case 'y':
			if o.n == 2 {
				v += 2000
			}
			t.year = v
			t.has |= hasDate
		case 'M':
			t.month = v
		case 'd':
			t.day = v
		case 'H', 'h', 'K':
			t.hour = v
			t.has |= hasClock
		case 'k':
			t.hour = v % 24
			t.has |= hasClock
		case 'm':
			t.minute = v
		case 's':
			t.second = v
		case 'S':
			for d := n; d < 3; d++ {
				v *= 10
			}
			for d := n; d > 3; d-- {
				v /= 10
			}
			t.ms = v
			t.has |= hasMillis
		}
		p += n
	}
	if t.half {
		t.hour %= 12
		if t.pm {
			t.hour += 12
		}
	}
	if t.month > 12 || t.day > 31 || t.hour > 24 || t.minute > 59 || t.second > 60 {
		return -1
	}
	return p
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// monthName reads an English month. The valve writes names in the server's
// locale when a format asks for them; another language's leave the time
// unknown, which costs the bins and not the counts.
func monthName(b []byte, letters int) (month, n int) {
	if len(b) < 3 {
		return 0, 0
	}
	month = monthOf(b[0], b[1], b[2])
	if month == 0 {
		return 0, 0
	}
	n = 3
	if letters > 3 {
		n = len(time.Month(month).String())
		if len(b) < n {
			return 0, 0
		}
	}
	return month, n
}

func monthOf(a, b, c byte) int {
	switch uint32(a)<<16 | uint32(b)<<8 | uint32(c) {
	case 'J'<<16 | 'a'<<8 | 'n':
		return 1
	case 'F'<<16 | 'e'<<8 | 'b':
		return 2
	case 'M'<<16 | 'a'<<8 | 'r':
		return 3
	case 'A'<<16 | 'p'<<8 | 'r':
		return 4
	case 'M'<<16 | 'a'<<8 | 'y':
		return 5
	case 'J'<<16 | 'u'<<8 | 'n':
		return 6
	case 'J'<<16 | 'u'<<8 | 'l':
		return 7
	case 'A'<<16 | 'u'<<8 | 'g':
		return 8
	case 'S'<<16 | 'e'<<8 | 'p':
		return 9
	case 'O'<<16 | 'c'<<8 | 't':
		return 10
	case 'N'<<16 | 'o'<<8 | 'v':
		return 11
	case 'D'<<16 | 'e'<<8 | 'c':
		return 12
	}
	return 0
}

// zoneOffset reads Z, +hh, +hhmm or +hh:mm.
func zoneOffset(b []byte) (n, seconds int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0] == 'Z' {
		return 1, 0
	}
	if b[0] != '+' && b[0] != '-' || len(b) < 3 || !isDigit(b[1]) || !isDigit(b[2]) {
		return 0, 0
	}
	seconds = (int(b[1]-'0')*10 + int(b[2]-'0')) * 3600
	n = 3
	m := n
	if m < len(b) && b[m] == ':' {
		m++
	}
	if m+1 < len(b) && isDigit(b[m]) && isDigit(b[m+1]) {
		seconds += (int(b[m]-'0')*10 + int(b[m+1]-'0')) * 60
		n = m + 2
	}
	if b[0] == '-' {
		seconds = -seconds
	}
	return n, seconds
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// days counts the days from 1970-01-01 to a date of the Gregorian calendar.
// March is taken as the first month, so that the leap day comes last.
func days(y, m, d int) int {
	if m <= 2 {
		y--
		m += 12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 1 - 719468
}

const clfLen = 26

// clf reads 30/Nov/2026:12:09:28 +0000, always English, always with its zone.
func clf(b []byte) (unix int64, ok bool) {
	if len(b) < clfLen || b[2] != '/' || b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' || b[20] != ' ' {
		return 0, false
	}
	two := func(i int) int {
		if !isDigit(b[i]) || !isDigit(b[i+1]) {
			ok = false
		}
		return int(b[i]-'0')*10 + int(b[i+1]-'0')
	}
	ok = true
	day, year, hour, minute, second := two(0), two(7)*100+two(9), two(12), two(15), two(18)
	zone := (two(22)*60 + two(24)) * 60
	switch b[21] {
	case '-':
		zone = -zone
	case '+':
	default:
		return 0, false
	}
	month := monthOf(b[3], b[4], b[5])
	if !ok || month == 0 || day == 0 || day > 31 || hour > 24 || minute > 59 || second > 60 {
		return 0, false
	}
	return int64(days(year, month, day))*86400 + int64(hour*3600+minute*60+second-zone), true
}

// A zoner makes instants of times without a zone. In the hour that happens
// twice at the end of summer time it takes the first reading until the clock in
// the log steps back, and the second from then on.
type zoner struct {
	loc    *time.Location
	last   int64 // the newest instant given out
	minute [5]int
	base   int64
}

// slack is how far back lines may go without a step of the clock: they are
// written in order of completion, but may carry the time of their start.
const slack = 600

func (z *zoner) unix(t *civil) int64 {
	if z.loc == nil || z.loc == time.UTC {
		return int64(days(t.year, t.month, t.day))*86400 + int64(t.hour*3600+t.minute*60+t.second)
	}
	key := [5]int{t.year, t.month, t.day, t.hour, t.minute}
	if key != z.minute {
		z.minute = key
		first := time.Date(t.year, time.Month(t.month), t.day, t.hour, t.minute, 0, 0, z.loc)
		second := first
		for _, d := range []time.Duration{-time.Hour, time.Hour} {
			o := first.Add(d)
			if o.Hour() == first.Hour() && o.Minute() == first.Minute() {
				if d < 0 {
					first = o
				} else {
					second = o
				}
			}
		}
		z.base = first.Unix()
		if z.base+60 < z.last-slack && second != first {
			z.base = second.Unix()
		}
	}
	u := z.base + int64(t.second)
	z.last = max(z.last, u)
	return u
}
