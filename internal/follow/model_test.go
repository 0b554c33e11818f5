package follow

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The property test: a writer and a log rotation play a random schedule on real
// files, the follower looks now and then, is stopped, killed, restarted, and a
// model that knows every byte says what must have come out.
//
// The model's terms: a box holds lines (a file, or a copy that copytruncate
// made). At each look it knows which boxes the follower can reach; their whole
// lines must come out at that look. A line whose box is destroyed before it came
// out is lost, and the next look that sees a file under the name must have
// counted a gap. What nobody could have known is written down in unknowable, and
// in isGlued; there is no other exemption.
//
// `make test` plays the first thousand. Ten thousand and more, from anywhere:
//
//	go test ./internal/follow -run Schedules -schedules 10000 -seed 0

type box struct {
	ino       uint64
	name      string // "" once deleted
	seq       int    // order of being live; copies have that of their source
	copyOf    *box
	epoch     int // truncations
	size      int64
	birth     int64
	mtime     int64
	destroyed bool
	packed    bool
	bare      bool // removed while live
}

type row struct {
	text   string
	box    *box
	epoch  int
	lost   bool
	sure   bool
	atLook int
	acked  bool // its loss was told by a gap

	// since is the number of gaps when it was lost or torn: there must be more by
	// the next look that sees a live file, unless nobody could know.
	since  int64
	judged bool // somebody has looked since, so the next is settled
	exempt bool // nobody could know, see unknowable

	// torn: a truncation of this file in this epoch fell between its halves.
	torn      *box
	tornEpoch int
}

// knowledge is what the follower knows of a box, as of a look or a save.
type knowledge struct {
	epoch int
	size  int64
	look  int
}

type world struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	births  bool
	clock   int64
	boxes   map[uint64]*box // by inode number, those that exist
	all     []*box
	live    *box
	writer  *box
	wfile   *os.File
	rest    []byte // of a torn line
	rows    []*row
	keep    int
	log     []string
	seqs    int
	r       *recorder
	f       *Follower
	spec    Spec
	now     time.Time
	looks   int
	known   map[*box]knowledge
	gaps    int64  // told up to the last look
	last    *box   // that the follower has at the end of its list
	torn    []*row // lines that a truncation tore
	partial *row   // the line that is being written
	allowed map[string]bool

	save      []byte
	saveLines int
	saveKnown map[*box]knowledge
	saveRows  map[*row]row
	saveGaps  int64
	saveLast  *box
	began     bool
	blank     bool // the follower has no file in mind
	saveBlank bool
	packs     map[uint64]int64
}

func (w *world) logf(format string, a ...any) { w.log = append(w.log, fmt.Sprintf(format, a...)) }

