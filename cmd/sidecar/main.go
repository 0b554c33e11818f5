// Command sidecar runs beside a JVM web server under load and says what is
// happening to it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

func main() {
	ours = true
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// ours says that the process is the program's own, to be started again if need
// be; a test's is not.
var ours bool

// streams are where a subcommand reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs one subcommand and returns its exit status: 0 for done, 1 for what
// could not be done, 2 for a command line that was not understood.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	app := kingpin.New("sidecar", "An observability sidecar for JVM web servers under load.\n\nPlain `sidecar` is `sidecar run`: it finds the servers on this machine and serves their metrics on port 10404.")
	app.HelpFlag.Short('h')
	app.Version(version.Print("sidecar")) // as Prometheus' own programs have it
	app.UsageWriter(stdout).ErrorWriter(stderr)
	// kingpin ends the process after --help; here it ends the parse.
	type ended struct{ code int }
	app.Terminate(func(code int) { panic(ended{code}) })
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			code = e.code
		default:
			panic(e)
		}
	}()

	commands := map[string]func(streams) error{}
	for _, add := range []func(*kingpin.Application) (string, func(streams) error){
		addRun, addDiscover, addDump, addCheck, addRules, addWait, addReplay, addVersion, addDashboards, addHealthcheck,
	} {
		name, run := add(app)
		commands[name] = run
	}
	name, err := app.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "sidecar: %s (sidecar --help lists what there is)\n", printable(err.Error()))
		return 2
	}
	if err := commands[name](streams{stdin, stdout, stderr}); err != nil {
		fmt.Fprintf(stderr, "sidecar: %s\n", printable(err.Error()))
		return 1
	}
	return 0
}
