package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/root"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// ruleFile is a file that was read and checked.
type ruleFile struct {
	name   string
	groups *rulefmt.RuleGroups
}

func (f ruleFile) count() (n int) {
	for _, g := range f.groups.Groups {
		n += len(g.Rules)
	}
	return n
}

// loaded is what the settings name: the user's files, then the pack's.
type loaded struct {
	files     []ruleFile
	unmatched []string // patterns with a * that no file fits
}

func (l loaded) names() (names []string) {
	for _, f := range l.files {
		names = append(names, f.name)
	}
	return names
}

// RuleCount is a rule file of the user's and how many rules stand in it.
type RuleCount struct {
	File  string
	Rules int
}

// CheckRules reads the rule files that the settings name as Open and Reload do,
// and says what they would say: unmatched are the patterns that no file fits.
func CheckRules(cfg Config, pack fs.FS) (good []RuleCount, unmatched []string, err error) {
	if cfg.Off() {
		return nil, nil, nil
	}
	all, err := readRules(cfg, pack)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all.files {
		if !strings.HasPrefix(f.name, packPrefix) {
			good = append(good, RuleCount{f.name, f.count()})
		}
	}
	return good, all.unmatched, nil
}

// packPrefix is what the pack's files are called by, as against the user's.
const packPrefix = "pack/"

// readRules reads the user's files and the pack's. A recording rule of the
// user's takes the place of the pack's of that name. Each mistake in each of the
// user's files is a line of the error.
func readRules(cfg Config, pack fs.FS) (all loaded, err error) {
	user, unmatched, err := userFiles(cfg.RuleFiles)
	if err != nil {
		return all, err
	}
	all.unmatched = unmatched
	var errs []error
	for _, path := range user {
		data, err := readOurs(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("rule file: %w", err))
			continue
		}
		f, err := parseRules(path, data, cfg.Evaluation)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.files = append(all.files, f)
	}
	if len(errs) > 0 {
		return all, errors.Join(errs...)
	}
	if pack == nil || cfg.Pack == "none" {
		return all, nil
	}
	if err := checkLimits(all.files, pack); err != nil {
		return all, err
	}
	theirs := map[string]bool{}
	for _, f := range all.files {
		for _, g := range f.groups.Groups {
			for _, r := range g.Rules {
				theirs[r.Record] = r.Record != ""
			}
		}
	}
	names, err := fs.Glob(pack, cfg.Pack+"/*.yml")
	if err != nil || len(names) == 0 {
		return all, fmt.Errorf("BUG: the rule pack has no %s rules", cfg.Pack)
	}
	for _, name := range names {
		data, err := fs.ReadFile(pack, name)
		if err != nil {
			return all, err
		}
		f, err := parseRules(packPrefix+name, data, 0)
		if err != nil {
			return all, fmt.Errorf("BUG: %w", err)
		}
		for i := range f.groups.Groups {
			g := &f.groups.Groups[i]
			g.Rules = slices.DeleteFunc(g.Rules, func(r rulefmt.Rule) bool { return r.Record != "" && theirs[r.Record] })
		}
		all.files = append(all.files, f)
	}
	return all, nil
}

