package ship

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/grafana/loki/pkg/push"
)

// A spool is batches on disk, one file each, named by number and by the chosen
// lines in it, so that a start need not read them. A file is written beside its
// place and renamed: one that was being written when the power went is none.
type spool struct {
	segments []segment // the oldest first; guarded by the Shipper's lock
	last     uint64    // the highest number given out
	found    float64   // lines that lay there at the start
	bad      time.Time // writing failed: not again before
}

type segment struct {
	number uint64
	path   string
	lot
}

func (sp *spool) number() uint64 { sp.last++; return sp.last }

func (sp *spool) total() (n lot) {
	for _, seg := range sp.segments {
		n.lines += seg.lines
		n.bytes += seg.bytes
	}
	return n
}

var segmentName = regexp.MustCompile(`^(\d{12})-(\d+)\.lines(\.part)?$`)

// spoolLine is a line on disk.
type spoolLine struct {
	Stream string      `json:"s"`
	At     int64       `json:"t"`
	Text   string      `json:"l"`
	Meta   [][2]string `json:"m,omitempty"`
	Weight int64       `json:"w"`
}

// openSpool finds what an earlier run left.
func (s *Shipper) openSpool() {
	if s.cfg.SpoolDir == "" {
		return
	}
	entries, err := os.ReadDir(s.cfg.SpoolDir)
	if err != nil {
		if !os.IsNotExist(err) {
			s.log.Warn("the spool can't be read", "err", err)
		}
		return
	}
	for _, e := range entries { // by name, which is by number
		m := segmentName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		if m[3] != "" {
			// A kill came while it was written. It counts as memory, which is lost, and
			// no bound would ever find it.
			s.remove(filepath.Join(s.cfg.SpoolDir, e.Name()))
			continue
		}
		number, _ := strconv.ParseUint(m[1], 10, 64)
		lines, err := strconv.ParseInt(m[2], 10, 64)
		info, err2 := e.Info()
		if err != nil || err2 != nil {
			continue
		}
		s.spool.segments = append(s.spool.segments, segment{number, filepath.Join(s.cfg.SpoolDir, e.Name()), lot{lines, info.Size()}})
		s.spool.last = max(s.spool.last, number)
		s.spool.found += float64(lines)
		s.n.selected += float64(lines)
	}
}

// unspool reads a segment. What can't be read is lost, and counted.
func (s *Shipper) unspool(seg segment) *batch {
	lines, err := readSegment(seg.path)
	n := amount(lines)
	s.mu.Lock()
	s.flight = n
	if n.lines < seg.lines {
		s.drop(dropSpool, seg.lines-n.lines)
	} else if n.lines > seg.lines {
		s.n.selected += float64(n.lines - seg.lines)
	}
	s.mu.Unlock()
	if err != nil {
		s.log.Warn("a part of the spool can't be read", "err", err)
	}
	if len(lines) == 0 {
		s.remove(seg.path)
		return nil
	}
	return &batch{number: seg.number, file: seg.path, parts: [][]line{lines}}
}

func readSegment(path string) (lines []line, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	streams := map[string]*stream{}
	for part := range bytes.Lines(data) {
		var l spoolLine
		if err := json.Unmarshal(part, &l); err != nil {
			return lines, fmt.Errorf("%s: %w", path, err)
		}
		if len(l.Stream) < 2 || l.Weight < 0 || l.Weight > 1 {
			return lines, fmt.Errorf("%s: no line of a spool", path)
		}
		st := streams[l.Stream]
		if st == nil {
			st = &stream{text: l.Stream}
			streams[l.Stream] = st
		}
		out := line{stream: st, at: l.At, text: l.Text, weight: l.Weight}
		for _, m := range l.Meta {
			out.meta = append(out.meta, push.LabelAdapter{Name: m[0], Value: m[1]})
		}
		lines = append(lines, out)
	}
	return lines, nil
}

// writeSegment writes lines as the batch of this number.
func writeSegment(dir string, number uint64, lines []line) (segment, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return segment{}, err
	}
	n := amount(lines)
	path := filepath.Join(dir, fmt.Sprintf("%012d-%d.lines", number, n.lines))
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return segment{}, err
	}
	defer os.Remove(path + ".part") // gone already where all went well
	w := bufio.NewWriterSize(f, 64<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range lines {
		l := &lines[i]
		out := spoolLine{Stream: l.stream.text, At: l.at, Text: l.text, Weight: l.weight}
		for _, m := range l.meta {
			out.Meta = append(out.Meta, [2]string{m.Name, m.Value})
		}
		if err = enc.Encode(out); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	var size int64
	if info, e := f.Stat(); e == nil {
		size = info.Size()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	return segment{number, path, lot{n.lines, size}}, err
}

func (s *Shipper) remove(path string) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		s.log.Warn("a part of the spool can't be removed", "err", err)
	}
}

