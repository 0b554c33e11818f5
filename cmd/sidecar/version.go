package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

func addVersion(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("version", "Print the version and how it was built.")
	return cmd.FullCommand(), func(s streams) error {
		_, err := fmt.Fprintln(s.out, version.Print("sidecar"))
		return err
	}
}
