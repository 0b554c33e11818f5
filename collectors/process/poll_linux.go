package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v3/common"
	gops "github.com/shirou/gopsutil/v3/process"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/procfs"
)

// world is what the Linux poller keeps between samples.
type world struct {
	dir     string // /proc/PID
	ctx     context.Context
	proc    *gops.Process
	task    taskReader
	open    bool // task.dir is open
	threads threadTable
	diag    sockDiag
	asked   remembered // connections of the serving ports
	cgroup  cgroup
	buf     []byte
	started float64 // Unix time, worked out once
	last    struct {
		at    time.Time
		ticks uint64
	}
	ports []uint16
	polls int
	// limits is what /proc/PID/limits said, read every limitsEvery polls.
	limits []byte
	named  string // the process' own name, which its first threads have too
}

func (w *world) init(cfg *Config) {
	w.dir = filepath.Join(cfg.Root, strconv.Itoa(cfg.PID))
	w.ctx = context.WithValue(context.Background(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: cfg.Root})
	w.proc = &gops.Process{Pid: int32(cfg.PID)}
	w.diag.fd = -1
	w.buf = make([]byte, 8<<10)
	for _, c := range cfg.Connectors {
		if c.Port > 0 && c.Port <= 0xffff {
			w.ports = append(w.ports, uint16(c.Port))
		}
	}
}

func (w *world) save(f *folder, s *saved) {
	t := &w.threads
	for n := range t.pools {
		s.Pools[f.labels[n]] = savedPool{Ticks: t.pools[n].ticks, Live: t.pools[n].live}
	}
	s.Voluntary, s.Involuntary, s.Delay = max(t.voluntary, t.floor[0]), max(t.involuntary, t.floor[1]), max(t.delay, t.floor[2])
}

func (w *world) load(s *saved) {
	w.threads.restored = s.Pools
	w.threads.floor = [3]uint64{s.Voluntary, s.Involuntary, s.Delay}
}

func (w *world) close() error {
	if w.open {
		syscall.Close(w.task.dir)
		w.open = false
	}
	w.threads.letGo()
	w.diag.close()
	return nil
}

// sample is all that one Poll has read, before it is written down.
type sample struct {
	stat     stat
	blind    []Blind
	usage    float64
	hasUsage bool
	cores    float64

	rss, vms, swap       float64
	hasMemory, hasSwap   bool
	fds, maxFDs, maxProc float64
	hasFDs, hasMaxFDs    bool
	hasMaxProc           bool
	read, written        float64
	hasIO                bool
	hasThreads           bool
	ports                map[uint16]*portFigures
	net                  netFigures
	cgroup               cgroupFigures
	stalls               []stallSample
}

type netFigures struct {
	overflows, drops, retransmits, rxDropped, txDropped float64
	hasListen, hasTCP, hasDev                           bool
	opens                                               uint64 // connections accepted, ever
	hasOpens                                            bool
}

func (p *Poller) poll(ctx context.Context, now time.Time) error {
	w := &p.world
	var s sample
	alive, err := p.identity(&s.stat)
	if !alive {
		p.sweep()
		w.close()
		var blind []Blind
		if err != nil {
			blind = []Blind{hidden(err)}
		}
		p.finish(blind, err == nil)
		return nil
	}
	if w.named == "" {
		// The bytes are only ours until the next file is read.
		w.named = string(s.stat.comm)
		p.folder.leader = w.named
	}
	var errs []error
	keep := func(err error) {
		if err != nil && !vanished(err) {
			errs = append(errs, err)
		}
	}
	keep(p.readSteady(&s, now))
	if ctx.Err() == nil {
		keep(p.readThreads(&s))
	}
	if ctx.Err() == nil {
		keep(p.readSockets(&s))
		s.stalls = p.judge(&s, now)
	}
	if ctx.Err() != nil {
		errs = append(errs, ctx.Err())
	}
	// The pid may have gone to another process while all this was read.
	var again stat
	if alive, _ := p.identity(&again); !alive {
		p.sweep()
		w.close()
		p.finish(nil, true)
		return nil
	}
	p.write(&s)
	p.finish(s.blind, false)
	return errors.Join(errs...)
}

// identity reads /proc/PID/stat and says whether it is still our process. An
// error means that it can't be seen, which is not the same as gone.
func (p *Poller) identity(st *stat) (bool, error) {
	w := &p.world
	b, err := w.file("stat")
	switch {
	case err == nil:
		if st.parse(b) && st.start == p.cfg.StartTicks && st.state != 'Z' && st.state != 'X' {
			return true, nil
		}
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, err
	case errors.Is(err, fs.ErrNotExist) && w.hidepid(p.cfg.PID):
		return false, fs.ErrPermission
	}
	return false, nil
}

// hidepid says whether the process lives although its folder is not shown:
// with hidepid=2 a signal 0 still tells a process of somebody else (EPERM) from
// none (ESRCH). Signal 0 is never delivered.
func (w *world) hidepid(pid int) bool {
	return strings.HasPrefix(w.dir, "/proc/") && errors.Is(syscall.Kill(pid, 0), syscall.EPERM)
}

