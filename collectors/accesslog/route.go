package accesslog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

const (
	routeOther = "other" // beyond the cap, or none of the patterns
	routeNone  = "-"     // the line has no request that could be read
)

// A router turns paths into routes, numbered in the order of their coming.
// Numbers 0 to 2 are the empty route (routes are off), other, and none.
type router struct {
	patterns []route
	prefixes []string
	fold     bool
	plain    bool // fold, and nothing else
	max      int
	byName   map[string]int
	names    []string
	firstAdd int    // the patterns' and prefixes' numbers are below it
	buf, cut []byte // of folded paths, and of paths without parameters
}

const (
	numEmpty = iota
	numOther
	numNone
	numReserved
)

type route struct {
	segments []string // empty for {name}
	rest     bool     // a final *
	number   int
}

func compileRoute(p string) (route, error) {
	var r route
	if !strings.HasPrefix(p, "/") {
		return r, fmt.Errorf("%q does not begin with a slash", p)
	}
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		switch {
		case (s == "*" || s == "**") && i == len(segments)-1:
			r.rest = true
			continue
		case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && len(s) > 2:
			s = ""
		case strings.ContainsAny(s, "{}*"):
			return r, fmt.Errorf("%q: a segment is a word, {name}, or * at the end", p)
		case s == "" && i < len(segments)-1:
			return r, fmt.Errorf("%q has an empty segment", p)
		case s == "":
			s = "/" // matches the empty last segment only; no segment holds a slash
		}
		r.segments = append(r.segments, s)
	}
	return r, nil
}

func (r *route) match(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	path = path[1:]
	for i, want := range r.segments {
		if path == nil {
			return false
		}
		n := bytes.IndexByte(path, '/')
		segment := path
		if n >= 0 {
			segment = path[:n]
			path = path[n+1:]
		} else {
			path = nil
		}
		switch {
		case want == "":
			if len(segment) == 0 {
				return false
			}
		case want == "/":
			if len(segment) != 0 || i != len(r.segments)-1 {
				return false
			}
		case string(segment) != want:
			return false
		}
	}
	return (path == nil) != r.rest
}

func newRouter(c Routes) *router {
	r := &router{fold: c.Fold, max: c.Max, byName: map[string]int{}}
	if r.max == 0 {
		r.max = DefaultConfig().Routes.Max
	}
	r.names = []string{"", routeOther, routeNone}
	r.byName[routeOther], r.byName[routeNone] = numOther, numNone
	for _, p := range c.Patterns {
		compiled, err := compileRoute(p)
		if err != nil {
			continue // Check has said so
		}
		compiled.number = r.add(p)
		r.patterns = append(r.patterns, compiled)
	}
	r.prefixes = slices.Clone(c.Prefixes)
	slices.SortFunc(r.prefixes, func(a, b string) int { return len(b) - len(a) })
	for _, p := range r.prefixes {
		r.add(p)
	}
	r.firstAdd = len(r.names)
	r.plain = r.fold && r.firstAdd == numReserved
	return r
}

func (r *router) add(name string) int {
	if n, ok := r.byName[name]; ok {
		return n
	}
	r.names = append(r.names, name)
	r.byName[name] = len(r.names) - 1
	return len(r.names) - 1
}

// number finds the route of a path. full says that it would have had one of its
// own, had there been room.
func (r *router) number(rec *Record) (n int, full bool) {
	if r.plain {
		// The usual request needs no splitting: the fold itself stops at the
		// query.
		if target := rec.usualTarget(); target != nil {
			return r.known(r.folded(target))
		}
	}
	rec.Split()
	if rec.Nameless || len(rec.Path) == 0 {
		return numNone, false
	}
	path := rec.Path
	if i := bytes.IndexByte(path, ';'); i >= 0 {
		path = r.cutParameters(path, i)
	}
	for i := range r.patterns {
		if r.patterns[i].match(path) {
			return r.patterns[i].number, false
		}
	}
	for _, p := range r.prefixes {
		if len(path) >= len(p) && string(path[:len(p)]) == p {
			return r.byName[p], false
		}
	}
	if !r.fold {
		return numOther, false
	}
	return r.known(r.folded(path))
}

func (r *router) known(name []byte) (n int, full bool) {
	if n, ok := r.byName[string(name)]; ok {
		return n, false
	}
	if len(r.names)-numReserved >= r.max {
		return numOther, true
	}
	return r.add(string(name)), false
}

// cutParameters drops ;jsessionid=… from every segment.
func (r *router) cutParameters(path []byte, i int) []byte {
	out := append(r.cut[:0], path[:i]...)
	for path = path[i:]; ; {
		i = bytes.IndexByte(path, '/')
		if i < 0 {
			break
		}
		path = path[i:]
		if i = bytes.IndexByte(path, ';'); i < 0 {
			out = append(out, path...)
			break
		}
		out = append(out, path[:i]...)
		path = path[i:]
	}
	r.cut = out
	return out
}

