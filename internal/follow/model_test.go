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
// counted a gap.

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
	bare      bool // removed while live
}

type row struct {
	text   string
	box    *box
	epoch  int
	lost   bool
	exempt bool
	sure   bool
	atLook int
	torn   bool // by a truncation: its first half is elsewhere, and may be lost
	acked  bool // its loss was told by a gap
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
	gapBase int64
	partial *row // the line that is being written
	allowed map[string]bool

	save      []byte
	saveLines int
	saveKnown map[*box]knowledge
	saveAcks  map[*row]bool
	saveBase  int64
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
			r.lost = true
		}
	}
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
		if k, ok := w.known[b]; (!ok || !w.births && k.size == 0) && (b.bare || len(w.known) == 0 || w.blank) {
			// It came and went unseen, and left no trace in any name.
			for _, r := range w.rows {
				r.exempt = r.exempt || r.box == b
			}
		}
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
	if k, ok := w.known[w.live]; !ok || k.size == 0 {
		for _, r := range w.rows {
			r.exempt = r.exempt || r.box == c
		}
	}
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
	if len(w.rest) > 0 && w.partial != nil {
		w.partial.torn = true
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
	if k, ok := w.known[w.live]; !ok || k.size == 0 {
		// Nobody has read a byte of it: a file that was always so short looks
		// the same.
		for _, r := range w.rows {
			r.exempt = r.exempt || r.box == w.live && r.lost
		}
		if w.partial != nil {
			w.partial.exempt = true
		}
	}
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
		if c.copyOf == r.box && c.epoch == r.epoch-1 {
			return r.sure && w.looks == r.atLook+1
		}
	}
	return false
}

func (w *world) glued(text string) bool {
	return slices.ContainsFunc(w.r.lines, func(l string) bool { return strings.HasSuffix(l, text) })
}

// isGlued says whether s is the first half of a torn line and a whole line.
func (w *world) isGlued(s string) bool {
	for _, r := range w.rows {
		if cut, ok := strings.CutSuffix(s, r.text); ok && r.torn && r.exempt {
			for _, t := range w.rows {
				if t.torn && strings.HasPrefix(t.text, cut) {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) look() {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	w.looks++
	reach := w.reachable()
	before := w.out()
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
	untold := ""
	for _, r := range w.rows {
		// A copy that was not recognised at the look behind the truncation is
		// no copy to us any more.
		r.lost = r.lost || r.box.copyOf != nil && !reach[r.box] && out[r.text] == 0
	}
	first := map[*box]bool{}
	for _, r := range w.rows {
		n := out[r.text]
		if k, ok := w.known[r.box]; ok && r.epoch == r.box.epoch && (r.epoch >= k.epoch+2 || k.size == 0) && !first[r.box] {
			// Truncated twice between two looks: if the first copy ends in half a
			// line, this one is taken for its other half. Nobody can know.
			first[r.box] = true
			if n == 0 && w.glued(r.text) {
				r.exempt, r.torn = true, true
			}
		}
		switch {
		case n > 1:
			w.fail("%.8s came out %d times", r.text, n)
		case n == 1:
		case r.torn && !w.whole(r, reach):
		case reach[r.box] && !r.lost && r.epoch == r.box.epoch:
			w.fail("%.8s in seq %d (%s) must have come out", r.text, r.box.seq, r.box.name)
		case r.lost && !r.acked && !r.exempt:
			untold = r.text
			r.acked = true
		}
	}
	_ = before
	if untold != "" {
		if w.live == nil {
			for _, r := range w.rows {
				if r.lost && out[r.text] == 0 && r.text == untold {
					r.acked = false
				}
			}
		} else if w.gapTotal() == w.gapBase {
			w.fail("%.8s was lost and no gap told", untold)
		}
	}
	if w.live != nil || untold == "" {
		w.gapBase = w.gapTotal()
	}
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
	w.saveKnown, w.saveBase = maps.Clone(w.known), w.gapBase
	w.saveAcks = map[*row]bool{}
	for _, r := range w.rows {
		w.saveAcks[r] = r.acked
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
	for _, r := range w.rows {
		if out[r.text] == 0 {
			r.acked = w.saveAcks[r]
			src := r.box
			if src.copyOf != nil {
				src = src.copyOf
			}
			if k, ok := w.known[src]; (!ok || k.size == 0) && (r.box != src || r.box.bare || r.epoch != src.epoch || len(w.known) == 0) {
				// By the checkpoint nothing of it was read: see truncate.
				r.exempt = true
			}
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
	w.gapBase = min(w.saveBase, w.gapTotal())
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
	schedules = flag.Int("schedules", 1200, "how many random schedules TestSchedules plays; make check plays 10000")
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
