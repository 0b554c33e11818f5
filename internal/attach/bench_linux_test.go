package attach

import (
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
)

// BenchmarkDump2000 takes thread dumps of 2,000 threads, and jcmd takes its own
// in turn. What is reported: CPU time of each client, and how long the JVM's
// safepoints stopped it, by its own counters; medians. Bars: the client's CPU at
// most 1/30 of jcmd's on JDK 17; on JDK 25 a pause of at most half of jcmd's.
func BenchmarkDump2000(b *testing.B) {
	for _, j := range jdks(b) {
		b.Run(fmt.Sprintf("JDK%d", j.Major), func(b *testing.B) {
			p := startJVM(b, j, compile(b, j), 2000, "-Xmx256m")
			x := targetOf(b, p.PID)
			client := quick()
			if _, err := client.ThreadDump(bg(b), x, ""); err != nil {
				b.Fatal(err)
			}
			var cpu, jcmdCPU, pause, jcmdPause []float64
			for b.Loop() {
				cpu0, pause0 := ownCPU(), stopped(b, x)
				if _, err := client.ThreadDump(bg(b), x, ""); err != nil {
					b.Fatal(err)
				}
				cpu1, pause1 := ownCPU(), stopped(b, x)
				cmd := exec.Command(j.Tool("jcmd"), fmt.Sprint(p.PID), "Thread.print")
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				cpu = append(cpu, cpu1-cpu0)
				pause = append(pause, pause1-pause0)
				jcmdCPU = append(jcmdCPU, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
				jcmdPause = append(jcmdPause, stopped(b, x)-pause1)
			}
			b.ReportMetric(median(cpu)*1000, "client-ms")
			b.ReportMetric(median(jcmdCPU)*1000, "jcmd-ms")
			b.ReportMetric(median(jcmdCPU)/median(cpu), "times-less-CPU")
			b.ReportMetric(median(pause)*1000, "pause-ms")
			b.ReportMetric(median(jcmdPause)*1000, "jcmd-pause-ms")
			b.ReportMetric(median(pause)/median(jcmdPause), "pause-ratio")
		})
	}
}

func ownCPU() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// stopped is how long safepoints have stopped the JVM since its start.
func stopped(b *testing.B, x Target) float64 {
	raw, err := hsperf.ReadFile(x.PerfPath, nil)
	if err != nil {
		b.Fatal(err)
	}
	d, err := hsperf.Decode(raw)
	if err != nil {
		b.Fatal(err)
	}
	ticks, ok1 := d.Long("sun.rt.safepointTime")
	hz, ok2 := d.Long("sun.os.hrt.frequency")
	if !ok1 || !ok2 {
		b.Fatal("no safepoint time")
	}
	return float64(ticks) / float64(hz)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
