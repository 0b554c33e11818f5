package accesslog

import "time"

// Numbers, durations and stamps, and the instants made of them.

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
