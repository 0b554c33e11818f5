package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// expressions makes random PromQL over the figures of the made-up run. Some are
// wrong on purpose: what is refused must be refused alike.
type expressions struct{ *rand.Rand }

func pick[T any](e expressions, from ...T) T { return from[e.IntN(len(from))] }

// counters, gauges, natives and classics are the selectable names by what may
// sensibly be done with them.
var (
	exprCounters = []string{"accesslog_requests_total", "logfile_read_bytes_total", "accesslog_request_duration_seconds_count", "accesslog_request_duration_seconds_sum",
		"jvm_gc_collection_seconds_count", "jvm_gc_pause_seconds_sum"}
	exprGauges  = []string{"jvm_threadpool_threads", "jvm_threadpool_max_threads", "jvm_memory_pool_used_bytes", "process_cpu_usage_ratio", "up"}
	exprNatives = []string{"accesslog_request_duration_seconds", "jvm_gc_pause_seconds"}
	exprLabels  = []string{"code", "method", "route", "pool", "gc", "target", "job", "exported_job", "le", "nosuch"}
)

func (e expressions) matchers() string {
	if e.IntN(2) == 0 {
		return ""
	}
	return pick(e, "{}", `{code="5xx"}`, `{code!="2xx"}`, `{code=~"[25]xx"}`, `{pool!~".*nio.*"}`, `{target="tomcat-8080"}`, `{route=~".+"}`,
		`{method="GET",code=~"2..|4.."}`, `{job="sidecar"}`, `{exported_job="own"}`, `{nosuch=""}`, `{pool="none of these"}`, `{le="+Inf"}`)
}

func (e expressions) length() string {
	return pick(e, "5s", "10s", "30s", "1m", "90s", "2m", "5m", "7m30s", "1500ms")
}

func (e expressions) when() string {
	return pick(e, "", "", "", "", "", " offset 1m", " offset 7s", " offset -30s", " @ 1772367000", " @ end()", " @ start()", " @ 1772366900.5 offset 20s")
}

func (e expressions) gauge() string   { return pick(e, exprGauges...) + e.matchers() + e.when() }
func (e expressions) counter() string { return pick(e, exprCounters...) + e.matchers() + e.when() }

func (e expressions) ranged(name string) string {
	return name + e.matchers() + "[" + e.length() + "]" + e.when()
}

func (e expressions) rate() string {
	return pick(e, "rate", "increase", "irate", "delta", "idelta", "resets", "changes") + "(" + e.ranged(pick(e, exprCounters...)) + ")"
}

func (e expressions) grouping() string {
	var l []string
	for range e.IntN(3) {
		l = append(l, pick(e, exprLabels...))
	}
	return pick(e, "", " by ", " by ", " without ") + "(" + strings.Join(l, ", ") + ")"
}

