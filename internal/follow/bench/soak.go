//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/follow"
)

func stringReader(s string) io.Reader { return strings.NewReader(s) }

// soaked follows two files and reports the largest lag that it saw.
func soaked(args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	pacer := follow.NewPacer(0.5)
	worst := 0.0
	var cs [2]counter
	var fs [2]*follow.Follower
	var locks [2]sync.Mutex
	for i := range fs {
		fs[i] = follow.New(follow.Spec{Name: args[i], Path: args[i], From: follow.Start, Lock: &locks[i]}, &cs[i])
		wg.Go(func() { fs[i].Run(ctx, pacer, func(err error) { fmt.Fprintln(os.Stderr, err) }) })
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			for i := range fs {
				locks[i].Lock()
				l := fs[i].Ledger()
				locks[i].Unlock()
				worst = max(worst, l.LagSeconds)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	io.Copy(io.Discard, os.Stdin)
	time.Sleep(1500 * time.Millisecond)
	cancel()
	wg.Wait()
	for i := range fs {
		l := fs[i].Ledger()
		fmt.Printf("read %d lost %d skipped %d rotations %d truncations %d gaps %v lag %.1f\n",
			l.Read, l.Lost, l.Skipped, l.Rotations, l.Truncations, l.Gaps, worst)
	}
}

// soak writes 200 MB/s into one file that is rotated each second, and 50,000
// lines/s into another.
func soak(dir string, span time.Duration) {
	for _, how := range []string{"rename", "copytruncate"} {
		log, acc := filepath.Join(dir, "soak.log"), filepath.Join(dir, "soak-access.txt")
		for _, old := range []string{log, acc} {
			all, _ := filepath.Glob(old + "*")
			for _, p := range all {
				os.Remove(p)
			}
		}
		c := self("soaked", log, acc)
		cmd := exec.Command(c[0], c[1:]...)
		in, err := cmd.StdinPipe()
		check(err)
		var out limited
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		check(cmd.Start())
		time.Sleep(300 * time.Millisecond)
		var wg sync.WaitGroup
		var total, accTotal int64
		wg.Go(func() { accTotal = pour(acc, newStorm().access, 8192, 50_000*118, span) })
		var mu sync.Mutex // a writer does not write between the copy and the truncation: the copy survives whole
		f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		check(err)
		var b []byte
		for s := newStorm(); len(b) < 1<<20; {
			b = s.record(b)
		}
		start, n := time.Now(), 0
		end := start.Add(span)
		for time.Now().Before(end) {
			if due := int((span - time.Until(end)) / time.Second); due > n {
				n = due
				mu.Lock()
				os.Remove(log + ".2")
				os.Rename(log+".1", log+".2")
				if how == "rename" {
					check(os.Rename(log, log+".1"))
					f.Close()
					f, err = os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
					check(err)
				} else {
					src, err := os.Open(log)
					check(err)
					dst, err := os.Create(log + ".1")
					check(err)
					_, err = io.Copy(dst, src)
					check(err)
					src.Close()
					dst.Close()
					check(f.Truncate(0))
				}
				mu.Unlock()
			}
			// Behind by more than a second's worth (a busy machine), it does not
			// catch up: the scratch folder may be memory.
			start = maxTime(start, time.Now().Add(-time.Duration(float64(total)/200e6*1e9)-time.Second))
			for total < int64(200e6*time.Since(start).Seconds()) {
				_, err := f.Write(b)
				check(err)
				total += int64(len(b))
			}
			time.Sleep(2 * time.Millisecond)
		}
		f.Close()
		wg.Wait()
		in.Close()
		check(cmd.Wait())
		u := used(cmd, span, out.text)
		fmt.Printf("\nSoak, %s each second, %v: written %d and %d bytes, %.2f cores, peak RSS %d MB\n%s", how, span, total, accTotal,
			(u.user+u.sys).Seconds()/span.Seconds(), u.rss/1024, out.text)
		for _, old := range []string{log, acc} {
			all, _ := filepath.Glob(old + "*")
			for _, p := range all {
				os.Remove(p)
			}
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
