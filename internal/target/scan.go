package target

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// MaxTargets is how many servers one sidecar watches. More would be no sidecar,
// and each has up to 1,500 series.
const MaxTargets = 64

// settle turns the targets of one scan into the list that is handed out: without
// launchers that serve nothing, with the corrections of the settings, with
// names that differ, and not too many. left are those that the settings leave
// out.
func settle(ts []*Target, parents map[int]int, cfg Config) (kept, left []*Target) {
	ts = dropLaunchers(ts, parents)
	corrected := map[*Target]bool{}
	kept = ts[:0]
	for _, t := range ts {
		t, use, fixed := correct(t, cfg)
		if use {
			kept = append(kept, t)
			corrected[t] = fixed
		} else {
			left = append(left, t)
		}
	}
	// Servers before other JVMs, then the older first: when there are too many,
	// these stay.
	slices.SortStableFunc(kept, func(a, b *Target) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Process.StartTicks, b.Process.StartTicks), cmp.Compare(a.Process.PID, b.Process.PID))
	})
	if len(kept) > MaxTargets {
		kept = kept[:MaxTargets]
	}
	distinguish(kept, corrected)
	return kept, left
}

func rank(t *Target) int {
	if t.Kind == JVM {
		return 1
	}
	return 0
}

// dropLaunchers leaves out a Jetty launcher with --exec when its child is here.
// The launcher serves nothing, but its standard output is where the child's
// lines end up, through a pipe; so that file becomes the child's console log.
func dropLaunchers(ts []*Target, parents map[int]int) []*Target {
	byPID := map[int]*Target{}
	for _, t := range ts {
		byPID[t.Process.PID] = t
	}
	drop := map[*Target]bool{}
	for i, t := range ts {
		if t.Kind != Jetty || t.Process.MainClass != jettyXML {
			continue
		}
		p := byPID[parents[t.Process.PID]]
		if p == nil || p.Kind != Jetty || len(p.Connectors) > 0 && t.Base != p.Base {
			continue
		}
		drop[p] = true
		c := *t
		c.AppLogs = slices.Clone(t.AppLogs)
		c.Blind = slices.DeleteFunc(slices.Clone(t.Blind), func(b Blind) bool {
			return b.Reason == "stdout_is_pipe" && len(p.AppLogs) > 0
		})
		c.Learned = append(slices.Clone(t.Learned), Fact{Key: "kind", What: fmt.Sprintf("that process %d is only its launcher", p.Process.PID), From: "its parent in /proc/PID/stat"})
		for _, a := range p.AppLogs {
			if a.Role == "primary" && !slices.ContainsFunc(c.AppLogs, func(x AppLog) bool { return x.Path == a.Path }) {
				c.AppLogs = append([]AppLog{a}, c.AppLogs...)
				c.Learned = append(c.Learned, Fact{Key: "app_logs", What: "the console log " + a.Path, From: "descriptors 1 and 2 of the launcher"})
			}
		}
		ts[i] = &c
	}
	return slices.DeleteFunc(ts, func(t *Target) bool { return drop[t] })
}

// correct puts the settings' corrections into a copy.
func correct(t *Target, cfg Config) (out *Target, use, fixed bool) {
	for _, s := range cfg.Servers {
		if !s.Match.matches(t) {
			continue
		}
		if s.Ignore {
			return t, false, false
		}
		c := *t
		c.Learned = slices.Clone(t.Learned)
		s.apply(&c)
		c.named = true
		return &c, true, true
	}
	return t, cfg.Discover, false
}

// missing are the servers of the settings that have no process here. One is left
// out where that can't be said: where processes are hidden or do not answer, or
// where one that is seen only in part may be it.
func missing(found []*Target, cfg Config, blind []Blind) (out []Server) {
	for _, b := range blind {
		switch b.Reason {
		case "hidepid", "stuck", "platform":
			return nil
		}
	}
	for _, s := range cfg.Servers {
		if s.Ignore || slices.ContainsFunc(found, func(t *Target) bool { return s.Match.matches(t) || s.Match.mayMatch(t) }) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// distinguish makes names differ: the base folder's name is added to those that
// clash, then a number. A name from the settings stays.
func distinguish(ts []*Target, fixed map[*Target]bool) {
	count := map[string]int{}
	for _, t := range ts {
		count[t.Name]++
	}
	taken := map[string]bool{}
	for i, t := range ts {
		if fixed[t] && !taken[t.Name] {
			taken[t.Name] = true
			continue
		}
		if count[t.Name] < 2 {
			continue
		}
		folder := cmp.Or(t.Base, t.Process.Cwd)
		c := *t
		if base := path.Base(folder); folder != "" && base != "/" && base != "." {
			c.Name += "-" + labelName(base)
		}
		ts[i] = &c
	}
	taken = map[string]bool{}
	for i, t := range ts {
		name := t.Name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", t.Name, n)
		}
		if name != t.Name {
			c := *t
			c.Name = name
			ts[i] = &c
		}
		taken[name] = true
	}
}

// key is what stays the same of a target when its process is another: the base
// folder of a server, main class and working directory of any other JVM. A
// root of its own (a container) makes no difference, since it is another with
// each start.
func (t *Target) key() string {
	if t.Kind == JVM {
		return strings.Join([]string{string(t.Kind), t.Process.MainClass, t.Process.Cwd}, "\x00")
	}
	return strings.Join([]string{string(t.Kind), t.Base}, "\x00")
}
