package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/prometheus/model/rulefmt"
)

func addCheck(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("check", "Check a settings file and rule files; exit 1 with file, key and reason when one is wrong.")
	config := cmd.Flag("config.file", "The settings file.").String()
	rules := cmd.Arg("rules", "Prometheus rule files.").Strings()
	return cmd.FullCommand(), func(s streams) error {
		if *config == "" && len(*rules) == 0 {
			return fmt.Errorf("nothing to check: give --config.file=FILE or rule files")
		}
		bad := 0
		if *config != "" {
			if _, err := loadSettings(*config); err != nil {
				fmt.Fprintln(s.err, err)
				bad++
			} else {
				fmt.Fprintf(s.out, "%s: settings are good\n", *config)
			}
		}
		for _, path := range *rules {
			groups, errs := checkRules(path)
			for _, err := range errs {
				fmt.Fprintf(s.err, "%s: %v\n", path, err)
			}
			if len(errs) > 0 {
				bad++
				continue
			}
			n := 0
			for _, g := range groups.Groups {
				n += len(g.Rules)
			}
			fmt.Fprintf(s.out, "%s: %d rules are good\n", path, n)
		}
		if bad > 0 {
			return fmt.Errorf("%d of %d files are wrong", bad, len(*rules)+min(1, len(*config)))
		}
		return nil
	}
}

func checkRules(path string) (*rulefmt.RuleGroups, []error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{err}
	}
	return rulefmt.Parse(data, false)
}
