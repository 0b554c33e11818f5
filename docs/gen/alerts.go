package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/jvm-sidecar/sidecar/rules"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// asked is a query inside an alert's text, with what is made of its answer: too
// much for a list.
var asked = regexp.MustCompile(`(?s)\{\{-?\s*with printf.*?\{\{-?\s*end\s*-?\}\}(\s*\{\{-?\s*end\s*-?\}\})?`)

// value is a figure or a label in an alert's text.
var value = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)

// alertsList is a table of all alerts, and each topic's with what they say.
func alertsList() string {
	var table, sections strings.Builder
	table.WriteString("\n| alert | topic | severity | holds for: load | steady |\n| --- | --- | --- | --- | --- |\n")
	files, _ := fs.Glob(rules.Files, "load/*.yml")
	for _, file := range files {
		topic := strings.TrimSuffix(path.Base(file), ".yml")
		load, steady := alertsOf(file), alertsOf("steady/"+path.Base(file))
		fmt.Fprintf(&sections, "\n## %s\n", topic)
		for _, r := range append(load, onlyIn(steady, load)...) {
			in := func(list []rulefmt.Rule) string {
				for _, s := range list {
					if s.Alert == r.Alert && s.Labels["severity"] == r.Labels["severity"] {
						return s.For.String()
					}
				}
				return "–"
			}
			if r.Alert == "LoadRulesScrapedTooSlowly" && topic != "executor" {
				continue // each load file has its own
			}
			fmt.Fprintf(&table, "| [%s](#%s) | %s | %s | %s | %s |\n", r.Alert, strings.ToLower(r.Alert), topic, r.Labels["severity"], in(load), in(steady))
			if strings.Contains(sections.String(), "\n### "+r.Alert+"\n") {
				continue // the same alert with another severity
			}
			fmt.Fprintf(&sections, "\n### %s\n\n*%s*\n\n%s\n\n**What to look at next.** %s\n", r.Alert,
				plain(r.Annotations["summary"]), plain(r.Annotations["description"]), plain(r.Annotations["next"]))
		}
	}
	return table.String() + sections.String() + "\n"
}

// plain is an alert's text without the words of the template language.
func plain(text string) string {
	text = asked.ReplaceAllString(text, "")
	text = value.ReplaceAllStringFunc(text, func(m string) string {
		name := value.FindStringSubmatch(m)[1]
		name, _, _ = strings.Cut(name, " |")
		return "‹" + strings.TrimPrefix(strings.TrimPrefix(name, "$labels."), "$") + "›"
	})
	return strings.NewReplacer("_", `\_`, "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

func onlyIn(list, other []rulefmt.Rule) (out []rulefmt.Rule) {
	for _, r := range list {
		found := false
		for _, o := range other {
			found = found || o.Alert == r.Alert
		}
		if !found {
			out = append(out, r)
		}
	}
	return out
}

func alertsOf(file string) (out []rulefmt.Rule) {
	data, err := fs.ReadFile(rules.Files, file)
	if err != nil {
		return nil
	}
	groups, errs := rulefmt.Parse(data, false)
	if len(errs) > 0 {
		panic(fmt.Sprint("BUG: ", file, ": ", errs))
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				out = append(out, r)
			}
		}
	}
	return out
}
