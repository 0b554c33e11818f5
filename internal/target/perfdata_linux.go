package target

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
	"github.com/jvm-sidecar/sidecar/internal/root"
	"golang.org/x/sys/unix"
)

// Which hsperfdata file is whose.

// perfdata finds /tmp/hsperfdata_USER/NSPID beneath the target's root. The
// user's name may mean nothing outside of a container, so every such folder is
// looked at; the file must belong to the process' user and be no older than it.
func (s *reader) perfdata(v *seen) {
	if !root.HasOpenat2() && !root.WalkAllowed() {
		v.perf.reason = "no_openat2"
		return
	}
	v.perf.reason = "not_found"
	for _, n := range v.w.list("/tmp", 100_000) {
		if !strings.HasPrefix(n, "hsperfdata_") {
			continue
		}
		name := "/tmp/" + n + "/" + strconv.Itoa(v.nspid)
		f, err := root.Open(v.w.root, name)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				v.perf.reason = "no_permission"
			}
			continue
		}
		ok := s.perfFile(v, f)
		f.Close()
		if ok {
			v.perf.path, v.perf.reason = path.Join(v.w.root, name), ""
			return
		}
	}
}

func (s *reader) perfFile(v *seen, f *os.File) bool {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Size > hsperf.MaxSize {
		return false
	}
	if int(st.Uid) != v.status.uid {
		return false
	}
	data, err := hsperf.Read(f, int(st.Size), s.perf)
	if err != nil {
		v.perf.reason = "unreadable"
		return false
	}
	s.perf = data
	d, err := hsperf.Decode(data)
	if err != nil {
		v.perf.reason = "unreadable"
		return false
	}
	text := func(k string) string { t, _ := d.String(k); return strings.Clone(t) }
	p := &v.perf
	p.vmArgs, p.javaCommand = text("java.rt.vmArgs"), text("sun.rt.javaCommand")
	p.version, p.vendor, p.vm = text("java.property.java.version"), text("java.property.java.vm.vendor"), text("java.property.java.vm.name")
	p.dev, p.ino = uint64(st.Dev), st.Ino
	if ms, ok := d.Long("sun.rt.createVmBeginTime"); ok {
		p.begin = time.UnixMilli(ms)
	}
	p.mapped = v.maps.perfdata != ""
	return true
}

// onePerfOwner gives an hsperfdata file that several processes claim (two
// containers with a shared /tmp, pid 1 in both) to the one it is of: the one
// that maps such a file, else the one that began next before the counters did.
func onePerfOwner(ts []*Target, ps []*process) []*Target {
	type file struct{ dev, ino uint64 }
	owner := map[file]int{}
	for i, p := range ps {
		if p.last.target.PerfData.Path == "" {
			continue
		}
		f := file{p.last.perf.dev, p.last.perf.ino}
		j, taken := owner[f]
		if !taken || ownsMore(p, ps[j]) {
			owner[f] = i
		}
	}
	for i, p := range ps {
		if p.last.target.PerfData.Path == "" || owner[file{p.last.perf.dev, p.last.perf.ino}] == i {
			continue
		}
		c := *p.last.target
		c.PerfData = PerfData{Reason: "another_jvms"}
		c.JDK = JDK{}
		c.Blind = append(slices.Clone(c.Blind), Blind{Source: "jvm", Reason: "no_perfdata", Detail: perfReason("another_jvms")})
		ts[i] = &c
	}
	return ts
}

func ownsMore(a, b *process) bool {
	if a.last.perf.mapped != b.last.perf.mapped {
		return a.last.perf.mapped
	}
	return distance(a) < distance(b)
}

func distance(p *process) time.Duration {
	return p.last.perf.begin.Sub(p.last.target.Process.Started).Abs()
}
