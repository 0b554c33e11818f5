//go:build !linux

package target

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/process"
)

// A Scanner finds the JVMs of this machine. It is used by one goroutine.
//
// Outside of Linux it is compiled and has not been run. It finds JVMs by the
// name of their program, and their settings by the command line: there are no
// open descriptors, no hsperfdata of another user, no namespaces.
type Scanner struct {
	cfg     Config
	known   map[int]*known
	left    []*Target
	missing []Server
}

type known struct {
	created int64
	target  *Target
}

// New makes a Scanner.
func New(cfg Config) *Scanner { return &Scanner{cfg: cfg, known: map[int]*known{}} }

// LeftOut are the targets of the last Scan that the settings leave out.
func (s *Scanner) LeftOut() []*Target { return s.left }

// Missing are the servers that the settings list and that the last Scan did not
// see run.
func (s *Scanner) Missing() []Server { return s.missing }

// Blind is what can't be seen of the machine as a whole.
func (s *Scanner) Blind() []Blind {
	return []Blind{{Source: "target", Reason: "platform", Needs: "Linux",
		Detail: "on this system JVMs are found by the name of their program only, and their open files, hsperfdata and ports are not looked at"}}
}

// Boot is not known here; start times are wall time and tell boots apart.
func (s *Scanner) Boot() string { return "" }

// Scan looks at the machine.
func (s *Scanner) Scan(ctx context.Context, now time.Time) ([]*Target, error) {
	ps, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []*Target
	parents := map[int]int{}
	alive := map[int]bool{}
	for _, p := range ps {
		name, err := p.NameWithContext(ctx)
		if err != nil || !javaName(name) {
			continue
		}
		pid := int(p.Pid)
		created, err := p.CreateTimeWithContext(ctx) // milliseconds
		if err != nil {
			continue
		}
		alive[pid] = true
		if parent, err := p.PpidWithContext(ctx); err == nil {
			parents[pid] = int(parent)
		}
		k := s.known[pid]
		if k == nil || k.created != created {
			k = &known{created: created, target: s.build(ctx, p, created)}
			s.known[pid] = k
		}
		found = append(found, k.target)
	}
	for pid := range s.known {
		if !alive[pid] {
			delete(s.known, pid)
		}
	}
	s.missing = missing(found, s.cfg, s.Blind())
	found, s.left = settle(found, parents, s.cfg)
	return found, nil
}

func javaName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(filepath.Base(name)), ".exe")
	return name == "java" || name == "javaw" || strings.HasPrefix(name, "tomcat")
}

func (s *Scanner) build(ctx context.Context, p *process.Process, created int64) *Target {
	v := &seen{pid: int(p.Pid), nspid: int(p.Pid), start: uint64(created), started: time.UnixMilli(created),
		w: &world{access: access{root: "/"}}, fdsDenied: true}
	v.perf.reason = "platform"
	v.cmdline, _ = p.CmdlineSliceWithContext(ctx)
	v.exe, _ = p.ExeWithContext(ctx)
	v.cwd, _ = p.CwdWithContext(ctx)
	v.cwd = filepath.ToSlash(v.cwd)
	return build(v)
}
