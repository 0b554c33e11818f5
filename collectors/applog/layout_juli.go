package applog

import (
	"bytes"
	"unicode/utf8"
)

// oneLine is juli's OneLineFormatter, Tomcat's default since 8.0:
//
//	30-Nov-2026 11:56:15.195 WARNING [thread] class.method message
//
// Until 8.5 and 9.0 of 2018 the month and the level are in the JVM's language,
// from then on only the level is.
type oneLine struct {
	second [20]byte // the "30-Nov-2026 11:56:15" last read
	at     int64    // its time
}

func (*oneLine) name() string { return "juli-oneline" }

func (*oneLine) spaced() bool { return false }

func (o *oneLine) head(line []byte, h *head) verdict {
	if len(line) < 30 || !isDigit(line[0]) {
		return no
	}
	var rest []byte
	// In a storm tens of thousands of records carry the same second.
	if [20]byte(line[:20]) == o.second && line[20] == '.' && isDigit(line[21]) && isDigit(line[22]) && isDigit(line[23]) && line[24] == ' ' {
		h.at = o.at + int64(line[21]-'0')*100 + int64(line[22]-'0')*10 + int64(line[23]-'0')
		rest = line[25:]
	} else if rest = o.stamp(line, h); rest == nil {
		return no
	}
	// The level ends where the thread begins; it may have spaces in it (AM FEINSTEN).
	i := bytes.IndexByte(rest, '[')
	if i < 2 || i > 40 || rest[i-1] != ' ' {
		return no
	}
	level := rest[:i-1]
	var ok bool
	if h.level, ok = levelOf(level); !ok && !levelLike(level) {
		return no
	}
	rest = rest[i+1:]
	// A thread's name may have brackets of its own: it ends before a space that
	// is followed by a class.
	if i = bytes.IndexByte(rest, ']'); i < 0 {
		return no
	}
	for i+1 < len(rest) && rest[i+1] != ' ' {
		j := bytes.IndexByte(rest[i+1:], ']')
		if j < 0 {
			return no
		}
		i += 1 + j
	}
	if i+2 > len(rest) {
		return no
	}
	h.thread, rest = rest[:i], rest[i+2:]
	if i = bytes.IndexByte(rest, ' '); i < 0 {
		i = len(rest)
	}
	if i == 0 {
		return no
	}
	h.logger, h.method = rest[:i], true
	h.message = tail(rest, i+1)
	return yes
}

// stamp reads dd-MMM-yyyy HH:mm:ss.SSS and a space, and returns what follows.
func (o *oneLine) stamp(line []byte, h *head) []byte {
	d, rest, ok := bytes.Cut(line, dash)
	if !ok || len(d) == 0 || len(d) > 2 || !isDigit(d[len(d)-1]) {
		return nil
	}
	day := int(d[len(d)-1] - '0')
	if len(d) == 2 {
		day += 10 * int(d[0]-'0')
	}
	mon, rest, ok := bytes.Cut(rest, dash)
	if !ok || len(mon) == 0 || len(mon) > 40 || len(rest) < 14 || bytes.IndexByte(mon, ' ') >= 0 {
		return nil
	}
	c, e := two(rest), two(rest[2:])
	if c < 0 || e < 0 || rest[4] != ' ' {
		return nil
	}
	hh, m, s, ms, n := clock(rest[5:])
	if n == 0 || len(rest) < 6+n || rest[5+n] != ' ' {
		return nil
	}
	h.at = 0 // a month in no language that we know: the record counts all the same
	if mo := monthOf(mon); mo != 0 && day >= 1 && day <= 31 {
		h.at = millis(c*100+e, mo, day, hh, m, s, ms)
		if len(line)-len(rest) == 7 && n == 12 {
			o.second, o.at = [20]byte(line[:20]), h.at-int64(ms)
		}
	}
	return rest[6+n:]
}

var dash = []byte("-")

// levelLike says whether a word that is no known level may still be one: a
// language without an entry in our table, or a level of the application's own.
func levelLike(b []byte) bool {
	for _, c := range b {
		if !isUpper(c) && c < utf8.RuneSelf && c != ' ' && c != '?' && c != '_' && !isDigit(c) {
			return false
		}
	}
	return len(b) > 1
}

// simple is java.util.logging's SimpleFormatter, Tomcat 7's default and the
// JDK's: two lines a record.
//
//	Nov 30, 2026 11:59:36 AM class method
//	INFO: message
//
// The date is in the JVM's language, in any order of its parts, with U+202F
// before PM where the JDK is 20 or later; so the first line is only taken for a
// record when the second begins with a level.
type simple struct {
	logger [256]byte
	n      int
	at     int64
	held   bool
}

