package rules

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// Prometheus itself reads the files: in the lab's version, Debian 12's 2.42, the
// oldest that is said to work.
func TestPromtoolCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("runs promtool")
	}
	files, err := fs.Glob(Files, "*/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rule files: %v", err)
	}
	read(t, append([]string{"../deploy/prometheus.yml"}, files...)...)
	out, err := lab.Promtool(".", append([]string{"check", "rules"}, files...)...)
	lab.Need(t, err)
	if strings.Count(out, "SUCCESS") != len(files) {
		t.Errorf("promtool check rules:\n%s", out)
	}
	out, err = lab.Promtool("..", "check", "config", "deploy/prometheus.yml")
	lab.Need(t, err)
	if strings.Contains(out, "no rule files") || strings.Count(out, "SUCCESS: ") < 2 {
		t.Errorf("promtool check config deploy/prometheus.yml:\n%s", out)
	}
}

func TestPromtoolTests(t *testing.T) {
	if testing.Short() {
		t.Skip("runs promtool")
	}
	tests, err := filepath.Glob("tests/*.yml")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no rule tests: %v", err)
	}
	for _, file := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yml"), func(t *testing.T) {
			read(t, file)
			_, err := lab.Promtool(".", "test", "rules", file)
			lab.Need(t, err)
		})
	}
}

// read opens what promtool will read, so that the cache of go test, which knows
// only what the test itself opens, doesn't answer for an older text.
func read(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		if _, err := os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
}

// Each topic has rules for load runs and for every day, and tests of both. A
// load file also says when it is scraped too slowly for its windows: its alerts
// would else be late and nobody the wiser.
func TestTopics(t *testing.T) {
	topics, err := fs.Glob(Files, "load/*.yml")
	if err != nil || len(topics) < 3 {
		t.Fatalf("load has %d topics: %v", len(topics), err)
	}
	for _, load := range topics {
		topic := strings.TrimSuffix(path.Base(load), ".yml")
		text, err := fs.ReadFile(Files, load)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "alert: LoadRulesScrapedTooSlowly") || !strings.Contains(string(text), "rules: load/"+topic) {
			t.Errorf("%s has no LoadRulesScrapedTooSlowly of its own", load)
		}
		if _, err := fs.Stat(Files, "steady/"+topic+".yml"); err != nil {
			t.Error(err)
		}
		for _, test := range []string{topic, topic + "-steady"} {
			if found, _ := filepath.Glob("tests/" + test + ".yml"); len(found) == 0 {
				t.Errorf("rules/tests/%s.yml is missing", test)
			}
		}
	}
}
