package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// limitPrefix begins the names of the recording rules that are thresholds.
const limitPrefix = "limit:"

// checkLimits refuses a limit of the user's that no alert asks for: a misspelt
// name would leave the threshold as it was, and nobody would notice. A limit that
// another rule of the user's names is theirs. Both packs' names are known,
// so that one file may serve both.
func checkLimits(user []ruleFile, pack fs.FS) error {
	if !slices.ContainsFunc(user, ruleFile.hasLimits) {
		return nil // nearly always, and then both packs need not be read
	}
	names, err := fs.Glob(pack, "*/*.yml")
	if err != nil {
		return err
	}
	var known []string
	for _, name := range names {
		data, err := fs.ReadFile(pack, name)
		if err != nil {
			return err
		}
		f, err := parseRules(packPrefix+name, data, 0)
		if err != nil {
			return fmt.Errorf("BUG: %w", err)
		}
		for _, g := range f.groups.Groups {
			for _, r := range g.Rules {
				if strings.HasPrefix(r.Record, limitPrefix) {
					known = append(known, r.Record)
				}
			}
		}
	}
	var exprs strings.Builder
	for _, f := range user {
		for _, g := range f.groups.Groups {
			for _, r := range g.Rules {
				exprs.WriteString(r.Expr + "\n")
			}
		}
	}
	var errs []error
	for _, f := range user {
		for _, g := range f.groups.Groups {
			for i, r := range g.Rules {
				if !strings.HasPrefix(r.Record, limitPrefix) || strings.Contains(exprs.String(), r.Record) {
					continue
				}
				if near, far := nearest(r.Record, known); far > 0 {
					errs = append(errs, fmt.Errorf("%s: %w", f.name, ruleError(g.Name, i, r.Record, "no alert has such a limit; the nearest is "+near)))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (f ruleFile) hasLimits() bool {
	for _, g := range f.groups.Groups {
		for _, r := range g.Rules {
			if strings.HasPrefix(r.Record, limitPrefix) {
				return true
			}
		}
	}
	return false
}

// nearest is the name with the fewest changes of a letter, and their number. Of
// no names it is none, at no distance.
func nearest(name string, known []string) (best string, changes int) {
	for _, k := range known {
		if d := distance(name, k); best == "" || d < changes {
			best, changes = k, d
		}
	}
	return best, changes
}

// distance is how many letters have to be put in, left out or replaced to make
// one name of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// oneLimit makes a limit that is not one series a rule that fails, which is
// logged and counted in engine_rules_failing. The alerts read a limit by
// scalar(), which is NaN of two series as of none, and a comparison with NaN
// never holds: the alert would be mute and the rule in good health.
func oneLimit(query rules.QueryFunc) rules.QueryFunc {
	return func(ctx context.Context, qs string, at time.Time) (promql.Vector, error) {
		v, err := query(ctx, qs, at)
		rule := rules.FromOriginContext(ctx)
		if err == nil && len(v) != 1 && rule.Kind == rules.KindRecording && strings.HasPrefix(rule.Name, limitPrefix) {
			return nil, fmt.Errorf("a limit has to be one series, %s gives %d: its alert can't fire", qs, len(v))
		}
		return v, err
	}
}