// readOurs reads a rule file of the settings.
func readOurs(path string) ([]byte, error) {
	f, err := root.OpenOurs(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// CheckRuleFile reads one rule file as if the settings named it beside the pack.
func CheckRuleFile(path string, pack fs.FS) (int, error) {
	data, err := readOurs(path)
	if err != nil {
		return 0, err
	}
	f, err := parseRules(path, data, DefaultConfig().Evaluation)
	if err != nil {
		return 0, err
	}
	return f.count(), checkLimits([]ruleFile{f}, pack)
}

// parseRules reads and checks one file. step is that of a subquery which says
// none; the pack's files, which have none of these bounds, are read with 0.
func parseRules(name string, data []byte, step time.Duration) (ruleFile, error) {
	parse := func() (*rulefmt.RuleGroups, []error) { return ParseRules(data, step) }
	if step == 0 {
		parse = func() (*rulefmt.RuleGroups, []error) { return rulefmt.Parse(data, false) }
	}
	groups, errs := parse()
	if len(errs) == 0 {
		errs = checkTypes(groups)
	} else if bad := badDurations(data); len(bad) > 0 {
		errs = bad
	}
	if len(errs) > 0 {
		// The parser reads a file twice and may say the same of it twice.
		said := map[string]bool{}
		var list []error
		for _, err := range errs {
			if text := oneLine(err); !said[text] {
				said[text] = true
				list = append(list, fmt.Errorf("%s: %s", name, text))
			}
		}
		return ruleFile{}, errors.Join(list...)
	}
	return ruleFile{name, groups}, nil
}

// badDurations names the rules whose durations can't be read: the parser says of
// such a file what is wrong and not where.
func badDurations(data []byte) (errs []error) {
	var file struct {
		Groups []struct {
			Name     string `yaml:"name"`
			Interval string `yaml:"interval"`
			Rules    []struct {
				Record string `yaml:"record"`
				Alert  string `yaml:"alert"`
				For    string `yaml:"for"`
				Keep   string `yaml:"keep_firing_for"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	// Where it is more than a duration that is wrong, the parser's word stands.
	if yaml.Unmarshal(data, &file) != nil {
		return nil
	}
	for _, g := range file.Groups {
		if _, err := model.ParseDuration(g.Interval); g.Interval != "" && err != nil {
			errs = append(errs, fmt.Errorf("group %q: interval: %q: %w", g.Name, g.Interval, err))
		}
		for i, r := range g.Rules {
			for _, d := range []struct{ key, text string }{{"for", r.For}, {"keep_firing_for", r.Keep}} {
				if _, err := model.ParseDuration(d.text); d.text != "" && err != nil {
					errs = append(errs, ruleError(g.Name, i, r.Record+r.Alert, fmt.Sprintf("%s: %q: %v", d.key, d.text, err)))
				}
			}
		}
	}
	return errs
}

// oneLine is an error on one line, as whoever looks for it by file wants it.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "0:0: ") // of no line
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// checkTypes refuses what parses and can't be evaluated as a rule: a string, or
// a range. Prometheus takes it and fails at each evaluation.
func checkTypes(groups *rulefmt.RuleGroups) (errs []error) {
	for _, g := range groups.Groups {
		for i, r := range g.Rules {
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				continue // said already, in the parser's words
			}
			if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
				errs = append(errs, ruleError(g.Name, i, r.Record+r.Alert, fmt.Sprintf("expr is a %s: want a vector or a number", parser.DocumentedType(t))))
			}
		}
	}
	return errs
}

func ruleError(group string, i int, name, why string) error {
	return fmt.Errorf("group %q, rule %d, %q: %s", group, i+1, name, why)
}

// userFiles are the files that the patterns name. A pattern without a * must
// name a file that is there; one with a * that finds none is in unmatched.
func userFiles(patterns []string) (files, unmatched []string, err error) {
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p, err)
		}
		if len(found) == 0 {
			if !strings.ContainsAny(p, "*?[") {
				return nil, nil, fmt.Errorf("%s: no such file", p)
			}
			unmatched = append(unmatched, p)
		}
		files = append(files, found...)
	}
	return files, unmatched, nil
}

// loader gives the rule manager what was read already.
type loader []ruleFile

func (l loader) Load(name string, _ bool) (*rulefmt.RuleGroups, []error) {
	for _, f := range l {
		if f.name == name {
			return f.groups, nil
		}
	}
	return nil, []error{fmt.Errorf("BUG: rule file %s was not read", name)}
}

func (loader) Parse(expr string) (parser.Expr, error) { return parser.ParseExpr(expr) }
