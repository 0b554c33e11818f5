package collectors

import (
	"fmt"
	"os"
	"path"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/collectors/logdir"
	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/root"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// What internal/target knows of a server reaches the rooms here, as parameters.

func watchProcess(m *Monitor, t *target.Target) *watch {
	cfg := m.cfg.Process
	cfg.Root, cfg.PID, cfg.StartTicks, cfg.Kind = m.options.Procfs, t.Process.PID, t.Process.StartTicks, string(t.Kind)
	for _, e := range t.Executors {
		p := process.Pool{Prefix: e.NamePrefix, Max: e.MaxThreads, Virtual: e.Virtual}
		for _, c := range t.Connectors {
			if c.Executor == e.Name {
				p.Ports = append(p.Ports, c.Port)
			}
		}
		cfg.Pools = append(cfg.Pools, p)
	}
	for _, c := range t.Connectors {
		if c.Executor == "" && c.ThreadPrefix != "" {
			cfg.Pools = append(cfg.Pools, process.Pool{Prefix: c.ThreadPrefix, Max: c.MaxThreads, Ports: []int{c.Port}})
		}
		cfg.Connectors = append(cfg.Connectors, process.Connector{
			Port: c.Port, Address: c.Address, Protocol: c.Protocol, TLS: c.TLS, Executor: c.Executor,
			AcceptCount: c.AcceptCount, MaxConnections: c.MaxConnections, MaxThreads: c.MaxThreads,
		})
	}
	set := metric.ForTarget(t.Name)
	p := process.New(set, cfg)
	return &watch{set: set, poller: p, blind: func() []target.Blind { return blindOf(p.Blind()) }}
}

func watchJVM(m *Monitor, t *target.Target) *watch {
	cfg := m.cfg.JVM
	cfg.PerfPath, cfg.NoPerf, cfg.Root = t.PerfData.Path, t.PerfData.Reason, m.options.Procfs
	cfg.PID, cfg.StartTicks, cfg.UID, cfg.CheckOwner = t.Process.PID, t.Process.StartTicks, t.Process.UID, true
	cfg.Dump = m.dumper(t)
	set := metric.ForTarget(t.Name)
	p := jvm.New(set, cfg)
	return &watch{set: set, poller: p, blind: func() []target.Blind { return blindOf(p.Blind()) }}
}

func watchLogDir(m *Monitor, t *target.Target) *watch {
	cfg := m.cfg.LogDir
	cfg.Root, cfg.Proc, cfg.PID, cfg.UID = t.Process.Root, m.options.Procfs, t.Process.PID, t.Process.UID
	cfg.Dirs = append(logDirs(t), cfg.Dirs...)
	set := metric.ForTarget(t.Name)
	p := logdir.New(set, cfg)
	return &watch{set: set, poller: p, blind: func() (out []target.Blind) {
		for _, b := range p.Blind() {
			out = append(out, target.Blind{Source: "logdir", Reason: b.Reason, Detail: b.What + ": " + b.Detail, Needs: b.Needs})
		}
		return out
	}}
}

// watchDumps looks for what a dying JVM leaves in its working directory. It
// stays when the process is gone, because only then such a file is whole.
func watchDumps(m *Monitor, t *target.Target) *watch {
	set := metric.ForTarget(t.Name)
	open := func() (*os.File, error) { return root.OpenDir(t.Process.Root, t.Process.Cwd) }
	return &watch{set: set, poller: applog.NewDumps(set, t.Process.Cwd, open), stays: true}
}

// logDirs are the folders a server writes into.
func logDirs(t *target.Target) (dirs []logdir.Dir) {
	seen := map[string]bool{}
	add := func(dir string, kind logdir.Kind) {
		if dir != "" && !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, logdir.Dir{Name: dir, Path: dir, Kind: kind})
		}
	}
	for _, l := range t.AccessLogs {
		add(l.Folder(), logdir.Logs)
	}
	for _, l := range t.AppLogs {
		add(l.Folder(), logdir.Logs)
	}
	for _, l := range t.GCLogs {
		add(l.Folder(), logdir.GCLog)
	}
	if t.HeapDump != "" {
		dir := t.HeapDump
		if path.Ext(dir) == ".hprof" {
			dir = path.Dir(dir)
		}
		add(dir, logdir.HeapDump)
	}
	add(t.Base, logdir.Base)
	return dirs
}

