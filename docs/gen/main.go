// Command gen writes the parts of the documentation that exist in code: the
// metrics, the settings and the alerts. `go generate ./docs/gen` mends
// them; a test compares them.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run . ../../docs

func main() {
	dir := "docs"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, text := range generated(filepath.Join(dir, "..")) {
		if err := write(filepath.Join(dir, name), text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// generated is each document's name and its generated part.
func generated(root string) map[string]string {
	return map[string]string{
		"metrics.md":  metricsTable(),
		"settings.md": settingsTable(root),
		"alerts.md":   alertsList(),
	}
}

const (
	begin = "<!-- generated: go generate ./docs/gen -->\n"
	end   = "<!-- end of the generated part -->\n"
)

// splice puts the generated part between its marks, and keeps what stands
// around it.
func splice(old, part string) string {
	head, rest, ok := strings.Cut(old, begin)
	if !ok {
		return strings.TrimRight(old, "\n") + "\n\n" + begin + part + end
	}
	_, tail, _ := strings.Cut(rest, end)
	return head + begin + part + end + tail
}

func write(path, part string) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, []byte(splice(string(old), part)), 0o644)
}
