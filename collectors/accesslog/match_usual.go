package accesslog

import "bytes"

// Nearly every line begins with the same six fields, and is read here in one go;
// what is odd in any way goes the long way in match.go.

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
