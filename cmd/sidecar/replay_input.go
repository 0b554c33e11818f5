package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
	"golang.org/x/term"
)

// headSize is how much of a file is looked at to tell what it is.
const headSize = 256 << 10

// input is one file to replay.
type input struct {
	name string
	size int64 // on disk, 0 when unknown
	file io.Closer
	// counted counts the bytes as they lie on disk, for the progress bar.
	counted *counter
	packed  bool
	text    io.Reader // unpacked, from the start
	head    []byte    // the first bytes of text
	kind    string
	what    string
	refused error // why it is not read
}

// openInputs opens every file before any is read: a name that is wrong is told
// at once and nothing is half-done. What is there and can't be read is refused by
// itself, since logs/* names it with the others.
func openInputs(names []string, stdin io.Reader) (list []*input, err error) {
	defer func() {
		if err != nil {
			closeAll(list)
		}
	}()
	for _, name := range names {
		in := &input{name: printable(name)}
		var raw io.Reader
		if name == "-" {
			raw = stdin
		} else {
			f, err := os.Open(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return list, err
			case err != nil:
				in.refused = err
				list = append(list, in)
				continue
			}
			in.file, raw = f, f
			info, err := f.Stat()
			switch {
			case err != nil:
				in.refused = err
			case info.IsDir():
				in.refused = fmt.Errorf("%s: is a folder: name the log files in it", name)
			default:
				in.size = info.Size()
			}
		}
		list = append(list, in)
		if in.refused != nil {
			continue
		}
		in.counted = &counter{r: raw}
		if err := in.unpack(); err != nil {
			in.refused = fmt.Errorf("%s: %w", name, err)
		}
	}
	return list, nil
}

// unpack looks at the first bytes: gzip is told by its magic, not by the name.
func (in *input) unpack() error {
	b := bufio.NewReaderSize(in.counted, headSize)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		gz, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		in.packed = true
		b = bufio.NewReaderSize(gz, headSize)
	}
	in.head, err = b.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	in.text = b
	if !in.packed {
		// What comes after the head is read straight into the follower's buffer;
		// by way of this one each byte would be copied twice.
		head, _ := b.Peek(b.Buffered())
		in.text = io.MultiReader(bytes.NewReader(head), in.counted)
	}
	return nil
}

func closeAll(list []*input) {
	for _, in := range list {
		if in.file != nil {
			in.file.Close()
		}
	}
}

// counter counts what goes through.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bar is the progress bar: one line on standard error, only on a terminal.
type bar struct {
	w           io.Writer
	on          bool
	total, done int64
	began, last time.Time
}

func newBar(w io.Writer, inputs []*input) *bar {
	f, ok := w.(*os.File)
	b := &bar{w: w, on: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
	for _, in := range inputs {
		b.total += in.size
	}
	return b
}

// read feeds one file to a handler and shows how far it is.
func (b *bar) read(in *input, h follow.Handler) error {
	r := io.Reader(in.text)
	if b.on {
		r = &shown{r, func() { b.show(in) }}
	}
	if n, ok := h.(interface{ Begin(name string) }); ok {
		n.Begin(in.name)
	}
	if n, ok := h.(interface{ SetWritten(unix float64) }); ok {
		n.SetWritten(in.modTime())
	}
	ledger, err := follow.Lines(r, h, follow.Spec{})
	if err != nil {
		return fmt.Errorf("%s: after %d bytes: %w", in.name, in.counted.n, err)
	}
	if n, ok := h.(interface{ SetBytes(n int64) }); ok {
		n.SetBytes(ledger.Written)
	}
	h.Idle(time.Time{})
	b.done += in.counted.n
	return nil
}

// shown calls a function at each read.
type shown struct {
	io.Reader
	show func()
}

func (s *shown) Read(p []byte) (int, error) {
	s.show()
	return s.Reader.Read(p)
}

func (b *bar) show(in *input) {
	now := time.Now()
	if now.Sub(b.last) < 200*time.Millisecond || now.Sub(b.began) < 500*time.Millisecond {
		return
	}
	b.last = now
	done := b.done + in.counted.n
	rate := float64(done) / now.Sub(b.began).Seconds() / 1e6
	if b.total == 0 {
		fmt.Fprintf(b.w, "\r\033[K%s: %.0f MB, %.0f MB/s", in.name, float64(done)/1e6, rate)
		return
	}
	const width = 30
	share := min(1, float64(done)/float64(b.total))
	fill := int(share * width)
	left := time.Duration(float64(b.total-done) / max(rate*1e6, 1) * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(b.w, "\r\033[K%s [%-*s] %3.0f %%  %.0f MB/s  %s left", in.name, width, bars[:fill], share*100, rate, left)
}

const bars = "=============================="

// clear takes the bar away before the result is printed.
func (b *bar) clear() {
	if b.on && !b.last.IsZero() {
		fmt.Fprint(b.w, "\r\033[K")
		b.last = time.Time{}
	}
}

func columns(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}
