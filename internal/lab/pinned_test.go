package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs that the tests compare with are of the version of the packages in
// the binary; whoever raises one raises the other.
func TestPinnedIsTheLibrary(t *testing.T) {
	version, err := PinnedVersion()
	if err != nil {
		t.Fatal(err)
	}
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/prometheus/prometheus " + version + "\n"; !strings.Contains(string(data), want) {
		t.Errorf("internal/lab/tools pins %s, go.mod another", version)
	}
}

func TestPinnedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Prometheus")
	}
	said, err := PinnedPromtool(t.TempDir(), "--version")
	Need(t, err)
	if !strings.Contains(said, "promtool, version 3.4.2 ") {
		t.Errorf("promtool says %q", said)
	}
}
