// Command compare runs commands in turns and prints what they cost the machine:
// CPU as the kernel accounts it for the whole process and its children.
//
//	compare -rounds 5 -slow 3 -base NAME < spec
//
// The spec has a line for each command: name, bytes it reads, command, between
// tabs. A name that ends in ! is slow and runs in the first -slow rounds only.
// Commands take turns because a shared machine has good and bad minutes; the
// medians of one run may be compared, figures of two runs may not.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

type command struct {
	name, shell string
	bytes       float64
	slow        bool
	user, cpu   []float64
	failed      error
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds")
	slow := flag.Int("slow", 3, "rounds of slow commands")
	base := flag.String("base", "", "name of the command that others are held against")
	flag.Parse()
	var all []*command
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := strings.SplitN(in.Text(), "\t", 3)
		if len(f) != 3 {
			continue
		}
		n, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(2)
		}
		all = append(all, &command{name: strings.TrimSuffix(f[0], "!"), bytes: n, shell: f[2], slow: strings.HasSuffix(f[0], "!")})
	}
	for r := range *rounds {
		for _, c := range all {
			if c.failed == nil && (!c.slow || r < *slow) {
				c.run()
			}
		}
	}
	print(all, *base)
}

func (c *command) run() {
	cmd := exec.Command("sh", "-c", c.shell)
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		c.failed = fmt.Errorf("%w: %.200s", err, out)
		return
	}
	s := cmd.ProcessState
	c.user = append(c.user, s.UserTime().Seconds())
	c.cpu = append(c.cpu, (s.UserTime() + s.SystemTime()).Seconds())
	fmt.Fprintf(os.Stderr, "%-34s user %7.2f  cpu %7.2f  wall %7.2f\n", c.name, c.user[len(c.user)-1], c.cpu[len(c.cpu)-1], time.Since(begin).Seconds())
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

func print(all []*command, base string) {
	var b *command
	for _, c := range all {
		if c.name == base && c.failed == nil && len(c.cpu) > 0 {
			b = c
		}
	}
	fmt.Printf("| %-32s | user s | user s/GB | CPU s | CPU, times %s | user, times |\n| --- | --- | --- | --- | --- | --- |\n", "command", base)
	for _, c := range all {
		if c.failed != nil || len(c.cpu) == 0 {
			fmt.Printf("| %-32s | failed: %v |\n", c.name, c.failed)
			continue
		}
		u, t := median(c.user), median(c.cpu)
		ratio, userRatio := "-", "-"
		if b != nil {
			// By byte: mtail reads a file from which some lines were taken out.
			ratio = fmt.Sprintf("%.1f", t/c.bytes/(median(b.cpu)/b.bytes))
			userRatio = fmt.Sprintf("%.1f", u/c.bytes/(median(b.user)/b.bytes))
		}
		fmt.Printf("| %-32s | %.2f (%.2f–%.2f) | %.2f | %.2f | %s | %s |\n", c.name, u, slices.Min(c.user), slices.Max(c.user), u/c.bytes*1e9, t, ratio, userRatio)
	}
}
