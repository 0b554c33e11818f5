package applog

import "bytes"

// stdErrLog is Jetty's own log, StdErrLog of 6 to 9.4 and StdErrAppender of 10
// to 12, whose levels are padded:
//
//	2026-11-30 12:11:44.763:WARN:oejs.HttpChannel:qtp1589683045-16: /slow
//	2026-11-30 12:11:44.763:WARN :oejs.HttpChannel:qtp1589683045-16: /slow
//
// A thread's name may have colons in it ("…{HTTP/1.1, (http/1.1)}{127.0.0.1:80}"),
// so it ends at the first colon that a space follows, outside of braces. Jetty 6
// and 7 have no thread; then the logger is followed by the message at once.
type stdErrLog struct{}

func (*stdErrLog) name() string { return "jetty-stderrlog" }

func (*stdErrLog) spaced() bool { return false }

func (*stdErrLog) head(line []byte, h *head) verdict {
	if len(line) < 27 || line[10] != ' ' {
		return no
	}
	y, mo, d, ok := isoDate(line)
	if !ok {
		return no
	}
	hh, m, s, ms, n := clock(line[11:])
	rest := line[11+n:]
	if n == 0 || len(rest) == 0 || rest[0] != ':' {
		return no
	}
	rest = rest[1:]
	i := bytes.IndexByte(rest, ':')
	if i < 3 || i > 8 {
		return no
	}
	if h.level, ok = levelOf(bytes.TrimRight(rest[:i], " ")); !ok {
		return no
	}
	rest = rest[i+1:]
	if i = bytes.IndexByte(rest, ':'); i < 0 {
		return no
	}
	h.at = millis(y, mo, d, hh, m, s, ms)
	h.logger, h.method = rest[:i], false
	rest = rest[i+1:]
	if len(rest) > 0 && rest[0] == ' ' { // Jetty 7 and before: no thread
		h.thread, h.message = nil, bytes.TrimLeft(rest, " ")
		return yes
	}
	depth := 0
	for i, c := range rest {
		switch c {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ':':
			if depth <= 0 && (i+1 == len(rest) || rest[i+1] == ' ') {
				h.thread = rest[:i]
				h.message = bytes.TrimLeft(rest[i+1:], " ")
				return yes
			}
		}
		if i > 300 {
			break
		}
	}
	h.thread, h.message = nil, rest
	return yes
}
