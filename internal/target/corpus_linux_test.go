package target

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// summary is one target in a few lines, for comparing.
func summary(t *Target) string {
	var b strings.Builder
	p := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	p("%s %s %q jdk=%d base=%s home=%s", t.Name, t.Kind, t.Version, t.JDK.Major, t.Base, t.Home)
	for _, c := range t.Connectors {
		p("connector %d %s %s exec=%q threads=%d/%d accept=%d conns=%d timeout=%d prefix=%q listening=%v", c.Port, c.Address, c.Protocol, c.Executor, c.MinSpare, c.MaxThreads, c.AcceptCount, c.MaxConnections, c.ConnectionTimeout, c.ThreadPrefix, c.Listening)
	}
	for _, x := range t.Executors {
		p("executor %s %q %d/%d queue=%d", x.Name, x.NamePrefix, x.MinSpare, x.MaxThreads, x.MaxQueueSize)
	}
	for _, a := range t.AccessLogs {
		p("access %s path=%s dir=%s match=%s %s %s %q buffered=%v rotatable=%v counted=%v", a.Name, a.Path, a.Dir, a.Match, a.Format, a.Scope, a.Pattern, a.Buffered, a.Rotatable, a.Counted)
	}
	for _, a := range t.AppLogs {
		p("app %s path=%s match=%s %s incomplete=%v", a.Name, a.Path, a.Match, a.Role, a.Incomplete)
	}
	for _, g := range t.GCLogs {
		p("gc %s path=%s match=%s unified=%v", g.Name, g.Path, g.Match, g.Unified)
	}
	p("perf %v %s", t.PerfData.Path != "", t.PerfData.Reason)
	for _, x := range t.Blind {
		p("blind %s %s", x.Source, x.Reason)
	}
	for _, x := range t.Findings {
		p("finding %s", x.ID)
	}
	return b.String()
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestCorpusCases reads the corpus' real JVMs. The golden files hold what was
// understood, and nothing of the corpus itself.
func TestCorpusCases(t *testing.T) {
	shared := sharedDir(t)
	for _, tt := range []struct {
		name  string
		cases []string
	}{
		{"tomcat10", []string{"tomcat10-jdk17"}},
		{"tomcat10-no-server-xml", []string{"tomcat10-jdk25"}},
		{"jetty-exec", []string{"jetty94-exec-parent", "jetty94-exec-child"}},
		{"jetty-cwdbase", []string{"jetty94-cwdbase"}},
		{"container", []string{"container-jdk25"}},
		{"argfile", []string{"argfile-toolopts-jdk17"}},
		{"noperfdata", []string{"noperfdata-jdk17"}},
		{"nopasswd", []string{"nopasswd-uid-jdk17"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			for _, c := range tt.cases {
				m.corpusCase(shared, c)
			}
			golden(t, "corpus-"+tt.name+".txt", strings.ReplaceAll(summary(one(t, m.scan())), m.root, "ROOT"))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
