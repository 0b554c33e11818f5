package accesslog

import (
	"bytes"
	"fmt"
	"strings"
)

// A W3C log says itself what is in it: its #Fields line, written again whenever
// the server starts, wins over the settings. But a pattern that Tomcat could
// not read to its end leaves a #Fields line with more names than the records
// have columns (seen: 13 and 11), so the columns that are there are taken and
// the missing ones are missing.
type w3cPlan struct {
	fields []op
	// need is the number of columns without which a line is a cut one: up to
	// the status.
	need int
}

func (m *Matcher) compileW3C(pattern string) error {
	m.gathers = true
	pattern = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(pattern), "#Fields:"))
	m.pattern = pattern
	if pattern == "" { // the file will say
		m.w3c = &w3cPlan{}
		m.unit = "none"
		return nil
	}
	names := strings.Fields(pattern)
	if len(names) > 250 {
		return fmt.Errorf("w3c: more than 250 fields")
	}
	elems := make([]elem, len(names))
	for i, n := range names {
		elems[i] = m.w3cElem(n)
	}
	m.unit, m.whole, m.has, m.derive = "none", false, 0, false
	m.chooseDuration(elems)
	plan := &w3cPlan{}
	for i, e := range elems {
		plan.fields = append(plan.fields, op{code: e.code, begin: e.begin, per: e.per, whole: e.whole, dates: e.dates, utc: true})
		m.note(e)
		if e.code == cStatus {
			plan.need = i + 1
		}
	}
	m.gathers = true
	if plan.need == 0 {
		plan.need = len(elems)
	}
	m.w3c = plan
	return nil
}

var (
	w3cDate = dateOps("yyyy-MM-dd")
	w3cTime = dateOps("HH:mm:ss")
)

// w3cElem knows the fields of ExtendedAccessLogValve. Its date and time are
// GMT, and those of the request's start.
func (m *Matcher) w3cElem(name string) elem {
	e := elem{text: name, code: cFree}
	switch name {
	case "date":
		e.code, e.begin, e.dates = cDate, true, w3cDate
	case "time":
		e.code, e.begin, e.dates = cDate, true, w3cTime
	case "c-ip", "c-dns":
		e.code = cHost
	case "cs-method":
		e.code = cMethod
	case "cs-uri":
		e.code = cTarget
	case "cs-uri-stem":
		e.code = cPath
	case "cs-uri-query":
		e.code = cQuery
	case "cs-version":
		e.code = cProtocol
	case "sc-status":
		e.code = cStatus
	case "bytes", "sc-bytes":
		e.code = cBytes
	case "x-threadname":
		e.code = cThread
	case "time-taken":
		// Seconds in every version: with three decimals up to Tomcat 9, whole
		// from 10 on.
		micro, _ := microsecondTomcat(m.opt.ServerVersion)
		e.code, e.per, e.whole = cDuration, 1, micro
	case "time-taken-s":
		e.code, e.per, e.whole = cDuration, 1, true
	case "time-taken-ms":
		e.code, e.per = cDuration, 1e3
	case "time-taken-us":
		e.code, e.per = cDuration, 1e6
	case "time-taken-ns":
		e.code, e.per = cDuration, 1e9
	case "time-taken-fracsec":
		e.code, e.per = cDuration, 1
	default:
		if open := strings.IndexByte(name, '('); open > 0 && strings.HasSuffix(name, ")") {
			e.code = headerCode(name[open+1 : len(name)-1])
		}
	}
	return e
}

func (m *Matcher) parseW3C(b []byte, r *Record) Refusal {
	m.beginCivil, m.endCivil = civil{}, civil{}
	m.beginFracSet, m.endFracSet = false, false
	if len(b) > 0 && b[0] == '#' {
		if rest, ok := bytes.CutPrefix(b, []byte("#Fields:")); ok {
			if s := strings.TrimSpace(string(rest)); s != "" && s != m.pattern && len(s) < 8192 {
				_ = m.compileW3C(s) // more than 250 fields: keep what we had
			}
		}
		return Directive
	}
	plan := m.w3c
	if len(plan.fields) == 0 {
		return Mismatch // no #Fields line was seen, and no setting says
	}
	p, column := 0, 0
	for {
		p = blanks(b, p)
		if p >= len(b) {
			break
		}
		if column >= len(plan.fields) {
			return Mismatch
		}
		var v []byte
		if b[p] == '"' {
			e := doubledEnd(b, p+1)
			if e < 0 {
				return Truncated
			}
			v, p = b[p+1:e], e+1
		} else {
			e := p
			for e < len(b) && b[e] != ' ' && b[e] != '\t' && b[e] != '\r' {
				e++
			}
			v, p = b[p:e], e
		}
		o := &plan.fields[column]
		column++
		if refusal := m.column(v, o, r); refusal != Accepted {
			if p >= len(b) {
				return Truncated
			}
			return refusal
		}
	}
	if column < plan.need {
		if column == 0 {
			return Empty
		}
		return Truncated
	}
	return Accepted
}

func (m *Matcher) column(v []byte, o *op, r *Record) Refusal {
	switch o.code {
	case cFree, cWord:
	case cTrace:
		r.take(cTrace, v)
	case cHost, cThread, cMethod, cPath, cTarget, cQuery, cProtocol:
		r.word(o.code, v)
	case cDuration:
		if m.duration(v, 0, o, r) != len(v) {
			return BadNumber
		}
		r.Coarse = r.Coarse || o.whole
	case cNumber:
	case cDate:
		if n := m.beginCivil.parse(o.dates, v); n != len(v) && string(v) != "-" {
			return BadTime
		}
		m.beginCivil.zone = 0
		m.beginCivil.has |= hasZone
	default:
		return m.one(v, *o, r)
	}
	return Accepted
}

// doubledEnd is the place of the quote that ends a quoted column, in which a
// quote is written twice, or -1.
func doubledEnd(b []byte, p int) int {
	for p < len(b) {
		if b[p] == '"' {
			if p+1 < len(b) && b[p+1] == '"' {
				p += 2
				continue
			}
			return p
		}
		p++
	}
	return -1
}
