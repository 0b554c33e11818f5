package applog

import (
	"bytes"
)

// The flood path. A storm is one record again and again: a head that differs in
// a few variable parts, an exception line, and then a kilobyte of frames that
// are the same byte for byte. The head is held against the kins seen last
// (kin.go). The frames are compared with those of the last few records as one
// piece, without being cut into lines: that is ten times as fast as finding the
// ends of sixteen lines, and as exact, since equal bytes in an equal state mean
// the same.

const (
	maxBodies = 8
	maxBody   = 32 << 10
)

// A body is what followed an exception's line, to the next record.
type body struct {
	k      *kin   // under which it was: an event may hang on both
	text   []byte // whole lines
	lines  uint64
	bytes  uint64 // as Observe counts them: without \r
	indent int
	// What the open record is after it.
	root   *exception
	framed bool
}

// bodies are the last ones, the most useful in front.
type bodies struct {
	list [maxBodies]*body
	n    int
}

// find returns the body that block begins with.
func (b *bodies) find(k *kin, block []byte, indent int) *body {
	for i := 0; i < b.n; i++ {
		t := b.list[i]
		if t.k == k && len(block) >= len(t.text) && t.indent == indent && string(block[:len(t.text)]) == string(t.text) {
			if i > 0 {
				b.list[i-1], b.list[i] = t, b.list[i-1]
			}
			return t
		}
	}
	return nil
}

// put keeps a body in the last place; the memory of the one there is used again.
func (b *bodies) put(k *kin, text []byte, lines uint64, indent int, root *exception, framed bool) {
	if b.n < maxBodies {
		b.list[b.n] = &body{}
		b.n++
	}
	t := b.list[b.n-1]
	*t = body{k: k, text: append(t.text[:0], text...), lines: lines, indent: indent, root: root, framed: framed,
		bytes: uint64(len(text) - bytes.Count(text, []byte{'\r'}))}
}

// ObserveBlock is Observe for many lines at once: whole lines, each with its
// end, none longer than the follower's limit. The block is the callee's until it
// returns. It stops in front of a line that begins with a NUL, which is a hole in
// the file, and says how many bytes and lines it took; open is what Observe says
// of the last line. Cutting the text into blocks in whatever way changes no figure.
func (o *Observer) ObserveBlock(block []byte) (taken, count int, open bool) {
	var lines uint64
	all := block
	at, prev := 0, 0              // where the line begins, and the one before it
	learn := -1                   // where the body began that is being learnt
	var learnt uint64             // lines at that point
	var rawThen, tellsThen uint64 // raw lines and events at that point
	for at < len(all) && all[at] != 0 {
		i := bytes.IndexByte(all[at:], '\n')
		if i < 0 {
			i = len(all) - at
		}
		line := all[at : at+i]
		next := min(at+i+1, len(all))
		if i > 0 && line[i-1] == '\r' {
			line = line[:i-1]
		}
		lines++
		o.seen++
		if learn < 0 {
			o.line(line)
		} else {
			records, tells, held, r := o.records, o.tells, o.held, o.rec
			o.line(line)
			if o.records != records {
				end, n := at, lines-1
				if held { // the line before is the first of this record's two
					end, n = prev, n-1
				}
				// A trace in which a cause told an event is read line by line each time.
				if o.rawSeen == rawThen && tells == tellsThen && r.k != &o.spill && end > learn && end-learn <= maxBody {
					o.bodies.put(r.k, all[learn:end], n-learnt, r.indent, r.root, r.framed)
				}
				learn = -1
			}
		}
		prev, at = at, next
		if !o.threwNow {
			continue
		}
		o.threwNow = false
		if r := &o.rec; r.kind != full || len(r.frames) > 0 || r.framed || r.root != nil {
			continue
		}
		if b := o.bodies.find(o.rec.k, all[at:], o.rec.indent); b != nil {
			lines += b.lines
			o.seen += b.lines
			o.rec.bytes += b.bytes
			if o.rec.heard == taking {
				o.moreBody(b.text)
			}
			o.rec.framed = b.framed
			if b.root != nil {
				o.rec.root = b.root
			}
			at += len(b.text)
			continue
		}
		learn, learnt, rawThen, tellsThen = at, lines, o.rawSeen, o.tells
	}
	o.lines.Add(float64(lines))
	o.bytes.Add(float64(at))
	return at, int(lines), o.open()
}
