package accesslog

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/textplot"
)

// WriteText prints the report for a person, no wider than width characters but
// for names that are longer.
func (r *Report) WriteText(w io.Writer, width int) error {
	if width < 40 {
		width = 80
	}
	p := &printer{Writer: bufio.NewWriter(w), width: width}
	r.writeHead(p)
	r.writeCounts(p)
	r.writeLatency(p)
	r.writeRate(p)
	r.writeRoutes(p)
	r.writeRefused(p)
	if a := r.m.Advice(); a != "" {
		p.head("Advice")
		p.line("  %s", a)
	}
	return p.Flush()
}

type printer struct {
	*bufio.Writer
	width int
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }
func (p *printer) head(s string)                   { p.line("\n%s", s) }
func (p *printer) row(name, format string, args ...any) {
	p.line("  %-20s "+format, append([]any{name}, args...)...)
}

func (r *Report) writeHead(p *printer) {
	p.line("Access log")
	p.row("pattern", "%s", r.m.String())
	if g := r.opt.Guess; g != nil {
		p.row("taken for that by", "%s (confidence %.0f %%)", g.Why, g.Confidence*100)
	}
	switch unit, whole := r.m.DurationUnit(); {
	case unit == "none":
		p.row("duration", "not logged")
	case unit == "unknown":
		p.row("duration", "logged, but its unit depends on the server's version: give --duration-unit")
	case whole || r.coarse > 0:
		p.row("duration unit", "whole seconds: too coarse for latencies")
	default:
		p.row("duration unit", "%s", unit)
	}
	p.row("lines", "%d", r.lines)
	if r.outside > 0 {
		p.row("outside of range", "%d", r.outside)
	}
	if r.gaps > 0 {
		p.row("gaps", "%d", r.gaps)
	}
	p.row("requests", "%d", r.requests)
	if r.start != 0 || r.end != 0 {
		p.row("from", "%s", stamp(r.start))
		p.row("to", "%s (%s)", stamp(r.end), time.Duration(r.span())*time.Second)
		p.row("requests a second", "%s", textplot.Number(float64(r.requests)/r.span()))
	}
	if r.m.Logs(HasBytes) || r.withBytes > 0 {
		p.row("response bytes", "%d", r.responseBytes)
	}
}

func (r *Report) writeCounts(p *printer) {
	if r.requests == 0 {
		return
	}
	share := func(n int64) string { return fmt.Sprintf("%6.2f %%", 100*float64(n)/float64(r.requests)) }
	p.head("Status")
	var failed, refusedByClient int64
	for s, n := range r.byStatus {
		if n == 0 {
			continue
		}
		name := fmt.Sprint(s)
		if s == 0 {
			name = "-"
		}
		p.row(name, "%10d  %s", n, share(n))
		switch {
		case s >= 500:
			failed += n
		case s >= 400:
			refusedByClient += n
		}
	}
	p.row("errors (5xx)", "%10d  %s", failed, share(failed))
	p.row("client errors (4xx)", "%10d  %s", refusedByClient, share(refusedByClient))
	if r.m.Logs(HasConn) || r.conn != [3]int64{} {
		p.row("aborted by client", "%10d  %s", r.conn[0], share(r.conn[0]))
	}
	p.head("Method")
	for m, n := range r.byMethod {
		if n > 0 {
			p.row(Method(m).String(), "%10d  %s", n, share(n))
		}
	}
	if r.nameless > 0 {
		p.row("(no request read)", "%10d  %s", r.nameless, share(r.nameless))
	}
}

