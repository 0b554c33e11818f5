package applog

import (
	"bytes"
	"strings"
)

// dateForms are the dates with which records of log4j and logback begin where
// nobody asked for another.
var dateForms = []string{
	"yyyy-MM-dd HH:mm:ss,SSSXXX", isoFormat, "yyyy-MM-dd HH:mm:ss",
	"HH:mm:ss.SSS", "dd MMM yyyy HH:mm:ss,SSS", "dd MMM yyyy HH:mm:ss", "dd-MMM-yyyy HH:mm:ss.SSS",
	"yyyy/MM/dd HH:mm:ss.SSS", "yyyy/MM/dd HH:mm:ss", "dd.MM.yyyy HH:mm:ss.SSS", "dd.MM.yyyy HH:mm:ss",
	"dd/MM/yyyy HH:mm:ss.SSS", "dd/MM/yyyy HH:mm:ss", "yyyyMMdd HH:mm:ss.SSS", "HH:mm:ss",
}

// infer reads a conversion pattern off the first record of a layout, or
// returns nil. A record must begin with a date, or a level and a date, and have
// a level that is written as one. What stands between them and the message is
// taken by its form: [thread], a process id, ---, a logger before a separator.
func infer(line []byte) *pattern {
	if len(line) < 14 {
		return nil
	}
	var b strings.Builder
	rest := line
	level, date := false, false
	for step := 0; step < 2 && !date; step++ {
		trimmed := bytes.TrimLeft(rest, " ")
		bracket := len(trimmed) > 0 && trimmed[0] == '['
		if bracket {
			trimmed = trimmed[1:]
		}
		if n, form := dateAt(trimmed); n > 0 {
			if bracket {
				if n >= len(trimmed) || trimmed[n] != ']' {
					return nil
				}
				b.WriteString("[%d{" + form + "}]")
				n++
			} else {
				b.WriteString("%d{" + form + "}")
			}
			rest, date = trimmed[n:], true
			continue
		}
		n := levelWord(trimmed)
		if n == 0 || level {
			return nil
		}
		level = true
		if len(trimmed) < len(rest) && !bracket {
			b.WriteString("%5p")
		} else if bracket {
			b.WriteString("[%p")
		} else {
			b.WriteString("%-5p")
		}
		rest = trimmed[n:]
		if bracket {
			i := bytes.IndexByte(rest, ']')
			if i < 0 || len(bytes.TrimSpace(rest[:i])) > 0 {
				return nil
			}
			b.WriteString("]")
			rest = rest[i+1:]
		}
		if len(rest) == 0 || rest[0] != ' ' {
			return nil
		}
		b.WriteString(" ")
	}
	if !date || len(rest) == 0 {
		return nil
	}
	p, err := compilePattern(b.String() + fields2(rest, level))
	if err != nil || !p.levelled() {
		return nil
	}
	return p
}

func (p *pattern) levelled() bool {
	for _, e := range p.elems {
		if e.kind == levelField {
			return true
		}
	}
	return false
}

