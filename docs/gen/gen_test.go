package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsAreGenerated holds the documents against the code.
func TestDocsAreGenerated(t *testing.T) {
	for name, part := range generated("../..") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if splice(string(text), part) != string(text) {
			t.Errorf("docs/%s is not what the code says: run go generate ./docs/gen", name)
		}
	}
}

// TestEverySettingIsExplained: a key without a comment is a riddle.
func TestEverySettingIsExplained(t *testing.T) {
	for _, line := range strings.Split(settingsTable("../.."), "\n") {
		if strings.HasPrefix(line, "| `") && strings.HasSuffix(line, "|  |") {
			t.Errorf("no comment beside the field: %s", line)
		}
	}
}

// TestSettingsAreToldByTheirKeys: MaxDays is no word of a settings file.
func TestSettingsAreToldByTheirKeys(t *testing.T) {
	table := settingsTable("../..")
	for _, want := range []string{"| `main_class` is the main class or jar, and `cwd` the working directory", "and `match` a regular expression on the base name where `path` is empty", "| it speaks TLS |"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, line := range strings.Split(table, "\n") {
		if name := regexp.MustCompile(`\| ([A-Z]\w*[a-z][A-Z]\w*|Config\.\w+|\w+ \(with Config\b)`).FindString(line); name != "" {
			t.Errorf("a name of the source, %q: %s", name, line)
		}
		if strings.Contains(line, "Config.") && !strings.Contains(line, "| config.") {
			t.Errorf("a name of the source: %s", line)
		}
	}
}

// TestLimitsAreToldInSentences: each row of the table is read by itself.
func TestLimitsAreToldInSentences(t *testing.T) {
	seen := map[string]bool{}
	row := regexp.MustCompile("^\\| `(limit:[a-z_:]+)` \\|.*\\| (.*) \\|$")
	for _, line := range strings.Split(limitsList(), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if seen[m[1]] {
			t.Errorf("%s stands twice", m[1])
		}
		seen[m[1]] = true
		if !regexp.MustCompile(`^[A-Z].*\.$`).MatchString(m[2]) {
			t.Errorf("%s: half a sentence: %s", m[1], m[2])
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d limits", len(seen))
	}
}
