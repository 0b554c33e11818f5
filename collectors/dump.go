package collectors

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// What is kept of thread dumps that alerts asked for.
const (
	keptDumps     = 20
	keptDumpBytes = 64 << 20
)

// ErrAttachOff is why no dump is taken where the settings don't allow it.
var ErrAttachOff = errors.New("the settings don't allow it: set jvm.attach to on")

// AttachTo is what the attach client has to know of a server.
func AttachTo(t *target.Target) attach.Target {
	return attach.Target{PID: t.Process.PID, StartTicks: t.Process.StartTicks, NSPID: t.Process.NSPID, Root: t.Process.Root, PerfPath: t.PerfData.Path}
}

// dumper takes thread dumps of one server for its room.
func (m *Monitor) dumper(t *target.Target) func(context.Context) ([]byte, *jvm.Blind, error) {
	return func(ctx context.Context) ([]byte, *jvm.Blind, error) {
		// Signals go to numbers as we know them, so the numbers must be from our own
		// view of the processes.
		if filepath.Clean(m.options.Procfs) != "/proc" {
			return nil, &jvm.Blind{Source: "jvm", Reason: "foreign_procfs", Detail: "the processes are seen through " + m.options.Procfs + ", and their numbers there are not those of /proc: no JVM is attached to"}, nil
		}
		b, err := m.attach.ThreadDump(ctx, AttachTo(t), "")
		var refused attach.Refusal
		if !errors.As(err, &refused) {
			return b, nil, err
		}
		switch refused {
		case attach.Gone, attach.TooYoung, attach.TooSoon:
			return nil, nil, err
		}
		sentence, needs := refused.Detail()
		return nil, &jvm.Blind{Source: "jvm", Reason: "attach_" + string(refused), Detail: "no thread dump: " + sentence, Needs: needs}, nil
	}
}

// KeepDump takes one thread dump of a server for an alert and keeps it below
// the storage path: the summary, then the whole dump, compressed. The oldest
// ones go. It needs attach: on; the number of threads is no limit here, since
// somebody asked.
func (m *Monitor) KeepDump(ctx context.Context, server, alert string, now time.Time) (path string, err error) {
	m.mu.Lock()
	s, on := m.servers[server], m.cfg.JVM.Attach
	var t *target.Target
	if s != nil && s.entry.Up {
		t = s.target
	}
	m.mu.Unlock()
	switch {
	case !on:
		return "", fmt.Errorf("thread dump of %s: %w", server, ErrAttachOff)
	case t == nil:
		return "", fmt.Errorf("thread dump of %s: no such server is up", server)
	}
	raw, blind, err := m.dumper(t)(ctx)
	if err == nil && blind != nil {
		err = errors.New(blind.Detail)
	}
	if err != nil {
		return "", fmt.Errorf("thread dump of %s: %w", server, err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprintf(z, "Thread dump of %s at %s for the alert %s\n\n", server, now.UTC().Format(time.RFC3339), alert)
	if d, err := jvm.ParseDump(raw); err == nil {
		d.WriteSummary(z)
	}
	z.Write([]byte("\n"))
	z.Write(raw)
	if err := z.Close(); err != nil {
		return "", err
	}
	dir := filepath.Join(m.options.Storage, "dumps")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep a thread dump: %w", err)
	}
	path = filepath.Join(dir, fmt.Sprintf("%s-%s-%s.txt.gz", now.UTC().Format("20060102T150405.000Z"), fileWord(server), fileWord(alert)))
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		os.Remove(path) // half a dump is worth less than the room it takes
		return "", fmt.Errorf("keep a thread dump: %w", err)
	}
	return path, pruneDumps(dir)
}

// fileWord makes part of a file name of what may be anything.
func fileWord(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 60)]
}

// pruneDumps removes the oldest dumps until number and size are in bounds. The
// newest one stays in any case.
func pruneDumps(dir string) error {
	entries, err := os.ReadDir(dir) // by name, which begins with the time
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".txt.gz") })
	var size int64
	for i := range len(entries) {
		e := entries[len(entries)-1-i]
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		if i > 0 && (i >= keptDumps || size > keptDumpBytes) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
