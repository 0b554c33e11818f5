package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// What an expression may ask for. PromQL's engine bounds the samples in memory
// and the time, but not what comes before a sample is found, and it looks at the
// time only between one series and the next: up[1y:1ms] would burn a core for
// an hour after whoever asked has gone. So what is too much is refused before
// it is parsed or evaluated. A dashboard's queries are a hundredth of this.
const (
	// maxExpression is the length in bytes. Parsing takes the square of it.
	maxExpression = 16 << 10
	// maxUnrolled bounds the length times the repetitions in regular expressions.
	maxUnrolled = 1 << 18
	// maxNesting is the depth of the tree; a sum of many terms is as deep as it
	// is long.
	maxNesting = 300
	// maxSteps is how often one subquery may be evaluated.
	maxSteps = 10 * maxPoints
	// maxWindows is how many of a subquery's steps may be looked at, all
	// evaluations of the function around it together.
	maxWindows = 50_000_000
	// labelLength is taken for the length of a label's value as it comes, and
	// maxLabels is what label_replace and label_join may make of such values,
	// all of an expression together: each can double what the one within it made.
	labelLength = 256
	maxLabels   = 64 << 10
)

// tooLong refuses texts before they are parsed.
func tooLong(texts ...string) error {
	n, again := 0, 0
	for _, t := range texts {
		n += len(t)
		again += repeats(t)
	}
	if n > maxExpression {
		return fmt.Errorf("the expression is %d bytes long, and at most %d are parsed: record parts of it by rules", n, maxExpression)
	}
	if n*again > maxUnrolled {
		return fmt.Errorf("repetitions such as {%d} make the regular expressions too large: write them with + or *, or shorter", again)
	}
	return nil
}

// repeats is the sum of all {n} and {n,m} in a text, which regular expressions
// are unrolled by when a matcher is parsed. A brace may be written as an escape.
func repeats(text string) (sum int) {
	counting, n := false, 0
	for len(text) > 0 {
		r, _, rest, err := strconv.UnquoteChar(text, 0)
		if err != nil {
			r, rest = rune(text[0]), text[1:]
		}
		text = rest
		switch {
		case counting && '0' <= r && r <= '9':
			n = min(10*n+int(r-'0'), maxExpression)
		case counting && r == ',':
			sum, n = sum+n, 0
		default:
			sum, n, counting = sum+n, 0, r == '{'
		}
	}
	return sum + n
}

// tooMuch says why a query is not evaluated; nil when it may be.
func (e *Engine) tooMuch(q promql.Query) error {
	s, ok := q.Statement().(*parser.EvalStmt)
	if !ok {
		return nil
	}
	e.mu.RLock()
	b := bounds{step: e.cfg.Evaluation}
	e.mu.RUnlock()
	w := window{points: 1}
	if s.Interval > 0 {
		w.span = s.End.Sub(s.Start).Seconds()
		w.points += w.span / s.Interval.Seconds()
	}
	_, err := b.walk(s.Expr, w, 0)
	return err
}

// bounds goes through a tree and adds up what its evaluation takes. Counts are
// floats, since the product of two may be larger than an integer.
type bounds struct {
	step    time.Duration // of a subquery that says none
	windows float64
	labels  float64
}

// window is the instants at which a part of the tree is evaluated.
type window struct{ points, span float64 }

// walk also tells how long a label the part may make.
func (b *bounds) walk(n parser.Node, w window, depth int) (label float64, err error) {
	if depth > maxNesting {
		return 0, fmt.Errorf("the expression is nested more than %d deep: record parts of it by rules", maxNesting)
	}
	if s, ok := n.(*parser.SubqueryExpr); ok {
		if w, err = b.subquery(s, w); err != nil {
			return 0, err
		}
	}
	label = labelLength
	for _, child := range parser.Children(n) {
		l, err := b.walk(child, w, depth+1)
		if err != nil {
			return 0, err
		}
		label = max(label, l)
	}
	call, ok := n.(*parser.Call)
	if !ok || call.Func.Name != "label_replace" && call.Func.Name != "label_join" {
		return label, nil
	}
	made := 0.0
	if with := literal(call.Args[2]); call.Func.Name == "label_replace" {
		// Each $ may stand for the whole label.
		made = float64(len(with)) + float64(strings.Count(with, "$"))*label
	} else {
		made = float64(len(call.Args)-3) * (label + float64(len(with)))
	}
	if b.labels += made; b.labels > maxLabels {
		return 0, fmt.Errorf("label_replace and label_join, one within or beside the other, may make labels of more than %d bytes: use fewer of them, or fewer $ in the replacement", maxLabels)
	}
	return max(label, made), nil
}

// subquery is where the inner part of one is evaluated.
func (b *bounds) subquery(s *parser.SubqueryExpr, w window) (window, error) {
	step := s.Step
	if step <= 0 {
		step = b.step
	}
	inner := window{span: w.span + s.Range.Seconds()}
	inner.points = 1 + inner.span/step.Seconds()
	form := fmt.Sprintf("[%s:%s]", model.Duration(s.Range), model.Duration(step))
	if inner.points > maxSteps {
		return inner, fmt.Errorf("the subquery %s takes %.0f steps, and at most %d are evaluated: give it a longer step or a shorter range", form, inner.points, maxSteps)
	}
	b.windows += w.points * (1 + s.Range.Seconds()/step.Seconds())
	if b.windows > maxWindows {
		return inner, fmt.Errorf("the subquery %s, evaluated at %.0f instants, looks at more than %d steps in all: give it or the query around it a longer step", form, w.points, maxWindows)
	}
	return inner, nil
}

// literal is the text of an argument that is a string.
func literal(e parser.Expr) string {
	for {
		switch n := e.(type) {
		case *parser.ParenExpr:
			e = n.Expr
		case *parser.StepInvariantExpr:
			e = n.Expr
		case *parser.StringLiteral:
			return n.Val
		default:
			return ""
		}
	}
}

// ParseRules reads a rule file, in which an expression has the bounds that one
// of a client has. A subquery that says no step has the given one.
func ParseRules(data []byte, step time.Duration) (*rulefmt.RuleGroups, []error) {
	var raw rulefmt.RuleGroups
	// What is no YAML, or no rule file, is told by the parser, which knows better.
	if yaml.Unmarshal(data, &raw) == nil {
		if errs := eachRule(&raw, func(expr string) error { return tooLong(expr) }); len(errs) > 0 {
			return nil, errs
		}
	}
	groups, errs := rulefmt.Parse(data, false)
	if len(errs) > 0 {
		return nil, errs
	}
	errs = eachRule(groups, func(expr string) error {
		tree, err := parser.ParseExpr(expr)
		if err != nil {
			return err
		}
		_, err = (&bounds{step: step}).walk(tree, window{points: 1}, 0)
		return err
	})
	if len(errs) > 0 {
		return nil, errs
	}
	return groups, nil
}

func eachRule(groups *rulefmt.RuleGroups, check func(expr string) error) (errs []error) {
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			name := r.Record
			if name == "" {
				name = r.Alert
			}
			if err := check(r.Expr); err != nil {
				errs = append(errs, fmt.Errorf("group %q, rule %q: %w", g.Name, name, err))
			}
		}
	}
	return errs
}
