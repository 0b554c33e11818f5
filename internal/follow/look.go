package follow

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"time"
)

// Look looks once at the state of the world and reads a bounded piece of what
// is new. more says that there is more to read at once. now is only compared
// with the now of other calls, never with the times of files.
//
// An error tells what is in the way (no right to read, a pipe under the name);
// it is returned when it is new, not at each look, and looking again is always
// right. A name that leads nowhere is no error.
func (f *Follower) Look(now time.Time) (more bool, err error) {
	f.now = now
	if !f.begun {
		err = f.begin()
	} else {
		err = f.discover()
	}
	if why := blindness(err); why != "" && f.begun {
		f.blind(why) // the name itself can't be looked at
	} else if p := f.livePart(); p != nil && p.file != nil {
		f.blind("")
	}
	left := int64(maxLook)
	for i := 0; i < len(f.parts); i++ {
		p := f.parts[i]
		n, e := f.advance(p, left)
		if errors.Is(e, errTruncated) {
			// The copy, if there is one, now stands before p: begin anew there.
			f.truncated(i)
			i--
			continue
		}
		if e != nil {
			err = errors.Join(err, e)
		}
		left -= n
		if left <= 0 || (p.file != nil && p.read < p.seen && !p.stuck) {
			more = true
			break // what is older comes first
		}
		if p.role == dead && f.finish(i, p.read < p.seen) {
			i--
		}
	}
	if f.buf != nil {
		f.buf.release()
		f.buf = nil
	}
	if !more {
		f.settle()
	}
	f.account()
	return more, f.once(err)
}

// once returns an error only when it is another one than the last.
func (f *Follower) once(err error) error {
	if err == nil {
		f.told = ""
		return nil
	}
	if s := err.Error(); s != f.told {
		f.told = s
		return err
	}
	return nil
}

// advance reads on in one part, up to left bytes.
func (f *Follower) advance(p *part, left int64) (int64, error) {
	p.stuck = false
	if p.file == nil || p.fresh {
		var err error
		if p.file == nil {
			err = f.openPart(p)
		}
		p.fresh = false
		if err == nil {
			ok, e := p.recognise(f.lock)
			if e == nil && !ok {
				return 0, errTruncated
			}
			if e == nil {
				f.lock.Lock()
				e = p.rewind()
				f.lock.Unlock()
			}
			if e != nil {
				p.close()
				err = e
			}
		}
		if p.file == nil {
			p.stuck = true
			why := blindness(err)
			if p.misses++; why == "" && p.misses > 3 && p.role == live {
				// The name shows us a file that the opening does not find, again and
				// again: beneath the target's root the same name leads elsewhere.
				why = "refused"
			}
			if p.role == live {
				f.blind(why)
			}
			if why == "" {
				return 0, nil // the next look at the name tells
			}
			return 0, err
		}
		p.misses = 0
		if p.role == live {
			f.blind("")
		}
	}
	st := f.fresh
	if p.role != live || !st.regular || st.id != p.id {
		var err error
		if st, err = statFile(p.file); err != nil {
			p.stuck = true
			return 0, err
		}
	}
	changed := st.mtime != p.last.mtime || st.ctime != p.last.ctime || st.size != p.last.size
	was := max(p.last.mtime, p.mtime)
	if p.last != st || p.mtime != 0 {
		f.lock.Lock()
		p.last, p.mtime = st, 0
		f.lock.Unlock()
	}
	if st.size < p.read {
		return 0, errTruncated
	}
	if changed {
		p.quiet = f.now
	}
	if st.size < p.seen {
		// Bytes that we have seen and not read are gone. If what we have read is
		// still there, the file was not begun anew.
		if same, err := p.intact(); err != nil || !same {
			return 0, cmp.Or(err, errTruncated)
		}
		f.lock.Lock()
		f.led.Lost += p.seen - st.size
		f.led.Truncations++
		f.split.gap(GapTruncated)
		p.seen = st.size
		f.lock.Unlock()
	}
	if st.size == p.read {
		if changed {
			if same, err := p.intact(); err != nil || !same {
				return 0, cmp.Or(err, errTruncated)
			}
			if st.size == 0 && was != 0 && st.mtime != was {
				return 0, errTruncated // written to, and empty again
			}
		}
		return 0, nil
	}
	if st.size > p.seen {
		f.lock.Lock()
		f.led.Written += st.size - p.seen
		p.seen = st.size
		f.lock.Unlock()
		p.grew = f.now
	}
	if drop := f.excess(p); drop > 0 {
		// Skipping moves our place, and with it the bytes by which a truncation
		// would be seen: look first.
		if same, err := p.intact(); err != nil || !same {
			return 0, cmp.Or(err, errTruncated)
		}
		f.skip(p, drop)
		if err := p.attend(f.lock); err != nil {
			return 0, errTruncated
		}
		f.lock.Lock()
		p.state.Cut = !p.atLineEnd()
		f.lock.Unlock()
	}
	if left <= 0 {
		return 0, nil
	}
	n, err := f.readOn(p, left)
	if err != nil && !errors.Is(err, errTruncated) {
		p.stuck = true
	}
	return n, err
}

