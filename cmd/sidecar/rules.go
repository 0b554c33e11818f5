package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/rules"
	"go.yaml.in/yaml/v3"
)

func addRules(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("rules", "Print the alert and recording rules that come with the sidecar, for a Prometheus of your own.")
	o := &rulesCommand{}
	cmd.Flag("pack", "load: windows and holds of seconds, for a scrape each second; steady: minutes, for every day.").Default("load").EnumVar(&o.pack, "load", "steady")
	cmd.Flag("format", "files: as they are, those of several topics as one file; prometheusrule: one manifest for the Prometheus operator.").Default("files").EnumVar(&o.format, "files", "prometheusrule")
	cmd.Flag("alert", "Only this alert, with the recording rules that it needs.").StringVar(&o.alert)
	cmd.Flag("out", "Write one file a topic into this folder instead of printing them as one.").StringVar(&o.out)
	cmd.Arg("topics", "Only these topics, such as executor or gc; all when not given.").StringsVar(&o.topics)
	return cmd.FullCommand(), o.run
}

// rulesCommand is what `sidecar rules` was told.
type rulesCommand struct {
	pack, format, alert, out string
	topics                   []string
}

func (o *rulesCommand) run(s streams) error {
	files, err := fs.Glob(rules.Files, o.pack+"/*.yml")
	if err != nil {
		return err
	}
	var known []string
	for _, f := range files {
		known = append(known, strings.TrimSuffix(path.Base(f), ".yml"))
	}
	for _, t := range o.topics {
		if !slices.Contains(known, t) {
			return fmt.Errorf("no topic %q: there are %s", t, strings.Join(known, ", "))
		}
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		return len(o.topics) > 0 && !slices.Contains(o.topics, strings.TrimSuffix(path.Base(f), ".yml"))
	})
	switch {
	case o.out != "" && (o.alert != "" || o.format != "files"):
		return errors.New("--out writes one file a topic: with --alert or --format=prometheusrule there is one text, which > FILE keeps")
	case o.alert != "" && o.format != "files":
		return errors.New("--alert gives a rule file: --format=prometheusrule is for whole topics")
	case o.alert != "":
		return o.one(s.out, files)
	case o.format == "prometheusrule":
		return o.manifest(s.out, files)
	case o.out != "":
		return o.write(s.out, files)
	}
	return printAll(s.out, files)
}

// write makes one file a topic in the folder, and prints their names.
func (o *rulesCommand) write(to io.Writer, files []string) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		data, err := fs.ReadFile(rules.Files, f)
		if err != nil {
			return err
		}
		out := filepath.Join(o.out, path.Base(f))
		if err := os.WriteFile(out, data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(to, out)
	}
	return nil
}

// printAll prints the files as one that Prometheus loads: groups: stands there
// once, and all else as it is, comments included.
func printAll(to io.Writer, files []string) error {
	fmt.Fprintln(to, "groups:")
	for _, f := range files {
		data, err := fs.ReadFile(rules.Files, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "# %s\n", f)
		for line := range strings.Lines(string(data)) {
			if strings.TrimRight(line, "\n") != "groups:" {
				fmt.Fprint(to, line)
			}
		}
		fmt.Fprintln(to)
	}
	return nil
}

// ruleGroups is a rule file as YAML: what stands in it, aliases followed.
type ruleGroups struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name     string           `yaml:"name"`
	Interval string           `yaml:"interval,omitempty"`
	Rules    []map[string]any `yaml:"rules"`
}

func readRules(file string) (g ruleGroups, err error) {
	data, err := fs.ReadFile(rules.Files, file)
	if err != nil {
		return g, err
	}
	return g, yaml.Unmarshal(data, &g)
}

// manifest is one PrometheusRule with all groups.
func (o *rulesCommand) manifest(to io.Writer, files []string) error {
	var all ruleGroups
	for _, f := range files {
		g, err := readRules(f)
		if err != nil {
			return err
		}
		all.Groups = append(all.Groups, g.Groups...)
	}
	return writeYAML(to, map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PrometheusRule",
		"metadata":   map[string]any{"name": "sidecar-" + o.pack, "labels": map[string]string{"app.kubernetes.io/name": "sidecar"}},
		"spec":       all,
	})
}

// one is one alert and what it needs: the recording rules of its file, of
// whichever group, that its expression names, and those that these name.
func (o *rulesCommand) one(to io.Writer, files []string) error {
	for _, f := range files {
		all, err := readRules(f)
		if err != nil {
			return err
		}
		var need []string // expressions
		for _, g := range all.Groups {
			for _, r := range g.Rules {
				if r["alert"] == o.alert {
					need = append(need, fmt.Sprint(r["expr"]))
				}
			}
		}
		if len(need) == 0 {
			continue
		}
		keep := map[any]bool{}
		for i := 0; i < len(need); i++ {
			for _, g := range all.Groups {
				for _, r := range g.Rules {
					if name, ok := r["record"].(string); ok && !keep[name] && strings.Contains(need[i], name) {
						keep[name] = true
						need = append(need, fmt.Sprint(r["expr"]))
					}
				}
			}
		}
		var out ruleGroups
		for _, g := range all.Groups {
			g.Rules = slices.DeleteFunc(g.Rules, func(r map[string]any) bool { return r["alert"] != o.alert && !keep[r["record"]] })
			if len(g.Rules) > 0 {
				out.Groups = append(out.Groups, g)
			}
		}
		return writeYAML(to, out)
	}
	return fmt.Errorf("no alert %q in the %s rules", o.alert, o.pack)
}

func writeYAML(to io.Writer, v any) error {
	enc := yaml.NewEncoder(to)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return enc.Close()
}
