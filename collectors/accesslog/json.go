package accesslog

import (
	"bytes"
	"strings"
)

// JsonAccessLogValve writes one flat object a line whose values are strings, a
// dash for none, with inner objects for headers, cookies and attributes. Its
// keys are named here as read in apache/tomcat; a code with an argument is
// key-argument ("time-begin:msec", "elapsedTimeS-us").
var jsonKeys = map[string]code{
	"host": cHost, "remoteAddr": cHost, "time": cCLF, "request": cRequest, "statusCode": cStatus,
	"size": cBytes, "byteSentNC": cBytes, "elapsedTime": cDuration, "elapsedTimeS": cDuration,
	"firstByteTime": cFirst, "threadName": cThread, "connectionStatus": cConn,
	"method": cMethod, "path": cPath, "query": cQuery, "protocol": cProtocol,
}

// maxJSONKeys bounds the keys remembered: a stranger's file may have any.
const maxJSONKeys = 256

type jsonPlan struct{ keys map[string]op }

func (m *Matcher) compileJSON(pattern string) error {
	m.json = &jsonPlan{keys: map[string]op{}}
	m.gathers = true
	micro, known := microsecondTomcat(m.opt.ServerVersion)
	if pattern == "" {
		// A bare file: what it logs is seen line by line.
		m.has = HasStatus | HasBytes | HasRequest | HasEnd
		switch {
		case m.opt.DurationUnit != "":
			m.unit = m.opt.DurationUnit
		case micro:
			m.unit = "us"
		case known:
			m.unit = "ms"
		default:
			m.unit = "unknown"
		}
		return nil
	}
	if p, ok := aliases[pattern]; ok {
		m.pattern = p
	}
	elems, err := tomcatElems(pattern, m.opt)
	if err != nil {
		return err
	}
	m.chooseDuration(elems)
	for _, e := range elems {
		m.note(e)
	}
	m.gathers = true
	return nil
}

// key finds out what a key means, once.
func (m *Matcher) key(k []byte) op {
	if o, ok := m.json.keys[string(k)]; ok {
		return o
	}
	name, arg, _ := strings.Cut(string(k), "-")
	e := elem{code: cFree}
	switch c, known := jsonKeys[name]; {
	case !known:
		e.code = headerCode(string(k))
	case name == "elapsedTime":
		tomcatPlain(&e, 'D', m.opt)
		e.code = cDuration
	case name == "elapsedTimeS":
		if arg != "" {
			tomcatBraced(&e, arg, 'T', m.opt)
		} else {
			tomcatPlain(&e, 'T', m.opt)
		}
		e.code = cDuration
	case name == "time":
		e.code = timeCode(&e, arg, m.opt)
	default:
		e.code = c
	}
	o := op{code: e.code, begin: e.begin, per: e.per, whole: e.whole, dates: e.dates}
	if o.code == cDuration && o.per == 0 {
		o.code = cFree
	}
	if len(m.json.keys) < maxJSONKeys {
		m.json.keys[string(k)] = o
	}
	return o
}

func (m *Matcher) parseJSON(b []byte, r *Record) Refusal {
	m.beginCivil, m.endCivil = civil{}, civil{}
	m.beginFracSet, m.endFracSet = false, false
	p := blanks(b, 0)
	if p >= len(b) || b[p] != '{' {
		return BadJSON
	}
	p, refusal := m.object(b, p+1, r, false, new(float64))
	if refusal != Accepted {
		return refusal
	}
	if blanks(b, p) != len(b) {
		return BadJSON
	}
	if r.Has&(HasStatus|HasRequest) == 0 {
		return BadStatus // an object, but no request's
	}
	return Accepted
}