// blind writes down why the live file can't be read.
func (f *Follower) blind(reason string) {
	if f.led.Blind == reason {
		return
	}
	f.lock.Lock()
	f.led.Blind = reason
	f.lock.Unlock()
}

// settle closes what has been quiet long enough, lets go of deleted files past
// the bound, and tells the handler of quiet.
func (f *Follower) settle() {
	for i := 0; i < len(f.parts); i++ {
		p := f.parts[i]
		if p.role == live {
			continue
		}
		if p.stuck && p.file == nil {
			// It lost its name before we could open it.
			if f.now.Sub(p.quiet) >= f.spec.Grace && f.finish(i, true) {
				i--
			}
			continue
		}
		if p.read == p.seen && f.now.Sub(p.quiet) >= f.spec.Grace && f.finish(i, false) {
			i--
		}
	}
	f.letGo()
	if f.split.open && f.now.Sub(f.lastLine) >= idleAfter {
		f.lock.Lock()
		f.split.open = false
		f.h.Idle(f.now)
		f.lock.Unlock()
	}
}

// letGo keeps the deleted files that are held open within their bounds: at most
// two, and at most so many bytes of the disk. The oldest goes first.
func (f *Follower) letGo() {
	for {
		held, first, bytes := 0, -1, int64(0)
		for i, p := range f.parts {
			if p.file == nil || p.last.links > 0 {
				continue
			}
			held++
			bytes += p.last.alloc
			if first < 0 {
				first = i
			}
		}
		if held <= maxHeld && bytes <= f.spec.HoldBytes || first < 0 {
			f.lock.Lock()
			f.led.DeletedOpen = bytes
			f.lock.Unlock()
			return
		}
		// One that is read to its end and has got nothing new for a second is no
		// loss: size-based rollers delete what they closed tens of times a second.
		p := f.parts[first]
		f.finish(first, p.read < p.seen || p.role == live || f.now.Sub(p.grew) < time.Second)
	}
}

// finish ends parts[i]. With loss, what was not read and what may still have
// come is counted; without, its half line is a line, for nothing will follow,
// except after a copy, where it goes on in the next part.
func (f *Follower) finish(i int, loss bool) bool {
	p := f.parts[i]
	f.lock.Lock()
	defer f.lock.Unlock()
	switch {
	case loss:
		f.lose(p, GapReleased)
	case p.role == dead:
		if i+1 < len(f.parts) && f.parts[i+1].read == 0 {
			next := f.parts[i+1]
			next.half = slices.Clone(p.half)
			next.carry = len(p.half)
			next.state = p.state
			next.state.Begun = true
			break
		}
		fallthrough
	default:
		f.split.last(&p.state, p.half)
		p.kept, p.carry = p.read, 0
		f.lastLine = f.now
	}
	p.close()
	if len(p.tail) > 0 {
		p.sum = checksum(p.tail)
	}
	p.half, p.tail, p.carry = nil, nil, 0
	p.kept, p.seen = p.read, p.read
	f.parts = slices.Delete(f.parts, i, i+1)
	f.remember(p)
	return true
}

// lose gives up what is pending of a part. The caller holds the lock.
func (f *Follower) lose(p *part, r GapReason) {
	f.led.Lost += p.pending()
	f.split.gap(r)
	p.half, p.carry = nil, 0
	if p.read != p.seen {
		p.tail, p.sum = nil, 0
	}
	p.kept, p.read = p.seen, p.seen
}

// remember keeps a finished file in mind, so that it is not taken for a new one.
func (f *Follower) remember(p *part) {
	f.done = append(f.done, p)
	if len(f.done) > maxDone {
		f.done = slices.Delete(f.done, 0, len(f.done)-maxDone)
	}
}

// truncated begins parts[i] anew. If a copy with the same bytes before our
// place is found, its rest is read first: then copytruncate loses nothing but
// what came between the copy and the truncation, which nobody can know.
func (f *Follower) truncated(i int) {
	p := f.parts[i]
	copies := f.findCopies(p)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.led.Truncations++
	if len(copies) > 0 {
		f.inherit(copies[0], p)
		f.led.Gaps[GapTruncated]++
		f.parts = slices.Insert(f.parts, i, copies...)
	} else {
		f.led.Lost += p.pending()
		f.split.gap(GapTruncated)
	}
	p.kept, p.read, p.seen = 0, 0, 0
	p.half, p.tail, p.carry, p.sum = nil, nil, 0, 0
	p.state = lineState{Enc: f.encoding()}
	p.quiet = f.now
}

