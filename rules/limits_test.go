package rules

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// limitName is how limits are named: limit, what is limited, its unit.
var limitName = regexp.MustCompile(`^limit:[a-z_]+:(ratio|seconds|bytes|cores|jobs|factor|slo_ratio|burn_rate|(bytes_)?per_second)$`)

// facts are the numbers that an alert may hold itself: that something happened
// at all (more than 0, or half an increase, which extrapolation makes of less
// than one), that a gauge is on, and how many scrapes a load file needs.
func isFact(alert string, v float64) bool {
	return v == 0 || v == 0.5 || v == 1 || v == 15 && alert == "LoadRulesScrapedTooSlowly"
}

// A threshold that one would want to change is a recording rule, since a rule
// file of the user's takes only these away: an alert with a number in it would
// have to be copied whole.
func TestThresholdsAreLimits(t *testing.T) {
	in := map[string]string{}
	for file, groups := range packFiles(t, "*", 20) {
		recorded, used := map[string]bool{}, map[string]bool{}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				expr, err := parser.ParseExpr(r.Expr)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(r.Record, "limit:") {
					recorded[r.Record] = true
					if !limitName.MatchString(r.Record) {
						t.Errorf("%s: %s is not named as limits are", file, r.Record)
					}
					key := strings.SplitN(file, "/", 2)[0] + " " + r.Record
					if in[key] != "" {
						t.Errorf("%s is in %s and in %s", r.Record, in[key], file)
					}
					in[key] = file
					continue
				}
				for _, v := range selectors(expr) {
					if strings.HasPrefix(v.Name, "limit:") {
						used[v.Name] = true
					}
				}
				if r.Alert == "" {
					continue
				}
				parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
					if v, ok := n.(*parser.NumberLiteral); ok && !isFact(r.Alert, v.Val) {
						t.Errorf("%s: %s has the number %v in its expression", file, r.Alert, v.Val)
					}
					return nil
				})
			}
		}
		for name := range recorded {
			if !used[name] {
				t.Errorf("%s: %s limits nothing", file, name)
			}
		}
	}
	if len(in) < 80 {
		t.Errorf("only %d limits in both packs", len(in))
	}
}
