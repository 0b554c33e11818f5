package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// Options say what the pattern itself does not.
type Options struct {
	// ServerKind is "tomcat", "jetty" or empty for a file of unknown origin.
	ServerKind string
	// ServerVersion is the server's ("9.0.70"), empty when unknown. It decides
	// the unit of %D.
	ServerVersion string
	// DurationUnit is the unit of %D where a person knows it: s, ms, us or ns.
	// It wins over the version.
	DurationUnit string
	// Zone is the time zone of time stamps that carry none. nil is UTC.
	Zone *time.Location
}

// The formats that Compile knows, as target.AccessLog.Format names them.
const (
	FormatTomcat = "tomcat"     // AccessLogValve
	FormatW3C    = "w3c"        // ExtendedAccessLogValve
	FormatJSON   = "json"       // JsonAccessLogValve
	FormatJetty  = "jetty"      // CustomRequestLog
	FormatNCSA   = "jetty-ncsa" // NCSARequestLog
)

// An op is one field and the literal that follows it.
type op struct {
	code  code
	begin bool
	last  bool   // of free fields: no free field comes after it
	e0    byte   // end's first byte
	end   string // empty at the end of the line, or before a field that follows at once
	per   float64
	whole bool
	dates []dateOp
	utc   bool
}

// A Matcher reads the lines of one pattern. It keeps the last time stamp it has
// read and is for one goroutine.
type Matcher struct {
	format, pattern string
	opt             Options
	prefix          string // what stands before the first field
	ops             []op
	usual           int  // how many operations head does in one go; 0 for none
	escapes         bool // the server may escape quotes with a backslash
	gathers         bool // times come in pieces (Java formats, W3C's date and time)
	derive          bool // the duration is the difference of two time stamps
	unit            string
	whole           bool
	has             Has

	json *jsonPlan
	w3c  *w3cPlan

	clf                      [clfLen]byte
	clfMillis                int64
	clfSet                   bool
	beginCivil, endCivil     civil
	beginZone, endZone       zoner
	beginFrac, endFrac       int64
	beginFracSet, endFracSet bool
}

// Compile makes a Matcher of a pattern. An error is one line that names the
// code it is about.
func Compile(format, pattern string, opt Options) (*Matcher, error) {
	if opt.DurationUnit != "" && perSecond[opt.DurationUnit] == 0 {
		return nil, fmt.Errorf("duration unit %q is none of s, ms, us, ns", opt.DurationUnit)
	}
	m := &Matcher{format: format, pattern: pattern, opt: opt, unit: "none"}
	m.beginZone.loc, m.endZone.loc = opt.Zone, opt.Zone
	var elems []elem
	var err error
	switch format {
	case FormatTomcat:
		if p, ok := aliases[pattern]; ok {
			m.pattern = p
		}
		m.escapes = true
		elems, err = tomcatElems(pattern, opt)
	case FormatJetty:
		elems, err = jettyElems(pattern, opt)
	case FormatNCSA:
		elems, err = ncsaElems(pattern, opt)
	case FormatW3C:
		return m, m.compileW3C(pattern)
	case FormatJSON:
		return m, m.compileJSON(pattern)
	default:
		return nil, fmt.Errorf("access log format %q is none of tomcat, w3c, json, jetty, jetty-ncsa", format)
	}
	if err != nil {
		return nil, err
	}
	if err := m.link(elems); err != nil {
		return nil, err
	}
	return m, nil
}

// link turns the pieces of a pattern into operations.
func (m *Matcher) link(elems []elem) error {
	m.chooseDuration(elems)
	elems = joinLiterals(elems)
	if len(elems) > 0 && elems[0].code == cLiteral {
		m.prefix = elems[0].text
		elems = elems[1:]
	}
	for i := 0; i < len(elems); i++ {
		e := elems[i]
		if e.code == cPath && i+1 < len(elems) && elems[i+1].code == cQuery {
			e.code = cTarget
			i++
		}
		o := op{code: e.code, begin: e.begin, per: e.per, whole: e.whole, dates: e.dates}
		o.utc = e.zone == "GMT" || e.zone == "UTC"
		if i+1 < len(elems) {
			if next := elems[i+1]; next.code == cLiteral {
				o.end, o.e0 = next.text, next.text[0]
				i++
			} else if !e.code.bounded() {
				return fmt.Errorf("pattern: nothing stands between %s and %s, so it can't be told where one ends", e.text, next.text)
			}
		}
		m.ops = append(m.ops, o)
		m.note(e)
	}
	if len(m.ops) == 0 {
		return fmt.Errorf("pattern: no code in %q", m.pattern)
	}
	if len(m.ops) > 250 {
		return fmt.Errorf("pattern: more than 250 codes")
	}
	free := false
	for i := len(m.ops) - 1; i >= 0; i-- {
		m.ops[i].last = !free
		free = free || m.ops[i].code.free()
	}
	m.findUsual()
	return nil
}

// joinLiterals makes one literal of neighbouring ones.
func joinLiterals(elems []elem) []elem {
	out := elems[:0:0]
	for _, e := range elems {
		if n := len(out); e.code == cLiteral && n > 0 && out[n-1].code == cLiteral {
			out[n-1].text += e.text
			continue
		}
		out = append(out, e)
	}
	return out
}

