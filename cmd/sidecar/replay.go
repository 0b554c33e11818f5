package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/expfmt"
)

func addReplay(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("replay", "Read log files from the start to the end, tell by themselves which kind they are, and print what they say. Plain or .gz; - is standard input.")
	r := &replay{}
	cmd.Flag("json", "Print one JSON object for one file, an array for several.").BoolVar(&r.json)
	cmd.Flag("metrics", "Print the metrics that following these files would have given.").BoolVar(&r.metrics)
	cmd.Flag("kind", "Take the files for this kind instead of looking: gclog, accesslog or applog.").EnumVar(&r.kind, "gclog", "accesslog", "applog")
	cmd.Flag("pattern", "The access log's pattern as in server.xml, or the application log's layout pattern.").StringVar(&r.pattern)
	cmd.Flag("duration-unit", "The unit of %D in an access log, where the file can't tell: s, ms or us.").EnumVar(&r.unit, "s", "ms", "us")
	cmd.Flag("from", "Leave out requests before this time (2026-11-30T12:00:00Z).").StringVar(&r.from)
	cmd.Flag("to", "Leave out requests from this time on.").StringVar(&r.to)
	cmd.Flag("separate", "One summary for each file instead of one for all files of a kind.").BoolVar(&r.separate)
	cmd.Flag("config.file", "Settings file, for routes and user events.").StringVar(&r.config)
	cmd.Arg("file", "Log files.").Required().StringsVar(&r.files)
	return cmd.FullCommand(), r.run
}

// replay is what `sidecar replay` was told.
type replay struct {
	json, metrics, separate               bool
	kind, pattern, unit, from, to, config string
	files                                 []string
}

// A report gathers what one log, or several of a kind, say.
type report interface {
	follow.Handler
	WriteText(w io.Writer, width int) error
	JSON() any
}

func (r *replay) run(s streams) error {
	if r.json && r.metrics {
		return fmt.Errorf("--json and --metrics: choose one")
	}
	cfg, err := loadSettings(r.config)
	if err != nil {
		return err
	}
	for i, name := range r.files {
		if name == "" { // kingpin hands a lone dash over as nothing
			r.files[i] = "-"
		}
	}
	inputs, err := openInputs(r.files, s.in)
	if err != nil {
		return err
	}
	defer closeAll(inputs)
	k := kinds{cfg: cfg, replay: r}
	told, err := k.tellAll(inputs, s.err)
	if err != nil {
		return err
	}
	groups, err := k.group(told)
	if err != nil {
		return err
	}
	if err := r.checkRange(groups); err != nil {
		return err
	}
	bar := newBar(s.err, told)
	defer bar.clear()
	switch {
	case r.metrics:
		return r.printMetrics(s.out, groups, k, bar)
	case r.json:
		return r.printJSON(s.out, told, k, bar)
	}
	return r.printText(s.out, groups, k, bar)
}

// checkRange refuses a range where it would be left out of account without a
// word.
func (r *replay) checkRange(groups []group) error {
	if r.from == "" && r.to == "" {
		return nil
	}
	if r.metrics {
		return fmt.Errorf("--from and --to are for the summaries: leave them out with --metrics")
	}
	for _, g := range groups {
		if g.kind != "accesslog" {
			return fmt.Errorf("--from and --to choose requests of access logs: %s is %s", g.names(), kindNames[g.kind])
		}
	}
	return nil
}

// printText prints one summary for each group of files of one kind.
func (r *replay) printText(w io.Writer, groups []group, k kinds, bar *bar) error {
	for i, g := range groups {
		rep, err := k.report(g)
		if err != nil {
			return err
		}
		for _, in := range g.inputs {
			if err := bar.read(in, rep); err != nil {
				return err
			}
		}
		bar.clear()
		if i > 0 {
			fmt.Fprintln(w)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%s: %s\n", g.names(), g.what)
		if err := rep.WriteText(&text, terminalWidth(w)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, printable(text.String())); err != nil {
			return err
		}
	}
	return nil
}

// printJSON prints one object a file that could be read, in the order of the
// command line.
func (r *replay) printJSON(w io.Writer, inputs []*input, k kinds, bar *bar) error {
	var out []any
	for _, in := range inputs {
		g := group{kind: in.kind, what: in.what, inputs: []*input{in}}
		rep, err := k.report(g)
		if err != nil {
			return err
		}
		if err := bar.read(in, rep); err != nil {
			return err
		}
		out = append(out, rep.JSON())
	}
	bar.clear()
	var all any = out
	if len(r.files) == 1 { // by what was asked for, not by what could be read
		all = out[0]
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, printableJSON(text.String()))
	return err
}

// printMetrics feeds the files to the observers that the daemon would use.
func (r *replay) printMetrics(w io.Writer, groups []group, k kinds, bar *bar) error {
	gathering := metric.NewGathering()
	for _, g := range groups {
		set := metric.ForTarget("replay")
		obs, err := k.observer(g, set)
		if err != nil {
			return err
		}
		for _, in := range g.inputs {
			if err := bar.read(in, obs); err != nil {
				return err
			}
		}
		gathering.Add(set)
	}
	bar.clear()
	enc := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range gathering.Snapshot(time.Time{}).Families {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// group is files of one kind that are read as one.
type group struct {
	kind   string
	what   string // what the kind was told by, for the reader
	inputs []*input
}

func (g group) names() string {
	names := make([]string, len(g.inputs))
	for i, in := range g.inputs {
		names[i] = in.name
	}
	return strings.Join(names, ", ")
}

func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s=%s: no time: write it as 2026-11-30T12:00:00Z", flag, s)
}

func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n := columns(f); n > 0 {
			return min(n, 160)
		}
	}
	return 100
}
