package applog

import "bytes"

// A head is what the first line of a record says. Its slices lie in the line
// (or in the layout's scratch) and live until the next line.
type head struct {
	level   Level
	thread  []byte
	logger  []byte // "class.method" where the layout has a method, else the logger's name
	method  bool   // logger ends in a method
	message []byte
	at      int64 // Unix milliseconds of the line's own clock, read as UTC; 0 when it has none

	// A JSON layout has the stack in the same line.
	thrown []byte // "class: text" as thrown, or empty
	root   []byte // "class: text" of the deepest cause, or empty
	frame  []byte // the first frame, without "at "
}

// verdict is what a layout makes of a line.
type verdict uint8

const (
	no   verdict = iota
	yes          // the line opens a record, and the head is filled
	hold         // the line opens a record if the next one goes on as it must
)

// A layout is one way of writing records.
type layout interface {
	// name is the layout as the page and replay show it.
	name() string
	// head reads the first line of a record. A line that has not the whole
	// prefix of the layout is none, whatever it begins with.
	head(line []byte, h *head) verdict
	// spaced says that a record may begin with a space or a tab, as one does
	// whose padded level comes first.
	spaced() bool
}

// builtin are the layouts that are tried on every line until one fits. The
// order matters only between forms that fit the same line.
func builtin() []layout {
	return []layout{new(oneLine), new(jsonLines), new(stdErrLog), new(simple)}
}

// tail is the part of a line behind b's first n bytes, or nothing.
func tail(b []byte, n int) []byte {
	if n > len(b) {
		return nil
	}
	return b[n:]
}

// lastCut is bytes.Cut at the last separator.
func lastCut(b []byte, sep byte) (before, after []byte, ok bool) {
	if i := bytes.LastIndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}
