package applog

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText prints the report for a terminal of the given width.
func (r *Report) WriteText(w io.Writer, width int) error {
	if width < 40 {
		width = 80
	}
	res := r.Result()
	b := &strings.Builder{}
	fmt.Fprintf(b, "application log, layout %s\n", cmp.Or(res.Layout, "not recognised"))
	fmt.Fprintf(b, "%d lines, %s, %d records, %d raw lines\n", res.Lines, size(res.Bytes), res.Records, res.RawLines)
	if res.First != "" {
		fmt.Fprintf(b, "from %s to %s by the log's own clock\n", res.First, res.Last)
	}
	levelsText(b, &res)
	r.plot(b, width)
	eventsText(b, &res, width)
	exceptionsText(b, &res)
	patternsText(b, &res, width)
	if len(res.RawSamples) > 0 {
		fmt.Fprintf(b, "\nlast raw lines\n")
		for _, l := range res.RawSamples[max(0, len(res.RawSamples)-5):] {
			fmt.Fprintf(b, "  %s\n", clip(l, width-2))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func levelsText(b *strings.Builder, res *Result) {
	fmt.Fprintf(b, "\nrecords by level\n")
	for l := levels - 1; ; l-- {
		if n := res.ByLevel[l.String()]; n > 0 {
			fmt.Fprintf(b, "  %-8s %12d\n", l, n)
		}
		if l == 0 {
			break
		}
	}
}

// plot draws the records over time: a row for each of at most 24 steps, # for
// what is WARNING or worse and . for the rest.
func (r *Report) plot(b *strings.Builder, width int) {
	t := r.o.times
	if t == nil || len(t.steps) == 0 {
		return
	}
	rows := t.steps
	per := (len(rows) + 23) / 24
	fmt.Fprintf(b, "\nrecords per %s (# WARNING and worse, . below)\n", span(t.step*int64(per)))
	var most uint64
	type row struct{ bad, all uint64 }
	var sums []row
	for i := 0; i < len(rows); i += per {
		var s row
		for _, c := range rows[i:min(i+per, len(rows))] {
			for l, n := range c {
				s.all += n
				if Level(l) >= Warning {
					s.bad += n
				}
			}
		}
		most = max(most, s.all)
		sums = append(sums, s)
	}
	bar := width - 32
	for i, s := range sums {
		n, bad := 0, 0
		if most > 0 {
			n = int((s.all*uint64(bar) + most - 1) / most)
			bad = int((s.bad*uint64(bar) + most - 1) / most)
		}
		at := clockText(t.start + int64(i*per)*t.step)
		fmt.Fprintf(b, "  %s %11d %s%s\n", at[:16], s.all, strings.Repeat("#", min(bad, n)), strings.Repeat(".", max(0, n-bad)))
	}
}

func span(ms int64) string {
	switch s := ms / 1000; {
	case s == 60:
		return "minute"
	case s%3600 == 0:
		return fmt.Sprintf("%d h", s/3600)
	case s%60 == 0:
		return fmt.Sprintf("%d minutes", s/60)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

func eventsText(b *strings.Builder, res *Result, width int) {
	if len(res.Events) == 0 {
		fmt.Fprintf(b, "\nno events\n")
		return
	}
	fmt.Fprintf(b, "\n%-30s %12s %10s  %s\n", "events", "count", "bytes", "first and last")
	for _, name := range byCount(res.Events) {
		s := res.Seen[name]
		fmt.Fprintf(b, "  %-28s %12d %10s  %s  %s\n", name, res.Events[name], size(res.EventBytes[name]), s.First, s.Last)
		ports := res.EventPorts[name]
		for _, p := range byCount(ports) {
			fmt.Fprintf(b, "    port %-21s %12d\n", p, ports[p])
		}
	}
	for i := range Events {
		e := &Events[i]
		if res.Events[e.Name] > 0 {
			fmt.Fprintf(b, "\n  %s\n", wrap(e.Name+": "+e.Meaning, width-2, "  "))
			fmt.Fprintf(b, "  %s\n", wrap("Look at: "+e.Next, width-2, "  "))
		}
	}
}

func exceptionsText(b *strings.Builder, res *Result) {
	if len(res.Exceptions) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-58s %12s  %s\n", "exceptions by root cause", "count", "first and last")
	for _, c := range byCount(res.Exceptions) {
		s := res.Seen[c]
		fmt.Fprintf(b, "  %-56s %12d  %s  %s\n", c, res.Exceptions[c], s.First, s.Last)
	}
}

func patternsText(b *strings.Builder, res *Result, width int) {
	if len(res.Patterns) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-12s %12s  %s\n", "patterns", "bytes", "(the heaviest 15)")
	for _, p := range res.Patterns[:min(15, len(res.Patterns))] {
		mark := " "
		if p.New {
			mark = "+"
		}
		fmt.Fprintf(b, "%s %11d %12s  %s\n", mark, p.Count, size(p.Bytes), clip(p.Level+" "+p.Logger+" "+p.Pattern, width-28))
		if p.First != "" {
			fmt.Fprintf(b, "%28s%s  %s\n", "", p.First, p.Last)
		}
	}
	fmt.Fprintf(b, "+ was not there before the last start of the server\n")
}

func byCount(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys
}

func size(n uint64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n && n > 1 {
		return string(r[:n-1]) + "…"
	}
	return s
}

// wrap breaks text into lines of at most width, the later ones indented.
func wrap(s string, width int, indent string) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(s) {
		if i > 0 && at+1+len(word) > width {
			b.WriteString("\n" + indent)
			at = 0
		} else if i > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
