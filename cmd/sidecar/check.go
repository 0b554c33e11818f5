package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/rules"
)

func addCheck(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("check", "Check a settings file, with the rule files that it names, and rule files; exit 1 with file, key and reason when one is wrong.")
	config := cmd.Flag("config.file", "The settings file.").String()
	paths := cmd.Arg("rules", "Prometheus rule files.").Strings()
	return cmd.FullCommand(), func(s streams) error {
		if *config == "" && len(*paths) == 0 {
			return fmt.Errorf("nothing to check: give --config.file=FILE or rule files")
		}
		bad := 0
		if *config != "" {
			cfg, err := settingsInForce(*config)
			if err == nil {
				err = tryLoki(s, *config, cfg)
			}
			if err == nil {
				err = namedRules(s, *config, cfg)
			}
			if err != nil {
				fmt.Fprintln(s.err, err)
				bad++
			} else {
				fmt.Fprintf(s.out, "%s: settings are good\n", *config)
			}
		}
		for _, path := range *paths {
			n, err := engine.CheckRuleFile(path, rules.Files)
			if err != nil {
				fmt.Fprintln(s.err, err)
				bad++
				continue
			}
			fmt.Fprintf(s.out, "%s: %d rules are good\n", path, n)
		}
		if bad > 0 {
			return fmt.Errorf("%d of %d files are wrong", bad, len(*paths)+min(1, len(*config)))
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

// namedRules reads the rule files that the settings name, as a start would.
func namedRules(s streams, path string, cfg *collectors.Config) error {
	good, unmatched, err := engine.CheckRules(cfg.Engine, rules.Files)
	if err != nil {
		return err
	}
	for _, p := range unmatched {
		fmt.Fprintf(s.err, "%s: engine: rule_files: warning: no file fits %s\n", path, p)
	}
	for _, f := range good {
		fmt.Fprintf(s.out, "%s: %d rules are good\n", f.File, f.Rules)
	}
	return nil
}
