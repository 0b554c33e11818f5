package main

import (
	"os"
	"path/filepath"
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