func hidden(err error) Blind {
	return Blind{Source: "process", Reason: BlindHidden, Needs: "the same user as the server, root, or the group named by the gid= option of the /proc mount",
		Detail: fmt.Sprintf("the process lives but /proc does not show it (hidepid): %v", err)}
}

func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// file reads a file of the process into the poller's buffer, which grows to
// hold it.
func (w *world) file(name string) ([]byte, error) { return w.path(filepath.Join(w.dir, name)) }

func (w *world) path(path string) (b []byte, err error) {
	b, w.buf, err = procfs.Read(path, w.buf)
	return b, err
}

// limitsEvery is after how many polls limits are read anew: somebody has to set
// them (prlimit, a write to the cgroup) for them to change, and on a server at rest
// reading them each second would be a third of what its process costs to read.
const limitsEvery = 10

// readSteady reads what costs little and changes slowly.
func (p *Poller) readSteady(s *sample, now time.Time) error {
	w := &p.world
	var errs []error
	if w.started == 0 {
		if t, err := w.startTime(p.cfg.Root, s.stat.start); err == nil {
			w.started = t
		}
	}
	if m, err := w.proc.MemoryInfoWithContext(w.ctx); err == nil {
		s.rss, s.vms, s.hasMemory = float64(m.RSS), float64(m.VMS), true
	} else {
		errs = append(errs, fmt.Errorf("read memory of process %d: %w", p.cfg.PID, err))
	}
	if b, err := w.file("status"); err == nil {
		if kb, ok := number(b, "VmSwap:"); ok {
			s.swap, s.hasSwap = float64(kb)*1024, true
		}
		if list, ok := line(b, "Cpus_allowed_list:"); ok {
			s.cores = float64(cpuList(list))
		}
	}
	if w.polls%limitsEvery == 0 {
		b, err := w.file("limits")
		w.limits = append(w.limits[:0], b...)
		if err != nil {
			w.limits = nil
		}
	}
	w.polls++
	if b := w.limits; b != nil {
		if v, known, unlimited := softLimit(b, "Max open files"); known && !unlimited {
			s.maxFDs, s.hasMaxFDs = float64(v), true
		}
		if v, known, unlimited := softLimit(b, "Max processes"); known && !unlimited {
			s.maxProc, s.hasMaxProc = float64(v), true
		}
	}
	if n, err := w.countFDs(); err == nil {
		s.fds, s.hasFDs = float64(n), true
	} else if errors.Is(err, fs.ErrPermission) {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindFDs, Needs: "the same user as the server, or CAP_SYS_PTRACE",
			Detail: fmt.Sprintf("open descriptors of process %d: /proc/%d/fd may not be read", p.cfg.PID, p.cfg.PID)})
	}
	if io, err := w.proc.IOCountersWithContext(w.ctx); err == nil {
		s.read, s.written, s.hasIO = float64(io.ReadBytes), float64(io.WriteBytes), true
	} else if errors.Is(err, fs.ErrPermission) {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindIO, Needs: "the same user as the server, or CAP_SYS_PTRACE",
			Detail: fmt.Sprintf("disk bytes of process %d: /proc/%d/io may not be read", p.cfg.PID, p.cfg.PID)})
	}
	s.cgroup = w.cgroup.read(w, p.cfg.CgroupRoot)
	if q := s.cgroup.cpuLimit; q > 0 && (s.cores == 0 || q < s.cores) {
		s.cores = q
	}
	ticks := s.stat.user + s.stat.system
	if !w.last.at.IsZero() && s.cores > 0 && ticks >= w.last.ticks {
		if dt := now.Sub(w.last.at).Seconds(); dt > 0 {
			s.usage, s.hasUsage = float64(ticks-w.last.ticks)/ticksPerSecond/dt/s.cores, true
		}
	}
	w.last.at, w.last.ticks = now, ticks
	return errors.Join(errs...)
}

// startTime is the boot time plus the start in ticks. The boot time that
// /proc/stat shows moves when the clock is set, so it is read once.
func (w *world) startTime(root string, start uint64) (float64, error) {
	b, err := w.path(filepath.Join(root, "stat"))
	if err != nil {
		return 0, err
	}
	boot, ok := number(b, "btime ")
	if !ok {
		return 0, fmt.Errorf("no btime in %s/stat", root)
	}
	return float64(boot) + float64(start)/ticksPerSecond, nil
}

// countFDs counts the open descriptors. Since Linux 6.2 the size of the folder
// is their number; before that its entries are counted.
func (w *world) countFDs() (int, error) {
	path := filepath.Join(w.dir, "fd")
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	// Whoever may not read the folder gets its size all the same, but let the
	// kernel say that it may not.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	if st.Size > 0 && strings.HasPrefix(w.dir, "/proc/") {
		return int(st.Size), nil
	}
	r := taskReader{dir: fd}
	list, err := r.list(nil)
	return len(list), err
}

