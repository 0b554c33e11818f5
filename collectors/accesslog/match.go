package accesslog

import (
	"bytes"
	"time"
)

// maxTries bounds the search for the end of a free field, so that a hostile
// line of many quotes costs no more than its length.
const maxTries = 256

// Parse reads one line into rec, all of which it overwrites. It allocates
// nothing.
func (m *Matcher) Parse(line []byte, rec *Record) Refusal {
	*rec = Record{}
	var refusal Refusal
	switch {
	case m.json != nil:
		refusal = m.parseJSON(line, rec)
	case m.w3c != nil:
		refusal = m.parseW3C(line, rec)
	default:
		refusal = m.match(line, rec)
	}
	if refusal != Accepted {
		if refusal != Directive {
			refusal = blame(line, refusal)
		}
		return refusal
	}
	if m.gathers {
		m.combine(rec)
	}
	if m.derive && rec.Has&(HasBegin|HasEnd) == HasBegin|HasEnd {
		rec.setDuration(float64(rec.End-rec.Begin) / 1e3)
	}
	return Accepted
}

// blame finds out whether the line was a line of text at all.
func blame(line []byte, r Refusal) Refusal {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return Empty
	case line[0] < ' ' && line[0] != '\t', bytes.IndexByte(line, 0) >= 0:
		return Binary
	}
	return r
}

func (r *Record) setDuration(seconds float64) {
	if seconds < 0 {
		r.Negative = true
		r.Has &^= HasDuration
		return
	}
	r.Duration = seconds
	r.Has |= HasDuration
}

// match runs the pattern over a line: bounded fields from the left up to a free
// one, then the free one with what follows it.
func (m *Matcher) match(b []byte, r *Record) Refusal {
	if m.gathers {
		m.beginCivil, m.endCivil = civil{}, civil{}
		m.beginFracSet, m.endFracSet = false, false
	}
	if n := len(m.prefix); n > 0 {
		if len(b) < n || string(b[:n]) != m.prefix {
			return Mismatch
		}
		b = b[n:]
	}
	if m.usual > 0 {
		if p := m.head(b, r); p > 0 {
			if i, _, refusal := m.run(b, p, m.usual, r); refusal == Accepted && i == len(m.ops) {
				return Accepted
			}
		}
		*r = Record{} // something odd: the long way
	}
	i, p, refusal := m.run(b, 0, 0, r)
	for refusal == Accepted && i < len(m.ops) {
		i, p, refusal = m.free(b, p, i, r)
	}
	return refusal
}

// usualOps are the codes that nearly every access log begins with:
//
//	%h %l %u [%t] "%r" %s
var usualOps = []struct {
	code code
	end  string
}{{cHost, " "}, {cWord, " "}, {cWord, " ["}, {cCLF, `] "`}, {cRequest, `" `}, {cStatus, " "}}

// findUsual says whether the pattern begins so and has no free field behind it
// that would leave the end of the request open to doubt.
func (m *Matcher) findUsual() {
	m.usual = 0
	if len(m.prefix) > 0 || len(m.ops) <= len(usualOps) || m.gathers {
		return
	}
	for i, u := range usualOps {
		if m.ops[i].code != u.code || m.ops[i].end != u.end {
			return
		}
	}
	for _, o := range m.ops[len(usualOps):] {
		if o.code.free() {
			return
		}
	}
	m.usual = len(usualOps)
}

