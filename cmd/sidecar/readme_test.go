package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestReadmeCommands runs the commands that README shows. The make targets are
// looked up only: make test runs this, and make demo has a test of its own.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	// The logs that README names are the ones of testdata.
	logs := map[string]string{
		"catalina.out": "testdata/logs/catalina.out", "access_log.2026-11-30.txt": "testdata/logs/access.txt", "gc.log": "testdata/logs/gc.log",
	}
	seen := 0
	for _, block := range shell.FindAllStringSubmatch(string(readme), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			seen++
			switch {
			case words[0] == "make":
				if !regexp.MustCompile(`(?m)^` + words[1] + `:`).Match(makefile) {
					t.Errorf("README says make %s, and the Makefile has no such target", words[1])
				}
			case words[0] == "go":
				words[3] = filepath.Join(t.TempDir(), words[3])
				cmd := exec.Command("go", words[1:]...)
				cmd.Dir = "../.."
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			case words[0] == "./sidecar" && len(words) == 1:
				// It runs until it is stopped: testdata/script/run_without_servers.txtar.
			case words[0] == "./sidecar":
				for i, w := range words {
					if logs[w] != "" {
						words[i] = logs[w]
					}
				}
				var out bytes.Buffer
				if code := Main(words[1:], nil, &out, &out); code != 0 {
					t.Errorf("%s: exit %d\n%s", line, code, out.String())
				}
			default:
				t.Errorf("README shows a command that no test runs: %s", line)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d commands found in README", seen)
	}
}
