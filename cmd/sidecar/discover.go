package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

func addDiscover(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("discover", "Print every JVM found, all that was learnt about it and how, as a settings file that can be used as it is.")
	asJSON := cmd.Flag("json", "Print JSON instead.").Bool()
	config := cmd.Flag("config.file", "Settings file whose overrides are to be in force.").String()
	procfs := cmd.Flag("path.procfs", "The proc file system to look at.").Default("/proc").String()
	return cmd.FullCommand(), func(s streams) error {
		cfg, err := loadSettings(*config)
		if err != nil {
			return err
		}
		targets, blind, err := scanOnce(cfg.Targets, *procfs)
		if err != nil {
			return err
		}
		for _, b := range blind {
			fmt.Fprintf(s.err, "%s: it takes %s\n", b.Detail, b.Needs)
		}
		if *asJSON {
			enc := json.NewEncoder(s.out)
			enc.SetIndent("", "  ")
			return enc.Encode(targets)
		}
		if len(targets) == 0 {
			fmt.Fprintln(s.err, "no JVM is seen on this machine: start one, or look with the rights of its user or of root")
		}
		text, err := target.Settings(targets)
		if err != nil {
			return err
		}
		_, err = s.out.Write(text)
		return err
	}
}

// scanOnce is one look at the machine, as the daemon does it, and what can't be
// seen of it as a whole.
func scanOnce(cfg target.Config, procfs string) ([]*target.Target, []target.Blind, error) {
	cfg.Proc = procfs
	scanner := target.New(cfg)
	targets, err := scanner.Scan(context.Background(), time.Now())
	return targets, scanner.Blind(), err
}
