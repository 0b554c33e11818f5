package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/engine"
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
			cfg, err := loadSettings(*config)
			if err == nil {
				err = tryLoki(s, *config, cfg)
			}
			if err != nil {
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

// tryLoki shows what the settings choose for Loki, by a line for each choice, and
// what they leave. Where nothing is shipped there is nothing to show.
func tryLoki(s streams, path string, cfg *collectors.Config) error {
	if sel := cfg.Loki.Select; !cfg.Loki.On() && len(sel.Lines)+len(sel.Tests) == 0 {
		return nil
	}
	for _, t := range cfg.TryLoki() {
		if t.Err != nil {
			return fmt.Errorf("%s: loki: %s: %w", path, t.Key, t.Err)
		}
		if len(t.Shown) == 0 {
			fmt.Fprintf(s.out, "%s: loki: %s (%s): not chosen: %s\n", path, t.Key, t.Value, firstLine(t.Line))
		}
		for _, shown := range t.Shown {
			fmt.Fprintf(s.out, "%s: loki: %s (%s): chosen as %s: %s\n", path, t.Key, t.Value, shown.Labels, firstLine(shown.Text))
		}
	}
	return nil
}

// firstLine is enough of a record to know it by.
func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 160 {
		line, more = string(runes[:160]), true
	}
	if more {
		line += " …"
	}
	return line
}

func checkRules(path string) (*rulefmt.RuleGroups, []error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{err}
	}
	return engine.ParseRules(data, engine.DefaultConfig().Evaluation)
}
