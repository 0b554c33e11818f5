package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// TestThreeWays holds three accounts of the same collections against each other,
// on every JDK here and every collector it has: the GC log followed while it is
// written, the JVM's own counters in hsperfdata, and the finished log read again
// by `sidecar replay`.
//
// The counters name collections by collector, the log by kind. What is a pause
// beside a cycle (remark and cleanup of G1) has a counter of its own, since
// JDK 14 at least. Shenandoah's counters count parts of cycles and are left out;
// there the second account is the safepoint log: each pause had its stop.
func TestThreeWays(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	if runtime.GOOS != "linux" {
		t.Skip("finds hsperfdata by Linux' paths")
	}
	ran := false
	for _, j := range lab.JDKs() {
		if j.Major < 17 {
			continue
		}
		ran = true
		classes := t.TempDir()
		if out, err := exec.Command(j.Tool("javac"), "-d", classes, "testdata/java/Churn.java").CombinedOutput(); err != nil {
			t.Fatalf("javac: %v\n%s", err, out)
		}
		for _, c := range []struct {
			name  string
			flags []string
			// counters are hsperfdata's collectors, each with the log's kinds.
			counters map[string][]string
		}{
			{"serial", []string{"-XX:+UseSerialGC"}, map[string][]string{"Copy": {"young"}, "MarkSweepCompact": {"full"}}},
			{"parallel", []string{"-XX:+UseParallelGC"}, map[string][]string{"PS Scavenge": {"young"}, "PS MarkSweep": {"full"}}},
			{"g1", []string{"-XX:+UseG1GC"}, map[string][]string{"G1 Young Generation": {"young", "mixed"}, "G1 Old Generation": {"full"}, "G1 Concurrent GC": {"remark", "cleanup"}}},
			{"zgc", []string{"-XX:+UseZGC"}, map[string][]string{"ZGC Pauses|ZGC Minor Pauses|ZGC Major Pauses": {"mark-start", "mark-end", "relocate-start"}}},
			{"shenandoah", []string{"-XX:+UseShenandoahGC"}, nil},
			{"shenandoah-generational", []string{"-XX:+UseShenandoahGC", "-XX:+UnlockExperimentalVMOptions", "-XX:ShenandoahGCMode=generational"}, nil},
		} {
			t.Run(fmt.Sprintf("%d/%s", j.Major, c.name), func(t *testing.T) {
				if exec.Command(j.Tool("java"), append(c.flags, "-Xmx96m", "-version")...).Run() != nil {
					t.Skip("this JDK has no such collector")
				}
				threeWays(t, j, classes, c.flags, c.counters)
			})
		}
	}
	if !ran {
		_, err := lab.AnyJDK(17)
		lab.Need(t, err)
	}
}

