// Gen builds the Grafana dashboards from the boards in this folder, one file a
// board, and writes them as JSON. `go generate ./dashboards` runs it; a test
// holds the committed JSON against it.
//
// A board is plain data: rows of panels, a panel with its question, its queries
// and its words. How that becomes Grafana's JSON is in panel.go and board.go,
// and nowhere else, so that a new panel is a few lines that read like a table.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// boards are all dashboards, in the order of their links.
var boards = []board{loadRun, requests, threads, jvm, logs, own}

func main() {
	dir := "dashboards"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for _, b := range boards {
		text, err := b.json()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, b.name+".json"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "dashboard %s: %v\n", b.name, err)
			os.Exit(1)
		}
	}
}
