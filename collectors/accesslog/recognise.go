package accesslog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Guess is what a bare file looks like.
type Guess struct {
	Format  string
	Pattern string
	// UnitKnown is false where the file carries a duration whose unit depends
	// on the version of the server that wrote it: say --duration-unit then.
	UnitKnown bool
	// Confidence is the share of the lines looked at that the pattern reads,
	// lowered where a field's meaning is only likely. 0 means that this is no
	// access log we know.
	Confidence float64
	// Why says in a sentence what the guess rests on.
	Why string
}

// recogniseLines is how many lines are looked at.
const recogniseLines = 200

// Recognise says what the first bytes of a file look like. Shapes tell fields
// apart, not units: those are never guessed.
func Recognise(head []byte) Guess {
	all := sampleLines(head)
	if len(all) == 0 {
		return Guess{Why: "the file has no whole line yet"}
	}
	var json, w3c int
	fields := ""
	for _, l := range all {
		switch {
		case l[0] == '{':
			json++
		case l[0] == '#':
			w3c++
			if f, ok := bytes.CutPrefix(l, []byte("#Fields:")); ok {
				fields = strings.TrimSpace(string(f))
			}
		}
	}
	switch {
	case fields != "":
		return judge(Guess{Format: FormatW3C, Pattern: fields, Why: "its #Fields line"}, all, 1)
	case json*2 > len(all):
		g := Guess{Format: FormatJSON, Why: "its lines are JSON objects with the keys of JsonAccessLogValve"}
		return judge(g, all, 1)
	}
	return recogniseText(all)
}

// sampleLines are the whole lines of head that are not blank.
func sampleLines(head []byte) [][]byte {
	var out [][]byte
	for len(out) < recogniseLines {
		i := bytes.IndexByte(head, '\n')
		if i < 0 {
			break
		}
		if l := bytes.TrimSpace(head[:i]); len(l) > 0 {
			out = append(out, bytes.TrimRight(head[:i], "\r"))
		}
		head = head[i+1:]
	}
	if len(out) == 0 && len(bytes.TrimSpace(head)) > 0 {
		out = append(out, head)
	}
	return out
}

// judge compiles the guess and counts the lines it reads. sure lowers the
// confidence where fields have been named by likelihood.
func judge(g Guess, all [][]byte, sure float64) Guess {
	m, err := Compile(g.Format, g.Pattern, Options{})
	if err != nil {
		return Guess{Why: err.Error()}
	}
	var r Record
	good, total := 0, 0
	durations := false
	for _, l := range all {
		switch m.Parse(l, &r) {
		case Accepted:
			good++
			durations = durations || m.json != nil && bytes.Contains(l, []byte(`"elapsedTime"`))
		case Directive:
			continue
		}
		total++
	}
	if total == 0 {
		g.Confidence = sure / 2 // directives only: a file that has just begun
	} else {
		g.Confidence = sure * float64(good) / float64(total)
	}
	unit, _ := m.DurationUnit()
	g.UnitKnown = unit != "unknown"
	if m.json != nil {
		g.UnitKnown = !durations
	}
	if good == 0 && total > 0 {
		g.Confidence = 0
	}
	return g
}

// recogniseText tries the shape of several lines, and keeps the pattern that
// reads the most of them.
func recogniseText(all [][]byte) Guess {
	best := Guess{Why: "no line has the shape of an access log: address, time in brackets, request in quotes, status"}
	tried := map[string]bool{}
	for _, l := range all {
		s, ok := shapeOf(l)
		if !ok {
			continue
		}
		s.refine(all)
		p := s.pattern()
		if tried[p] {
			continue
		}
		tried[p] = true
		if s.gap {
			return judge(Guess{Format: FormatNCSA, Pattern: "latency", Why: "the two blanks before the last number, which are NCSARequestLog's"}, all, 1)
		}
		g := judge(Guess{Format: FormatTomcat, Pattern: p, Why: s.why()}, all, s.sure())
		if g.Confidence > best.Confidence {
			best = g
		}
		if len(tried) >= 8 || best.Confidence > 0.99 {
			break
		}
	}
	for name, p := range aliases {
		if best.Pattern == p && best.Confidence > 0 {
			best.Why = "it is the pattern " + strconv.Quote(name)
		}
	}
	return best
}

// A shape is a line of the Common Log Format with what stands before the
// address and behind the byte count.
type shape struct {
	before int // words before %l %u [
	tail   []tailField
	at     int64 // the line's time, Unix ms
	gap    bool  // two blanks before the only number behind the bytes
}

type tailField struct {
	quoted bool
	text   string
	code   string // the code we take it for
	likely bool   // by likelihood only
}

func shapeOf(l []byte) (s shape, ok bool) {
	open := bytes.Index(l, []byte(" ["))
	if open < 0 || len(l) < open+2+clfLen+4 {
		return s, false
	}
	at, ok := clf(l[open+2:])
	if !ok {
		return s, false
	}
	s.at = at * 1000
	s.before = len(bytes.Fields(l[:open]))
	if s.before < 1 {
		return s, false
	}
	rest := l[open+2+clfLen:]
	if !bytes.HasPrefix(rest, []byte(`] "`)) {
		return s, false
	}
	// The request ends at the quote before the status.
	p := 3
	for {
		n := index(rest, p, `" `, '"')
		if n < 0 {
			return s, false
		}
		p = n + 2
		if v, q := digits(rest, p); q == p+3 && v >= 100 && v <= 599 {
			p = q
			break
		}
	}
	s.tail, ok = splitTail(rest[p:])
	s.gap = ok && len(s.tail) == 2 && isNumber(s.tail[1].text) && bytes.Contains(rest[p:], []byte("  "))
	return s, ok
}

