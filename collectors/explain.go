package collectors

import (
	"strings"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"go.yaml.in/yaml/v3"
)

// A source explained: what the page shows when somebody asks how a log is read.
// Nothing here is worked out before that, but that a few lines a second are kept.

// keptPerSecond is how many lines of a stream are kept each second for the page.
// A quiet log is shown whole, and of a storm there is more than anybody reads.
const keptPerSecond = 8

// shownPatterns is how many kinds of records the page shows.
const shownPatterns = 10

// A keeper keeps the next n lines that it is given for the page.
type keeper interface{ Keep(n int) }

// explainer gives what is asked of a stream. The settings are those of the moment
// at which it is made, since a reload makes every stream anew.
func (s *stream) explainer(cfg *Config) func(lines bool) status.Explained {
	return func(lines bool) status.Explained {
		out := status.Explained{Settings: settingsOf(s.room, cfg, true)}
		if !lines {
			return out
		}
		hide := ship.Masker(cfg.Loki.Masks)
		s.set.Lock()
		if s.explain != nil {
			s.explain(&out)
		}
		s.set.Unlock()
		// Outside of the lock: masking a line costs more than reading it.
		for i := range out.Entries {
			e := &out.Entries[i]
			e.Line = hide(e.Line)
			for j := range e.Made {
				e.Made[j].Value = hide(e.Made[j].Value)
			}
		}
		for i := range out.Refused {
			out.Refused[i].Line = hide(out.Refused[i].Line)
		}
		for i := range out.Patterns {
			out.Patterns[i].Text = hide(out.Patterns[i].Text)
		}
		return out
	}
}

// settingsOf is the section of a room as it is in force. No room's section holds
// a secret: those are in files of their own, and of the sections loki and notify.
func settingsOf(room string, cfg *Config, limits bool) string {
	section := map[string]any{}
	switch room {
	case "process":
		section[room] = cfg.Process
	case "jvm":
		section[room] = cfg.JVM
	case "gclog":
		section[room] = cfg.GCLog
	case "accesslog":
		section[room] = cfg.AccessLog
	case "applog":
		section[room] = cfg.AppLog
	case "logdir":
		section[room] = cfg.LogDir
	}
	if limits {
		section["limits"] = cfg.Limits
	}
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(section); err != nil {
		return "BUG: " + err.Error()
	}
	return b.String()
}

func explainAccess(o *accesslog.Observer, out *status.Explained) {
	for _, l := range o.Kept() {
		e := status.Entry{Line: l.Line}
		switch l.Why {
		case accesslog.Accepted:
		case accesslog.Directive:
			e.Made = []status.Fact{{Name: "directive", Value: "about the log itself"}}
		default:
			e.Refused = l.Why.String()
		}
		for _, f := range l.Facts {
			e.Made = append(e.Made, status.Fact{Name: f[0], Value: f[1]})
		}
		out.Entries = append(out.Entries, e)
	}
	for _, r := range o.Refused() {
		out.Refused = append(out.Refused, status.Refused{Reason: r.Reason.String(), Line: strings.ToValidUTF8(r.Line, "\uFFFD")})
	}
}

func explainGC(o *gclog.Observer, out *status.Explained) {
	lines, refused := o.Kept()
	for _, l := range lines {
		e := status.Entry{Line: l.Line}
		switch {
		case l.Unrecognised:
			e.Refused = "unrecognised"
		case len(l.Made) == 0:
			e.Made = []status.Fact{{Name: "part", Value: "of a record, or of no interest"}}
		}
		for _, m := range l.Made {
			e.Made = append(e.Made, status.Fact{Name: "counted", Value: m})
		}
		out.Entries = append(out.Entries, e)
	}
	for _, l := range refused {
		out.Refused = append(out.Refused, status.Refused{Reason: "unrecognised", Line: l.Line})
	}
}

func explainApp(o *applog.Observer, out *status.Explained) {
	recent := o.Recent()
	for _, l := range recent.Lines {
		e := status.Entry{Line: l.Line, Again: l.Again}
		add := func(name, value string) {
			if value != "" {
				e.Made = append(e.Made, status.Fact{Name: name, Value: value})
			}
		}
		add("level", l.Level)
		add("logger", l.Logger)
		add("event", l.Event)
		add("exception", l.Thrown)
		add("pattern", l.Pattern)
		out.Entries = append(out.Entries, e)
	}
	for _, line := range recent.Raw {
		out.Refused = append(out.Refused, status.Refused{Reason: "raw", Line: line})
	}
	for _, p := range o.Frequent(shownPatterns) {
		out.Patterns = append(out.Patterns, status.Pattern{Level: p.Level, Logger: p.Logger, Text: p.Pattern, Records: p.Records, New: p.New})
	}
}
