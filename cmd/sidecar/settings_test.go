package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log file, given by mistake, is not read into memory.
func TestSettingsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalina.out")
	if err := os.WriteFile(path, bytes.Repeat([]byte("# a comment\n"), maxSettings/12+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSettings(path); err == nil || !strings.Contains(err.Error(), "catalina.out: larger than 4 MB") {
		t.Errorf("%v", err)
	}
}