// chooseDuration keeps the finest duration whose unit is known as the duration,
// and makes plain numbers of the others.
func (m *Matcher) chooseDuration(elems []elem) {
	best := -1
	rank := func(e elem) float64 {
		if e.whole {
			return 0.5
		}
		return e.per
	}
	unknown := false
	var begin, end bool
	for i, e := range elems {
		switch {
		case e.code == cMillis && e.begin, e.code == cDate && e.begin && dateHas(e.dates, 'S'):
			begin = true
		case e.code == cMillis, e.code == cDate && dateHas(e.dates, 'S'):
			end = true
		}
		if e.code != cDuration {
			continue
		}
		if e.per == 0 {
			unknown = true
		} else if best < 0 || rank(e) > rank(elems[best]) {
			best = i
		}
	}
	for i := range elems {
		if elems[i].code == cDuration && i != best {
			elems[i].code = cNumber
		}
	}
	switch {
	case best >= 0 && !(elems[best].whole && begin && end):
		m.unit, m.whole = unitName(elems[best].per), elems[best].whole
	case begin && end:
		if best >= 0 {
			elems[best].code = cNumber
		}
		m.unit, m.derive = "ms", true
	case unknown:
		m.unit = "unknown"
	}
}

func dateHas(ops []dateOp, letter byte) bool {
	for _, o := range ops {
		if o.letter == letter {
			return true
		}
	}
	return false
}

func unitName(per float64) string {
	for _, u := range []string{"s", "ms", "us", "ns"} {
		if perSecond[u] == per {
			return u
		}
	}
	return "unknown"
}

// note gathers what the pattern logs.
func (m *Matcher) note(e elem) {
	switch e.code {
	case cStatus:
		m.has |= HasStatus
	case cBytes:
		m.has |= HasBytes
	case cFirst:
		m.has |= HasFirstByte
	case cConn:
		m.has |= HasConn
	case cThread:
		m.has |= HasThread
	case cTrace:
		m.has |= HasTrace
	case cRequest, cMethod, cPath, cTarget:
		m.has |= HasRequest
	case cCLF, cSeconds, cMillis, cDate:
		if e.begin {
			m.has |= HasBegin
		} else {
			m.has |= HasEnd
		}
		m.gathers = m.gathers || e.code == cDate
	case cFraction:
		m.gathers = true
	}
}

// Format is the format the matcher was compiled for.
func (m *Matcher) Format() string { return m.format }

// Pattern is the pattern in force: aliases are spelt out, and a W3C log's
// #Fields line replaces what the settings said.
func (m *Matcher) Pattern() string { return m.pattern }

// DurationUnit is the unit of the duration in the log: s, ms, us, ns; none
// where no duration is logged, and unknown where one is but its unit can't be
// known. whole says that seconds are logged without decimals, which is too
// coarse for a latency.
func (m *Matcher) DurationUnit() (unit string, whole bool) { return m.unit, m.whole }

// HasDuration says whether latencies can be had from the log: there is a
// duration, its unit is known, and it is finer than a second.
func (m *Matcher) HasDuration() bool {
	return m.unit != "none" && m.unit != "unknown" && !m.whole
}

// Logs says which figures the pattern logs, besides the duration.
func (m *Matcher) Logs(h Has) bool { return m.has&h == h }

// Advice is what to write into the server's configuration to get what this
// pattern lacks, or empty when it lacks nothing of importance.
func (m *Matcher) Advice() string {
	const tomcat = `%h %l %u %t &quot;%r&quot; %s %b %D %F %I %X`
	fine := m.HasDuration()
	switch {
	case m.unit == "unknown":
		return "the log carries a duration (%D) whose unit depends on the server's version, which is not known: give --duration-unit (ms for Tomcat up to 9, us for Tomcat 10 and later), or duration_unit in the settings"
	case m.format == FormatJetty || m.format == FormatNCSA:
		if fine {
			return ""
		}
		if m.format == FormatNCSA {
			return `no duration is logged: set jetty.requestlog.loglatency=true, or use CustomRequestLog with the format  %{client}a - %u %t "%r" %s %O %D %X`
		}
		return `no duration is logged: set  jetty.requestlog.formatString=%{client}a - %u %t "%r" %s %O %D %X  in start.d/requestlog.ini`
	case m.format == FormatW3C:
		if fine {
			return ""
		}
		if v, ok := parseVersion(m.opt.ServerVersion); ok && v.major >= 10 && (v.major > 10 || v.minor > 0) {
			return `the log has no duration finer than a second: set in server.xml  pattern="date time c-ip cs-method cs-uri sc-status bytes time-taken-us x-threadname"  on the ExtendedAccessLogValve`
		}
		return `the log has no duration finer than a second: add time-taken to the ExtendedAccessLogValve's pattern (Tomcat up to 9), or time-taken-us (10.1 and later)`
	case fine && m.has&(HasThread|HasFirstByte) == HasThread|HasFirstByte:
		return ""
	case fine:
		return `to see pools and the time to first byte as well, set in server.xml  pattern="` + tomcat + `"`
	}
	return `no duration is logged: set in server.xml  pattern="` + tomcat + `"  on the AccessLogValve (%D duration, %F first byte, %I thread, %X connection)`
}

// String names the matcher for messages.
func (m *Matcher) String() string {
	return strings.TrimSpace(m.format + " " + m.pattern)
}
