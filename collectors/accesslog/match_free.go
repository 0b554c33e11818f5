package accesslog

import "bytes"

// Free fields are those that may hold anything a client sent: the request, headers,
// cookies. Their end is found by what the pattern wants behind them.

// free finds the end of a free field: the first place (or, for the last free
// field of a pattern, the last place) where its literal is followed by what the
// pattern wants up to the next free field or the end of the line.
func (m *Matcher) free(b []byte, p, i int, r *Record) (int, int, Refusal) {
	o := &m.ops[i]
	if o.end == "" {
		r.take(o.code, bytes.TrimRight(b[p:], " \r\t"))
		return len(m.ops), len(b), Accepted
	}
	if o.last && o.code != cRequest {
		return m.freeRight(b, p, i, r)
	}
	refusal := Truncated
	weak := -1
	for pass := 0; pass < 2; pass++ {
		skipped := false
		q := p
		for tries := 0; tries < maxTries; tries++ {
			n := index(b, q, o.end, o.e0)
			if n < 0 {
				break
			}
			q = n + 1
			if pass == 0 && m.escapes && o.e0 == '"' && escaped(b, p, n) {
				skipped = true
				continue
			}
			ni, np, why := m.run(b, n+len(o.end), i+1, r)
			if why != Accepted {
				if refusal == Truncated {
					refusal = why
				}
				continue
			}
			// A client may have planted this in an old server's protocol: take
			// a later place where the request ends as requests do, if any.
			if o.code == cRequest && !endsLikeRequest(b[p:n]) {
				if weak < 0 {
					weak = n
				}
				continue
			}
			r.take(o.code, b[p:n])
			return ni, np, Accepted
		}
		if weak >= 0 {
			ni, np, why := m.run(b, weak+len(o.end), i+1, r)
			r.take(o.code, b[p:weak])
			return ni, np, why
		}
		if !skipped {
			break
		}
	}
	return i, p, refusal
}

func (m *Matcher) freeRight(b []byte, p, i int, r *Record) (int, int, Refusal) {
	o := &m.ops[i]
	refusal := Truncated
	n := len(b)
	if i == len(m.ops)-1 { // only the literal is left, and perhaps blanks
		n = len(bytes.TrimRight(b, " \r\t"))
		n = max(n, p)
		n = min(len(b), n+len(o.end)-1)
	}
	for tries := 0; tries < maxTries; tries++ {
		if n = lastIndex(b[:n], p, o.end); n < 0 {
			break
		}
		ni, np, why := m.run(b, n+len(o.end), i+1, r)
		if why == Accepted {
			r.take(o.code, b[p:n])
			return ni, np, Accepted
		}
		if refusal == Truncated {
			refusal = why
		}
		n += len(o.end) - 1
	}
	return i, p, refusal
}

func (r *Record) take(c code, b []byte) {
	switch c {
	case cRequest:
		r.request(b)
	case cTrace:
		if len(b) > 0 && string(b) != "-" {
			r.Trace = b
			r.Has |= HasTrace
		}
	}
}

// index is bytes.Index from p on, made for a literal of a byte or two.
func index(b []byte, p int, lit string, first byte) int {
	for p < len(b) {
		n := bytes.IndexByte(b[p:], first)
		if n < 0 || len(b)-p-n < len(lit) {
			return -1
		}
		p += n
		if string(b[p:p+len(lit)]) == lit {
			return p
		}
		p++
	}
	return -1
}

// lastIndex is the last place of lit in b that is not before p.
func lastIndex(b []byte, p int, lit string) int {
	for q := len(b) - len(lit); q >= p; q-- {
		if b[q] == lit[0] && string(b[q:q+len(lit)]) == lit {
			return q
		}
	}
	return -1
}

// escaped says whether an odd number of backslashes stands before n.
func escaped(b []byte, p, n int) bool {
	odd := false
	for n--; n >= p && b[n] == '\\'; n-- {
		odd = !odd
	}
	return odd
}

// endsLikeRequest says whether a request line could end here: with a protocol,
// with nothing where HTTP/0.9 has none, or with what stands for no request.
func endsLikeRequest(b []byte) bool {
	n := len(b)
	switch {
	case n >= 8 && string(b[n-8:n-3]) == "HTTP/":
		return true
	case n == 0, b[n-1] == ' ', b[n-1] == '-':
		return true
	case n >= 4 && string(b[n-4:]) == "null":
		return true
	}
	return n >= 6 && string(b[n-6:n-1]) == "HTTP/" // HTTP/2, HTTP/3
}