// readThreads samples the threads by pool.
func (p *Poller) readThreads(s *sample) error {
	w := &p.world
	if !w.open {
		fd, err := syscall.Open(filepath.Join(w.dir, "task"), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open threads of process %d: %w", p.cfg.PID, err)
		}
		w.task.dir, w.open = fd, true
		w.threads.folder = p.folder
	}
	if err := w.threads.sample(&w.task, p.cfg.MaxThreadReads); err != nil {
		w.close()
		return fmt.Errorf("list threads of process %d: %w", p.cfg.PID, err)
	}
	w.threads.slow(&w.task)
	s.hasThreads = true
	if w.threads.nameless {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindNames,
			Detail: "all native threads have one name: JDK 6, 7 and early updates of 8 give them none, so threads can't be told apart by pool"})
	}
	for _, sentence := range p.folder.merged {
		s.blind = append(s.blind, Blind{Source: "process", Reason: BlindMerged, Detail: sentence})
	}
	for _, pool := range p.cfg.Pools {
		if pool.Virtual {
			s.blind = append(s.blind, Blind{Source: "process", Reason: BlindVirtual,
				Detail: "pool " + pool.label() + " runs virtual threads, which have no native thread: only their carriers are seen (ForkJoinPool)"})
		}
	}
	return nil
}

// write puts the figures down under the Set's lock.
func (p *Poller) write(s *sample) {
	set := p.set
	set.Lock()
	defer set.Unlock()
	set.Begin()
	defer set.Sweep()
	gauge := func(f *metric.Family, has bool, v float64, labels ...string) {
		if has {
			set.Gauge(f, labels...).Set(v)
		}
	}
	count := func(f *metric.Family, has bool, v float64, labels ...string) {
		if has {
			set.Counter(f, labels...).Set(v)
		}
	}
	st := &s.stat
	count(cpuSeconds, true, float64(st.user+st.system)/ticksPerSecond)
	count(cpuMode, true, float64(st.user)/ticksPerSecond, "user")
	count(cpuMode, true, float64(st.system)/ticksPerSecond, "system")
	count(pageFaults, true, float64(st.majorFaults), "major")
	count(pageFaults, true, float64(st.minorFaults), "minor")
	gauge(cpuUsage, s.hasUsage, s.usage)
	gauge(cpuLimit, s.cores > 0, s.cores)
	gauge(processThreads, st.threads > 0, float64(st.threads))
	gauge(startTime, p.world.started > 0, p.world.started)
	gauge(residentMemory, s.hasMemory, s.rss)
	gauge(virtualMemory, s.hasMemory, s.vms)
	gauge(swapMemory, s.hasSwap, s.swap)
	gauge(openFDs, s.hasFDs, s.fds)
	gauge(maxFDs, s.hasMaxFDs, s.maxFDs)
	gauge(maxProcesses, s.hasMaxProc, s.maxProc)
	count(diskBytes, s.hasIO, s.read, "read")
	count(diskBytes, s.hasIO, s.written, "write")
	p.writeThreads(s, count, gauge)
	p.writeSockets(s, count, gauge)
	s.cgroup.write(count, gauge)
}

// put writes one figure when there is one.
type put func(f *metric.Family, has bool, v float64, labels ...string)

func (p *Poller) writeThreads(s *sample, count, gauge put) {
	t := &p.world.threads
	for _, pool := range p.cfg.Pools {
		gauge(poolMax, pool.Max > 0, float64(pool.Max), pool.label())
	}
	count(contextSwitches, s.hasThreads, float64(max(t.voluntary, t.floor[0])), "voluntary")
	count(contextSwitches, s.hasThreads, float64(max(t.involuntary, t.floor[1])), "involuntary")
	count(runDelay, s.hasThreads, float64(max(t.delay, t.floor[2]))/1e9)
	if !s.hasThreads || t.nameless {
		return
	}
	gauge(poolSampled, true, t.sampled)
	for n := range t.pools {
		f := &t.pools[n]
		label := p.folder.labels[n]
		fromSettings := n > 0 && n < p.folder.base && !p.hiddenByMerge(label)
		// A pool that the settings name has 0 threads when none is there; any other exists
		// only by its threads.
		if f.threads > 0 || fromSettings {
			gauge(poolThreads, true, float64(f.threads), label)
			for state, n := range f.states {
				gauge(poolStates, n > 0 || state != stateOther, float64(n), label, stateNames[state])
			}
		}
		count(poolCPU, f.threads > 0 || f.ticks > 0 || fromSettings, f.ticks/ticksPerSecond, label)
	}
}

// hiddenByMerge says whether the threads of this pool are counted under a
// merged label, so that its own 0 would be a lie.
func (p *Poller) hiddenByMerge(label string) bool {
	for n := range p.folder.merged {
		if strings.HasPrefix(label, p.folder.labels[n]) {
			return true
		}
	}
	return false
}