// head reads %h %l %u [%t] "%r" %s in one go, and says where the rest begins;
// 0 means that something is not as usual.
func (m *Matcher) head(b []byte, r *Record) int {
	p := 0
	for p < len(b) && b[p] != ' ' {
		p++
	}
	r.Host = b[:p]
	if len(b) < p+len(" - - [")+clfLen+len(`] "`) || string(b[p:p+4]) != " - -" {
		if p = m.user(b, p); p == 0 {
			return 0
		}
	} else {
		p += 4
	}
	if string(b[p:p+2]) != " [" {
		return 0
	}
	p += 2
	stamp := (*[clfLen]byte)(b[p:])
	if !m.clfSet || *stamp != m.clf {
		u, ok := clf(stamp[:])
		if !ok {
			return 0
		}
		m.clf, m.clfMillis, m.clfSet = *stamp, u*1000, true
	}
	if m.ops[3].begin {
		r.Begin = m.clfMillis
		r.Has |= HasBegin
	} else {
		r.End = m.clfMillis
		r.Has |= HasEnd
	}
	p += clfLen
	if string(b[p:p+3]) != `] "` {
		return 0
	}
	p += 3
	n := bytes.IndexByte(b[p:], '"')
	if n < 8 || len(b) < p+n+6 {
		return 0
	}
	q := p + n
	s := b[q : q+6 : q+6] // `" 200 `
	if s[1] != ' ' || !isDigit(s[2]) || !isDigit(s[3]) || !isDigit(s[4]) || s[5] != ' ' || string(b[q-8:q-3]) != "HTTP/" {
		return 0
	}
	r.request(b[p:q])
	r.Status = int(s[2])*100 + int(s[3])*10 + int(s[4]) - '0'*111
	r.Has |= HasStatus
	return q + 6
}

// user gets over %l and %u where they are not both a dash, up to the blank and
// bracket behind them; 0 means that they are not as usual.
func (m *Matcher) user(b []byte, p int) int {
	if len(b) < p+3 || b[p] != ' ' {
		return 0
	}
	for p++; p < len(b) && b[p] != ' '; p++ {
	}
	for p++; p < len(b) && b[p] != ' '; p++ {
	}
	if len(b) < p+len(" [")+clfLen+len(`] "`) {
		return 0
	}
	return p
}

// run executes operations from i on, until the next free field (i is its index
// then) or to the end of the line.
func (m *Matcher) run(b []byte, p, i int, r *Record) (int, int, Refusal) {
	for ; i < len(m.ops); i++ {
		o := &m.ops[i]
		switch o.code {
		case cWord, cHost, cThread, cMethod, cPath, cQuery, cTarget, cProtocol:
			q := wordEnd(b, p, o)
			if q < 0 {
				if bytes.IndexByte(b[min(p, len(b)):], ' ') >= 0 {
					return i, p, Mismatch
				}
				return i, p, Truncated
			}
			if o.code != cWord {
				r.word(o.code, b[p:q])
			}
			p = q + len(o.end)
			continue
		case cStatus:
			switch {
			case p+3 <= len(b) && isDigit(b[p]) && isDigit(b[p+1]) && isDigit(b[p+2]):
				r.Status = int(b[p]-'0')*100 + int(b[p+1]-'0')*10 + int(b[p+2]-'0')
				r.Has |= HasStatus
				p += 3
			case p < len(b) && (b[p] == '-' || b[p] == '0'):
				r.Status = 0
				r.Has &^= HasStatus
				p++
			case p >= len(b):
				return i, p, Truncated
			default:
				return i, p, BadStatus
			}
		case cBytes:
			v, q := digits(b, p)
			if q > p {
				r.Bytes = v
				r.Has |= HasBytes
				p = q
			} else if q = dash(b, p); q > p {
				r.Bytes = 0
				r.Has &^= HasBytes
				p = q
			} else {
				return i, p, short(b, p, BadNumber)
			}
		case cDuration:
			q := m.duration(b, p, o, r)
			if q <= p {
				return i, p, short(b, p, BadNumber)
			}
			p = q
		case cFirst:
			v, q, _ := decimal(b, p)
			if q > p {
				r.FirstByte = v / 1e3
				r.Has |= HasFirstByte
				if v < 0 {
					r.Has &^= HasFirstByte
				}
				p = q
			} else if q = dash(b, p); q > p {
				r.Has &^= HasFirstByte
				p = q
			} else {
				return i, p, short(b, p, BadNumber)
			}
		case cCLF:
			if len(b)-p < clfLen {
				if dash(b, p) > p { // Jetty's conditional left it out
					p++
					break
				}
				return i, p, Truncated
			}
			stamp := (*[clfLen]byte)(b[p:])
			if !m.clfSet || *stamp != m.clf {
				u, ok := clf(stamp[:])
				if !ok {
					return i, p, BadTime
				}
				m.clf, m.clfMillis, m.clfSet = *stamp, u*1000, true
			}
			if o.begin {
				if !r.MillisBegin {
					r.Begin = m.clfMillis
				}
				r.Has |= HasBegin
			} else {
				if !r.MillisEnd {
					r.End = m.clfMillis
				}
				r.Has |= HasEnd
			}
			p += clfLen
		case cConn:
			if p >= len(b) {
				return i, p, Truncated
			}
			if c := b[p]; c != 'X' && c != '+' && c != '-' {
				return i, p, Mismatch
			}
			r.Conn = b[p]
			r.Has |= HasConn
			p++
		case cNumber:
			_, q, _ := decimal(b, p)
			if q <= p {
				q = dash(b, p)
			}
			if q <= p {
				return i, p, short(b, p, BadNumber)
			}
			p = q
		case cSeconds, cMillis, cFraction, cDate:
			q := m.time(b, p, o, r)
			if q <= p {
				return i, p, short(b, p, BadTime)
			}
			p = q
		case cOpen, cShut:
			if p < len(b) && (o.code == cOpen && b[p] == '[' || o.code == cShut && b[p] == ']') {
				p++
			}
		case cBlanks:
			p = blanks(b, p)
		case cPercent:
			switch {
			case p < len(b) && b[p] == '%':
				p++
			case bytes.HasPrefix(b[min(p, len(b)):], []byte("???%???")):
				p += len("???%???")
			default:
				return i, p, short(b, p, Mismatch)
			}
		default: // a free field
			return i, p, Accepted
		}
		switch {
		case len(o.end) == 0:
		case p >= len(b):
			return i, p, Truncated
		case b[p] != o.e0:
			return i, p, Mismatch
		case len(o.end) == 1:
			p++
		case len(b)-p < len(o.end) || string(b[p:p+len(o.end)]) != o.end:
			return i, p, short(b, p+len(o.end)-1, Mismatch)
		default:
			p += len(o.end)
		}
	}
	for q := p; q < len(b); q++ {
		if c := b[q]; c != ' ' && c != '\r' && c != '\t' {
			return i, p, Mismatch
		}
	}
	return i, p, Accepted
}