func (r *Report) writeLatency(p *printer) {
	if n := r.durations.Count(); n > 0 {
		p.head("Percentage of the requests served within a certain time (ms)")
		for _, q := range []float64{.50, .66, .75, .80, .90, .95, .98, .99} {
			p.line("  %3.0f%%  %10s", q*100, millis(quantile(r.durations.Quantile, q, r.max)))
		}
		p.line("  100%%  %10s (longest request)", millis(r.max))
		p.row("mean", "%s ms", millis(r.sum/float64(n)))
		p.row("in all", "%.3f s", r.sum)
		if r.negative > 0 {
			p.row("negative", "%d (the clock stepped back; left out)", r.negative)
		}
	}
	if n := r.firsts.Count(); n > 0 {
		p.row("first byte", "50%% %s, 95%% %s, 99%% %s, longest %s ms",
			millis(quantile(r.firsts.Quantile, .5, r.firstMax)), millis(quantile(r.firsts.Quantile, .95, r.firstMax)),
			millis(quantile(r.firsts.Quantile, .99, r.firstMax)), millis(r.firstMax))
	}
	if peak, at, exact := r.sweep.finish(); peak > 0 {
		about := ""
		if !exact {
			about = "about "
		}
		p.row("concurrency", "mean %s, peak %s%d at %s", textplot.Number(r.sum/r.span()), about, peak, stamp(at))
	}
}

func millis(seconds float64) string { return textplot.Number(seconds * 1e3) }

func (r *Report) writeRate(p *printer) {
	s := r.seconds.done()
	if len(s.bins) < 2 {
		return
	}
	p.head("Requests a second")
	values := make([]float64, len(s.bins))
	failed := make([]float64, len(s.bins))
	anyFailed := false
	for i, b := range s.bins {
		values[i] = float64(b.requests) / float64(s.width)
		failed[i] = float64(b.errors) / float64(s.width)
		anyFailed = anyFailed || b.errors > 0
	}
	room := p.width - 14
	from, to := stamp(s.first*1000), stamp((s.first+int64(len(s.bins))*s.width)*1000)
	_ = textplot.Plot(p, values, room, 6, textplot.Number, from, to)
	if anyFailed {
		p.head("Errors (5xx) a second")
		_ = textplot.Plot(p, failed, room, 3, textplot.Number, from, to)
	}
	p.head("Busiest seconds")
	for _, b := range s.busiest[:min(5, len(s.busiest))] {
		p.line("  %s  %10d", stamp(b.unix*1000), b.requests)
	}
}

func (r *Report) writeRoutes(p *printer) {
	top := r.slowest(10)
	if len(top) == 0 || !r.m.Logs(HasRequest) {
		return
	}
	timed := r.durations.Count() > 0
	wide := 5
	for _, n := range top {
		wide = max(wide, min(len(r.router.names[n]), p.width-50))
	}
	if !timed {
		p.head("Routes asked for most")
		p.line("  %-*s %10s %8s", wide, "route", "requests", "5xx")
	} else {
		p.head("Slowest routes (by time in all; ms)")
		p.line("  %-*s %10s %8s %9s %9s %9s", wide, "route", "requests", "5xx", "mean", "95%", "max")
	}
	for _, n := range top {
		f := &r.routes[n]
		name := strings.ToValidUTF8(r.router.names[n], "\uFFFD")
		if f.hist == nil {
			p.line("  %-*s %10d %8d", wide, name, f.requests, f.errors)
			continue
		}
		p.line("  %-*s %10d %8d %9s %9s %9s", wide, name, f.requests, f.errors,
			millis(f.sum/float64(f.hist.Count())), millis(quantile(f.hist.Quantile, .95, f.max)), millis(f.max))
	}
}

func (r *Report) writeRefused(p *printer) {
	total := int64(0)
	for _, n := range r.refused {
		total += n
	}
	if total == 0 {
		return
	}
	p.head(fmt.Sprintf("Refused lines: %d (in no other figure)", total))
	for why, n := range r.refused {
		if n > 0 {
			p.row(Refusal(why).String(), "%10d", n)
		}
	}
	last := r.last.list()
	for _, l := range last[max(0, len(last)-3):] {
		text := fmt.Sprintf("%q", l.Line)
		if room := p.width - 16; len(text) > room {
			text = text[:room] + "…"
		}
		p.line("  last: %-9s %s", l.Reason, text)
	}
}
