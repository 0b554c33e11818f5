package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// metricsTable is one table for each prefix, in the order of the names.
func metricsTable() string {
	families := slices.Clone(collectors.Catalogue())
	slices.SortFunc(families, func(a, b *metric.Family) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	prefix := ""
	for _, f := range families {
		if p, _, _ := strings.Cut(f.Name, "_"); p != prefix {
			prefix = p
			fmt.Fprintf(&b, "\n## %s_*\n\n| name | type | labels | what it says | source |\n| --- | --- | --- | --- | --- |\n", p)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, f.Kind, labels(f), strings.ReplaceAll(f.Help, "|", "\\|"), strings.ReplaceAll(f.Source, "|", "\\|"))
	}
	return b.String() + "\n"
}

func labels(f *metric.Family) string {
	out := make([]string, len(f.Labels))
	for i, l := range f.Labels {
		out[i] = "`" + l + "`"
		if slices.Contains(f.Open, l) {
			out[i] += "*"
		}
	}
	return strings.Join(out, " ")
}