// short says Truncated where the line ended, and otherwise the given reason.
func short(b []byte, p int, r Refusal) Refusal {
	if p >= len(b) {
		return Truncated
	}
	return r
}

// wordEnd is where a word ends, or -1.
func wordEnd(b []byte, p int, o *op) int {
	if p > len(b) {
		return -1
	}
	switch len(o.end) {
	case 0:
		if o.code == cThread { // a thread's name may hold blanks
			q := len(b)
			for q > p && (b[q-1] == ' ' || b[q-1] == '\r') {
				q--
			}
			return q
		}
		for q := p; q < len(b); q++ {
			if b[q] == ' ' || b[q] == '\r' {
				return q
			}
		}
		return len(b)
	case 1:
		for q := p; q < len(b); q++ {
			if b[q] == o.e0 {
				return q
			}
		}
		return -1
	}
	for q := p; q+len(o.end) <= len(b); q++ {
		if b[q] == o.e0 && string(b[q:q+len(o.end)]) == o.end {
			return q
		}
	}
	return -1
}

func (r *Record) word(c code, w []byte) {
	switch c {
	case cHost:
		r.Host = w
	case cThread:
		r.Thread = w
		r.Has |= HasThread
	case cMethod:
		r.RawMethod = w
		r.Method = methodOf(w)
		r.Has |= HasRequest
		if len(w) == 0 || string(w) == "-" {
			r.Nameless = true
		}
	case cPath, cTarget:
		nameless := r.Nameless
		r.target(w)
		r.Nameless = r.Nameless || nameless
		r.Has |= HasRequest
	case cQuery:
		r.Query = w
	case cProtocol:
		r.Protocol = w
	}
}

