package collectors

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/collectors/logdir"
	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/target"
	"github.com/shirou/gopsutil/v3/mem"
)

// findEvery is how often settings are judged again: what the disk and the
// folders say of them changes slowly.
const findEvery = time.Minute

// judge gathers what discovery and the rooms find fault with in a server's
// settings.
func (m *Monitor) judge(s *server, now time.Time) {
	if s.target == nil || !s.entry.Up || now.Before(s.judged.Add(findEvery)) {
		return
	}
	s.judged = now
	t := s.target
	s.findings = append([]target.Finding(nil), t.Findings...)
	add := func(id, detail string) {
		if id != "" {
			s.findings = append(s.findings, target.Finding{ID: id, Detail: detail})
		}
	}
	machine := jvm.Machine{Args: t.Process.Args, Major: t.JDK.Major}
	if v, err := mem.VirtualMemory(); err == nil {
		machine.Memory = v.Total
	}
	for _, w := range s.watches {
		if p, ok := w.poller.(*process.Poller); ok {
			// What its cgroup and its affinity leave of the machine.
			w.set.Lock()
			machine.Limit, machine.Cores = p.Limits()
			w.set.Unlock()
		}
	}
	for _, f := range jvm.Findings(machine) {
		add(f.ID, f.Detail)
	}
	for _, l := range t.AppLogs {
		if l.Role == "primary" && t.Kind == target.Tomcat {
			add(logdir.FindCatalinaOut(l.Path, namesIn(filepath.Join(t.Process.Root, filepath.Dir(l.Path))), false))
		}
	}
	for _, l := range t.AccessLogs {
		add(logdir.FindAccessLog(l.Name, l.Rotatable, l.MaxDays))
	}
	for _, w := range s.watches {
		p, ok := w.poller.(*logdir.Poller)
		if !ok {
			continue
		}
		w.set.Lock()
		for _, place := range p.Places() {
			if place.Dir.Kind == logdir.Logs {
				add(logdir.FindSystemDisk(place.Dir.Name, place.Mountpoint))
			}
			if place.Dir.Kind == logdir.HeapDump {
				add(logdir.FindHeapDump(place.Dir.Name, true, maxHeap(t.Process.Args), place.Avail))
			}
		}
		w.set.Unlock()
	}
}

// namesIn lists a folder, within reason.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(10_000)
	return names
}

// maxHeap is -Xmx in bytes, or 0.
func maxHeap(args []string) int64 {
	for i := len(args) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(args[i], "-Xmx"); ok {
			return jvm.ParseSize(v)
		}
	}
	return 0
}
