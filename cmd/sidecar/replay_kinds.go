package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// kinds tells what files are and makes their reports and observers.
type kinds struct {
	cfg    *collectors.Config
	replay *replay
}

// leastSure is the score below which a file is none of ours. Random bytes have
// lines that look like something now and then; a log's own are most of it, or a
// good part where it shares the file.
const leastSure = 0.05

// tellAll tells each input's kind. One that is empty, can't be read or is no log is
// left out with a line on standard error; an error is only that nothing is left.
func (k kinds) tellAll(inputs []*input, w io.Writer) (told []*input, err error) {
	for _, in := range inputs {
		if err = in.refused; err == nil {
			err = k.tell(in)
		}
		switch {
		case err == nil:
			told = append(told, in)
		case len(inputs) == 1:
			return nil, err
		default:
			fmt.Fprintf(w, "sidecar: %s: left out\n", printable(err.Error()))
		}
	}
	if len(told) == 0 {
		return nil, fmt.Errorf("none of the %d files is a log that can be read", len(inputs))
	}
	return told, nil
}

// tell sets an input's kind from its first bytes, or from what the command line
// says.
func (k kinds) tell(in *input) error {
	if k.replay.kind != "" {
		in.kind, in.what = k.replay.kind, "taken for it by --kind"
		return nil
	}
	guess := accesslog.Recognise(in.head)
	scores := []struct {
		kind  string
		score float64
		why   string
	}{
		{"gclog", gclog.Sniff(in.head), "its lines are those of a GC log"},
		{"accesslog", guess.Confidence, guess.Why},
		{"applog", applog.Sniff(in.head), "its lines are records of an application log"},
	}
	best := slices.MaxFunc(scores, func(a, b struct {
		kind  string
		score float64
		why   string
	}) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	switch {
	case len(in.head) == 0:
		return fmt.Errorf("%s: is empty", in.name)
	case best.score < leastSure && k.replay.pattern != "":
		best.kind, best.score, best.why = "accesslog", 1, "--pattern was given"
	case best.score < leastSure:
		return fmt.Errorf("%s: is no GC log, access log or application log that is known here: say which with --kind", in.name)
	}
	in.kind = best.kind
	in.what = fmt.Sprintf("%s (%.0f %% sure: %s)", kindNames[best.kind], best.score*100, best.why)
	return nil
}

var kindNames = map[string]string{"gclog": "a GC log", "accesslog": "an access log", "applog": "an application log"}

// group puts the inputs, whose kinds are told, of one kind together, in the order of time.
func (k kinds) group(inputs []*input) ([]group, error) {
	var groups []group
	for _, in := range inputs {
		i := slices.IndexFunc(groups, func(g group) bool { return g.kind == in.kind })
		if i < 0 || k.replay.separate {
			groups = append(groups, group{kind: in.kind, what: in.what, inputs: []*input{in}})
			continue
		}
		groups[i].inputs = append(groups[i].inputs, in)
	}
	for i := range groups {
		if err := k.order(&groups[i]); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// order sorts the files of a group by what stands in them.
func (k kinds) order(g *group) error {
	if len(g.inputs) < 2 {
		return nil
	}
	switch g.kind {
	case "gclog":
		heads := make([]gclog.Head, len(g.inputs))
		for i, in := range g.inputs {
			heads[i] = gclog.Head{Name: in.name, Head: in.head, Tail: in.tail(), ModTime: in.modTime()}
		}
		sorted := make([]*input, 0, len(heads))
		for _, i := range gclog.Order(heads) {
			sorted = append(sorted, g.inputs[i])
		}
		g.inputs = sorted
	case "accesslog":
		m, err := k.matcher(*g)
		if err != nil {
			return err
		}
		first := map[*input]int64{}
		for _, in := range g.inputs {
			first[in] = m.FirstTime(in.head)
		}
		slices.SortStableFunc(g.inputs, func(a, b *input) int { return int(min(max(first[a]-first[b], -1), 1)) })
	default:
		slices.SortStableFunc(g.inputs, func(a, b *input) int {
			return int(min(max(a.modTime()-b.modTime(), -1), 1))
		})
	}
	return nil
}

// report makes the summary of a group.
func (k kinds) report(g group) (report, error) {
	switch g.kind {
	case "gclog":
		return gclog.NewReport(), nil
	case "accesslog":
		m, err := k.matcher(g)
		if err != nil {
			return nil, err
		}
		opt := accesslog.ReportOptions{Routes: k.cfg.AccessLog.Routes}
		if k.replay.pattern == "" {
			guess := accesslog.Recognise(g.inputs[0].head)
			opt.Guess = &guess
		}
		if opt.From, err = parseTime("from", k.replay.from); err != nil {
			return nil, err
		}
		if opt.To, err = parseTime("to", k.replay.to); err != nil {
			return nil, err
		}
		return accesslog.NewReport(m, opt), nil
	}
	return applog.NewReport(k.appLog()), nil
}

// observer makes what the daemon would feed.
func (k kinds) observer(g group, set *metric.Set) (follow.Handler, error) {
	switch g.kind {
	case "gclog":
		return gclog.New(set, k.cfg.GCLog), nil
	case "accesslog":
		m, err := k.matcher(g)
		if err != nil {
			return nil, err
		}
		return accesslog.New(set, m, k.cfg.AccessLog), nil
	}
	return applog.New(set, k.appLog()), nil
}

func (k kinds) appLog() applog.Config {
	cfg := k.cfg.AppLog
	cfg.Role = applog.Primary
	if k.replay.pattern != "" {
		cfg.Layout = k.replay.pattern
	}
	return cfg
}

// matcher compiles the pattern that was given, or the one the file looks like.
func (k kinds) matcher(g group) (*accesslog.Matcher, error) {
	zone, err := k.cfg.AccessLog.Location()
	if err != nil {
		return nil, err
	}
	opt := accesslog.Options{DurationUnit: k.replay.unit, Zone: zone}
	if opt.DurationUnit == "" {
		opt.DurationUnit = k.cfg.AccessLog.DurationUnit
	}
	guess := accesslog.Recognise(g.inputs[0].head)
	format, pattern := guess.Format, guess.Pattern
	if k.replay.pattern != "" {
		format, pattern = accesslog.FormatTomcat, k.replay.pattern
	}
	if format == "" {
		return nil, fmt.Errorf("%s: its pattern can't be told (%s): give it with --pattern", g.inputs[0].name, guess.Why)
	}
	return accesslog.Compile(format, pattern, opt)
}

// tailSize is how much of a file's end is looked at to put files in order.
const tailSize = 64 << 10

// tail is the end of a file. A packed one has to be unpacked for it, which is
// done only where several files are to be put in order.
func (in *input) tail() []byte {
	f, ok := in.file.(*os.File)
	if !ok {
		return nil
	}
	if in.packed {
		return in.packedTail(f)
	}
	b := make([]byte, min(in.size, tailSize))
	n, _ := f.ReadAt(b, in.size-int64(len(b)))
	return b[:n]
}

// packedTail reads by offsets, so that the input's own place is left alone.
func (in *input) packedTail(f *os.File) []byte {
	z, err := gzip.NewReader(io.NewSectionReader(f, 0, in.size))
	if err != nil {
		return nil
	}
	b := make([]byte, 0, 2*tailSize)
	for {
		if len(b) == cap(b) {
			b = b[:copy(b, b[tailSize:])]
		}
		n, err := z.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil { // the end, or a file that is cut: what there is will do
			return b[max(0, len(b)-tailSize):]
		}
	}
}

// modTime is when the file was last written, in Unix seconds.
func (in *input) modTime() float64 {
	f, ok := in.file.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return float64(info.ModTime().UnixNano()) / float64(time.Second)
}
