package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/jvm-sidecar/sidecar/rules"
	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// opens and ends are what begins and closes a part of an alert's text that asks
// a query: too much for a list.
var (
	opens = regexp.MustCompile(`\{\{-?\s*(with|if|range)\b`)
	ends  = regexp.MustCompile(`\{\{-?\s*end\s*-?\}\}`)
)

// withoutQueries leaves out each part from {{ with … }} to the {{ end }} that is
// its own.
func withoutQueries(text string) string {
	for {
		first := opens.FindStringIndex(text)
		if first == nil {
			return text
		}
		depth, at := 0, first[0]
		for {
			o, e := opens.FindStringIndex(text[at:]), ends.FindStringIndex(text[at:])
			if e == nil {
				panic("BUG: an alert's text has no end: " + text)
			}
			if o != nil && o[0] < e[0] {
				depth, at = depth+1, at+o[1]
				continue
			}
			at += e[1]
			if depth--; depth == 0 {
				break
			}
		}
		text = text[:first[0]] + text[at:]
	}
}

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
			if r.Annotations["thread_dump"] == "on" {
				sections.WriteString("\nAsks for a thread dump of its target.\n")
			}
		}
	}
	return table.String() + limitsList() + sections.String() + "\n"
}

// plain is an alert's text without the words of the template language.
func plain(text string) string {
	text = withoutQueries(text)
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

// limitsList is a table of the recording rules named limit:…, with the comment
// that stands before each in its file.
func limitsList() string {
	var b strings.Builder
	b.WriteString("\nThe limits:\n\n| limit | load | steady | what it is |\n| --- | --- | --- | --- |\n")
	files, _ := fs.Glob(rules.Files, "load/*.yml")
	for _, file := range files {
		load, steady := limitsOf(file), limitsOf("steady/"+path.Base(file))
		for _, l := range load {
			other := "–"
			for _, s := range steady {
				if s.name == l.name {
					other = s.value
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", l.name, l.value, other, l.what)
		}
		for _, s := range steady {
			if !slices.ContainsFunc(load, func(l limit) bool { return l.name == s.name }) {
				fmt.Fprintf(&b, "| `%s` | – | %s | %s |\n", s.name, s.value, s.what)
			}
		}
	}
	return b.String()
}

type limit struct{ name, value, what string }

func limitsOf(file string) (out []limit) {
	data, err := fs.ReadFile(rules.Files, file)
	if err != nil {
		return nil
	}
	var f struct {
		Groups []struct {
			Rules []yaml.Node `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(data, &f); err != nil {
		panic(fmt.Sprint("BUG: ", file, ": ", err))
	}
	what := ""
	for _, g := range f.Groups {
		for _, n := range g.Rules {
			var r struct{ Record, Expr string }
			if err := n.Decode(&r); err != nil {
				panic(fmt.Sprint("BUG: ", file, ": ", err))
			}
			if !strings.HasPrefix(r.Record, "limit:") {
				continue
			}
			comment := strings.ReplaceAll(strings.ReplaceAll(n.HeadComment, "\n#", ""), "# ", "")
			_, after, first := strings.Cut(comment, "takes their place.")
			if first {
				comment = after
			}
			if comment = strings.Join(strings.Fields(comment), " "); comment != "" {
				what = comment // a limit without one goes with the limit before it
			}
			value := strings.TrimSuffix(strings.TrimPrefix(r.Expr, "vector("), ")")
			out = append(out, limit{r.Record, value, what})
		}
	}
	return out
}
