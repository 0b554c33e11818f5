package follow

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"
	"time"
)

// window is how many bytes before our place are held against the file before
// we read on. The head of a log is no evidence (every GC log begins alike), and
// the inode number is none either once the file was truncated.
const window = 1 << 10

// part is one file of the stream.
//
//	0 ────────────── kept ─────────── read ─────────── seen
//	   handed over        half line         not read
type part struct {
	id   ident
	path string // where it was seen last
	dir  string // the folder in which it really lay when it was met, links resolved
	file *os.File

	kept int64 // everything before is handed over or accounted for
	read int64 // the next byte to read
	seen int64 // the largest size the kernel showed, since the last truncation

	// half is the unfinished line: carry bytes that came from the file before,
	// which copytruncate cut, and then the bytes from kept to read.
	half  []byte
	carry int
	tail  []byte // the last bytes before read, at most window
	sum   uint64 // of tail, when only the checkpoint knows it
	state lineState

	role   role
	last   stat      // at the last look
	quiet  time.Time // since when nothing new came
	grew   time.Time // when it was last seen to have grown
	misses int       // how often opening it found it gone or another
	stuck  bool      // reading failed in a way that time may mend
	fresh  bool      // open, and its bytes were not recognised yet
	mtime  int64     // of the checkpoint
}

type role uint8

const (
	// live is the file that the name leads to.
	live role = iota
	// old has lost the name and is drained until it is quiet.
	old
	// dead will not be written again: a copy that copytruncate made. The half
	// line at its end goes on at the start of the next part.
	dead
)

func (p *part) close() {
	if p.file != nil {
		p.file.Close()
		p.file = nil
	}
}

// pending is what of the part was shown to us and is not accounted for.
func (p *part) pending() int64 { return p.seen - p.kept + int64(p.carry) }

// errNotRegular is a pipe, a folder or a device under a log's name. Opening a
// pipe would wait for a writer, and reading it would steal its reader's lines.
var errNotRegular = errors.New("not a regular file")

// errReplaced says that between the look at the name and the opening another
// file took the name.
var errReplaced = errors.New("replaced while it was opened")

// openPart opens the part under its path, if that still leads to it.
func (f *Follower) openPart(p *part) error {
	st, err := statPath(p.path)
	if err != nil {
		return err
	}
	if !st.regular {
		return fmt.Errorf("open %s: %w", p.path, errNotRegular)
	}
	file, err := f.open(p.path)
	if err != nil {
		return err
	}
	switch st, err = statFile(file); {
	case err != nil:
	case !st.regular:
		err = errNotRegular
	case !st.id.same(p.id):
		err = errReplaced
	}
	if err != nil {
		file.Close()
		return err
	}
	p.file = file
	return nil
}

// attend reads the bytes before our place, for a part whose place was not
// reached by reading, and learns the encoding from the file's head. The lock is
// taken to write them down, and not while the file is read.
func (p *part) attend(lock sync.Locker) error {
	tail, head, err := p.before()
	if err == nil {
		p.take(lock, tail, head)
	}
	return err
}

// held is the lock of a caller who holds it, or of a part that nobody else has.
type held struct{}

func (held) Lock()   {}
func (held) Unlock() {}

// before reads the bytes before our place, and the file's head where the
// encoding is not known yet. It changes nothing.
func (p *part) before() (tail, head []byte, err error) {
	w := min(p.read, window)
	tail = make([]byte, w)
	if n, err := p.file.ReadAt(tail, p.read-w); int64(n) < w {
		return nil, nil, fmt.Errorf("read %s: %w", p.path, err)
	}
	if p.read > 0 && !p.state.Begun {
		head = make([]byte, 3)
		n, _ := p.file.ReadAt(head, 0)
		head = head[:n]
	}
	return tail, head, nil
}

func (p *part) take(lock sync.Locker, tail, head []byte) {
	lock.Lock()
	defer lock.Unlock()
	p.tail = tail
	if head != nil {
		p.state.begin(head)
		p.state.Begun = true
	}
}

// atLineEnd says whether a line begins at our place.
func (p *part) atLineEnd() bool {
	nl := "\n"
	switch p.state.Enc {
	case utf16le:
		nl = "\n\x00"
	case utf16be:
		nl = "\x00\n"
	}
	return p.read == 0 || bytes.HasSuffix(p.tail, []byte(nl)) || bytes.HasSuffix(p.tail, []byte{0, 0, 0, 0})
}

// recognise is attend for a file that was just opened, and says whether the
// bytes before our place are those that we read. A file that is too short for
// our place is not it, and then the part stays as it was: a checkpoint that is
// written meanwhile has to know the bytes that we read, not those that are there.
func (p *part) recognise(lock sync.Locker) (bool, error) {
	st, err := statFile(p.file)
	if err != nil {
		return false, err
	}
	if st.size < p.read {
		return false, nil
	}
	tail, head, err := p.before()
	if err != nil {
		return false, err
	}
	if p.tail != nil && !bytes.Equal(p.tail, tail) || p.tail == nil && p.sum != 0 && p.sum != checksum(tail) {
		return false, nil
	}
	p.take(lock, tail, head)
	return true, nil
}

