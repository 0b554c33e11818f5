package ship

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPromtailStaysOut: the package that registers promtail_* in the default
// registry, and with it a Client that loses batches, is imported by tests only.
func TestPromtailStaysOut(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if i.Path.Value == `"github.com/grafana/loki-client-go/loki"` {
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
	}
}