// inherit gives a copy the place and the account of the part whose bytes it
// holds. The caller holds the lock.
func (f *Follower) inherit(c, p *part) {
	c.kept, c.read, c.half, c.carry = p.kept, p.read, p.half, p.carry
	c.state, c.seen = p.state, p.seen
	if size := c.last.size; size < p.seen {
		f.led.Lost += p.seen - size
		c.seen = size
	}
	if c.rewind() != nil {
		c.stuck = true // it was readable a moment ago; what it holds is counted as lost
	}
}

func (f *Follower) encoding() encoding {
	e, _ := parseEncoding(f.spec.Encoding)
	return e
}

// unread is how many bytes were shown and not read.
func (f *Follower) unread() int64 {
	n := int64(0)
	for _, p := range f.parts {
		if p.file != nil || !p.stuck {
			n += p.seen - p.read
		}
	}
	return n
}

// excess is how many bytes of a part are to be skipped because reading has
// fallen behind its limits. It goes back to half the limit at once, so that
// there is one large gap rather than many small ones.
func (f *Follower) excess(p *part) int64 {
	if !f.caughtUp && f.led.Written <= f.backlog {
		return 0 // the backlog of the start is read whole
	}
	behind := f.unread()
	consumed := f.led.Written - behind
	behind = min(behind, f.led.Written-f.backlog)
	var drop int64
	if limit := f.spec.LagBytes; limit > 0 && behind > limit {
		drop = behind - limit/2
	}
	if limit := f.spec.LagAge; limit > 0 && consumed >= f.backlog {
		if at, ok := f.since(consumed); ok && f.now.Sub(at) > limit {
			for _, m := range f.marks {
				if f.now.Sub(m.at) > limit/2 {
					drop = max(drop, m.written-consumed)
				}
			}
		}
	}
	drop = min(drop, p.seen-p.read)
	if drop < p.seen-p.read {
		drop -= drop % blockSize
	}
	return max(drop, 0)
}

// skip drops so many bytes.
func (f *Follower) skip(p *part, drop int64) {
	if to, ok := nextData(p.file, p.read); ok && len(p.half) == 0 {
		// What looks like a flood is a hole, which costs nothing.
		f.jump(p, min(to, p.seen))
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.led.Storm, f.stormAt = true, f.now
	f.led.Skipped += p.read + drop - p.kept + int64(p.carry)
	p.read += drop
	p.kept = p.read
	p.half, p.carry = nil, 0
	f.split.gap(GapSkipped)
}

// since is when the byte behind the first n was first seen.
func (f *Follower) since(n int64) (time.Time, bool) {
	for _, m := range f.marks {
		if m.written > n {
			return m.at, true
		}
	}
	return time.Time{}, false
}

// account brings the figures of now up to date.
func (f *Follower) account() {
	f.lock.Lock()
	defer f.lock.Unlock()
	l := &f.led
	unread := f.unread()
	consumed := l.Written - unread
	if n := len(f.marks); n == 0 && l.Written > 0 || n > 0 && l.Written > f.marks[n-1].written {
		if n > 0 && f.now.Sub(f.marks[n-1].at) < time.Second && n > 1 {
			// One mark a second is enough; the earlier time stays, so an age is
			// told too high by a second at most.
			f.marks[n-1].written = l.Written
		} else {
			f.marks = append(f.marks, mark{f.now, l.Written})
		}
	}
	old := 0
	for old < len(f.marks)-1 && f.marks[old].written <= consumed {
		old++
	}
	f.marks = slices.Delete(f.marks, 0, old)
	if len(f.marks) > 512 {
		f.marks = slices.Delete(f.marks, 1, 2)
	}
	l.Lag = l.Written - l.Read - l.Skipped - l.Lost
	l.LagSeconds = 0
	if unread > 0 {
		if at, ok := f.since(consumed); ok {
			l.LagSeconds = f.now.Sub(at).Seconds()
		}
	}
	if l.Storm && f.now.Sub(f.stormAt) >= stormHold && unread <= f.spec.LagBytes/4 && time.Duration(l.LagSeconds*1e9) <= f.spec.LagAge/4 {
		l.Storm = false
	}
	if !f.caughtUp && f.begun && consumed >= f.backlog {
		f.caughtUp = true
	}
	l.HasSize = false
	if p := f.livePart(); p != nil && p.file != nil && p.last.links > 0 {
		l.HasSize, l.Size = true, p.last.size
	}
}

// livePart is the file that is being written, or nil.
func (f *Follower) livePart() *part {
	if n := len(f.parts); n > 0 && f.parts[n-1].role == live {
		return f.parts[n-1]
	}
	return nil
}

// absent says that a look at a name found nothing there, which is the usual
// state of a log before its server starts.
func absent(err error) bool {
	return errors.Is(err, os.ErrNotExist) || isNotDir(err)
}