// splitTail takes the fields behind the status apart: words, and quoted texts.
func splitTail(b []byte) (out []tailField, ok bool) {
	for len(b) > 0 {
		if b[0] != ' ' {
			return nil, false
		}
		b = bytes.TrimLeft(b, " ")
		if len(b) == 0 {
			return out, true
		}
		f := tailField{quoted: b[0] == '"'}
		if f.quoted {
			n := 1
			for { // a quote ends the field when a blank or nothing follows it
				q := bytes.IndexByte(b[n:], '"')
				if q < 0 {
					return nil, false
				}
				n += q + 1
				if !escaped(b, 1, n-1) && (n == len(b) || b[n] == ' ') {
					break
				}
			}
			f.text, b = string(b[1:n-1]), b[n:]
		} else {
			n := bytes.IndexByte(b, ' ')
			if n < 0 {
				n = len(b)
			}
			f.text, b = string(b[:n]), b[n:]
		}
		out = append(out, f)
	}
	return out, true
}

// refine names the fields behind the status, looking at all lines of the same
// number of fields.
func (s *shape) refine(all [][]byte) {
	var rows [][]tailField
	var times []int64
	for _, l := range all {
		if o, ok := shapeOf(l); ok && len(o.tail) == len(s.tail) {
			rows = append(rows, o.tail)
			times = append(times, o.at)
		}
	}
	quoted, numbers := 0, 0
	for i := range s.tail {
		f := &s.tail[i]
		column := func(is func(string) bool) bool {
			some := false
			for _, r := range rows {
				t := r[i].text
				if t == "-" {
					continue
				}
				if !is(t) {
					return false
				}
				some = true
			}
			return some
		}
		switch {
		case i == 0 && column(isNumber), i == 0:
			f.code = "%b"
		case f.quoted:
			f.code, f.likely = []string{`%{Referer}i`, `%{User-Agent}i`, `%{x}i`}[min(quoted, 2)], quoted > 1
			quoted++
		case column(isThread):
			f.code = "%I"
		case isConn(rows, i):
			f.code, f.likely = "%X", true
		case column(func(t string) bool { return isNumber(t) && len(t) == 13 }) && near(rows, times, i):
			f.code, f.likely = "%{begin:msec}t", true
		case column(isFraction):
			f.code = "%T"
		case column(isNumber) && numbers < 2:
			f.code, f.likely = []string{"%D", "%F"}[numbers], true
			numbers++
		default:
			f.code = "%S" // anything without a blank in it: no claim, it is only got over
		}
	}
}

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) && (i > 0 || s[i] != '-' || len(s) == 1) {
			return false
		}
	}
	return s != ""
}

func isFraction(s string) bool {
	a, b, ok := strings.Cut(s, ".")
	return ok && isNumber(a) && isNumber(b)
}

func isThread(s string) bool {
	return s == "null" || strings.Contains(s, "-exec-") || strings.HasPrefix(s, "http-") || strings.HasPrefix(s, "ajp-") ||
		strings.HasPrefix(s, "qtp") || strings.HasPrefix(s, "catalina-")
}

// isConn: single signs, and not dashes alone (a session id's column is all
// dashes where there are no sessions).
func isConn(rows [][]tailField, i int) bool {
	some := false
	for _, r := range rows {
		switch r[i].text {
		case "+", "X":
			some = true
		case "-":
		default:
			return false
		}
	}
	return some
}

// near says whether the column's milliseconds are of about the lines' time.
func near(rows [][]tailField, times []int64, i int) bool {
	for k, r := range rows {
		if v, err := strconv.ParseInt(r[i].text, 10, 64); err == nil && (v > times[k]+2000 || v < times[k]-int64(time.Hour/time.Millisecond)) {
			return false
		}
	}
	return true
}

func (s *shape) pattern() string {
	var b strings.Builder
	switch s.before {
	case 1:
		b.WriteString("%h")
	case 2:
		b.WriteString("%h %u")
	case 3:
		b.WriteString("%h %l %u")
	default:
		b.WriteString("%v %h %l %u")
	}
	b.WriteString(` %t "%r" %s`)
	for _, f := range s.tail {
		if f.quoted {
			fmt.Fprintf(&b, ` "%s"`, f.code)
		} else {
			b.WriteString(" " + f.code)
		}
	}
	return b.String()
}

func (s *shape) sure() float64 {
	sure := 1.0
	for _, f := range s.tail {
		if f.likely {
			sure *= 0.9
		}
	}
	if s.before != 3 {
		sure *= 0.9
	}
	return sure
}

func (s *shape) why() string {
	var likely []string
	for _, f := range s.tail {
		if f.likely {
			likely = append(likely, f.code)
		}
	}
	if len(likely) == 0 {
		return "the shape of its fields"
	}
	return "the shape of its fields; taken by likelihood: " + strings.Join(likely, ", ")
}
