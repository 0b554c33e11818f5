package accesslog

import (
	"bytes"
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