// folded writes the path with {id} where a segment is one, without ;parameters,
// up to its query. The result is r.buf, or a part of target where nothing was
// changed.
func (r *router) folded(target []byte) []byte {
	const longest = 256 // of a label; what is longer shares its beginning
	if len(target) > longest {
		target = target[:longest]
	}
	out := r.buf[:0]
	done := 0 // the bytes of target that are dealt with
	for i := nextSpecial(target, 0); i >= 0; i = nextSpecial(target, i) {
		switch c := target[i]; {
		case isDigit(c):
			if i > done && target[i-1] == '/' {
				// A number is the usual id, and needs no thought.
				end := i + 1
				for end < len(target) && isDigit(target[end]) {
					end++
				}
				if end == len(target) || kindOf[target[end]] == kindStop {
					out = append(append(out, target[done:i]...), "{id}"...)
					done = end
					i = end
					continue
				}
			}
			start := i
			for start > done && target[start-1] != '/' {
				start--
			}
			var kinds charKinds
			end := start
			for end < len(target) {
				k := kindOf[target[end]]
				if k == kindStop {
					break
				}
				kinds |= k
				end++
			}
			if n := idLen(target[start:end], kinds); n > 0 {
				out = append(append(out, target[done:start]...), "{id}"...)
				done = start + n
			}
			i = end
		case c == '?':
			target = target[:i]
		case c == ';':
			out = append(out, target[done:i]...)
			if n := bytes.IndexByte(target[i:], '?'); n >= 0 {
				target = target[:i+n]
			}
			done = len(target)
			if n := bytes.IndexByte(target[i:], '/'); n >= 0 {
				done = i + n
			}
			i = done
		default:
			i++
		}
	}
	if done == 0 {
		return target
	}
	if done < len(target) {
		out = append(out, target[done:]...)
	}
	r.buf = out
	return out
}

// nextSpecial is the first byte from i on that is a digit, a semicolon or a
// question mark, or one of the four others of ASCII's fourth row, which the
// caller gets over; -1 when there is none. Eight bytes are looked at in one
// step: what matters of most paths is found in two or three.
func nextSpecial(b []byte, i int) int {
	const row, high, low = 0x3030303030303030, 0xF0F0F0F0F0F0F0F0, 0x0101010101010101
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])&high ^ row // a byte of the row is 0 now
		if z := (w - low) &^ w & (low << 7); z != 0 {
			return i + bits.TrailingZeros64(z)>>3
		}
	}
	for ; i < len(b); i++ {
		if b[i]&0xF0 == 0x30 {
			return i
		}
	}
	return -1
}

type charKinds uint8

const (
	kindDigit charKinds = 1 << iota
	kindHex             // a to f
	kindAlpha           // other letters
	kindDash
	kindDot
	kindOdd
	kindStop // what ends a segment: a slash, parameters, the query
)

var kindOf = func() (t [256]charKinds) {
	for c := range t {
		switch b := byte(c); {
		case isDigit(b):
			t[c] = kindDigit
		case b|0x20 >= 'a' && b|0x20 <= 'f' && isLetter(b):
			t[c] = kindHex
		case isLetter(b):
			t[c] = kindAlpha
		case b == '-' || b == '_':
			t[c] = kindDash
		case b == '.':
			t[c] = kindDot
		case b == '/' || b == ';' || b == '?':
			t[c] = kindStop
		default:
			t[c] = kindOdd
		}
	}
	return t
}()

// idLen is how many bytes at the start of a segment are an id; 0 when it is a
// word. An extension (.json) stays. kinds are those of all its bytes and hold a
// digit.
func idLen(s []byte, kinds charKinds) int {
	n := len(s)
	if kinds&kindDot != 0 {
		n = bytes.IndexByte(s, '.')
		kinds = 0
		for _, c := range s[:n] {
			kinds |= kindOf[c]
		}
		if kinds&kindDigit == 0 || len(s)-n > 6 {
			return 0
		}
	}
	switch {
	case kinds == kindDigit:
		return n
	case kinds&(kindAlpha|kindDot|kindOdd) == 0 && kinds&kindDash != 0:
		// A UUID, or numbers joined by dashes.
		if n == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' || kinds == kindDigit|kindDash {
			return n
		}
	case kinds == kindDigit|kindHex && n >= 8:
		return n
	}
	if kinds&kindOdd != 0 || n < 20 {
		return 0
	}
	// A session id, a token: long, and a good part of it digits.
	digits := 0
	for _, c := range s[:n] {
		if isDigit(c) {
			digits++
		}
	}
	if digits*6 >= n {
		return n
	}
	return 0
}
