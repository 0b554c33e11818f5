package applog

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/applog.md")

// TestDocs holds the tables in docs/applog.md against the code they are made
// from; go generate writes them anew.
func TestDocs(t *testing.T) {
	const path = "../../docs/applog.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := have
	for name, text := range map[string]string{"events": eventsTable(), "metrics": metricsTable()} {
		begin, end := []byte("<!-- "+name+": made by go generate -->\n"), []byte("<!-- end of "+name+" -->")
		i, j := bytes.Index(want, begin), bytes.Index(want, end)
		if i < 0 || j < i {
			t.Fatalf("%s has no place for %s", path, name)
		}
		want = bytes.Join([][]byte{want[:i], begin, []byte(text), want[j:]}, nil)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says: run go generate in collectors/applog", path)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func eventsTable() string {
	var b strings.Builder
	b.WriteString("\n| event | what happened | look at | verified on | port |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range Events {
		port := ""
		if len(e.Labels) > 0 {
			port = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Name, cell(e.Meaning), cell(e.Next), cell(e.Versions), port)
	}
	b.WriteString("\n")
	return b.String()
}

func metricsTable() string {
	var b strings.Builder
	b.WriteString("\n| metric | labels | what it is |\n| --- | --- | --- |\n")
	for _, f := range Metrics {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, strings.Join(f.Labels, ", "), cell(f.Help))
	}
	b.WriteString("\n")
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