func (w *world) fail(format string, a ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nschedule:\n%s\nledger %+v", fmt.Sprintf(format, a...), strings.Join(w.log, "\n"), w.f.led)
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

func (w *world) path(n string) string { return filepath.Join(w.dir, "logs", n) }

func (w *world) tick() int64 { w.clock += 1e6; return w.clock }

// seen gives the world's clocks to what the kernel says.
func (w *world) seen(s *stat) {
	b := w.boxes[s.id.Ino]
	s.id.Birth = 0
	if b == nil {
		s.mtime, s.ctime = 1, 1 // a packed file, the folder
		if s.dir {
			s.mtime = w.clock
		} else if w.births {
			s.id.Birth = w.packs[s.id.Ino]
			s.mtime = s.id.Birth
		}
		return
	}
	if w.births {
		s.id.Birth = b.birth
	}
	s.mtime, s.ctime = b.mtime, b.mtime
}

func (w *world) create(name string) *box {
	f, err := os.OpenFile(w.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	w.must(err)
	st, err := sysStatFile(f)
	w.must(err)
	b := &box{ino: st.id.Ino, name: name, birth: w.tick(), mtime: w.clock}
	w.boxes[b.ino] = b
	w.all = append(w.all, b)
	if w.wfile != nil && name == "app.log" {
		w.wfile.Close()
	}
	if name == "app.log" {
		w.seqs++
		b.seq = w.seqs
		w.live, w.writer, w.wfile = b, b, f
	} else {
		f.Close()
	}
	return b
}

// destroy forgets what a box holds.
func (w *world) destroy(b *box, epoch int) {
	for _, r := range w.rows {
		if r.box == b && r.epoch == epoch {
			w.lose(r)
		}
	}
}

func (w *world) lose(r *row) {
	if !r.lost && r.torn == nil {
		r.since = w.gaps // of a torn one, the gap at the tear tells
	}
	r.lost = true
}

// unknowable says, of a line that was lost or torn, whether nobody could have
// known that something was there. It is asked at the first look behind the
// loss, with what the follower knew before that look. These are all the cases
// in which a loss need not be told:
//
//   - The file was never seen, it was removed under the live name, and what was
//     live at the look before is there still, or nothing was.
//   - Nothing had been read of the file when it was truncated, and now there is
//     something in it: a file that was always so short looks the same.
func (w *world) unknowable(r *row) bool {
	b, epoch := r.box, r.epoch
	if r.torn != nil {
		b, epoch = r.torn, r.tornEpoch
	}
	if b.copyOf != nil {
		b = b.copyOf // of the copy nobody knows but by its source
	}
	k, known := w.known[b]
	switch {
	case known && k.size > 0:
		return false
	case b.epoch > epoch && !b.destroyed:
		return !known || w.sizeNow(b) > 0
	case known:
		return false
	case b.epoch > epoch:
		return true
	}
	return w.blank || w.last == nil || b.bare && (w.last.name != "" || w.last.packed)
}

// sizeNow is the size in the file system: a hole is not there before something
// is written behind it.
func (w *world) sizeNow(b *box) int64 {
	if b.name != "" {
		if st, err := os.Stat(w.path(b.name)); err == nil {
			return st.Size()
		}
	}
	return b.size
}

func (w *world) remove(b *box) {
	w.must(os.Remove(w.path(b.name)))
	w.logf("  rm %s", b.name)
	b.name = ""
	if b == w.live {
		w.live = nil
	}
}

// release is called when nobody can reach a deleted box any more.
func (w *world) release(b *box) {
	if !b.destroyed {
		b.destroyed = true
		w.destroy(b, b.epoch)
		if w.boxes[b.ino] == b {
			delete(w.boxes, b.ino)
		}
	}
}

// shift makes room for name.1.
func (w *world) shift() {
	for n := w.keep; n >= 1; n-- {
		from := fmt.Sprintf("app.log.%d", n)
		for _, b := range w.all {
			if b.name == from {
				if n == w.keep {
					w.remove(b)
					w.reap(b)
				} else {
					to := fmt.Sprintf("app.log.%d", n+1)
					w.must(os.Rename(w.path(from), w.path(to)))
					b.name = to
				}
			}
		}
		gz := from + ".gz"
		if _, err := os.Lstat(w.path(gz)); err == nil {
			if n == w.keep {
				os.Remove(w.path(gz))
			} else {
				os.Rename(w.path(gz), w.path(fmt.Sprintf("app.log.%d.gz", n+1)))
			}
		}
	}
}

// reap: a deleted box is gone for good unless the follower holds it open.
func (w *world) reap(b *box) {
	if w.f == nil || !w.holds(b) {
		w.release(b)
	}
}

func (w *world) holds(b *box) bool {
	for _, p := range w.f.parts {
		if p.file != nil && p.id.Ino == b.ino && w.boxes[b.ino] == b {
			return true
		}
	}
	return false
}

func (w *world) write(to *box, f *os.File, b []byte) {
	_, err := f.WriteAt(b, to.size)
	w.must(err)
	to.size += int64(len(b))
	to.mtime = w.tick()
}

func (w *world) line() {
	text := fmt.Sprintf("L%06d %s", len(w.rows), strings.Repeat("x", w.rng.IntN(60)))
	if w.rng.IntN(40) == 0 {
		text += strings.Repeat("y", w.rng.IntN(5000))
	}
	w.rest = append(w.rest, text...)
	w.rest = append(w.rest, '\n')
	w.partial = &row{text: text}
}

// flush writes the torn line's rest.
func (w *world) flush() {
	if len(w.rest) > 0 {
		w.write(w.writer, w.wfile, w.rest)
		w.rest = w.rest[:0]
		w.commit()
	}
}

func (w *world) commit() {
	if w.partial != nil {
		w.partial.box, w.partial.epoch = w.writer, w.writer.epoch
		w.rows = append(w.rows, w.partial)
		w.partial = nil
	}
}

func (w *world) opWrite() {
	if w.writer == nil {
		return
	}
	n := 1 + w.rng.IntN(30)
	for range n {
		w.flush()
		w.line()
		if w.rng.IntN(4) == 0 {
			k := 1 + w.rng.IntN(len(w.rest))
			w.write(w.writer, w.wfile, w.rest[:k])
			w.rest = w.rest[k:]
			if len(w.rest) == 0 {
				w.commit()
			}
		}
	}
	if w.rng.IntN(3) > 0 {
		w.flush()
	}
	w.logf("write %d lines to seq %d, size %d, rest %d", n, w.writer.seq, w.writer.size, len(w.rest))
}

func (w *world) opRename() {
	if w.live == nil {
		return
	}
	b := w.live
	if w.writer != nil {
		w.flush()
	}
	w.shift()
	w.must(os.Rename(w.path("app.log"), w.path("app.log.1")))
	b.name = "app.log.1"
	w.live = nil
	w.logf("rename seq %d", b.seq)
	if w.rng.IntN(4) > 0 {
		w.opCreate()
	}
}

func (w *world) opCreate() {
	if w.live != nil {
		return
	}
	if w.writer != nil {
		w.flush()
	}
	b := w.create("app.log")
	w.logf("create seq %d ino %d", b.seq, b.ino)
}

func (w *world) opPack() {
	for _, b := range w.all {
		if b.name == "app.log.1" && b != w.writer {
			w.must(os.WriteFile(w.path("app.log.1.gz"), binary.LittleEndian.AppendUint32([]byte("\x1f\x8b\x08\x00garbage\nmore\n"), uint32(b.size)), 0o644))
			if st, err := sysStatPath(w.path("app.log.1.gz")); err == nil {
				w.packs[st.id.Ino] = w.tick()
			}
			b.packed = true
			w.remove(b)
			w.reap(b)
			w.logf("pack seq %d", b.seq)
		}
	}
}

func (w *world) opCopyTruncate() {
	if w.live == nil || w.live != w.writer {
		return
	}
	w.shift()
	data, err := os.ReadFile(w.path("app.log"))
	w.must(err)
	c := w.create("app.log.1")
	w.must(os.WriteFile(w.path("app.log.1"), data, 0o644))
	c.copyOf, c.size, c.seq = w.live, int64(len(data)), w.live.seq
	c.mtime = w.tick()
	for _, r := range w.rows {
		if r.box == w.live && r.epoch == w.live.epoch {
			r.box, r.epoch = c, w.live.epoch
		}
	}
	c.epoch = w.live.epoch
	w.logf("copytruncate seq %d epoch %d at %d", w.live.seq, w.live.epoch, w.live.size)
	if k, ok := w.known[w.live]; ok && w.partial != nil && k.epoch == w.live.epoch && k.size > 0 {
		w.partial.sure, w.partial.atLook = true, w.looks
	} else if w.partial != nil {
		w.partial.sure = false
	}
	w.truncate()
}

func (w *world) truncate() {
	w.must(os.Truncate(w.path("app.log"), 0))
	w.live.epoch++
	w.live.size = 0
	w.live.mtime = w.tick()
	if len(w.rest) > 0 && w.partial != nil && w.partial.torn == nil {
		w.partial.torn, w.partial.tornEpoch, w.partial.since = w.live, w.live.epoch-1, w.gaps
		w.torn = append(w.torn, w.partial)
		// A line torn by the truncation: its end may come out as a line.
		text := w.partial.text + "\n"
		for i := range text {
			w.allowed[strings.TrimSuffix(text[i:], "\n")] = true
			w.allowed[text[:i]] = true // and its first half, when the copy is closed
		}
	}
}

func (w *world) opTruncate() {
	if w.live == nil || w.live != w.writer {
		return
	}
	w.destroy(w.live, w.live.epoch)
	w.logf("truncate seq %d at %d", w.live.seq, w.live.size)
	if w.partial != nil {
		w.partial.sure = false
	}
	keep := w.live.size
	w.truncate()
	if w.rng.IntN(4) == 0 {
		w.live.size = keep // the writer keeps its offset: a hole
		w.logf("  with a hole")
	}
}

func (w *world) opDelete() {
	if w.live == nil {
		return
	}
	b := w.live
	w.flush()
	w.logf("delete seq %d", b.seq)
	b.bare = true
	w.remove(b)
	w.wfile.Close()
	w.wfile, w.writer = nil, nil
	w.reap(b)
	if w.rng.IntN(2) == 0 {
		w.opCreate()
	}
}

func (w *world) opFolder() {
	if w.live == nil {
		return
	}
	w.flush()
	w.logf("rm -r")
	for _, b := range slices.Clone(w.all) {
		if b.name != "" {
			b.bare = true
			w.remove(b)
			if b == w.writer {
				w.wfile.Close()
				w.wfile, w.writer = nil, nil
			}
			w.reap(b)
		}
	}
	w.must(os.RemoveAll(w.path("")))
	w.must(os.Mkdir(w.path(""), 0o755))
}

func (w *world) out() map[string]int {
	m := map[string]int{}
	for _, l := range w.r.lines {
		m[l]++
	}
	return m
}

func (w *world) gapTotal() (n int64) {
	for _, g := range w.f.led.Gaps {
		n += g
	}
	return n
}

// reachable says which boxes' lines must come out at this look.
func (w *world) reachable() map[*box]bool {
	m := map[*box]bool{}
	if w.live != nil && w.writer != nil || w.live != nil {
		m[w.live] = true
	}
	top := 0 // the newest that the follower has seen live
	for b := range w.known {
		if b.copyOf == nil {
			top = max(top, b.seq)
		}
	}
	for _, b := range w.all {
		if b.destroyed {
			continue
		}
		k, isKnown := w.known[b]
		switch {
		case b.copyOf != nil:
			// A copy is recognised by the bytes before our place, so there must
			// be some.
			k, ok := w.known[b.copyOf]
			if ok && k.epoch == b.epoch && k.size > 0 && b.name != "" && !b.copyOf.destroyed &&
				(w.holds(b.copyOf) || b.copyOf.name != "") && w.live == b.copyOf {
				m[b] = true
			}
		case isKnown && w.holds(b):
			m[b] = true
		case isKnown && b.name != "" && w.looks-k.look <= 2:
			m[b] = true
		case b.name != "" && b.seq > top && w.live != nil && top > 0 && w.began:
			m[b] = true
		}
	}
	return m
}

// whole says whether a line that was torn by copytruncate must come out whole:
// if nothing else happened to the file between two looks.
func (w *world) whole(r *row, reach map[*box]bool) bool {
	for c := range reach {
		if c.copyOf == r.torn && c.epoch == r.tornEpoch {
			return r.sure && r.epoch == r.tornEpoch+1 && w.looks == r.atLook+1
		}
	}
	return false
}

// isGlued says whether s is the first half of a torn line and a whole line, or
// the end of another torn one. That comes about when the file was truncated
// twice and nothing had been read of it in between: nobody can know that what
// goes on in it is not the half line's other half. The line is lost then, and
// so is the torn one, which a gap must tell.
func (w *world) isGlued(s string) bool {
	for _, t := range w.torn {
		for n := min(len(t.text), len(s)-1); n > 0; n-- {
			if s[:n] != t.text[:n] {
				continue
			}
			for _, r := range w.rows {
				if r.box != nil && w.source(r) == t.torn && r.epoch > t.tornEpoch+1 && s[n:] == r.text {
					w.lose(r)
					r.since = min(r.since, t.since)
					return true
				}
			}
			for _, r := range w.torn {
				if r.torn == t.torn && r.tornEpoch > t.tornEpoch && strings.HasSuffix(r.text, s[n:]) {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) source(r *row) *box {
	if r.box.copyOf != nil {
		return r.box.copyOf
	}
	return r.box
}

func (w *world) look() {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	w.looks++
	reach := w.reachable()
	unknowable := map[*row]bool{} // by what is known before the look
	for _, r := range w.rows {
		unknowable[r] = w.unknowable(r)
	}
	for _, r := range w.torn {
		unknowable[r] = w.unknowable(r)
	}
	for i := 0; ; i++ {
		more, err := w.f.Look(w.now)
		if err != nil {
			w.logf("  error %v", err)
		}
		if !more {
			break
		}
		if i > 1000 {
			w.fail("it never ends")
		}
	}
	w.began = true
	w.blank = len(w.f.parts) == 0 && w.f.gone == nil
	if n := len(w.f.parts); n > 0 {
		if b := w.boxes[w.f.parts[n-1].id.Ino]; b != nil {
			w.last = b
		}
	}
	w.logf("look %d: %d lines out", w.looks, len(w.r.lines))
	pending := int64(0)
	for _, p := range w.f.parts {
		pending += p.pending()
	}
	l := w.f.led
	if l.Written != l.Read+l.Skipped+l.Lost+l.Lag || l.Lag != pending {
		w.fail("ledger out of balance, pending %d", pending)
	}
	out := w.out()
	for _, r := range w.rows {
		// A copy that was not recognised at the look behind the truncation is
		// no copy to us any more.
		if r.box.copyOf != nil && !reach[r.box] && out[r.text] == 0 {
			w.lose(r)
		}
	}
	for _, l := range w.r.lines {
		w.isGlued(l)
	}
	now := w.gapTotal()
	for _, r := range append(slices.Clip(w.rows), w.torn...) {
		missing := r.lost || r.torn != nil && !w.whole(r, reach)
		if missing && !r.judged && out[r.text] == 0 {
			r.judged, r.exempt = true, unknowable[r]
		}
	}
	for _, r := range w.rows {
		n := out[r.text]
		missing := r.lost || r.torn != nil && !w.whole(r, reach)
		switch {
		case n > 1:
			w.fail("%.8s came out %d times", r.text, n)
		case n == 1:
		case !missing && reach[r.box] && r.epoch == r.box.epoch:
			w.fail("%.8s in seq %d (%s) must have come out", r.text, r.box.seq, r.box.name)
		case missing && !r.exempt && !r.acked && w.live != nil:
			if now <= r.since {
				w.fail("%.8s was lost and no gap told", r.text)
			}
			r.acked = true
		}
	}
	w.gaps = now
	have := map[string]bool{}
	for _, r := range w.rows {
		have[r.text] = true
	}
	read := int64(0)
	for _, s := range w.r.lines {
		if s == "<gap>" {
			continue
		}
		read += int64(len(s)) + 1
		if !have[s] && !w.allowed[s] && !w.isGlued(s) && !(w.partial != nil && strings.HasPrefix(w.partial.text, s)) {
			w.fail("%q was never written", s)
		}
	}
	if d := read - l.Read; d < 0 || d > 10 {
		w.fail("ledger says %d bytes read, %d came out", l.Read, read)
	}
	for b := range reach {
		size := b.size
		if st, err := os.Stat(w.path(b.name)); err == nil && b.name != "" {
			size = st.Size() // a hole is not there before something is written behind it
		}
		w.known[b] = knowledge{b.epoch, size, w.looks}
	}
	for _, b := range w.all {
		if b.name == "" && !b.destroyed && !w.holds(b) {
			w.release(b)
		}
	}
}

func (w *world) opSave() {
	data, err := w.f.Save()
	w.must(err)
	w.save, w.saveLines = data, len(w.r.lines)
	w.saveBlank = w.blank
	w.saveKnown, w.saveGaps, w.saveLast = maps.Clone(w.known), w.gaps, w.last
	w.saveRows = map[*row]row{}
	for _, r := range append(slices.Clip(w.rows), w.torn...) {
		w.saveRows[r] = *r
	}
	w.logf("save")
}

// opStop saves, stops, lets the world go on, and starts; or kills, which goes
// back to the last save.
func (w *world) opStop(kill bool) {
	if !kill || w.save == nil {
		w.opSave()
	}
	w.logf("stop, kill %v", kill)
	w.f.Close()
	w.f.parts = nil
	w.blank = w.saveBlank
	w.r.lines = w.r.lines[:w.saveLines]
	w.known = maps.Clone(w.saveKnown)
	out := w.out()
	for _, b := range w.all {
		if b.name == "" && !b.destroyed && b != w.writer {
			w.release(b)
		}
		if b.name == "" && b == w.writer {
			// Written on without a name: nobody will ever see it.
			w.flush()
			w.wfile.Close()
			w.wfile, w.writer = nil, nil
			w.release(b)
		}
	}
	w.gaps, w.last = w.saveGaps, w.saveLast
	for _, r := range append(slices.Clip(w.rows), w.torn...) {
		if out[r.text] == 0 {
			was := w.saveRows[r]
			r.acked, r.judged, r.exempt, r.since = was.acked, was.judged, was.exempt, min(r.since, w.gaps)
		}
	}
	for range w.rng.IntN(5) {
		w.step(false)
	}
	f := New(w.spec, w.r)
	if err := f.Load(w.save); err != nil {
		w.fail("load: %v", err)
	}
	w.f = f
	w.looks += 10
	w.logf("start")
	w.look()
}

func (w *world) step(running bool) {
	switch k := w.rng.IntN(20); {
	case k < 6:
		w.opWrite()
	case k < 8:
		w.opRename()
	case k < 9:
		w.opCreate()
	case k < 10:
		w.opCopyTruncate()
	case k < 11:
		w.opTruncate()
	case k < 12 && w.rng.IntN(2) == 0:
		w.opDelete()
	case k < 13:
		w.opPack()
	case k < 14 && w.rng.IntN(4) == 0:
		w.opFolder()
	case !running:
	case k < 17:
		w.look()
	case k < 18:
		w.opSave()
	case k < 19 && w.rng.IntN(2) == 0:
		w.opStop(w.rng.IntN(2) == 0)
	}
}

func runSchedule(t *testing.T, dir string, seed uint64) {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), dir: dir, boxes: map[uint64]*box{},
		keep: 1 + int(seed%4), now: time.Unix(1e9, 0), clock: 1e15, r: &recorder{},
		known: map[*box]knowledge{}, allowed: map[string]bool{}, packs: map[uint64]int64{}}
	w.births = seed%3 > 0
	w.must(os.MkdirAll(w.path(""), 0o755))
	seen = w.seen
	w.spec = Spec{Path: w.path("app.log"), From: Start, Grace: 4 * time.Second}
	w.f = New(w.spec, w.r)
	defer func() {
		w.f.Close()
		if w.wfile != nil {
			w.wfile.Close()
		}
		os.RemoveAll(w.path(""))
	}()
	w.logf("seed %d, births %v, keep %d", seed, w.births, w.keep)
	if seed%2 == 0 {
		w.opCreate()
		w.opWrite()
	}
	w.look()
	for range 40 {
		w.step(true)
	}
	w.opCreate()
	if w.writer != nil {
		w.flush()
	}
	for range 8 {
		w.look()
	}
	if bytes.Contains([]byte(strings.Join(w.r.lines, "")), []byte{0}) {
		w.fail("a NUL came out")
	}
}

var (
	schedules = flag.Int("schedules", 1000, "how many random schedules TestSchedules plays; 10000 take two minutes")
	firstSeed = flag.Uint64("seed", 0, "the first schedule")
)

func TestSchedules(t *testing.T) {
	defer func() { seen = nil }()
	n := uint64(*schedules)
	if testing.Short() {
		n = min(n, 200)
	}
	dir := t.TempDir()
	for seed := *firstSeed; seed < *firstSeed+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { runSchedule(t, dir, seed) })
	}
}
