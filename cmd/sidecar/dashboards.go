package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/dashboards"
)

func addDashboards(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("dashboards", "Print the Grafana dashboards, or write them into a folder. Without arguments it lists them.")
	board := cmd.Arg("board", "The dashboard to print as JSON.").String()
	dir := cmd.Flag("output", "Write all of them into this folder, one file each. It must exist.").Short('o').PlaceHolder("DIR").String()
	configMaps := cmd.Flag("configmaps", "Print all of them as Kubernetes ConfigMaps that Grafana's sidecar container picks up (label grafana_dashboard).").Bool()
	return cmd.FullCommand(), func(s streams) error {
		switch {
		case *dir != "":
			return writeBoards(s, *dir)
		case *configMaps:
			return printConfigMaps(s)
		case *board != "":
			return printBoard(s, *board)
		}
		return listBoards(s)
	}
}

func boardFiles() ([]string, error) { return fs.Glob(dashboards.Files, "*.json") }

func listBoards(s streams) error {
	files, err := boardFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintln(s.out, strings.TrimSuffix(f, ".json"))
	}
	return nil
}

func printBoard(s streams, name string) error {
	text, err := dashboards.Files.ReadFile(strings.TrimSuffix(name, ".json") + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no dashboard %q: sidecar dashboards lists them", name)
	}
	if err != nil {
		return err
	}
	_, err = s.out.Write(text)
	return err
}

func writeBoards(s streams, dir string) error {
	files, err := boardFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := dashboards.Files.ReadFile(f)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, f)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(s.out, path)
	}
	return nil
}

// printConfigMaps prints one ConfigMap a dashboard: all in one would be near
// the megabyte that a ConfigMap may have.
func printConfigMaps(s streams) error {
	files, err := boardFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := dashboards.Files.ReadFile(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sidecar-dashboard-%s\n  labels:\n    grafana_dashboard: \"1\"\ndata:\n  %s: |\n",
			strings.TrimSuffix(f, ".json"), "sidecar-"+f)
		for line := range strings.Lines(string(text)) {
			fmt.Fprint(s.out, "    ", line)
		}
	}
	return nil
}