func threeWays(t *testing.T, j lab.JDK, classes string, flags []string, counters map[string][]string) {
	log := filepath.Join(t.TempDir(), "gc.log")
	args := append(flags, "-Xmx96m", "-Xlog:gc*,safepoint:file="+log+":uptime,level,tags:filecount=0", "-cp", classes, "Churn")
	cmd := exec.Command(j.Tool("java"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		stdin.Close()
		killer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer killer.Stop()
		cmd.Wait()
	})
	defer end()

	// The first account: the log as it is written.
	set := metric.ForTarget("live")
	ctx, stop := context.WithCancel(context.Background())
	f := follow.New(follow.Spec{Name: "gc.log", Path: log, From: follow.Start, Lock: set}, gclog.New(set, gclog.DefaultConfig()))
	var following sync.WaitGroup
	following.Go(func() { f.Run(ctx, follow.NewPacer(1), func(error) {}) })
	defer func() { stop(); following.Wait(); f.Close() }()

	killer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer killer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "READY" {
	}
	if lines.Text() != "READY" {
		t.Fatalf("the JVM ended early: %v", cmd.Args)
	}
	perf, _ := filepath.Glob(fmt.Sprintf("%s/hsperfdata_*/%d", os.TempDir(), cmd.Process.Pid))
	if len(perf) != 1 && counters != nil {
		t.Fatalf("hsperfdata: found %v", perf)
	}

	// The second: hsperfdata, which is read until both stand still at the same
	// figures, since a concurrent cycle may still be at work.
	var live, own map[string]account
	agree := func() string {
		live = accounts(set, "gclog_pause_seconds", "kind")
		if counters == nil {
			return ""
		}
		own = hsperf(t, perf[0], cmd.Process.Pid)
		for names, kinds := range counters {
			var a, b account
			for _, n := range strings.Split(names, "|") {
				a = a.plus(own[n])
			}
			for _, k := range kinds {
				b = b.plus(live[k])
			}
			if a.count != b.count {
				return fmt.Sprintf("%s counts %v, the log %v of %v", names, a.count, b.count, kinds)
			}
			// The counters' clock begins and ends elsewhere in the pause.
			if math.Abs(a.seconds-b.seconds) > .25*b.seconds+.02 {
				return fmt.Sprintf("%s took %.4f s, in the log %.4f s", names, a.seconds, b.seconds)
			}
		}
		return ""
	}
	deadline := time.Now().Add(20 * time.Second)
	for differ := "x"; differ != ""; {
		if differ = agree(); differ != "" && time.Now().After(deadline) {
			t.Fatal(differ)
		}
		time.Sleep(50 * time.Millisecond)
	}
	end()

	// The third: the finished log, read again. The JVM may have collected at its
	// end, so the first account is taken when it has read to there.
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for {
		set.Lock()
		read := f.Ledger().Read
		set.Unlock()
		if read >= int64(len(data)) {
			break
		}
		if time.Now().After(deadline.Add(20 * time.Second)) {
			t.Fatalf("%d of %d bytes were read", read, len(data))
		}
		time.Sleep(20 * time.Millisecond)
	}
	var stdout, stderr bytes.Buffer
	if code := Main([]string{"replay", "--json", log}, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("replay: %s", stderr.String())
	}
	var again struct {
		Pauses struct {
			Count, Seconds float64
			ByKind         map[string]float64 `json:"by_kind"`
		}
		Nested       float64
		Stopped      struct{ Count, Seconds float64 }
		Unrecognised float64 `json:"unrecognised_lines"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	total := account{}
	for _, a := range accounts(set, "gclog_pause_seconds", "kind") {
		total = total.plus(a)
	}
	if total.count != again.Pauses.Count-again.Nested || math.Abs(total.seconds-again.Pauses.Seconds) > 1e-6 {
		t.Errorf("followed: %v pauses of %.6f s, replayed: %v of %.6f s", total.count, total.seconds, again.Pauses.Count-again.Nested, again.Pauses.Seconds)
	}
	for kind, a := range accounts(set, "gclog_pause_seconds", "kind") {
		if again.Nested == 0 && again.Pauses.ByKind[kind] != a.count {
			t.Errorf("%s: followed %v, replayed %v", kind, a.count, again.Pauses.ByKind[kind])
		}
	}
	stops := account{}
	for _, a := range accounts(set, "gclog_stopped_seconds", "operation") {
		stops = stops.plus(a)
	}
	if stops.count != again.Stopped.Count || math.Abs(stops.seconds-again.Stopped.Seconds) > 1e-6 {
		t.Errorf("stopped: followed %+v, replayed %+v", stops, again.Stopped)
	}
	if again.Unrecognised > 0 {
		t.Errorf("%v lines are not recognised", again.Unrecognised)
	}
	if counters == nil && (stops.count < total.count || stops.seconds < total.seconds*.95) {
		t.Errorf("%v stops of %.4f s can't hold %v pauses of %.4f s", stops.count, stops.seconds, total.count, total.seconds)
	}
	if total.count < 4 {
		t.Errorf("only %v pauses: nothing was tested", total.count)
	}
	t.Logf("followed and replayed %v pauses, %.6f s, %v stops; hsperfdata %v", total.count, total.seconds, stops.count, own)
}

// account is a count and its seconds.
type account struct{ count, seconds float64 }

func (a account) plus(b account) account { return account{a.count + b.count, a.seconds + b.seconds} }

// accounts are a family's counts and sums by one label.
func accounts(set *metric.Set, family, label string) map[string]account {
	set.Lock()
	defer set.Unlock()
	g := metric.NewGathering()
	g.Add(set)
	out := map[string]account{}
	for _, f := range g.Snapshot(time.Time{}).Families {
		if f.GetName() != family {
			continue
		}
		for _, m := range f.Metric {
			a := account{float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()}
			if s := m.GetSummary(); s != nil {
				a = account{float64(s.GetSampleCount()), s.GetSampleSum()}
			}
			for _, l := range m.Label {
				if l.GetName() == label {
					out[l.GetValue()] = out[l.GetValue()].plus(a)
				}
			}
		}
	}
	return out
}

func hsperf(t *testing.T, path string, pid int) map[string]account {
	t.Helper()
	set := metric.ForTarget("own")
	p := jvm.New(set, jvm.Config{PerfPath: path, Root: "/proc", PID: pid, UID: os.Getuid()})
	if err := p.Poll(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return accounts(set, "jvm_gc_collection_seconds", "gc")
}
