package gclog

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden holds small logs, all made for this project or by it, against
// figures that were read by eye once.
func TestGolden(t *testing.T) {
	logs, _ := filepath.Glob("testdata/*.log")
	if len(logs) < 10 {
		t.Fatalf("only %d logs in testdata", len(logs))
	}
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReport()
		r.Begin(filepath.Base(log))
		feed(data, r.Observe)
		s := r.JSON().(summary)
		s.Pauses.Kinds, s.Concurrent = nil, nil // long, and TestReport has them
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetIndent("", " ")
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(log, ".log") + ".json"
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", log, got.Bytes(), want)
		}
	}
}