// vector is an expression whose value is an instant vector.
func (e expressions) vector(depth int) string {
	if depth <= 0 {
		return pick(e, e.gauge, e.gauge, e.counter, e.rate, e.rate)()
	}
	inner := func() string { return e.vector(depth - 1) }
	switch e.IntN(18) {
	case 0, 1:
		g := e.grouping()
		if strings.HasPrefix(g, "(") {
			g = ""
		}
		return pick(e, "sum", "avg", "min", "max", "count", "stddev", "stdvar", "group") + g + " (" + inner() + ")"
	case 2:
		return fmt.Sprintf("quantile(%g, %s)", pick(e, 0, .5, .9, 1, 1.5, -1), inner())
	case 3:
		return fmt.Sprintf("%s(%d, %s)", pick(e, "topk", "bottomk"), e.IntN(4), inner())
	case 4:
		return fmt.Sprintf(`count_values("v", round(%s))`, inner())
	case 5, 6:
		return fmt.Sprintf("histogram_quantile(%g, sum by (le%s) (rate(%s)))", pick(e, .5, .9, .99, 1, 0), pick(e, "", ", code", ", route, target"),
			e.ranged("accesslog_request_duration_seconds_bucket"))
	case 7, 8:
		native := pick(e, "rate", "increase", "delta") + "(" + e.ranged(pick(e, exprNatives...)) + ")"
		if e.IntN(4) == 0 {
			native = pick(e, exprNatives...) + e.matchers() + e.when()
		}
		return fmt.Sprintf(pick(e, "histogram_quantile(0.9, %s)", "histogram_count(%s)", "histogram_sum(%s)", "histogram_avg(%s)", "histogram_fraction(0, 0.1, %s)", "histogram_stddev(%s)",
			"%s", "sum(%s)", "sum by (code) (%s)", "-%s", "histogram_quantile(0.5, sum(%s))", "(%s) * 2", "(%s) + (%[1]s)", "(%s) == (%[1]s)"), native)
	case 9, 10:
		op := pick(e, "+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">= bool", "<= bool", "and", "or", "unless", "atan2")
		match := pick(e, "", "", " on (target)", " ignoring (pool)", " on (pool) group_left", " ignoring (code, method) group_right", " on ()", " on (job) group_left (pool)")
		if (op == "and" || op == "or" || op == "unless") && strings.Contains(match, "group") {
			match = ""
		}
		return "(" + inner() + ") " + op + match + " (" + inner() + ")"
	case 11:
		return fmt.Sprintf("(%s) %s %g", inner(), pick(e, "+", "*", "/", ">", "< bool", "%"), pick(e, 0, 1, 2.5, 100))
	case 12:
		return fmt.Sprintf("%s((%s)[%s:%s]%s)", pick(e, "max_over_time", "avg_over_time", "sum_over_time", "count_over_time", "quantile_over_time", "deriv", "last_over_time", "stddev_over_time"),
			inner(), e.length(), pick(e, "", "5s", "7s", "30s"), e.when())
	case 13:
		f := pick(e, "avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time", "last_over_time", "present_over_time", "stdvar_over_time", "mad_over_time", "absent_over_time", "deriv")
		return f + "(" + e.ranged(pick(e, exprGauges...)) + ")"
	case 14:
		return fmt.Sprintf("%s(%s)", pick(e, "abs", "ceil", "floor", "exp", "ln", "sqrt", "sgn", "round", "absent", "timestamp", "sort", "sort_desc", "scalar", "hour", "clamp_min"), inner())
	case 15:
		return fmt.Sprintf(`label_replace(%s, "%s", "x-$1", "%s", "%s")`, inner(), pick(e, "dst", "pool", "code"), pick(e, "code", "pool", "nosuch"), pick(e, "(.*)", "(.).*", "none", "(?i)HTTP-(.*)"))
	case 16:
		return fmt.Sprintf(`label_join(%s, "all", "-", "code", "pool")`, inner())
	default:
		return pick(e, "predict_linear("+e.ranged("process_cpu_usage_ratio")+", 60)", "holt_winters("+e.ranged("up")+", .5, .5)", "quantile_over_time(0.7, "+e.ranged("jvm_threadpool_threads")+")",
			"vector(time())", "absent("+e.gauge()+")", "-"+e.gauge(), "clamp("+e.gauge()+", 0, 60)", "scalar("+e.gauge()+")", "time()", "1 + 1", `"text"`, "pi()")
	}
}

// expression is one of them.
func (e expressions) expression() string {
	if e.IntN(20) == 0 {
		return pick(e, "sum(", "rate(up)", "up[5m", "nosuch(up)", "up + on(", `label_replace(up, "a b", "$1", "job", "(")`, "histogram_quantile(up, up)", `{__name__=~".*"}`, "up[5m]", "",
			"up offset", "sum by (1) (up)", "up and 1", `count_values("a-b", up)`, "1 == 2", "topk(up)", "up{", "rate(up[0s])", "up @ never")
	}
	return e.vector(e.IntN(4))
}