// rewind puts the place of a part that came from the checkpoint back to where
// its half line begins, once its bytes were recognised. The caller holds the
// lock.
func (p *part) rewind() error {
	if int64(len(p.half)-p.carry) == p.read-p.kept {
		return nil
	}
	p.half = p.half[:p.carry]
	p.read = p.kept
	return p.attend(held{})
}

// checksum is what the checkpoint keeps of the bytes before our place.
func checksum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64() | 1 // 0 means none is known
}

// intact says whether the bytes before our place are still those we read.
func (p *part) intact() (bool, error) {
	w := len(p.tail)
	if w == 0 {
		return true, nil
	}
	var b [window]byte
	n, err := p.file.ReadAt(b[:w], p.read-int64(w))
	if n < w {
		if err == io.EOF {
			return false, nil
		}
		return false, fmt.Errorf("read %s: %w", p.path, err)
	}
	return bytes.Equal(b[:w], p.tail), nil
}

// buffer is what blocks are read into. The half line lies at index window and
// grows to the right; before it there is room for bytes that are read again to
// see that they are still the same.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, window+blockSize+window)} }}

// room makes sure that half bytes and a fair block fit.
func (b *buffer) room(half int) {
	if need := window + half + blockSize/2; need > len(b.b) {
		grown := make([]byte, max(need+blockSize/2, 2*len(b.b)))
		copy(grown, b.b)
		b.b = grown
	}
}

// release gives the buffer back. One that a long line made large is left to the
// collector, so that memory does not stay at the worst line ever seen.
func (b *buffer) release() {
	if len(b.b) <= 4*blockSize {
		buffers.Put(b)
	}
}

// errTruncated says that the bytes before our place are other ones than those
// we read.
var errTruncated = errors.New("truncated")

// readOn reads from the part's place until its end or until budget is used up,
// and hands the lines over. It returns how much it read.
func (f *Follower) readOn(p *part, budget int64) (int64, error) {
	if f.buf == nil {
		f.buf = buffers.Get().(*buffer)
	}
	half := len(p.half)
	f.buf.room(half)
	copy(f.buf.b[window:], p.half)
	total, err := int64(0), error(nil)
	var aside [window]byte
	w := copy(aside[:], p.tail)
	for total < budget {
		f.buf.room(half)
		b := f.buf.b
		at := window + half - w // where the bytes that we know begin
		n, e := p.file.ReadAt(b[at:], p.read-int64(w))
		if n < w || !bytes.Equal(b[at:at+w], aside[:w]) {
			copy(b[at:], aside[:w])
			err = errTruncated
			if n < w && e != io.EOF {
				err = fmt.Errorf("read %s: %w", p.path, e)
			}
			break
		}
		full := len(b) - at
		n -= w
		if n == 0 {
			if e != io.EOF {
				err = fmt.Errorf("read %s: %w", p.path, e)
			}
			break
		}
		end := window + half + n
		f.lock.Lock()
		p.read += int64(n)
		if p.read > p.seen {
			f.led.Written += p.read - p.seen
			p.seen = p.read
		}
		lines := f.led.Lines
		if p.carry > 0 && half == p.carry && b[window+half] == 0 {
			// The file begins with a hole: what goes on there is not the line that
			// the copy ended in.
			f.led.Lost += int64(p.carry)
			f.split.gap(GapTruncated)
			copy(b[window:], b[window+half:end])
			end, half, p.carry = end-half, 0, 0
		}
		used := f.split.block(&p.state, b[window:end], half)
		if used > 0 {
			p.kept += int64(used - p.carry)
			p.carry = 0
		}
		f.led.Lag = f.led.Written - f.led.Read - f.led.Skipped - f.led.Lost
		if f.led.Lines != lines {
			f.lastLine = f.now
		}
		f.lock.Unlock()
		total += int64(n)
		half = end - window - used
		// The known bytes before the next read, and the half line, move to the
		// front. They overlap in the file, and so they do in the buffer.
		w = int(min(p.read, window))
		copy(aside[:w], b[end-w:end])
		copy(b[window:], b[end-half:end])
		if n+w < full {
			break // shorter than asked for: the end
		}
		if f.split.max > 0 && used == end-window && half == 0 && p.state.Holed {
			// A block of nothing but NULs: the rest of a hole need not be read.
			if to, ok := nextData(p.file, p.read); ok {
				f.jump(p, min(to, p.seen))
				if e := p.attend(f.lock); e != nil {
					err = e
					break
				}
				w = copy(aside[:], p.tail)
			}
		}
	}
	f.lock.Lock()
	p.tail = append(p.tail[:0], aside[:w]...)
	p.half = append(p.half[:0], f.buf.b[window:window+half]...)
	if cap(p.half) > 64<<10 && half < 4<<10 {
		p.half = bytes.Clone(p.half)
	}
	f.lock.Unlock()
	return total, err
}

// jump moves the part's place over a hole.
func (f *Follower) jump(p *part, to int64) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if to <= p.read {
		return
	}
	f.split.tellHole(&p.state)
	f.led.Skipped += to - p.read
	p.read, p.kept = to, to
}
