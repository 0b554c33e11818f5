package applog

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// pattern is a layout given as a conversion pattern of logback or log4j. The
// words are theirs; colours and other groups are looked through, and white
// space matches any amount of it, since fields are padded.
type pattern struct {
	text  string
	elems []elem
	lead  bool // its records may begin with a space
}

type elemKind uint8

const (
	literal elemKind = iota
	dateField
	levelField
	threadField
	loggerField
	methodField
	messageField
	otherField
)

type elem struct {
	kind elemKind
	lit  []byte
	date string // a SimpleDateFormat
}

func (p *pattern) name() string { return p.text }

func (p *pattern) spaced() bool { return p.lead }

// fieldOf are the conversion words of logback and log4j 1 and 2.
var fieldOf = map[string]elemKind{
	"d": dateField, "date": dateField,
	"p": levelField, "le": levelField, "level": levelField,
	"t": threadField, "thread": threadField, "tn": threadField, "threadName": threadField,
	"c": loggerField, "lo": loggerField, "logger": loggerField,
	"C": loggerField, "class": loggerField,
	"M": methodField, "method": methodField,
	"m": messageField, "msg": messageField, "message": messageField,
	"r": otherField, "relative": otherField, "L": otherField, "line": otherField, "F": otherField, "file": otherField,
	"x": otherField, "X": otherField, "NDC": otherField, "MDC": otherField, "mdc": otherField, "pid": otherField, "processId": otherField,
	"marker": otherField, "markerSimpleName": otherField, "contextName": otherField, "cn": otherField, "property": otherField, "kvp": otherField, "K": otherField,
	"T": otherField, "tid": otherField, "threadId": otherField, "l": otherField, "location": otherField, "sn": otherField, "u": otherField,
	"tp": otherField, "threadPriority": otherField, "equals": otherField, "applicationName": otherField, "correlationId": otherField, "esb": otherField,
}

// nothingPrinted are words that print no text of a record's first line.
var nothingPrinted = map[string]bool{"n": true, "ex": true, "exception": true, "throwable": true, "xEx": true, "xException": true,
	"xThrowable": true, "wEx": true, "wex": true, "rEx": true, "rException": true, "rThrowable": true, "rootException": true, "nopex": true, "nopexception": true, "xwEx": true, "caller": true}

// groups print what is inside of them, with colours around it.
var groups = map[string]bool{"": true, "clr": true, "highlight": true, "style": true, "replace": true, "black": true, "red": true, "green": true,
	"yellow": true, "blue": true, "magenta": true, "cyan": true, "white": true, "gray": true, "boldRed": true, "boldGreen": true, "boldYellow": true,
	"boldBlue": true, "boldMagenta": true, "boldCyan": true, "boldWhite": true, "enclosedInParentheses": true, "encode": true, "enc": true, "maxLen": true, "maxLength": true, "notEmpty": true, "varsNotEmpty": true, "prefix": true}

// compilePattern reads a conversion pattern.
func compilePattern(text string) (*pattern, error) {
	p := &pattern{text: strings.TrimSuffix(strings.TrimSpace(text), "%n")}
	if err := p.compile(text, 0); err != nil {
		return nil, err
	}
	var message, anchor bool
	for i, e := range p.elems {
		switch e.kind {
		case messageField:
			if !message {
				message = true
				p.elems = p.elems[:i+1]
			}
		case dateField, levelField:
			anchor = true
		}
		if message {
			break
		}
	}
	switch {
	case !message:
		return nil, fmt.Errorf("pattern %q has no message (%%m)", text)
	case !anchor:
		return nil, fmt.Errorf("pattern %q has neither date nor level before the message: nothing would tell a record from another line", text)
	}
	return p, nil
}