// free finds the end of a free field: the first place (or, for the last free
// field of a pattern, the last place) where its literal is followed by what the
// pattern wants up to the next free field or the end of the line.
func (m *Matcher) free(b []byte, p, i int, r *Record) (int, int, Refusal) {
	o := &m.ops[i]
	if o.end == "" {
		r.take(o.code, bytes.TrimRight(b[p:], " \r\t"))
		return len(m.ops), len(b), Accepted
	}
	if o.last && o.code != cRequest {
		return m.freeRight(b, p, i, r)
	}
	refusal := Truncated
	weak := -1
	for pass := 0; pass < 2; pass++ {
		skipped := false
		q := p
		for tries := 0; tries < maxTries; tries++ {
			n := index(b, q, o.end, o.e0)
			if n < 0 {
				break
			}
			q = n + 1
			if pass == 0 && m.escapes && o.e0 == '"' && escaped(b, p, n) {
				skipped = true
				continue
			}
			ni, np, why := m.run(b, n+len(o.end), i+1, r)
			if why != Accepted {
				if refusal == Truncated {
					refusal = why
				}
				continue
			}
			// A client may have planted this in an old server's protocol: take
			// a later place where the request ends as requests do, if any.
			if o.code == cRequest && !endsLikeRequest(b[p:n]) {
				if weak < 0 {
					weak = n
				}
				continue
			}
			r.take(o.code, b[p:n])
			return ni, np, Accepted
		}
		if weak >= 0 {
			ni, np, why := m.run(b, weak+len(o.end), i+1, r)
			r.take(o.code, b[p:weak])
			return ni, np, why
		}
		if !skipped {
			break
		}
	}
	return i, p, refusal
}

func (m *Matcher) freeRight(b []byte, p, i int, r *Record) (int, int, Refusal) {
	o := &m.ops[i]
	refusal := Truncated
	n := len(b)
	if i == len(m.ops)-1 { // only the literal is left, and perhaps blanks
		n = len(bytes.TrimRight(b, " \r\t"))
		n = max(n, p)
		n = min(len(b), n+len(o.end)-1)
	}
	for tries := 0; tries < maxTries; tries++ {
		if n = lastIndex(b[:n], p, o.end); n < 0 {
			break
		}
		ni, np, why := m.run(b, n+len(o.end), i+1, r)
		if why == Accepted {
			r.take(o.code, b[p:n])
			return ni, np, Accepted
		}
		if refusal == Truncated {
			refusal = why
		}
		n += len(o.end) - 1
	}
	return i, p, refusal
}

func (r *Record) take(c code, b []byte) {
	switch c {
	case cRequest:
		r.request(b)
	case cTrace:
		if len(b) > 0 && string(b) != "-" {
			r.Trace = b
			r.Has |= HasTrace
		}
	}
}

// index is bytes.Index from p on, made for a literal of a byte or two.
func index(b []byte, p int, lit string, first byte) int {
	for p < len(b) {
		n := bytes.IndexByte(b[p:], first)
		if n < 0 || len(b)-p-n < len(lit) {
			return -1
		}
		p += n
		if string(b[p:p+len(lit)]) == lit {
			return p
		}
		p++
	}
	return -1
}

// lastIndex is the last place of lit in b that is not before p.
func lastIndex(b []byte, p int, lit string) int {
	for q := len(b) - len(lit); q >= p; q-- {
		if b[q] == lit[0] && string(b[q:q+len(lit)]) == lit {
			return q
		}
	}
	return -1
}

// escaped says whether an odd number of backslashes stands before n.
func escaped(b []byte, p, n int) bool {
	odd := false
	for n--; n >= p && b[n] == '\\'; n-- {
		odd = !odd
	}
	return odd
}

// endsLikeRequest says whether a request line could end here: with a protocol,
// with nothing where HTTP/0.9 has none, or with what stands for no request.
func endsLikeRequest(b []byte) bool {
	n := len(b)
	switch {
	case n >= 8 && string(b[n-8:n-3]) == "HTTP/":
		return true
	case n == 0, b[n-1] == ' ', b[n-1] == '-':
		return true
	case n >= 4 && string(b[n-4:]) == "null":
		return true
	}
	return n >= 6 && string(b[n-6:n-1]) == "HTTP/" // HTTP/2, HTTP/3
}

// digits reads an unsigned number.
func digits(b []byte, p int) (v int64, q int) {
	for q = p; q < len(b) && b[q]-'0' <= 9; q++ {
		v = v*10 + int64(b[q]-'0')
	}
	if q-p > 18 {
		return 0, p
	}
	return v, q
}

