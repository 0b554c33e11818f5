package accesslog

import (
	"fmt"
	"strings"
)

// A code is what one field of a pattern means to us. Most fields mean nothing:
// they are only got over.
type code uint8

const (
	cLiteral  code = iota
	cWord          // of no interest, and never holds the text that follows it
	cFree          // may hold anything, quotes and what follows it included
	cRequest       // method, target and protocol; free as well
	cMethod        //
	cPath          // the target without query
	cQuery         //
	cTarget        // the target with its query
	cProtocol      //
	cHost          //
	cStatus        //
	cBytes         //
	cDuration      // elem.per says how many of its unit make a second
	cFirst         // time to first byte
	cThread        //
	cConn          // %X
	cTrace         // a header that carries a trace id; free as well
	cCLF           // 30/Nov/2026:12:09:28 +0000
	cSeconds       // Unix time
	cMillis        //
	cFraction      // the milliseconds of the second
	cDate          // a date format of Java
	cPercent       // %%: a percent sign, or ???%??? in older Tomcats
	cOpen          // an opening bracket that some versions write
	cShut          // and its closing one
	cNumber        // of no interest, but a number
	cBlanks        // blanks, or none
)

// free says of a field that it may hold the literal that ends it.
func (c code) free() bool { return c == cFree || c == cRequest || c == cTrace }

// bounded says of a field that its own bytes show where it ends.
func (c code) bounded() bool {
	switch c {
	case cStatus, cBytes, cDuration, cFirst, cConn, cCLF, cSeconds, cMillis, cFraction, cDate, cPercent, cOpen, cShut, cNumber, cBlanks:
		return true
	}
	return false
}

// An elem is one piece of a pattern: a literal or a field.
type elem struct {
	code  code
	text  string  // the literal, or the code as it stands in the pattern
	begin bool    // of times: the start of the request, else its end
	per   float64 // of durations: how many of them make a second; 0 when unknown
	whole bool    // of durations in seconds: no decimals are written
	dates []dateOp
	zone  string // of Jetty's times: the zone they are written in
}

// The aliases of the pattern attribute. vcommon and vcombined are Apache's, for
// logs of several hosts; people name them to --pattern.
var aliases = map[string]string{
	"common":    `%h %l %u %t "%r" %s %b`,
	"combined":  `%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i"`,
	"vcommon":   `%v %h %l %u %t "%r" %s %b`,
	"vcombined": `%v %h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i"`,
}

// microsecondTomcat says whether %D is microseconds: from 10.0.0-M2 on. known
// is false where no version is.
func microsecondTomcat(version string) (micro, known bool) {
	v, ok := parseVersion(version)
	if !ok {
		return false, false
	}
	return v.major >= 10 && version != "10.0.0-M1", true
}

// tomcatElems reads a pattern of AccessLogValve.
func tomcatElems(pattern string, opt Options) ([]elem, error) {
	if p, ok := aliases[pattern]; ok {
		pattern = p
	}
	var out []elem
	lit := func(s string) {
		if n := len(out); n > 0 && out[n-1].code == cLiteral {
			out[n-1].text += s
		} else if s != "" {
			out = append(out, elem{code: cLiteral, text: s})
		}
	}
	for i := 0; i < len(pattern); {
		if pattern[i] != '%' {
			j := strings.IndexByte(pattern[i:], '%')
			if j < 0 {
				j = len(pattern) - i
			}
			lit(pattern[i : i+j])
			i += j
			continue
		}
		start := i
		i++
		if opt.ServerKind != "tomcat" && i < len(pattern) && (pattern[i] == '>' || pattern[i] == '<') {
			// Apache's "final" and "original": the valve itself knows neither
			// and would print ???>???, so this is for hand-given patterns.
			i++
		}
		arg, braced := "", false
		if i < len(pattern) && pattern[i] == '{' {
			j := strings.IndexByte(pattern[i:], '}')
			if j < 0 || i+j+1 >= len(pattern) {
				return nil, fmt.Errorf("pattern: %s has no code behind its braces", pattern[start:])
			}
			arg, braced = pattern[i+1:i+j], true
			i += j + 1
		}
		if i >= len(pattern) {
			return nil, fmt.Errorf("pattern: %% at the end has no code")
		}
		c := pattern[i]
		i++
		e := elem{text: pattern[start:i]}
		if braced {
			e.code = tomcatBraced(&e, arg, c, opt)
		} else {
			e.code = tomcatPlain(&e, c, opt)
		}
		switch {
		case e.code == cLiteral && braced:
			lit("???") // what the valve prints for a code it does not know
		case e.code == cLiteral:
			lit("???" + string(c) + "???")
		case e.code == cCLF:
			lit("[")
			out = append(out, e)
			lit("]")
		default:
			out = append(out, e)
		}
	}
	return out, nil
}