// fields2 reads the fields between the date and the message.
func fields2(rest []byte, level bool) string {
	var b strings.Builder
	thread, logger, spring := false, false, false
	for step := 0; step < 20; step++ {
		if len(rest) == 0 {
			break
		}
		if rest[0] == ' ' {
			b.WriteByte(' ')
			rest = bytes.TrimLeft(rest, " ")
			continue
		}
		if rest[0] == '|' {
			b.WriteByte('|')
			rest = rest[1:]
			continue
		}
		if rest[0] == '[' || rest[0] == '(' {
			c := byte(']')
			if rest[0] == '(' {
				c = ')'
			}
			i := bytes.IndexByte(rest, c)
			if i < 0 || i > 200 {
				break
			}
			inside := bytes.TrimSpace(rest[1:i])
			word := "%X{}"
			after := bytes.TrimLeft(rest[i+1:], " ")
			switch {
			case spring && !thread && len(after) > 0 && after[0] == '[':
				// Spring Boot 3: the application's name stands before the thread's.
			case !level && levelWord(inside) == len(inside):
				word, level = "%-5p", true
			case rest[0] == '[' && thread && !logger && identifier(inside) && bytes.IndexByte(inside, '.') > 0,
				rest[0] == '[' && !thread && level && dotted(inside) && i+2 < len(rest) && (rest[i+2] == '(' || rest[i+2] == '-'):
				word, logger = "%c", true
			case !thread && !logger || !thread && rest[0] == '(':
				word, thread = "%t", true
			default:
				n, _, _ := loggerAt(after, thread)
				if logger || level && thread && n == 0 && !bytes.HasPrefix(after, []byte("[")) {
					// Brackets behind the fields are the message's.
					b.WriteString("%m")
					return b.String()
				}
			}
			b.WriteByte(rest[0])
			b.WriteString(word)
			b.WriteByte(c)
			rest = rest[i+1:]
			continue
		}
		if !level {
			if n := levelWord(rest); n > 0 {
				b.WriteString("%-5p")
				rest, level = rest[n:], true
				continue
			}
			// A bare thread's name, or a process id, before the level.
			i := bytes.IndexByte(rest, ' ')
			if i < 0 || thread && logger {
				break
			}
			switch {
			case !logger && dotted(rest[:i]):
				b.WriteString("%c")
				logger = true
			case !thread:
				b.WriteString("%t")
				thread = true
			default:
				b.WriteString("%X{}")
			}
			rest = rest[i:]
			continue
		}
		if bytes.HasPrefix(rest, []byte("--- ")) {
			b.WriteString("---")
			rest, spring = rest[3:], true
			continue
		}
		if n := digits(rest); n > 0 && bytes.HasPrefix(rest[n:], []byte(" --- ")) {
			b.WriteString("%pid")
			rest = rest[n:]
			continue
		}
		if !logger {
			if n, sep, line := loggerAt(rest, thread); n > 0 {
				b.WriteString("%c" + line + sep)
				b.WriteString("%m")
				return b.String()
			}
		}
		for _, sep := range []string{"- ", ": ", "| "} {
			if bytes.HasPrefix(rest, []byte(sep)) {
				b.WriteString(sep)
				break
			}
		}
		break
	}
	b.WriteString("%m")
	return b.String()
}

// loggerAt reads "a.b.C - ", "a.b.C: ", "C:42 - " or, behind a thread, "a.b.C ".
func loggerAt(b []byte, thread bool) (n int, sep, line string) {
	for n < len(b) && b[n] != ' ' && b[n] != ':' && b[n] != ']' {
		n++
	}
	if n == 0 || !identifier(b[:n]) || isDigit(b[0]) {
		return 0, "", ""
	}
	rest := b[n:]
	if len(rest) > 1 && rest[0] == ':' && isDigit(rest[1]) {
		k := 1 + digits(rest[1:])
		rest, line = rest[k:], ":%L"
	}
	gap := len(rest) - len(bytes.TrimLeft(rest, " "))
	after := rest[gap:]
	lead := ""
	if gap > 0 {
		lead = " "
	}
	for _, s := range []string{"- ", "-- ", ": ", "| ", "-", ":"} {
		if bytes.HasPrefix(after, []byte(s)) && (s[len(s)-1] == ' ' || len(after) == len(s)) && (gap > 0 || s[0] == ':') {
			return n, lead + strings.TrimRight(s, " ") + " ", line
		}
	}
	if gap > 0 && dotted(b[:n]) && (thread || line != "") {
		return n, " ", line
	}
	return 0, "", ""
}

func dotted(b []byte) bool { return identifier(b) && bytes.IndexByte(b, '.') > 0 && !isDigit(b[0]) }

func digits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

// levelWord is the length of a level written in capitals at the start of b.
func levelWord(b []byte) int {
	n := 0
	for n < len(b) && (isUpper(b[n]) || b[n] >= 0x80) {
		n++
	}
	if n < 2 || n < len(b) && (isAlpha(b[n]) || isDigit(b[n]) || b[n] == '_') {
		return 0
	}
	if _, ok := levelOf(b[:n]); !ok {
		return 0
	}
	return n
}

// dateAt reads a date of one of the forms. The year must be a plausible one,
// so that a number in a message is none.
func dateAt(b []byte) (int, string) {
	if len(b) < 8 || !isDigit(b[0]) {
		return 0, ""
	}
	for _, f := range dateForms {
		var t stamp
		n := t.read(b, f)
		if n == 0 || n < len(b) && b[n] != ' ' && b[n] != ']' && b[n] != '|' && b[n] != '\t' {
			continue
		}
		if t.y != 0 && (t.y < 1990 || t.y > 2199) || t.y == 0 && strings.Contains(f, "y") {
			continue
		}
		return n, f
	}
	return 0, ""
}