func (p *pattern) compile(s string, depth int) error {
	if depth > 8 {
		return fmt.Errorf("pattern %q is nested too deep", p.text)
	}
	for len(s) > 0 {
		switch {
		case s[0] == '\\' && len(s) > 1:
			p.literal(s[1:2])
			s = s[2:]
		case strings.HasPrefix(s, "${"):
			inside, rest, ok := braces(s[1:])
			if !ok {
				return fmt.Errorf("pattern %q: no end of ${", p.text)
			}
			s = rest
			if strings.HasPrefix(inside, "PID") {
				p.elems = append(p.elems, elem{kind: otherField})
			} else if _, def, ok := strings.Cut(inside, ":-"); ok {
				if err := p.compile(def, depth+1); err != nil {
					return err
				}
			}
		case s[0] != '%':
			n := 1
			for n < len(s) && s[n] != '%' && s[n] != '\\' && s[n] != '$' {
				n++
			}
			p.literal(s[:n])
			s = s[n:]
		case strings.HasPrefix(s, "%%"):
			p.literal("%")
			s = s[2:]
		default:
			rest, err := p.word(s[1:], depth)
			if err != nil {
				return err
			}
			s = rest
		}
	}
	return nil
}

// word reads what follows a % sign: a width, a word, a group and options.
func (p *pattern) word(s string, depth int) (string, error) {
	padded := false
	for len(s) > 0 && (isDigit(s[0]) || s[0] == '-' || s[0] == '.') {
		padded = padded || s[0] != '-'
		if s[0] == '-' && len(s) > 1 && !isDigit(s[1]) {
			break
		}
		s = s[1:]
	}
	n := 0
	for n < len(s) && (isAlpha(s[n])) {
		n++
	}
	name, s := s[:n], s[n:]
	// log4j lets a word run into letters that follow it: %m is m of "mfoo".
	for name != "" && fieldOf[name] == literal && !groups[name] && !nothingPrinted[name] {
		s = name[len(name)-1:] + s
		name = name[:len(name)-1]
		if name == "" {
			return "", fmt.Errorf("pattern %q: %%%s is no conversion word", p.text, s[:min(len(s), n)])
		}
	}
	if groups[name] && len(s) > 0 && s[0] == '(' {
		inside, rest, ok := parens(s)
		if !ok {
			return "", fmt.Errorf("pattern %q: no end of the group %%%s(", p.text, name)
		}
		if err := p.compile(inside, depth+1); err != nil {
			return "", err
		}
		for strings.HasPrefix(rest, "{") {
			if _, rest, ok = braces(rest); !ok {
				return "", fmt.Errorf("pattern %q: no end of {", p.text)
			}
		}
		return rest, nil
	}
	var options []string
	for strings.HasPrefix(s, "{") {
		inside, rest, ok := braces(s)
		if !ok {
			return "", fmt.Errorf("pattern %q: no end of {", p.text)
		}
		options, s = append(options, inside), rest
	}
	if groups[name] && len(options) > 0 {
		return s, p.compile(options[0], depth+1)
	}
	kind, ok := fieldOf[name]
	if !ok {
		if nothingPrinted[name] {
			return s, nil
		}
		return "", fmt.Errorf("pattern %q: %%%s is no conversion word", p.text, name)
	}
	e := elem{kind: kind}
	if kind == dateField {
		e.date = dateFormat(options)
	}
	if len(p.elems) == 0 && padded {
		p.lead = true
	}
	p.elems = append(p.elems, e)
	return s, nil
}

// dateFormat is the format in full; the names are log4j's.
func dateFormat(options []string) string {
	if len(options) == 0 {
		return isoFormat
	}
	f := strings.Trim(options[0], `"`)
	if _, def, ok := strings.Cut(strings.TrimSuffix(f, "}"), ":-"); ok && strings.HasPrefix(f, "${") {
		f = def // Spring Boot's ${LOG_DATEFORMAT_PATTERN:-…}
	}
	switch f {
	case "", "ISO8601", "DEFAULT", "DEFAULT_MICROS", "DEFAULT_NANOS", "ISO8601_BASIC":
		return isoFormat
	case "STRICT", "ISO8601_OFFSET_DATE_TIME_HHCMM", "ISO8601_OFFSET_DATE_TIME_HH", "ISO8601_OFFSET_DATE_TIME_HHMM":
		return "yyyy-MM-dd'T'HH:mm:ss,SSSXXX"
	case "ABSOLUTE", "ABSOLUTE_MICROS", "ABSOLUTE_NANOS", "ABSOLUTE_PERIOD":
		return "HH:mm:ss,SSS"
	case "DATE", "DATE_PERIOD":
		return "dd MMM yyyy HH:mm:ss,SSS"
	}
	return f
}