func (*simple) name() string { return "juli-simple" }

func (*simple) spaced() bool { return false }

func (s *simple) head(line []byte, h *head) verdict {
	if s.held {
		s.held = false
		i := bytes.IndexByte(line, ':')
		if i > 1 && i < 40 && i+1 < len(line) && line[i+1] == ' ' {
			name := line[:i]
			if i > 2 && name[i-1] == ' ' { // French typography: "INFOS : "
				name = name[:i-1]
			}
			if level, ok := levelOf(name); ok {
				*h = head{level: level, logger: s.logger[:s.n], method: true, message: line[i+2:], at: s.at}
				return yes
			}
		}
	}
	if !s.first(line) {
		return no
	}
	s.held = true
	return hold
}

// first reads the line of date, class and method.
func (s *simple) first(line []byte) bool {
	if len(line) < 20 || len(line) > 400 {
		return false
	}
	rest, method, ok := lastCut(line, ' ')
	if !ok || !identifier(method) {
		return false
	}
	before, class, ok := lastCut(rest, ' ')
	if !ok {
		return false
	}
	switch {
	case identifier(class) && len(class) > 0 && !isDigit(class[0]) && !amPM(class):
		s.n = copy(s.logger[:], class)
		if s.n < len(s.logger) {
			s.logger[s.n] = '.'
			s.n += 1 + copy(s.logger[s.n+1:], method)
		}
	default: // a logger's name alone, where the caller is not known
		before = rest
		s.n = copy(s.logger[:], method)
	}
	return s.date(before)
}

func amPM(b []byte) bool {
	return len(b) <= 4 && (bytes.EqualFold(bytes.ReplaceAll(b, []byte("."), nil), []byte("AM")) || bytes.EqualFold(bytes.ReplaceAll(b, []byte("."), nil), []byte("PM")))
}

// date finds the clock and the year in a date of any language, and the month
// and the day where they stand in the order of the JDK's own default format.
func (s *simple) date(b []byte) bool {
	if len(b) > 80 {
		return false
	}
	at, n, hh, m, sec := -1, 0, 0, 0, 0
	for i := 0; i+6 < len(b); i++ {
		if i > 0 && isDigit(b[i-1]) || !isDigit(b[i]) {
			continue
		}
		if hh, m, sec, _, n = clock(b[i:]); n > 0 {
			at = i
			break
		}
		if b[i+1] == ':' || b[i+1] == '.' { // one digit for the hour
			var one [9]byte
			one[0] = '0'
			if copy(one[1:], b[i:]) == 8 || i+7 == len(b) {
				if hh, m, sec, _, n = clock(one[:8]); n > 0 {
					at, n = i, 7
					break
				}
			}
		}
	}
	year := -1
	for i := 0; i+4 <= len(b); i++ {
		if (i == 0 || !isDigit(b[i-1])) && (i+4 == len(b) || !isDigit(b[i+4])) &&
			two(b[i:]) >= 19 && two(b[i:]) <= 21 && two(b[i+2:]) >= 0 {
			year = two(b[i:])*100 + two(b[i+2:])
			break
		}
	}
	if at < 0 || year < 0 {
		return false
	}
	s.at = 0
	day := bytes.IndexByte(b, ' ')
	if day > 0 && day+3 < len(b) {
		d := -1
		switch {
		case b[day+2] == ',' && isDigit(b[day+1]):
			d = int(b[day+1] - '0')
		case b[day+3] == ',':
			d = two(b[day+1:])
		}
		if mo := monthOf(b[:day]); mo != 0 && d > 0 {
			// The marker of the afternoon stands between clock and class. Only the
			// Latin ones and those of JDK 17's bundles are read.
			half := bytes.ToUpper(b[min(at+n, len(b)):])
			pm := bytes.Contains(half, []byte("P")) || bytes.Contains(half, []byte("EM")) || bytes.Contains(half, []byte("午後")) || bytes.Contains(half, []byte("下午")) || bytes.Contains(half, []byte("오후"))
			if hh == 12 {
				hh = 0
			}
			if pm && hh < 12 {
				hh += 12
			}
			s.at = millis(year, mo, d, hh, m, sec, 0)
		}
	}
	return true
}

// identifier says whether b is a Java name, with points and dollars, as classes
// ("a.B$1"), methods ("lambda$main$0", "<init>") and loggers have.
func identifier(b []byte) bool {
	for _, c := range b {
		if !isAlpha(c) && !isDigit(c) && c < utf8.RuneSelf {
			switch c {
			case '.', '$', '_', '<', '>', '-', '/', '[', ']':
			default:
				return false
			}
		}
	}
	return len(b) > 0
}
