package gclog

import (
	"bytes"
	"time"
)

// A Stamp is what a line says about its time. Uptime counts seconds since the
// JVM's start and is the clock for rates: wall clocks are set back now and then.
type Stamp struct {
	Uptime  float64 `json:"up,omitempty"`
	Wall    float64 `json:"wall,omitempty"` // Unix time
	HasUp   bool    `json:"has_up,omitempty"`
	HasWall bool    `json:"has_wall,omitempty"`
	// Millis says that the wall time was printed as milliseconds since 1970, so
	// that is how it is shown again.
	Millis bool `json:"millis,omitempty"`
	// Zone is the offset from UTC that the date was printed with, in seconds.
	Zone int `json:"zone,omitempty"`
}

// date writes the wall time as the log has it.
func (s Stamp) date() any {
	if !s.HasWall {
		return nil
	}
	return time.UnixMilli(int64(s.Wall*1000 + .5)).In(time.FixedZone("", s.Zone)).Format("2006-01-02T15:04:05.000-0700")
}

// Seconds is the stamp on the better clock it has, and whether it has one.
func (s Stamp) Seconds() (float64, bool) {
	if s.HasUp {
		return s.Uptime, true
	}
	return s.Wall, s.HasWall
}

func two(b []byte) int { return int(b[0]-'0')*10 + int(b[1]-'0') }

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// date reads "2020-01-02T03:04:05.678+0100" at the start of b: 28 bytes, or 23
// where the zone is lacking.
func date(b []byte) (wall float64, zone, n int) {
	if len(b) < 23 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || (b[19] != '.' && b[19] != ',') {
		return 0, 0, 0
	}
	if !allDigits(b[0:4]) || !allDigits(b[5:7]) || !allDigits(b[8:10]) || !allDigits(b[11:13]) || !allDigits(b[14:16]) || !allDigits(b[17:19]) || !allDigits(b[20:23]) {
		return 0, 0, 0
	}
	month, day := two(b[5:]), two(b[8:])
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, 0, 0
	}
	milli := int(b[20]-'0')*100 + two(b[21:])
	// The days since 1970, with years that begin in March: the leap day is last.
	year := two(b)*100 + two(b[2:])
	m := month - 3
	if m < 0 {
		m, year = m+12, year-1
	}
	days := 365*year + year/4 - year/100 + year/400 + (153*m+2)/5 + day - 1 - 719468
	unix := int64(days)*86400 + int64(two(b[11:])*3600+two(b[14:])*60+two(b[17:]))
	n = 23
	if len(b) >= 28 && (b[23] == '+' || b[23] == '-') && allDigits(b[24:28]) {
		zone = (two(b[24:])*60 + two(b[26:])) * 60
		if b[23] == '-' {
			zone = -zone
		}
		n = 28
	}
	return float64((unix-int64(zone))*1000+int64(milli)) / 1000, zone, n
}

// legacyStamp reads "date: uptime: ", "date: " or "uptime: " at the start of a
// JDK 8 line. n is how much of the line it takes; 0 when the line has none, or
// a torn one.
func legacyStamp(b []byte) (s Stamp, n int) {
	if len(b) == 0 || !isDigit(b[0]) {
		return s, 0
	}
	if w, zone, k := date(b); k > 0 {
		if k+1 < len(b) && b[k] == ':' {
			s.Wall, s.HasWall, s.Zone = w, true, zone
			n = k + 1 + spaces(b[k+1:])
		} else {
			return s, 0
		}
	}
	mant, frac, k := number(b[n:])
	if k > 0 && frac > 0 && n+k < len(b) && b[n+k] == ':' {
		s.Uptime, s.HasUp = scaled(mant, frac, 0), true
		n += k + 1
		n += spaces(b[n:])
	}
	return s, n
}

// decorations walks over "[...][...] " at the start of a unified line. What it
// finds stands in d; it answers where the message begins, 0 when this is no
// decorated line.
type decorations struct {
	tags     []byte // trimmed; nil without a tags decoration
	hasTags  bool
	end      int // behind the last bracket
	message  int // where the message begins
	spans    [16]span
	n        int
	hasLevel bool
}

type span struct{ from, to int }

