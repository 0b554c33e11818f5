package accesslog

import "bytes"

// request takes the first line of a request. Only its method is read at once:
// without routes nobody asks for the rest.
func (r *Record) request(b []byte) {
	r.Has |= HasRequest
	r.Request, r.whole = b, true
	r.Method = MethodOther
	for i := range min(len(b), 8) {
		if b[i] == ' ' {
			r.Method = methodOf(b[:i])
			r.space = uint8(i)
			break
		}
	}
}

// usualTarget is the target of a request like "GET /path HTTP/1.1", query
// included, or nil for any other.
func (r *Record) usualTarget() []byte {
	b := r.Request
	p := int(r.space) + 1
	n := len(b) - len(" HTTP/1.1")
	if !r.whole || p < 2 || n <= p || b[p] != '/' || string(b[n:n+6]) != " HTTP/" {
		return nil
	}
	return b[p:n]
}

// Split takes the request line apart: method, target, protocol. What never was
// a request ("-", "- - -", TLS bytes) stays nameless.
func (r *Record) Split() {
	if !r.whole {
		return
	}
	r.whole = false
	b := r.Request
	r.Protocol, r.Query = nil, nil
	sp := bytes.IndexByte(b, ' ')
	if sp <= 0 {
		r.RawMethod, r.Path, r.Nameless = nil, nil, true
		return
	}
	r.RawMethod = b[:sp]
	target := b[sp+1:]
	// The protocol is the last word: " HTTP/1.1" nearly always, which is 9
	// bytes; else look for it. HTTP/0.9 leaves a blank and nothing behind it.
	if n := len(target); n >= 9 && string(target[n-9:n-3]) == " HTTP/" {
		r.Protocol = target[n-8:]
		target = target[:n-9]
	} else if i := bytes.LastIndexByte(target, ' '); i >= 0 {
		r.Protocol = target[i+1:]
		target = target[:i]
	}
	r.target(target)
}

// target takes the path out of a request target: no scheme and host of the
// absolute form, no query.
func (r *Record) target(t []byte) {
	r.Nameless = false
	if len(t) == 0 || t[0] != '/' {
		switch {
		case len(t) == 0 || string(t) == "-" || string(t) == "null":
			r.Path, r.Nameless = nil, true
			return
		case bytes.HasPrefix(t, []byte("http://")) || bytes.HasPrefix(t, []byte("https://")):
			rest := t[bytes.Index(t, []byte("://"))+3:]
			if i := bytes.IndexByte(rest, '/'); i >= 0 {
				t = rest[i:]
			} else {
				t = rest[len(rest):]
			}
		}
	}
	if i := bytes.IndexByte(t, '?'); i >= 0 {
		r.Path, r.Query = t[:i], t[i:]
		return
	}
	r.Path = t
}
