// Package textplot draws figures as text, for reports on a terminal or in a
// bug report. It knows nothing of what it draws.
package textplot

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// eighths of a column, from the bottom, and of a bar, from the left.
var (
	rising = []rune(" ▁▂▃▄▅▆▇█")
	bar    = []rune(" ▏▎▍▌▋▊▉█")
)

// Bars draws one bar a value, label in front and number behind, none wider than
// width characters in all. Values below 0 and NaN are drawn as 0. labels and
// values have the same length.
func Bars(w io.Writer, labels []string, values []float64, width int) error {
	left, right, top := 0, 0, 0.0
	numbers := make([]string, len(values))
	for i, v := range values {
		numbers[i] = Number(v)
		left = max(left, utf8.RuneCountInString(labels[i]))
		right = max(right, len(numbers[i]))
		if ok(v) {
			top = max(top, v)
		}
	}
	room := max(8, width-left-right-4)
	for i, v := range values {
		_, err := fmt.Fprintf(w, "  %s%s %s %s\n", labels[i], strings.Repeat(" ", left-utf8.RuneCountInString(labels[i])),
			Bar(v, top, room), numbers[i])
		if err != nil {
			return err
		}
	}
	return nil
}

// Bar is one bar of v out of top, padded to width characters.
func Bar(v, top float64, width int) string {
	n := 0
	if ok(v) && v > 0 && top > 0 {
		n = int(math.Round(min(v/top, 1) * float64(width*8)))
		n = max(n, 1) // something is not nothing
	}
	var b strings.Builder
	for i := 0; i < width; i++ {
		b.WriteRune(bar[max(0, min(8, n-8*i))])
	}
	return b.String()
}

// Spark draws values as one line of width characters. Where there are more
// values than characters the greatest of each group is shown; where there are
// fewer the line is as long as they are.
func Spark(values []float64, width int) string {
	lines := Columns(values, width, 1)
	return lines[0]
}

// Columns draws values over the whole of height lines of width characters, from
// 0 at the bottom to the greatest at the top, first line first. NaN leaves a
// gap, and so does what can't be drawn.
func Columns(values []float64, width, height int) []string {
	values = Fit(values, width)
	top := 0.0
	for _, v := range values {
		if ok(v) {
			top = max(top, v)
		}
	}
	out := make([]string, max(height, 1))
	for line := range out {
		below := float64(len(out)-1-line) * 8
		var b strings.Builder
		for _, v := range values {
			n := 0.0
			if ok(v) && v > 0 && top > 0 {
				n = max(1, math.Round(v/top*float64(len(out)*8)))
			}
			b.WriteRune(rising[int(max(0, min(8, n-below)))])
		}
		out[line] = b.String()
	}
	return out
}

// Fit makes at most width values of many, the greatest of each group.
func Fit(values []float64, width int) []float64 {
	width = max(width, 1)
	if len(values) <= width {
		return values
	}
	out := make([]float64, width)
	for i := range out {
		from, to := i*len(values)/width, (i+1)*len(values)/width
		out[i] = math.NaN()
		for _, v := range values[from:to] {
			if ok(v) && !(out[i] >= v) {
				out[i] = v
			}
		}
	}
	return out
}

// Plot draws Columns with a scale at the left and two marks of the axis below.
// scale writes a value as text.
func Plot(w io.Writer, values []float64, width, height int, scale func(float64) string, from, to string) error {
	top := 0.0
	for _, v := range values {
		if ok(v) {
			top = max(top, v)
		}
	}
	lines := Columns(values, width, height)
	label := scale(top)
	left := max(utf8.RuneCountInString(label), 1)
	for i, l := range lines {
		mark := strings.Repeat(" ", left)
		switch i {
		case 0:
			mark = label
		case len(lines) - 1:
			mark = strings.Repeat(" ", left-1) + "0"
		}
		if _, err := fmt.Fprintf(w, "  %s ┤%s\n", mark, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	wide := utf8.RuneCountInString(lines[0])
	gap := max(1, wide-utf8.RuneCountInString(from)-utf8.RuneCountInString(to))
	_, err := fmt.Fprintf(w, "  %s  %s%s%s\n", strings.Repeat(" ", left), from, strings.Repeat(" ", gap), to)
	return err
}

// Number writes a value with three to four digits and no more.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case a == math.Trunc(a) && a < 1e15:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func ok(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
