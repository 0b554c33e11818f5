package follow

import (
	"os"
	"strconv"
	"testing"
)

func TestOne(t *testing.T) {
	defer func() { seen = nil }()
	n, _ := strconv.Atoi(os.Getenv("SEED"))
	runSchedule(t, t.TempDir(), uint64(n))
}
func (w *world) dump() {
	for i, l := range w.r.lines {
		if i > len(w.r.lines)-60 {
			println(i, l[:min(len(l), 12)], len(l))
		}
	}
	for i, r := range w.rows {
		if i > len(w.rows)-60 {
			println("row", r.text[:8], len(r.text), r.box.seq, r.box.name, r.epoch, r.lost, r.torn, r.exempt)
		}
	}
}