const isoFormat = "yyyy-MM-dd HH:mm:ss,SSS"

func (p *pattern) literal(s string) {
	if n := len(p.elems); n > 0 && p.elems[n-1].kind == literal {
		p.elems[n-1].lit = append(p.elems[n-1].lit, s...)
		return
	}
	p.elems = append(p.elems, elem{lit: []byte(s)})
}

// braces cuts "{…}rest", with braces inside.
func braces(s string) (inside, rest string, ok bool) { return pair(s, '{', '}') }

func parens(s string) (inside, rest string, ok bool) { return pair(s, '(', ')') }

func pair(s string, o, c byte) (inside, rest string, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case o:
			depth++
		case c:
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

// head reads a line by the pattern.
func (p *pattern) head(line []byte, h *head) verdict {
	var d stamp
	h.level, h.thread, h.logger, h.message, h.at, h.method = None, nil, nil, nil, 0, false
	rest := line
	for i := range p.elems {
		e := &p.elems[i]
		switch e.kind {
		case literal:
			var ok bool
			if rest, ok = eat(rest, e.lit); !ok {
				return no
			}
			continue
		case messageField:
			h.message = rest
			if d.seen && d.y > 0 {
				h.at = millis(d.y, d.mo, d.d, d.h, d.m, d.s, d.ms)
			}
			return yes
		case dateField:
			n := d.read(rest, e.date)
			if n == 0 {
				return no
			}
			rest = rest[n:]
			continue
		case levelField:
			rest = bytes.TrimLeft(rest, " ")
			n := 0
			for n < len(rest) && (isAlpha(rest[n]) || rest[n] >= 0x80) {
				n++
			}
			l, ok := levelOf(rest[:n])
			if !ok {
				return no
			}
			h.level, rest = l, rest[n:]
			if i+1 < len(p.elems) && p.elems[i+1].kind == literal && p.elems[i+1].lit[0] != ' ' {
				rest = bytes.TrimLeft(rest, " ") // "[INFO ]"
			}
			continue
		}
		n := p.until(rest, i+1)
		if n < 0 {
			return no
		}
		v := bytes.Trim(rest[:n], " ")
		switch e.kind {
		case threadField:
			h.thread = v
		case loggerField:
			if !identifier(v) {
				return no
			}
			h.logger = v
		case methodField:
			if !identifier(v) {
				return no
			}
		}
		rest = rest[n:]
	}
	return no
}

// until is the length of a field: to the literal behind it, or to a space.
func (p *pattern) until(b []byte, next int) int {
	if next >= len(p.elems) {
		return len(b)
	}
	e := &p.elems[next]
	if e.kind == literal {
		if core := bytes.TrimLeft(e.lit, " "); len(core) == 0 {
			n := len(b) - len(bytes.TrimLeft(b, " "))
			if i := bytes.IndexByte(b[n:], ' '); i >= 0 {
				return n + i
			}
			return -1
		}
		i := bytes.Index(b, e.lit)
		if e.lit[0] == '.' && next+1 < len(p.elems) && p.elems[next+1].kind == methodField { // %C.%M
			n := 0
			for n < len(b) && identifier(b[n:n+1]) {
				n++
			}
			i = bytes.LastIndex(b[:n], e.lit)
		}
		if i < 0 && e.lit[len(e.lit)-1] == ' ' { // an empty message, and no space left behind
			if t := e.lit[:len(e.lit)-1]; bytes.HasSuffix(b, t) {
				i = len(b) - len(t)
			}
		}
		return i
	}
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return i
	}
	return len(b)
}

// eat takes a literal off the front, white space in it for any white space.
func eat(b, lit []byte) ([]byte, bool) {
	for i := 0; i < len(lit); i++ {
		if lit[i] == ' ' {
			for i+1 < len(lit) && lit[i+1] == ' ' {
				i++
			}
			n := 0
			for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
				n++
			}
			if n == 0 && (i+1 < len(lit) || len(b) > 0) {
				return b, false
			}
			if i+1 == len(lit) && n > 1 && len(bytes.TrimLeft(b, " ")) == 0 {
				n = 1
			}
			b = b[n:]
			continue
		}
		if len(b) == 0 || b[0] != lit[i] {
			return b, false
		}
		b = b[1:]
	}
	return b, true
}