// decimal reads a number that may have a sign and a fraction.
func decimal(b []byte, p int) (v float64, q int, fraction bool) {
	q = p
	negative := q < len(b) && b[q] == '-'
	if negative {
		q++
	}
	n, e := digits(b, q)
	if e == q {
		return 0, p, false
	}
	q = e
	v = float64(n)
	if q+1 < len(b) && (b[q] == '.' || b[q] == ',') && isDigit(b[q+1]) {
		f, e := digits(b, q+1)
		if e == q+1 {
			return 0, p, false
		}
		scale := 1.0
		for k := q + 1; k < e; k++ {
			scale *= 10
		}
		v = (v*scale + float64(f)) / scale
		q, fraction = e, true
	}
	if negative {
		v = -v
	}
	return v, q, fraction
}

func dash(b []byte, p int) int {
	if p < len(b) && b[p] == '-' {
		return p + 1
	}
	return p
}

func (m *Matcher) duration(b []byte, p int, o *op, r *Record) int {
	// The usual case first: an unsigned whole number.
	if v, q := digits(b, p); q > p && (q >= len(b) || b[q] != '.' && b[q] != ',') {
		r.Duration = float64(v) / o.per
		r.Has |= HasDuration
		r.Coarse, r.Negative = o.per == 1, false
		return q
	}
	v, q, fraction := decimal(b, p)
	if q > p {
		r.Coarse, r.Negative = o.per == 1 && !fraction, false
		r.setDuration(v / o.per)
		return q
	}
	r.Has &^= HasDuration
	return dash(b, p)
}

// time reads the stamps that are no CLF.
func (m *Matcher) time(b []byte, p int, o *op, r *Record) int {
	var v int64
	q := p
	if o.code == cDate {
		t := &m.endCivil
		if o.begin {
			t = &m.beginCivil
		}
		n := t.parse(o.dates, b[p:])
		if n < 0 {
			if dash(b, p) > p {
				return p + 1
			}
			// Another language's month, most likely: the line still counts.
			if e := wordEnd(b, p, o); e > p && o.end != "" {
				*t = civil{}
				return e
			}
			return p
		}
		if o.utc {
			t.zone = 0
			t.has |= hasZone
		}
		return p + n
	}
	if v, q = digits(b, p); q == p {
		return dash(b, p)
	}
	millis := false
	switch o.code {
	case cSeconds:
		v *= 1000
	case cMillis:
		millis = true
	case cFraction:
		if o.begin {
			m.beginFrac, m.beginFracSet = v, true
		} else {
			m.endFrac, m.endFracSet = v, true
		}
		return q
	}
	if o.begin {
		r.Has |= HasBegin
		if millis || !r.MillisBegin {
			r.Begin, r.MillisBegin = v, r.MillisBegin || millis
		}
	} else {
		r.Has |= HasEnd
		if millis || !r.MillisEnd {
			r.End, r.MillisEnd = v, r.MillisEnd || millis
		}
	}
	return q
}

// combine makes instants of the pieces gathered.
func (m *Matcher) combine(r *Record) {
	if !r.MillisBegin {
		if ms, exact, ok := m.beginCivil.instant(&m.beginZone); ok {
			r.Begin, r.MillisBegin = ms, exact
			r.Has |= HasBegin
		}
		if m.beginFracSet && r.Has&HasBegin != 0 {
			r.Begin, r.MillisBegin = r.Begin/1000*1000+m.beginFrac, true
		}
	}
	if !r.MillisEnd {
		if ms, exact, ok := m.endCivil.instant(&m.endZone); ok {
			r.End, r.MillisEnd = ms, exact
			r.Has |= HasEnd
		}
		if m.endFracSet && r.Has&HasEnd != 0 {
			r.End, r.MillisEnd = r.End/1000*1000+m.endFrac, true
		}
	}
}

func (t *civil) instant(z *zoner) (ms int64, exact, ok bool) {
	if t.has&(hasDate|hasClock) != hasDate|hasClock || t.month == 0 || t.day == 0 {
		return 0, false, false
	}
	var u int64
	if t.has&hasZone != 0 {
		u = int64(days(t.year, t.month, t.day))*86400 + int64(t.hour*3600+t.minute*60+t.second-t.zone)
	} else {
		u = z.unix(t)
	}
	return u*1000 + int64(t.ms), t.has&hasMillis != 0, true
}

// Zone sets the zone of time stamps that carry none.
func (m *Matcher) Zone(loc *time.Location) { m.beginZone.loc, m.endZone.loc = loc, loc }
