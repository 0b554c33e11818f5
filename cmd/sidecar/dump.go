package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/internal/attach"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

func addDump(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("dump", "Take a thread dump of a server and print it, with a summary by pool and the most frequent stacks first. "+
		"Needs no JDK. The JVM stands still for it: some milliseconds, 0.2 s with 5,000 threads. It may get one signal (SIGQUIT), and only if it catches it. "+
		"Needs the rights of the JVM's user or of root.")
	name := cmd.Arg("target", "The server's name as discover prints it, or its process number.").Required().String()
	config := cmd.Flag("config.file", "Settings file whose overrides are to be in force.").String()
	what := cmd.Flag("what", "threads, or what jcmd says of the flags in force, of the heap, of the JVM's own logs.").Default("threads").Enum("threads", "flags", "heap", "logs")
	summary := cmd.Flag("summary", "Print the summary only.").Bool()
	locks := cmd.Flag("locks", "Print the java.util.concurrent locks that threads hold too. The JVM stands still longer for it: it walks its whole heap.").Bool()
	timeout := cmd.Flag("timeout", "How long to wait for the JVM.").Default("30s").Duration()
	return cmd.FullCommand(), func(s streams) error {
		cfg, err := loadSettings(*config)
		if err != nil {
			return err
		}
		// A signal goes to a number, so it is looked at nothing but /proc.
		targets, _, err := scanOnce(cfg.Targets, "/proc")
		if err != nil {
			return err
		}
		t, err := pick(targets, *name)
		if err != nil {
			return err
		}
		flags := ""
		if *locks {
			flags = "-l"
		}
		ctx, cancel := context.WithTimeout(context.Background(), *timeout)
		defer cancel()
		began := time.Now()
		var raw []byte
		if *what == "threads" {
			raw, err = attach.New().ThreadDump(ctx, collectors.AttachTo(t), flags)
		} else {
			raw, err = attach.New().Command(ctx, collectors.AttachTo(t), "jcmd", asks[*what])
		}
		var refused attach.Refusal
		if errors.As(err, &refused) {
			sentence, needs := refused.Detail()
			if needs != "" {
				needs = " (needed: " + needs + ")"
			}
			return fmt.Errorf("no dump of %s: %s%s", t.Name, sentence, needs)
		}
		if err != nil {
			return err
		}
		if *what != "threads" {
			_, err = s.out.Write(raw)
			return err
		}
		d, err := jvm.ParseDump(raw)
		if err != nil {
			fmt.Fprintf(s.err, "sidecar: no summary: %v\n", err)
		} else {
			fmt.Fprintf(s.out, "%s, process %d, taken in %v\n", t.Name, t.Process.PID, time.Since(began).Round(time.Millisecond))
			if err := d.WriteSummary(s.out); err != nil {
				return err
			}
		}
		if *summary {
			return nil
		}
		fmt.Fprintln(s.out, "\n"+strings.Repeat("-", 80))
		_, err = s.out.Write(raw)
		return err
	}
}

// asks are the commands of jcmd behind --what. All of them only look.
var asks = map[string]string{"flags": "VM.flags", "heap": "GC.heap_info", "logs": "VM.log list"}

// pick finds a target by name or process number.
func pick(targets []*target.Target, name string) (*target.Target, error) {
	var names []string
	for _, t := range targets {
		if t.Name == name || strconv.Itoa(t.Process.PID) == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no target %q: no JVM is seen on this machine", name)
	}
	return nil, fmt.Errorf("no target %q: there are %s", name, strings.Join(names, ", "))
}