func tomcatPlain(e *elem, c byte, opt Options) code {
	micro, known := microsecondTomcat(opt.ServerVersion)
	switch c {
	case 'h', 'a':
		return cHost
	case 'A', 'l', 'p', 'S', 'v':
		return cWord
	case 'u':
		return cWord // may hold blanks, but not the " [" that follows it
	case 'b', 'B':
		return cBytes
	case 'D':
		switch {
		case opt.DurationUnit != "":
			e.per = perSecond[opt.DurationUnit]
		case micro:
			e.per = 1e6
		case known:
			e.per = 1e3
		}
		return cDuration
	case 'T':
		e.per, e.whole = 1, micro
		return cDuration
	case 'F':
		return cFirst
	case 'H':
		return cProtocol
	case 'I':
		return cThread
	case 'm':
		return cMethod
	case 'q':
		return cQuery
	case 'r':
		return cRequest
	case 's':
		return cStatus
	case 't':
		return cCLF
	case 'U':
		return cPath
	case 'X':
		return cConn
	case '%':
		return cPercent
	}
	return cLiteral
}

func tomcatBraced(e *elem, arg string, c byte, opt Options) code {
	switch c {
	case 'a':
		return cHost
	case 'p', 'L':
		return cWord
	case 'i', 'o', 'r':
		return headerCode(arg)
	case 'c', 's':
		return cFree
	case 'T':
		if u, ok := perSecond[arg]; ok {
			e.per, e.whole = u, arg == "s"
		} else if arg == "fracsec" {
			e.per = 1
		} else {
			e.per, e.whole = 1, true
		}
		return cDuration
	case 't':
		return timeCode(e, arg, opt)
	case 'b', 'B', 'D', 'F', 'h', 'H', 'I', 'l', 'm', 'q', 'S', 'u', 'U', 'v', 'X':
		if opt.ServerKind != "tomcat" {
			return tomcatPlain(e, c, opt)
		}
	}
	return cLiteral
}

// timeCode reads the braces of %{...}t.
func timeCode(e *elem, arg string, opt Options) code {
	switch {
	case arg == "begin", strings.HasPrefix(arg, "begin:"):
		e.begin = true
		arg = strings.TrimPrefix(strings.TrimPrefix(arg, "begin"), ":")
	case arg == "end", strings.HasPrefix(arg, "end:"):
		arg = strings.TrimPrefix(strings.TrimPrefix(arg, "end"), ":")
	}
	switch arg {
	case "":
		return cCLF
	case "sec":
		return cSeconds
	case "msec":
		return cMillis
	case "msec_frac":
		return cFraction
	}
	if e.dates = dateOps(arg); e.dates == nil {
		return cFree // a format we can't read: the time is unknown, the rest is not
	}
	return cDate
}

// traceHeaders are the names under which a trace or request id is logged.
var traceHeaders = map[string]bool{
	"traceparent": true, "x-b3-traceid": true, "b3": true, "uber-trace-id": true, "x-trace-id": true,
	"x-request-id": true, "x-correlation-id": true, "x-amzn-trace-id": true, "trace_id": true, "traceid": true,
}

func headerCode(name string) code {
	if traceHeaders[strings.ToLower(name)] {
		return cTrace
	}
	return cFree
}

// perSecond are the units a duration may have.
var perSecond = map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

type version struct{ major, minor int }

// parseVersion reads the first numbers of "9.0.70", "10.1.60 (Debian)",
// "jetty-9.4.57.v20241219" or "Apache Tomcat/8.5.32".
func parseVersion(s string) (v version, ok bool) {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return v, false
	}
	s = s[i:]
	for i = 0; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		v.major = v.major*10 + int(s[i]-'0')
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			v.minor = v.minor*10 + int(s[i]-'0')
		}
	}
	return v, true
}
