package engine

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/rules"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// limitsOf are the names of the limits in a pack.
func limitsOf(t *testing.T, pack string) (names []string) {
	t.Helper()
	files, err := fs.Glob(rules.Files, pack+"/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", pack, err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(rules.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(data, false)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if strings.HasPrefix(r.Record, "limit:") {
					names = append(names, r.Record)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// A rule file of the user's takes the place of each limit of the pack's, in both
// packs: one series, the user's value.
func TestUserLimits(t *testing.T) {
	for _, pack := range []string{"load", "steady"} {
		t.Run(pack, func(t *testing.T) {
			limits := limitsOf(t, pack)
			if len(limits) < 40 {
				t.Fatalf("only %d limits", len(limits))
			}
			var text strings.Builder
			text.WriteString("groups:\n  - name: my limits\n    rules:\n")
			for i, name := range limits {
				fmt.Fprintf(&text, "      - {record: %q, expr: vector(%d)}\n", name, 1_000_001+i)
			}
			file := filepath.Join(t.TempDir(), "mine.yml")
			if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			w := newPackWorld(t, pack, file)
			w.ticks(3)
			for i, name := range limits {
				w.want(name, float64(1_000_001+i))
			}
			w.want(`count({__name__=~"limit:.*"})`, float64(len(limits)))
		})
	}
}

// The engine runs, a reload brings the user's limit, and the alert that was
// silent fires; without the file it is as before.
func TestUserLimitFires(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yml")
	text := `groups: [{name: mine, rules: [{record: "limit:log_dir:bytes", expr: vector(1e6)}]}]`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	w := newPackWorld(t, "load", "")
	size := &metric.Family{Name: "logdir_size_bytes", Kind: metric.Gauge, Labels: []string{"dir"}, Help: "h"}
	w.set.Gauge(size, "/srv/logs").Set(5e6)
	w.ticks(20)
	if s := w.state("LogDirOverBudget"); s != "" {
		t.Fatalf("5 MB of 20 GB: %s", s)
	}
	cfg := w.e.cfg
	cfg.RuleFiles = []string{file}
	if err := w.e.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	w.ticks(10)
	w.want("limit:log_dir:bytes", 1e6)
	if s := w.state("LogDirOverBudget"); s != "firing" {
		t.Errorf("5 MB of 1 MB for 10 s: %q", s)
	}
	cfg.RuleFiles = nil
	if err := w.e.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	w.ticks(10)
	w.want("limit:log_dir:bytes", 20e9)
	if s := w.state("LogDirOverBudget"); s != "" {
		t.Errorf("without the file: %q", s)
	}
}

// newPackWorld is a world with the rules that are shipped, and one file of the
// user's.
func newPackWorld(t *testing.T, pack, file string) *world {
	t.Helper()
	w := &world{t: t, set: metric.ForTarget("tomcat-8080"), now: begin}
	cfg := DefaultConfig()
	cfg.Pack = pack
	if file != "" {
		cfg.RuleFiles = []string{file}
	}
	e, err := Open(cfg, Options{
		Job: "sidecar", Instance: "here:10404", Pack: rules.Files, Start: w.now, Log: slog.New(slog.DiscardHandler),
		Notify: func(a []Alert) { w.sent = append(w.sent, a...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.e = e
	t.Cleanup(func() { e.Close() })
	return w
}

// A limit of several series, and one of none, is a rule that fails, and is
// counted; the alert that reads it could not fire.
func TestLimitOfSeveralSeriesFails(t *testing.T) {
	for expr, failing := range map[string]float64{"vector(1e6)": 0, "label_replace(vector(1), \"a\", \"b\", \"\", \"\") or vector(2)": 1,
		"no_such_metric": 1} {
		file := filepath.Join(t.TempDir(), "mine.yml")
		text := fmt.Sprintf("groups: [{name: mine, rules: [{record: 'limit:log_dir:bytes', expr: '%s'}]}]", expr)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		w := newPackWorld(t, "load", file)
		w.ticks(10)
		w.e.Set.Lock()
		have, _ := w.e.Set.Gauge(engineFailing).Value()
		w.e.Set.Unlock()
		if have != failing {
			t.Errorf("%s: %v rules fail, want %v", expr, have, failing)
		}
	}
}
