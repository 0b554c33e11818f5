package hsperf

import (
	"io"

	"github.com/jvm-sidecar/sidecar/internal/root"
)

// tries is how often a read is repeated when the JVM adds counters under it. It
// adds nearly all of them in its first second.
const tries = 3

// ReadFile reads a file into buf, which it grows when it must, and returns the
// bytes. A path through /proc/PID/root is opened beneath that root only. It is
// refused when it is no regular file, or larger than MaxSize.
func ReadFile(path string, buf []byte) ([]byte, error) {
	f, err := root.Open(root.Split(path))
	if err != nil {
		return buf[:0], wrap(path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return buf[:0], wrap(path, err)
	}
	if st.Size() > MaxSize {
		return buf[:0], wrap(path, TooLarge)
	}
	buf, err = Read(f, int(st.Size()), buf)
	if err != nil {
		return buf[:0], wrap(path, err)
	}
	return buf, nil
}

// Read reads size bytes and looks at the head again afterwards: when a counter
// was added meanwhile, it reads once more. The error is a Refusal or the
// reader's own; a file that is shorter than size by now is TooShort or BadSize
// to Decode, not an error here.
func Read(r io.ReaderAt, size int, buf []byte) ([]byte, error) {
	if size > MaxSize {
		return buf[:0], TooLarge
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	var again [headLen]byte
	for range tries {
		n, err := r.ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			return buf[:0], err
		}
		buf = buf[:n]
		if n, err := r.ReadAt(again[:], 0); n < headLen {
			if err == io.EOF {
				return buf, nil // too short for a head; Decode says so
			}
			return buf[:0], err
		}
		before, err := readHead(buf)
		if err != nil {
			return buf, nil // not hsperfdata; Decode says why
		}
		if after, err := readHead(again[:]); err == nil && after == before {
			return buf, nil
		}
		buf = buf[:size]
	}
	return buf[:0], Torn
}
