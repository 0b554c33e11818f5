package follow

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"
)

// Somebody fills the folder with thousands of files whose names are those of the
// stream. The live one is followed all the same, what was there before is never
// taken for news, not even when the newest of them go, and neither memory nor time
// grows with their number.
func TestCrowdedFolder(t *testing.T) {
	s := newStand(t, Spec{Dir: ".", Pattern: regexp.MustCompile(`^a\.\d+\.log$`)})
	const n = 2*maxListed + maxDone
	name := func(i int) string { return fmt.Sprintf("a.%06d.log", i) }
	old := time.Now().Add(-time.Hour)
	for i := range n {
		s.append(name(i), "history\n")
		at := old.Add(time.Duration(i) * time.Millisecond)
		s.must(os.Chtimes(s.path(name(i)), at, at))
	}
	if _, ok := Born("", s.path("."), s.f.spec.Pattern); ok {
		t.Error("Born has looked at each of them")
	}
	// How long a listing took on this machine must not decide the test.
	look := func() { s.f.listTook = 0; s.look() }
	look()
	s.append(name(n-1), "one\n")
	look()
	s.append(name(n), "two\n")
	look()
	s.want("one", "two")
	for i := n - 3000; i < n-1; i++ {
		s.must(os.Remove(s.path(name(i))))
	}
	s.append(name(n), "three\n")
	look()
	look()
	s.append(name(n+1), "four\n")
	look()
	s.want("one", "two", "three", "four")
	if l := s.f.Ledger(); l.Lost != 0 || l.Gaps != [gapReasons]int64{} || l.Rotations != 2 {
		t.Errorf("%+v", l)
	}
	if len(s.f.done) > maxDone || len(s.f.parts) > 3 {
		t.Errorf("%d finished files are remembered, %d are open", len(s.f.done), len(s.f.parts))
	}
}