// spooling says whether there is a spool to write to; the caller holds the lock.
func (s *Shipper) spooling() bool {
	return s.cfg.SpoolDir != "" && s.cfg.SpoolBytes > 0 && time.Now().After(s.spool.bad)
}

// overflow spills whenever the queue is half full, in a goroutine of its own:
// the sender may wait for an answer that does not come.
func (s *Shipper) overflow() {
	defer close(s.dry)
	for {
		select {
		case <-s.stopping:
			return
		case <-s.half:
			for s.spill() {
			}
		}
	}
}

// spill moves a batch from the queue's head to the spool, if that is more than
// half full, and says whether it did.
func (s *Shipper) spill() bool {
	s.spilling.Lock()
	defer s.spilling.Unlock()
	s.mu.Lock()
	if !s.spooling() || s.queue.bytes < int64(s.cfg.QueueBytes)/2 || s.stopped {
		s.mu.Unlock()
		return false
	}
	lines := s.queue.take(int64(s.cfg.BatchBytes))
	number := s.spool.number()
	s.hold(amount(lines), 1)
	s.mu.Unlock()
	if _, err := s.toSpool(number, lines); err != nil {
		// A full disk: memory has room for them, until it is full as well.
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hold(amount(lines), -1)
		s.queue.putBack(lines)
		s.bound()
		return false
	}
	return true
}

// hold adds to what is on its way to the spool, or takes from it; the caller
// holds the lock.
func (s *Shipper) hold(n lot, sign int64) {
	s.moving.lines += sign * n.lines
	s.moving.bytes += sign * n.bytes
}

// toSpool writes lines that are held. On an error they still are, and memory is
// all there is for the next half minute.
func (s *Shipper) toSpool(number uint64, lines []line) (path string, err error) {
	s.mu.Lock()
	dir, limit := s.cfg.SpoolDir, s.cfg.SpoolBytes
	s.mu.Unlock()
	seg, err := writeSegment(dir, number, lines)
	if err != nil {
		s.log.Warn("the spool can't be written", "err", err)
		s.mu.Lock()
		s.spool.bad = time.Now().Add(30 * time.Second)
		s.mu.Unlock()
		return "", err
	}
	var gone []segment
	s.mu.Lock()
	s.hold(amount(lines), -1)
	at := len(s.spool.segments)
	for at > 0 && s.spool.segments[at-1].number > number {
		at--
	}
	s.spool.segments = append(s.spool.segments[:at:at], append([]segment{seg}, s.spool.segments[at:]...)...)
	for len(s.spool.segments) > 0 && s.spool.total().bytes > limit {
		gone = append(gone, s.spool.segments[0])
		s.drop(dropSpoolFull, s.spool.segments[0].lines)
		s.spool.segments = s.spool.segments[1:]
	}
	s.mu.Unlock()
	for _, seg := range gone {
		s.remove(seg.path)
	}
	return seg.path, nil
}

// keep saves what is left of a batch when the Shipper stops.
func (s *Shipper) keep(b *batch) {
	var rest []line
	for _, p := range b.parts {
		rest = append(rest, p...)
	}
	n := amount(rest)
	s.mu.Lock()
	spooling := s.spooling()
	s.flight = lot{}
	s.hold(n, 1)
	s.mu.Unlock()
	if len(rest) > 0 {
		written := ""
		if spooling {
			written, _ = s.toSpool(b.number, rest)
		}
		if written == "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.hold(n, -1)
			switch {
			case b.file != "":
				// Its file stays. What of it was sent is sent again by the next run,
				// with the times it had.
				s.spool.segments = append([]segment{{b.number, b.file, n}}, s.spool.segments...)
			case spooling:
				s.drop(dropSpool, n.lines)
			default:
				s.drop(dropStopped, n.lines)
			}
			return
		}
		if written == b.file {
			return
		}
	}
	if b.file != "" { // the rest has a file of its own by now
		s.remove(b.file)
	}
}

// keepQueue saves the queue when the Shipper stops.
func (s *Shipper) keepQueue() {
	for {
		s.mu.Lock()
		if s.queue.lines() == 0 {
			s.mu.Unlock()
			return
		}
		lines := s.queue.take(int64(s.cfg.BatchBytes))
		n := amount(lines)
		if !s.spooling() {
			s.drop(dropStopped, n.lines)
			s.mu.Unlock()
			continue
		}
		number := s.spool.number()
		s.hold(n, 1)
		s.mu.Unlock()
		if _, err := s.toSpool(number, lines); err != nil {
			s.mu.Lock()
			s.hold(n, -1)
			s.drop(dropSpool, n.lines)
			s.mu.Unlock()
		}
	}
}