// parse takes the line apart. It looks at brackets only; times are read when an
// event wants them.
func (d *decorations) parse(b []byte) bool {
	d.n, d.hasTags, d.tags, d.hasLevel = 0, false, nil, false
	i := 0
	for i < len(b) && b[i] == '[' {
		// A decoration is short. One that is long is the message's own bracket.
		j := i + 1
		limit := min(len(b), i+160)
		for j < limit && b[j] != ']' {
			j++
		}
		if j == limit || d.n == len(d.spans) {
			return false
		}
		d.spans[d.n] = span{i + 1, j}
		d.n++
		i = j + 1
	}
	if d.n == 0 {
		return false
	}
	d.end = i
	switch {
	case i == len(b):
		d.message = i
	case b[i] == ' ':
		d.message = i + 1
	default:
		return false
	}
	last := trimRight(b[d.spans[d.n-1].from:d.spans[d.n-1].to])
	switch {
	case isLevel(last):
		d.hasLevel = true
	case looksLikeTags(last):
		d.tags, d.hasTags = last, true
		if d.n > 1 {
			d.hasLevel = isLevel(trimRight(b[d.spans[d.n-2].from:d.spans[d.n-2].to]))
		}
	case !isTimeOrNumber(last):
		// A hostname is nearly anything; then the message must speak for itself.
		m := b[d.message:]
		return has(m, "GC(") || has(m, `Safepoint "`) || has(m, "Using ") && collectorNamed(m[6:]) != CollectorUnknown
	}
	return true
}

// foreign says that the one bracket in front is a word that an application may
// have written as well: "[main] INFO …".
func (d *decorations) foreign(b []byte) bool {
	if d.n > 1 || !d.hasTags {
		return false
	}
	t, m := d.tags, b[d.message:]
	switch {
	case string(t) == "gc", has(t, "gc,"), has(t, "safepoint"), bytes.IndexByte(t, ',') >= 0,
		has(m, "GC("), has(m, `Safepoint "`), len(t) == 0 && contains(m, " messages dropped"):
		return false
	}
	return true
}

func trimRight(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

func isLevel(b []byte) bool {
	switch string(b) {
	case "info", "debug", "trace", "warning", "error":
		return true
	}
	return false
}

// looksLikeTags: lower-case words joined by commas. Blank is the tag field of
// the notice that messages were dropped. A hostname may look the same; then the
// line has no tags, and its message is looked at, which is all that tags spare.
func looksLikeTags(b []byte) bool {
	for _, c := range b {
		if !(c-'a' < 26 || c == ',' || c == '_' || c == '+' || c == '*' || isDigit(c)) {
			return false
		}
	}
	return len(b) == 0 || !isDigit(b[0])
}

// isTimeOrNumber: 0.123s, 12ms, 34ns, an ISO time, a pid.
func isTimeOrNumber(b []byte) bool {
	_, _, n := number(b)
	if n == 0 {
		return false
	}
	switch rest := b[n:]; string(rest) {
	case "", "s", "ms", "ns":
		return true
	default:
		_, _, k := date(b)
		return k > 0
	}
}

// stamp reads the times among the decorations. The uptime is the first that is
// printed, of up to three; so is the wall time.
func (d *decorations) stamp(b []byte) (s Stamp) {
	for _, sp := range d.spans[:d.n] {
		g := b[sp.from:sp.to]
		if len(g) == 0 || !isDigit(g[0]) {
			continue
		}
		mant, frac, n := number(g)
		if n == 0 {
			continue
		}
		switch string(g[n:]) {
		case "s":
			if !s.HasUp {
				s.Uptime, s.HasUp = scaled(mant, frac, 0), true
			}
		case "ms":
			// Milliseconds since 1970 and since the start look alike; 1e11 ms is 1973
			// as a date and three years as an uptime.
			if v := scaled(mant, frac, 3); v < 1e8 {
				if !s.HasUp {
					s.Uptime, s.HasUp = v, true
				}
			} else if !s.HasWall {
				s.Wall, s.HasWall, s.Millis = v, true, true
			}
		case "ns":
			// timenanos comes before uptimenanos and counts from the host's start, so
			// it is an uptime only where nothing better follows.
			if !s.HasUp {
				s.Uptime, s.HasUp = scaled(mant, frac, 9), true
			}
		default:
			if w, zone, k := date(g); k == len(g) && !s.HasWall {
				s.Wall, s.HasWall, s.Zone = w, true, zone
			}
		}
	}
	return s
}
