package applog

import "bytes"

// throwable reads the class at the start of an exception line, "a.b.C: text" or
// "a.b.C" alone, and returns nil when the line is no such one. It must be a
// dotted name whose last part begins with a capital letter; a name without
// points must end as exceptions do, since "Note: …" is none.
func throwable(b []byte) []byte {
	dots, last, n := 0, 0, 0
loop:
	for n < len(b) {
		c := b[n]
		switch {
		case isAlpha(c) || isDigit(c) || c == '_' || c == '$' || c >= 0x80:
		case c == '.':
			if n == last {
				return nil
			}
			dots++
			last = n + 1
		case c == '/' && dots > 0: // "java.base/…" or a class loader's name in front
			dots, last = 0, n+1
		default:
			break loop
		}
		n++
		if n > 300 {
			return nil
		}
	}
	if n == last || n < len(b) && (b[n] != ':' || n+1 < len(b) && b[n+1] != ' ') {
		return nil
	}
	name := b[:n]
	if dots > 0 && isUpper(b[last]) || endsAsThrowable(name) {
		return name
	}
	return nil
}

func endsAsThrowable(name []byte) bool {
	return bytes.HasSuffix(name, []byte("Exception")) || bytes.HasSuffix(name, []byte("Error")) ||
		bytes.HasSuffix(name, []byte("Throwable"))
}

// tabs counts the indent of a line of a trace in tabs (a space, as the old
// OneLineFormatter sets before the exception, is none) and returns what follows.
// "\t|" before Jetty's suppressed traces counts as deeper.
func tabs(line []byte) (int, []byte) {
	n, i := 0, 0
	for i < len(line) {
		switch line[i] {
		case '\t':
			n++
		case ' ':
		case '|':
			n++
		default:
			return n, line[i:]
		}
		i++
	}
	return n, nil
}

// isMore reads "... 42 more" and "... 42 common frames omitted".
func isMore(b []byte) bool {
	return len(b) > 7 && b[0] == '.' && b[1] == '.' && b[2] == '.' && b[3] == ' ' && isDigit(b[4])
}

var (
	atMark         = []byte("at ")
	causedBy       = []byte("Caused by: ")
	wrappedBy      = []byte("Wrapped by: ")
	suppressedMark = []byte("Suppressed: ")
	inThread       = []byte("Exception in thread \"")
)