// object reads the members of an object whose brace has been taken. per is the
// resolution of the duration taken so far.
func (m *Matcher) object(b []byte, p int, r *Record, inner bool, per *float64) (int, Refusal) {
	for {
		p = blanks(b, p)
		switch {
		case p >= len(b):
			return p, Truncated
		case b[p] == '}':
			return p + 1, Accepted
		case b[p] == ',':
			p++
			continue
		case b[p] != '"':
			return p, BadJSON
		}
		e := stringEnd(b, p+1)
		if e < 0 {
			return p, Truncated
		}
		key := b[p+1 : e]
		p = blanks(b, e+1)
		if p >= len(b) {
			return p, Truncated
		}
		if b[p] != ':' {
			return p, BadJSON
		}
		p = blanks(b, p+1)
		if p >= len(b) {
			return p, Truncated
		}
		var value []byte
		switch {
		case b[p] == '"':
			if e = stringEnd(b, p+1); e < 0 {
				return p, Truncated
			}
			value, p = b[p+1:e], e+1
		case b[p] == '{' && !inner:
			var refusal Refusal
			if p, refusal = m.object(b, p+1, r, true, per); refusal != Accepted {
				return p, refusal
			}
			continue
		case b[p] == '{' || b[p] == '[':
			if p = skipNested(b, p); p < 0 {
				return len(b), Truncated
			}
			continue
		default: // a number, or a word
			e = p
			for e < len(b) && b[e] != ',' && b[e] != '}' && b[e] != ' ' {
				e++
			}
			if e == p {
				return p, BadJSON
			}
			value, p = b[p:e], e
		}
		if inner {
			if o := m.key(key); o.code == cTrace {
				r.take(cTrace, value)
			}
			continue
		}
		if refusal := m.member(key, value, r, per); refusal != Accepted {
			return p, refusal
		}
	}
}

func (m *Matcher) member(key, v []byte, r *Record, per *float64) Refusal {
	o := m.key(key)
	switch o.code {
	case cFree, cWord:
	case cTrace, cRequest:
		r.take(o.code, v)
	case cHost, cThread, cMethod, cPath, cTarget, cQuery, cProtocol:
		r.word(o.code, v)
	case cDuration:
		if o.per > *per || *per == 0 {
			*per = o.per
			if m.duration(v, 0, &o, r) != len(v) {
				return BadNumber
			}
			r.Coarse = r.Coarse || o.whole
		}
	case cCLF:
		v = bytes.TrimSuffix(bytes.TrimPrefix(v, []byte("[")), []byte("]"))
		return m.one(v, o, r)
	default:
		return m.one(v, o, r)
	}
	return Accepted
}

// one runs a single bounded operation over a whole value.
func (m *Matcher) one(v []byte, o op, r *Record) Refusal {
	switch o.code {
	case cStatus:
		if n, q := digits(v, 0); q == 3 && q == len(v) {
			r.Status = int(n)
			r.Has |= HasStatus
			return Accepted
		}
		if string(v) == "-" || string(v) == "0" {
			return Accepted
		}
		return BadStatus
	case cBytes:
		if n, q := digits(v, 0); q > 0 && q == len(v) {
			r.Bytes = n
			r.Has |= HasBytes
			return Accepted
		}
	case cFirst:
		if n, q, _ := decimal(v, 0); q > 0 && q == len(v) {
			if n >= 0 {
				r.FirstByte = n / 1e3
				r.Has |= HasFirstByte
			}
			return Accepted
		}
	case cConn:
		if len(v) == 1 && (v[0] == 'X' || v[0] == '+' || v[0] == '-') {
			r.Conn = v[0]
			r.Has |= HasConn
			return Accepted
		}
		return Mismatch
	case cCLF:
		if len(v) == clfLen {
			u, ok := clf(v)
			if !ok {
				return BadTime
			}
			if o.begin {
				if !r.MillisBegin {
					r.Begin = u * 1000
				}
				r.Has |= HasBegin
			} else {
				if !r.MillisEnd {
					r.End = u * 1000
				}
				r.Has |= HasEnd
			}
			return Accepted
		}
	case cSeconds, cMillis, cFraction, cDate:
		if m.time(v, 0, &o, r) == len(v) {
			return Accepted
		}
		return BadTime
	default:
		return Accepted
	}
	if len(v) == 0 || string(v) == "-" {
		return Accepted
	}
	if o.code == cCLF {
		return BadTime
	}
	return BadNumber
}

func blanks(b []byte, p int) int {
	for p < len(b) && (b[p] == ' ' || b[p] == '\t' || b[p] == '\r') {
		p++
	}
	return p
}

// stringEnd is the place of the quote that ends a JSON string, or -1.
func stringEnd(b []byte, p int) int {
	for {
		n := bytes.IndexByte(b[min(p, len(b)):], '"')
		if n < 0 {
			return -1
		}
		if !escaped(b, p, p+n) {
			return p + n
		}
		p += n + 1
	}
}

// skipNested gets over an object or array, or is -1 when it does not end.
func skipNested(b []byte, p int) int {
	depth := 0
	for p < len(b) {
		switch b[p] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return p + 1
			}
		case '"':
			if p = stringEnd(b, p+1); p < 0 {
				return -1
			}
		}
		p++
	}
	return -1
}
