//go:build !windows

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// live follows the files for so many seconds, or until a line "stop" on
// standard input, and tells what came.
func live(args []string) {
	seconds, err := strconv.Atoi(args[0])
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	pacer := follow.NewPacer(0.5)
	var wg sync.WaitGroup
	fs := make([]*follow.Follower, len(args)-1)
	told := make([]func() string, len(fs))
	for i, p := range args[1:] {
		h, lock, tell := observer(p)
		told[i] = tell
		fs[i] = follow.New(follow.Spec{Name: p, Path: p, From: follow.Start, Lock: lock}, h)
		wg.Go(func() { fs[i].Run(ctx, pacer, func(err error) { fmt.Fprintln(os.Stderr, err) }) })
	}
	if seconds > 0 {
		time.Sleep(4 * time.Second) // until the pace is that of rest
		before := processCPU()
		time.Sleep(time.Duration(seconds) * time.Second)
		spent := processCPU() - before
		fmt.Printf("at rest: %.3f %% of a core\n", 100*spent.Seconds()/float64(seconds))
	} else {
		bufio.NewScanner(os.Stdin).Scan()
	}
	cancel()
	wg.Wait()
	for i, f := range fs[:min(len(fs), 2)] {
		l := f.Ledger()
		fmt.Printf("lines %d written %d read %d skipped %d lost %d lag %d gaps %v%s\n", l.Lines, l.Written, l.Read, l.Skipped, l.Lost, l.Lag, l.Gaps, told[i]())
	}
}

// observer is what the product would put behind a file of that name.
func observer(path string) (follow.Handler, sync.Locker, func() string) {
	set := metric.ForTarget("tomcat-8080")
	sum := func(f *metric.Family) func() string {
		return func() string {
			n := 0.0
			set.Each(f, func(_ []string, v float64) { n += v })
			return fmt.Sprintf(" %s %.0f", f.Name, n)
		}
	}
	switch filepath.Base(path) {
	case "access.log":
		m, err := accesslog.Compile(accesslog.FormatTomcat, `%h %l %u %t "%r" %s %b %D %F %I`, accesslog.Options{DurationUnit: "ms"})
		check(err)
		return accesslog.New(set, m, accesslog.DefaultConfig()), set, sum(accesslog.Requests)
	case "catalina.out":
		return applog.New(set, applog.DefaultConfig()), set, sum(applog.Lines)
	}
	return &counter{}, new(sync.Mutex), func() string { return "" }
}

// accessLine is the mean length of the access lines.
const accessLine = 128

// pour writes to the file in pieces of size, at rate bytes a second.
func pour(path string, more func([]byte) []byte, size int, rate float64, until time.Duration) int64 {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	check(err)
	defer f.Close()
	// One megabyte made beforehand and written again and again: making text
	// would cost more than what is measured.
	var b []byte
	for len(b) < 1<<20 {
		b = more(b)
	}
	start, total := time.Now(), int64(0)
	for time.Since(start) < until {
		due := int64(rate * time.Since(start).Seconds())
		for total < due && time.Since(start) < until {
			for at := 0; at < len(b); at += size {
				_, err := f.Write(b[at:min(at+size, len(b))])
				check(err)
			}
			total += int64(len(b))
		}
		time.Sleep(2 * time.Millisecond)
	}
	return total
}

// tableLive writes 130,000 access lines and 300 MB of storm a second, and takes
// the follower's CPU.
func tableLive(dir string, seconds int) {
	fmt.Printf("\nLive for %d s: 130,000 access lines/s and 300 MB/s of storm at once, parsed, GOMAXPROCS=1\n\n", seconds)
	fmt.Println("| writes of | MB written | cores, user | cores, user+sys | user s/GB | behind 1 s after the end | peak RSS MB |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	var perGB []float64
	for _, size := range []int{1 << 20, 8 << 10} {
		a, b := filepath.Join(dir, "access.log"), filepath.Join(dir, "catalina.out")
		os.Remove(a)
		os.Remove(b)
		c := self("live", "0", a, b)
		cmd := exec.Command(c[0], c[1:]...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		in, err := cmd.StdinPipe()
		check(err)
		var out limited
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		check(cmd.Start())
		time.Sleep(300 * time.Millisecond)
		s := newStorm()
		var wg sync.WaitGroup
		var total [2]int64
		span := time.Duration(seconds) * time.Second
		wg.Go(func() { total[0] = pour(a, newStorm().access, size, 130_000*accessLine, span) })
		wg.Go(func() { total[1] = pour(b, s.record, size, 300e6, span) })
		wg.Wait()
		time.Sleep(time.Second)
		in.Close()
		check(cmd.Wait())
		u := used(cmd, 0, out.text)
		fmt.Fprint(os.Stderr, out.text)
		var read, sum int64
		for _, l := range splitLines(out.text) {
			var lines, written, r int64
			if _, err := fmt.Sscanf(l, "lines %d written %d read %d", &lines, &written, &r); err == nil {
				read += r
			}
		}
		sum = total[0] + total[1]
		fmt.Printf("| %d KB | %.0f | %.3f | %.3f | %.3f | %.1f MB | %d |\n", size>>10, float64(sum)/1e6,
			u.user.Seconds()/float64(seconds), (u.user+u.sys).Seconds()/float64(seconds),
			u.user.Seconds()/float64(sum)*1e9, float64(sum-read)/1e6, u.rss/1024)
		perGB = append(perGB, u.user.Seconds()/float64(sum)*1e9)
		work := fmt.Sprintf("live in writes of %d KB: ", size>>10)
		bar(work+"user + system CPU", 0.25, (u.user+u.sys).Seconds()/float64(seconds), " cores")
		bar(work+"behind 1 s after the end", 0, float64(sum-read)/1e6, " MB")
		bar(work+"resident memory", 40, float64(u.rss)/1024, " MB")
		os.Remove(a)
		os.Remove(b)
	}
	bar("live: user CPU a byte in writes of 8 KB, times that of 1 MB", 1, perGB[1]/perGB[0], "")
}

type limited struct{ text string }

func (l *limited) Write(b []byte) (int, error) { l.text += string(b); return len(b), nil }

func splitLines(s string) (out []string) {
	sc := bufio.NewScanner(stringReader(s))
	for sc.Scan() {
		out = append(out, sc.Text())
	}
	return out
}

func processCPU() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