// blinder is each room's own word for what it can't see; rooms don't know
// internal/target.
type blinder interface {
	process.Blind | jvm.Blind
}

func blindOf[B blinder](list []B) []target.Blind {
	out := make([]target.Blind, len(list))
	for i, b := range list {
		out[i] = target.Blind(b)
	}
	return out
}

func gcLogs(m *Monitor, t *target.Target) (out []wanted) {
	for _, l := range t.GCLogs {
		out = append(out, wanted{log: l.LogFile, from: follow.Start, make: func(st *stream) error {
			st.set = metric.ForTarget(t.Name)
			o := gclog.New(st.set, m.cfg.GCLog)
			m.hearGC(st, t, o)
			st.observer = o
			st.explain = func(out *status.Explained) { explainGC(o, out) }
			return nil
		}})
	}
	if len(out) > 0 || !t.GCLogOnStdout() {
		return out
	}
	// The log goes to standard output. Its lines are told from the application's
	// in the file that catches it, which is then read twice: all it costs in a
	// storm of records is finding that a line begins with a tab.
	for _, l := range t.AppLogs {
		if l.Role == applog.Primary && !l.Incomplete {
			out = append(out, wanted{log: l.LogFile, again: true, make: func(st *stream) error {
				cfg := m.cfg.GCLog
				cfg.Mixed = true
				st.set = metric.ForTarget(t.Name)
				o := gclog.New(st.set, cfg)
				st.observer = o
				st.explain = func(out *status.Explained) { explainGC(o, out) }
				return nil
			}})
		}
	}
	return out
}

func accessLogs(m *Monitor, t *target.Target) (out []wanted) {
	for _, l := range t.AccessLogs {
		if !l.Counted {
			continue // another valve logs the same requests
		}
		out = append(out, wanted{log: l.LogFile, make: func(st *stream) error {
			zone, err := m.cfg.AccessLog.Location()
			if err != nil {
				return err
			}
			matcher, err := accesslog.Compile(l.Format, l.Pattern, accesslog.Options{
				ServerKind: string(t.Kind), ServerVersion: t.Version, DurationUnit: m.cfg.AccessLog.DurationUnit, Zone: zone,
			})
			if err != nil {
				return err
			}
			st.set = metric.ForTarget(t.Name)
			st.unbuffered = !l.Buffered
			o := accesslog.New(st.set, matcher, m.cfg.AccessLog)
			o.SetClock(time.Now)
			m.hearAccess(st, t, o)
			st.observer = o
			st.explain = func(out *status.Explained) { explainAccess(o, out) }
			st.detail = func() string {
				detail := fmt.Sprintf("%s: %s", matcher.Format(), matcher.Pattern())
				if advice := matcher.Advice(); advice != "" {
					detail += ". " + advice
				}
				return detail
			}
			return nil
		}})
	}
	return out
}

func appLogs(m *Monitor, t *target.Target) (out []wanted) {
	for _, l := range t.AppLogs {
		out = append(out, wanted{log: l.LogFile, make: func(st *stream) error {
			cfg := m.cfg.AppLog
			cfg.Role = l.Role
			for _, c := range t.Connectors {
				cfg.Ports = append(cfg.Ports, c.Port)
			}
			st.set = metric.ForTarget(t.Name)
			st.role = l.Role
			o := applog.New(st.set, cfg)
			m.hearApp(st, t, o)
			st.observer = o
			st.detail, st.explain = o.Layout, func(out *status.Explained) {
				explainApp(o, out)
				if l.Role == applog.Copy { // the same records are in the primary
					out.Patterns = nil
				}
			}
			return nil
		}})
	}
	return out
}
