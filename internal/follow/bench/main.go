//go:build !windows

// Command bench holds the follower against its peers, as whole processes on one
// generated file, and prints the table of docs/benchmarks.md.
//
//	go run ./internal/follow/bench            all tables, some minutes
//	go run ./internal/follow/bench -only file -bytes 1000000000
//
// CPU is user and system time of the whole process as the kernel accounts it
// after it ended. Commands take turns; medians of the rounds are printed. What
// counts are ratios within one run and user CPU: the kernel's copy out of the
// page cache alone costs ten times more or less with the state of the memory.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nxadm/tail"

	"github.com/jvm-sidecar/sidecar/internal/follow"
)

// counter is the observer: it looks at no byte of the line.
type counter struct{ lines, bytes int64 }

func (c *counter) Observe(line []byte) bool { c.lines++; c.bytes += int64(len(line)) + 1; return false }
func (c *counter) Idle(time.Time)           {}
func (c *counter) Gap()                     {}

// blocks counts lines as the application log's room takes them in a storm.
type blocks struct{ counter }

func (c *blocks) ObserveBlock(b []byte) (taken, lines int, open bool) {
	lines = bytes.Count(b, []byte{'\n'})
	c.lines += int64(lines)
	c.bytes += int64(len(b))
	return len(b), lines, false
}

func main() {
	only := flag.String("only", "", "file, live, idle, long, soak or nothing for all")
	size := flag.Int64("bytes", 2_000_000_000, "size of the storm file")
	rounds := flag.Int("rounds", 3, "rounds of each command")
	seconds := flag.Int("seconds", 10, "length of the live runs")
	soakFor := flag.Duration("soak", time.Minute, "length of each soak")
	dir := flag.String("dir", "", "scratch folder; default a new one in the system's")
	role := flag.String("role", "", "internal: what this process is to do")
	flag.Parse()
	if *role != "" {
		work(*role, flag.Args())
		return
	}
	if *dir == "" {
		d, err := os.MkdirTemp("", "follow-bench")
		check(err)
		defer os.RemoveAll(d)
		*dir = d
	}
	if *only == "" || *only == "file" {
		tableFile(*dir, *size, *rounds)
	}
	if *only == "" || *only == "live" {
		tableLive(*dir, *seconds)
	}
	if *only == "" || *only == "idle" {
		tableIdle(*dir, *seconds)
	}
	if *only == "" || *only == "long" {
		tableLong(*dir)
	}
	if *only == "" || *only == "soak" {
		soak(*dir, *soakFor)
	}
	fmt.Println("\n| work | bar | measured | met |\n| --- | --- | --- | --- |")
	for _, b := range bars {
		fmt.Println(b)
	}
}

// bars are the rows of the last table.
var bars []string

// bar holds what was measured against what was promised.
func bar(work string, limit, got float64, unit string) {
	met := "yes"
	if got > limit {
		met = "no"
	}
	bars = append(bars, fmt.Sprintf("| %s | at most %.3g%s | %.3g%s | %s |", work, limit, unit, got, unit, met))
}

