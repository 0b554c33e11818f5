package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

//go:generate go test -run TestCommandsAreDocumented . -update

var update = flag.Bool("update", false, "rewrite docs/commands.md")

// TestCommandsAreDocumented holds docs/commands.md against --help of each
// subcommand.
func TestCommandsAreDocumented(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Commands\n\nGenerated from `sidecar --help`: `go generate ./cmd/sidecar` mends it.\n")
	for _, sub := range []string{"", "run", "discover", "dump", "check", "rules", "wait", "replay", "version", "dashboards", "healthcheck"} {
		var out bytes.Buffer
		args := []string{"--help"}
		if sub != "" {
			args = []string{sub, "--help"}
		}
		if code := Main(args, nil, &out, &out); code != 0 {
			t.Fatalf("sidecar %s --help: exit %d: %s", sub, code, out.String())
		}
		// The default of --storage.path is of the user that runs this; the page has root's.
		text := strings.ReplaceAll(out.String(), defaultStorage(), "/var/lib/sidecar")
		b.WriteString("\n## " + strings.TrimSpace("sidecar "+sub) + "\n\n```\n" + strings.TrimSpace(text) + "\n```\n")
	}
	const path = "../../docs/commands.md"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is not what --help says: run go generate ./cmd/sidecar", path)
	}
}
