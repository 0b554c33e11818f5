package accesslog

import (
	"fmt"
	"strings"
)

// The formats that CustomRequestLog names itself.
const (
	jettyNCSA     = `%{client}a - %u %t "%r" %s %O`
	jettyExtended = jettyNCSA + ` "%{Referer}i" "%{User-Agent}i"`
)

// jettyElems reads a format string of CustomRequestLog, Jetty 9.4 to 12. A code
// it does not know stops Jetty at its start, so here it is an error too.
func jettyElems(pattern string, opt Options) ([]elem, error) {
	switch strings.ToUpper(pattern) {
	case "", "NCSA", "NCSA_FORMAT":
		pattern = jettyNCSA
	case "EXTENDED", "EXTENDED_NCSA", "EXTENDED_NCSA_FORMAT":
		pattern = jettyExtended
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
			lit(pattern[i : i+1])
			i++
			continue
		}
		start := i
		i++
		if i < len(pattern) && pattern[i] == '%' {
			lit("%")
			i++
			continue
		}
		// The conditional: %404,500{Referer}i is logged for these statuses only,
		// %!200{Referer}i for all others; in the other case a dash is. A dash is
		// good in every field of ours.
		for i < len(pattern) && (pattern[i] == '!' || pattern[i] == ',' || pattern[i] >= '0' && pattern[i] <= '9') {
			i++
		}
		arg := ""
		if i < len(pattern) && pattern[i] == '{' {
			j := strings.IndexByte(pattern[i:], '}')
			if j < 0 {
				return nil, fmt.Errorf("format: %s has no closing brace", pattern[start:])
			}
			arg = pattern[i+1 : i+j]
			i += j + 1
		}
		name := ""
		for _, long := range []string{"attr", "uri", "ti", "to"} {
			if strings.HasPrefix(pattern[i:], long) {
				name = long
				break
			}
		}
		if name == "" {
			if i >= len(pattern) {
				return nil, fmt.Errorf("format: %% at the end has no code")
			}
			name = pattern[i : i+1]
		}
		i += len(name)
		e := elem{text: pattern[start:i]}
		if e.code = jettyCode(&e, name, arg, opt); e.code == cLiteral {
			return nil, fmt.Errorf("format: Jetty has no code %s", e.text)
		}
		if name != "t" {
			out = append(out, e)
			continue
		}
		// Jetty puts the brackets itself, whatever the format.
		out = append(out, elem{code: cOpen, text: e.text}, e, elem{code: cShut, text: e.text})
	}
	return out, nil
}

func jettyCode(e *elem, name, arg string, opt Options) code {
	switch name {
	case "a":
		if arg == "client" || arg == "remote" {
			return cHost
		}
		return cWord // without an argument it is the server's own address
	case "p", "I", "k", "R", "u", "f":
		return cWord
	case "C", "e", "o", "ti", "to":
		return cFree
	case "attr", "i":
		return headerCode(arg)
	case "O", "S":
		return cBytes
	case "D":
		e.per = 1e6
		return cDuration
	case "T":
		u, ok := perSecond[arg]
		if !ok {
			u = 1
		}
		e.per, e.whole = u, u == 1
		return cDuration
	case "H":
		return cProtocol
	case "m":
		return cMethod
	case "q":
		return cQuery
	case "r":
		return cRequest
	case "s":
		return cStatus
	case "U":
		return cPath
	case "uri":
		switch arg {
		case "", "-query":
			return cTarget
		case "-path":
			return cPath
		}
		return cWord
	case "X":
		return cConn
	case "t":
		e.begin = true
		format, zone, _ := strings.Cut(arg, "|")
		e.zone, _, _ = strings.Cut(zone, "|")
		if e.zone == "" {
			e.zone = "GMT"
		}
		if format == "" || format == "dd/MMM/yyyy:HH:mm:ss ZZZ" {
			return cCLF
		}
		if e.dates = dateOps(format); e.dates == nil {
			return cFree
		}
		return cDate
	}
	return cLiteral
}

// ncsaElems is the fixed layout of NCSARequestLog, Jetty 6 to 9.4. Its options
// are words: server, extended, cookies, dispatch, latency. A format with a
// percent sign is taken as CustomRequestLog's, with latencies in milliseconds.
func ncsaElems(words string, opt Options) ([]elem, error) {
	if strings.Contains(words, "%") {
		return jettyElems(words, opt)
	}
	has := map[string]bool{}
	for _, w := range strings.FieldsFunc(words, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		switch w {
		case "server", "extended", "cookies", "dispatch", "latency":
			has[w] = true
		case "ncsa":
		default:
			return nil, fmt.Errorf("NCSARequestLog has no option %q (server, extended, cookies, dispatch, latency)", w)
		}
	}
	lit := func(s string) elem { return elem{code: cLiteral, text: s} }
	// Where it is not extended, 9.4 writes a blank in place of the two headers,
	// so two stand before the latency (seen).
	blanks := elem{code: cBlanks, text: "blank"}
	var out []elem
	if has["server"] {
		out = append(out, elem{code: cWord, text: "server"}, lit(" "))
	}
	out = append(out,
		elem{code: cHost, text: "address"}, lit(" - "), elem{code: cWord, text: "user"}, lit(" ["),
		elem{code: cCLF, text: "time", begin: true}, lit(`] "`), elem{code: cRequest, text: "request"}, lit(`" `),
		elem{code: cStatus, text: "status"}, lit(" "), elem{code: cBytes, text: "length"})
	if has["extended"] {
		out = append(out, lit(` "`), elem{code: cFree, text: "referer"}, lit(`" "`), elem{code: cFree, text: "user-agent"}, lit(`"`))
	}
	if has["cookies"] {
		out = append(out, blanks, elem{code: cFree, text: "cookies"})
		if has["dispatch"] || has["latency"] {
			out = append(out, lit(" "))
		}
	}
	if has["dispatch"] {
		out = append(out, blanks, elem{code: cNumber, text: "dispatch"})
	}
	if has["latency"] {
		out = append(out, blanks, elem{code: cDuration, text: "latency", per: 1e3})
	}
	return out, nil
}