// work is a process whose CPU and memory are being taken.
func work(role string, args []string) {
	switch role {
	case "follow", "blocks": // read the file to its end, by the whole path of the product
		b := &blocks{}
		c := &b.counter
		var h follow.Handler = c
		if role == "blocks" {
			h = b
		}
		f := follow.New(follow.Spec{Name: "x", Path: args[0], From: follow.Start, Lock: new(sync.Mutex), LagBytes: -1, LagAge: -1}, h)
		var before, after memory
		before.read()
		for more := true; more; {
			var err error
			more, err = f.Look(time.Now())
			check(err)
		}
		after.read()
		gaps := int64(0)
		for _, n := range f.Ledger().Gaps {
			gaps += n
		}
		fmt.Println(c.lines, c.bytes, after.mallocs-before.mallocs, gaps)
	case "block": // the barest reader: 256 KB blocks, IndexByte
		f, err := os.Open(args[0])
		check(err)
		buf, half, lines := make([]byte, 1<<20+256<<10), 0, int64(0)
		for {
			n, err := f.Read(buf[half : half+256<<10])
			b := buf[:half+n]
			for {
				i := bytes.IndexByte(b, '\n')
				if i < 0 {
					break
				}
				lines++
				b = b[i+1:]
			}
			half = copy(buf, b)
			if err == io.EOF {
				break
			}
			check(err)
		}
		fmt.Println(lines, 0, 0)
	case "nxadm":
		t, err := tail.TailFile(args[0], tail.Config{CompleteLines: true, Logger: tail.DiscardingLogger})
		check(err)
		lines := int64(0)
		for range t.Lines {
			lines++
		}
		fmt.Println(lines, 0, 0)
	case "live":
		live(args)
	case "soaked":
		soaked(args)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type usage struct {
	user, sys, wall time.Duration
	rss             int64 // KB
	out             string
}

// run starts a command and takes its account when it has ended.
func run(name string, args ...string) usage {
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	at := time.Now()
	check(cmd.Run())
	return used(cmd, time.Since(at), out.String())
}

func used(cmd *exec.Cmd, wall time.Duration, out string) usage {
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return usage{cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime(), wall, ru.Maxrss, strings.TrimSpace(out)}
}

func self(role string, args ...string) []string {
	exe, err := os.Executable()
	check(err)
	return append([]string{exe, "-role", role, "--"}, args...)
}

func median(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }

func tableFile(dir string, size int64, rounds int) {
	path := filepath.Join(dir, "storm.log")
	lines := writeStorm(path, size)
	small := filepath.Join(dir, "storm-small.log")
	writeStorm(small, size/10)
	st, err := os.Stat(path)
	check(err)
	gb := float64(st.Size()) / 1e9
	cmds := []struct {
		name string
		args []string
		gb   float64
	}{
		{"cat >/dev/null", []string{"cat", path}, gb},
		{"bare block reader, lines", self("block", path), gb},
		{"sidecar follower, observer that counts line by line", self("follow", path), gb},
		{"nxadm/tail, lines (a tenth of the file)", self("nxadm", small), gb / 10},
		{"sidecar follower, observer that counts in blocks, as applog does", self("blocks", path), gb},
	}
	user, total := make([][]time.Duration, len(cmds)), make([][]time.Duration, len(cmds))
	outs, rss := make([]string, len(cmds)), make([]int64, len(cmds))
	for range rounds {
		for i, c := range cmds {
			var u usage
			if c.name[:3] == "cat" {
				u = run("sh", "-c", "exec cat "+path+" >/dev/null")
			} else {
				u = run(c.args[0], c.args[1:]...)
			}
			user[i], total[i] = append(user[i], u.user), append(total[i], u.user+u.sys)
			outs[i], rss[i] = u.out, max(rss[i], u.rss)
		}
	}
	fmt.Printf("\nStorm file of %.2f GB, %d lines, %d rounds, GOMAXPROCS=1\n\n", gb, lines, rounds)
	fmt.Println("| work | user s/GB | user+sys s/GB | user, ratio to the follower | user+sys, ratio to cat | peak RSS MB | lines, bytes, allocations, gaps |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	per := func(d []time.Duration, gb float64) float64 { return median(d).Seconds() / gb }
	base, cat := per(user[2], gb), per(total[0], gb)
	for i, c := range cmds {
		u, t := per(user[i], c.gb), per(total[i], c.gb)
		fmt.Printf("| %s | %.3f | %.3f | %.2f | %.2f | %d | %s |\n", c.name, u, t, u/base, t/cat, rss[i]/1024, outs[i])
	}
	bar("storm file: user CPU, share of nxadm/tail's for the same lines", 1./20, base/per(user[3], gb/10), "")
	bar("storm file, line by line: user + system CPU, times cat's", 2, per(total[2], gb)/cat, "")
	bar("storm file, in blocks: user + system CPU, times cat's", 2, per(total[4], gb)/cat, "")
	var n, bytes, allocs float64
	_, err = fmt.Sscan(outs[2], &n, &bytes, &allocs)
	check(err)
	bar("storm file: allocations a line", 0.001, allocs/n, "")
	os.Remove(path)
	os.Remove(small)
}

// tableIdle follows 200 files that do not change.
func tableIdle(dir string, seconds int) {
	idle := filepath.Join(dir, "idle")
	check(os.MkdirAll(idle, 0o755))
	args := []string{strconv.Itoa(seconds)}
	for i := range 200 {
		p := filepath.Join(idle, fmt.Sprintf("app%d.log", i))
		check(os.WriteFile(p, []byte("one line\n"), 0o644))
		args = append(args, p)
	}
	u := run(self("live", args...)[0], self("live", args...)[1:]...)
	fmt.Printf("\n200 files that do not change, %d s: %.3f %% of a core (user %.3f s, system %.3f s, start included), peak RSS %d MB\n",
		seconds, 100*(u.user+u.sys).Seconds()/u.wall.Seconds(), u.user.Seconds(), u.sys.Seconds(), u.rss/1024)
	fmt.Println(u.out)
	var share float64
	_, err := fmt.Sscanf(u.out, "at rest: %f", &share)
	check(err)
	bar("200 files that do not change: share of a core", 0.2, share, " %")
	os.RemoveAll(idle)
}

// tableLong reads one line of 1 GB.
func tableLong(dir string) {
	path := filepath.Join(dir, "long.log")
	f, err := os.Create(path)
	check(err)
	b := bytes.Repeat([]byte("y"), 1<<20)
	for range 1000 {
		_, err := f.Write(b)
		check(err)
	}
	_, err = f.WriteString("\nshort\n")
	check(err)
	f.Close()
	c := self("follow", path)
	u := run(c[0], c[1:]...)
	fmt.Printf("\nOne line of 1 GB and a short one: %s lines, bytes, allocations, gaps; user %.2f s; peak RSS %d MB\n", u.out, u.user.Seconds(), u.rss/1024)
	var n, bytes, allocs, gaps float64
	_, err = fmt.Sscan(u.out, &n, &bytes, &allocs, &gaps)
	check(err)
	bar("one line of 1 GB: resident memory", 40, float64(u.rss)/1024, " MB")
	bar("one line of 1 GB: gaps", 1, gaps, "")
	os.Remove(path)
}
