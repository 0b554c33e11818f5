package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// A screen is the terminal: lines that stay, and below them one block that is
// drawn again and again. Where the output is no terminal (a pipe, CI) the block
// is printed once in a while instead, as plain lines.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	tty   bool
	drawn int // lines of the block now on the terminal
	skip  int // frames until a plain block is printed again
}

// plainEvery is how many frames make one printed line where nothing can be
// redrawn.
const plainEvery = 4

func newScreen(out *os.File) *screen {
	st, err := out.Stat()
	tty := err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
	return &screen{out: out, tty: tty}
}

func (s *screen) title(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn, s.skip = 0, 0 // what was drawn last stays
	if s.tty {
		fmt.Fprintf(s.out, "\n\x1b[1m%s\x1b[0m\n", text)
	} else {
		fmt.Fprintf(s.out, "\n%s\n", text)
	}
}

func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = 0
	fmt.Fprintf(s.out, "   "+format+"\n", args...)
}

// frame draws the block. The plain form is the same facts in one line.
func (s *screen) frame(block []string, plain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tty {
		if s.skip--; s.skip < 0 {
			s.skip = plainEvery - 1
			fmt.Fprintf(s.out, "   %s\n", plain)
		}
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range block {
		fmt.Fprintf(&b, "\x1b[2K   %s\n", line)
	}
	s.drawn = len(block)
	io.WriteString(s.out, b.String())
}

// strong makes a warning stand out on a terminal.
func (s *screen) strong(text string) string {
	if !s.tty {
		return text
	}
	return "\x1b[1;31m" + text + "\x1b[0m"
}

// bar is a gauge of twenty places.
func bar(part, whole float64) string {
	const width = 20
	n := 0
	if whole > 0 {
		n = min(max(int(part/whole*width+0.5), 0), width)
	}
	return strings.Repeat("#", n) + strings.Repeat(".", width-n)
}

// count writes 112743 as "112,743".
func count(n float64) string {
	s := fmt.Sprintf("%.0f", n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes for people.
func size(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", n/1e3)
	}
	return fmt.Sprintf("%.0f B", n)
}
