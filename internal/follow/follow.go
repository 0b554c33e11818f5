// Package follow makes one pathname into one endless stream of whole lines and
// gaps, whatever happens to the file beneath it.
package follow

import (
	"regexp"
	"sync"
	"time"
)

// A Handler takes what the stream brings. All methods are called by one
// goroutine, with Spec.Lock held; collectors.Observer satisfies it.
type Handler interface {
	// Observe takes a line without its line end, the callee's until it returns.
	// open says that an entry is unfinished and wants Idle if nothing follows.
	Observe(line []byte) (open bool)
	// Idle says that no line has come for a while.
	Idle(now time.Time)
	// Gap says that bytes were lost, skipped or cut before the next line.
	Gap()
}

// From says where a file that was there before the first start is read from.
type From uint8

const (
	// End starts behind what is there already.
	End From = iota
	// Start reads it from its first byte.
	Start
)

// A Spec names one stream.
type Spec struct {
	// Name is the label "file": the configured or discovered name with date and
	// number taken out.
	Name string
	// Path is the file, where its name does not change. Otherwise it is empty,
	// and every file in Dir whose base name Pattern matches is a part of the
	// stream, in the order of their making.
	Path    string
	Dir     string
	Pattern *regexp.Regexp
	// From holds for what exists at the very first start. Files that appear
	// later are read from their start.
	From From
	// MaxLine is the length in bytes past which a line is cut, with a gap.
	// 0 means 1 MiB.
	MaxLine int
	// Encoding is "" (UTF-8 or any superset of ASCII), "utf-16le", "utf-16be"
	// or "gbk".
	Encoding string
	// Lock is held while lines are handed over and the position moves, and is
	// not held while the file is read.
	Lock sync.Locker
}
