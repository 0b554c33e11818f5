package textplot

import (
	"math"
	"strings"
	"testing"
)

func TestBars(t *testing.T) {
	var b strings.Builder
	if err := Bars(&b, []string{"young", "full", "none"}, []float64{4, 2, 0}, 24); err != nil {
		t.Fatal(err)
	}
	want := "  young ██████████████ 4\n  full  ███████        2\n  none                 0\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestSmallIsNotNothing(t *testing.T) {
	if got := Bar(1, 1e9, 4); got != "▏   " {
		t.Errorf("got %q", got)
	}
	if got := Spark([]float64{1e-9, 1, 0, math.NaN()}, 10); got != "▁█  " {
		t.Errorf("got %q", got)
	}
}

func TestColumns(t *testing.T) {
	got := strings.Join(Columns([]float64{0, 1, 2, math.Inf(1), math.NaN()}, 10, 2), "|")
	if got != "  █  | ██  " {
		t.Errorf("got %q", got)
	}
}

// Many values keep their peaks: a pause of a minute in a day must be seen.
func TestFitKeepsPeaks(t *testing.T) {
	v := make([]float64, 1000)
	v[501] = 7
	got := Fit(v, 10)
	if len(got) != 10 || got[5] != 7 {
		t.Errorf("got %v", got)
	}
	if Fit(nil, 10) != nil {
		t.Error("nothing became something")
	}
}

func TestPlot(t *testing.T) {
	var b strings.Builder
	if err := Plot(&b, []float64{1, 2}, 20, 2, Number, "0 s", "9 s"); err != nil {
		t.Fatal(err)
	}
	want := "  2 ┤ █\n  0 ┤██\n     0 s 9 s\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