// stamp is a date read by a format of java.text.SimpleDateFormat.
type stamp struct {
	y             int
	mo            time.Month
	d             int
	h, m, s, ms   int
	seen, pm, h12 bool
}

// read returns the length of the date at the start of b, or 0.
func (t *stamp) read(b []byte, format string) int {
	*t = stamp{d: 1, mo: 1}
	at := 0
	for i := 0; i < len(format); {
		c := format[i]
		if c == '\'' {
			j := strings.IndexByte(format[i+1:], '\'')
			if j < 0 {
				return 0
			}
			lit := format[i+1 : i+1+j]
			if j == 0 {
				lit = "'"
			}
			if !bytes.HasPrefix(b[at:], []byte(lit)) && !(lit == "T" && at < len(b) && b[at] == ' ') {
				return 0
			}
			at += len(lit)
			i += j + 2
			continue
		}
		n := 1
		for i+n < len(format) && format[i+n] == c {
			n++
		}
		if !isAlpha(c) {
			for ; n > 0; n-- {
				if at >= len(b) || b[at] != c && !((c == ',' || c == '.') && (b[at] == '.' || b[at] == ',')) && !(c == ' ' && b[at] == 'T') {
					return 0
				}
				at++
				i++
			}
			continue
		}
		used := t.field(b[at:], c, n)
		if used < 0 {
			return 0
		}
		at += used
		i += n
	}
	if t.h12 && t.h == 12 {
		t.h = 0
	}
	if t.pm && t.h < 12 {
		t.h += 12
	}
	t.seen = true
	return at
}

// field reads one letter's field and returns its length, or -1.
func (t *stamp) field(b []byte, c byte, n int) int {
	switch {
	case c == 'M' && n >= 3 || c == 'L' && n >= 3:
		k := 0
		for k < len(b) && (isAlpha(b[k]) || b[k] >= 0x80 || b[k] == '.') {
			k++
		}
		if t.mo = monthOf(b[:k]); t.mo == 0 {
			return -1
		}
		return k
	case c == 'E' || c == 'a' || c == 'z' || c == 'V' || c == 'G':
		k := 0
		for k < len(b) && (isAlpha(b[k]) || b[k] >= 0x80 || b[k] == '/' || b[k] == '_' || c == 'z' && (b[k] == ':' || b[k] == '+' || b[k] == '-' || isDigit(b[k]))) {
			k++
		}
		if k == 0 {
			return -1
		}
		if c == 'a' {
			t.h12, t.pm = true, b[0]|0x20 == 'p'
		}
		return k
	case c == 'Z' || c == 'X' || c == 'x':
		k := 0
		for k < len(b) && k < 9 && (isDigit(b[k]) || b[k] == ':' || b[k] == '+' || b[k] == '-' || b[k] == 'Z') {
			k++
		}
		if k == 0 {
			return -1
		}
		return k
	}
	most := max(n, 2)
	if (c == 'y' || c == 'u') && n != 2 {
		most = 4
	}
	if c == 'S' || c == 'n' {
		most = 9
	}
	k, v := 0, 0
	for k < len(b) && k < most && isDigit(b[k]) {
		v = v*10 + int(b[k]-'0')
		k++
	}
	if k == 0 || n >= 2 && k < min(n, 2) {
		return -1
	}
	switch c {
	case 'y', 'u':
		if n == 2 {
			v += 2000
		}
		t.y = v
	case 'M', 'L':
		if v < 1 || v > 12 {
			return -1
		}
		t.mo = time.Month(v)
	case 'd':
		if v < 1 || v > 31 {
			return -1
		}
		t.d = v
	case 'H', 'k', 'h', 'K':
		if v > 24 {
			return -1
		}
		t.h = v
	case 'm':
		if v > 59 {
			return -1
		}
		t.m = v
	case 's':
		if v > 60 {
			return -1
		}
		t.s = v
	case 'S', 'n':
		for i := k; i < 3; i++ {
			v *= 10
		}
		for i := k; i > 3; i-- {
			v /= 10
		}
		t.ms = v
	}
	return k
}
