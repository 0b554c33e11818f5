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

// soaked follows two files, with the product's parsers behind them, and reports
// the largest lag that it saw.
func soaked(args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	pacer := follow.NewPacer(0.5)
	worst := 0.0
	var fs [2]*follow.Follower
	var locks [2]sync.Locker
	for i := range fs {
		var h follow.Handler
		h, locks[i], _ = observer(args[i])
		fs[i] = follow.New(follow.Spec{Name: args[i], Path: args[i], From: follow.Start, Lock: locks[i]}, h)
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

const (
	soakRate  = 200e6 // bytes a second into the storm file
	soakLines = 50_000
)

// soak writes 200 MB/s into one file that is rotated each second, and 50,000
// lines/s into another. Rotated files are removed two seconds later, so that at
// most some 800 MB are on the disk besides the access log; and whatever hangs,
// it ends ten seconds after its time.
func soak(dir string, span time.Duration) {
	fmt.Printf("\nSoak of %v: 200 MB/s into a file that is rotated each second, 50,000 access lines/s into another, parsed\n\n", span)
	fmt.Println("| rotated by | rotations | MB written | not accounted for, bytes | lost, bytes | gaps | access log, bytes missing | largest lag s | cores | peak RSS MB |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, how := range []string{"rename", "copytruncate"} {
		soakOnce(dir, how, span)
	}
}

func soakOnce(dir, how string, span time.Duration) {
	log, acc := filepath.Join(dir, "catalina.out"), filepath.Join(dir, "access.log")
	clean := func() {
		for _, old := range []string{log, acc, log + ".1", log + ".2"} {
			os.Remove(old)
		}
	}
	clean()
	defer clean()
	c := self("soaked", log, acc)
	ctx, cancel := context.WithTimeout(context.Background(), span+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c[0], c[1:]...)
	in, err := cmd.StdinPipe()
	check(err)
	var out limited
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	check(cmd.Start())
	time.Sleep(300 * time.Millisecond)
	var wg sync.WaitGroup
	var total, accTotal int64
	wg.Go(func() { accTotal = pour(acc, newStorm().access, 8192, soakLines*accessLine, span) })
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	check(err)
	var b []byte
	for s := newStorm(); len(b) < 1<<20; {
		b = s.record(b)
	}
	start, rotated := time.Now(), 0
	due := start // when as much as was written so far had to be there
	for time.Since(start) < span && ctx.Err() == nil {
		if n := int(time.Since(start) / time.Second); n > rotated {
			// The writer is this goroutine: nothing is written between the copy and
			// the truncation, so that the copy survives whole.
			rotated = n
			os.Remove(log + ".2")
			os.Rename(log+".1", log+".2")
			if how == "rename" {
				check(os.Rename(log, log+".1"))
				f.Close()
				f, err = os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
				check(err)
			} else {
				check(copyFile(log+".1", log))
				check(f.Truncate(0))
			}
		}
		// Where the machine could not take as much, it is not made up for later:
		// the disk use stays bounded.
		if late := time.Since(due) - 200*time.Millisecond; late > 0 {
			due = due.Add(late)
		}
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		_, err := f.Write(b)
		check(err)
		total += int64(len(b))
		due = due.Add(time.Duration(float64(len(b)) / soakRate * 1e9))
	}
	f.Close()
	wg.Wait()
	in.Close()
	check(cmd.Wait())
	u := used(cmd, span, out.text)
	var read, lost, skipped, rotations, truncations [2]int64
	var gaps [2]string
	var lag float64
	for i, l := range splitLines(out.text) {
		head, tail, _ := strings.Cut(l, " gaps [")
		_, err := fmt.Sscanf(head, "read %d lost %d skipped %d rotations %d truncations %d", &read[i], &lost[i], &skipped[i], &rotations[i], &truncations[i])
		check(err)
		gaps[i], tail, _ = strings.Cut(tail, "] lag ")
		_, err = fmt.Sscan(tail, &lag)
		check(err)
	}
	missing := total - read[0] - lost[0] - skipped[0] + accTotal - read[1]
	bar("soak, rotated by "+how+": bytes not accounted for", 0, float64(missing), "")
	bar("soak, rotated by "+how+": largest lag", 2, lag, " s")
	bar("soak, rotated by "+how+": resident memory", 40, float64(u.rss)/1024, " MB")
	fmt.Printf("| %s | %d | %.0f | %d | %d | %s | %d | %.1f | %.2f | %d |\n", how, rotations[0]+truncations[0], float64(total)/1e6,
		total-read[0]-lost[0]-skipped[0], lost[0], gaps[0], accTotal-read[1], lag, (u.user+u.sys).Seconds()/span.Seconds(), u.rss/1024)
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if e := dst.Close(); err == nil {
		err = e
	}
	return err
}
