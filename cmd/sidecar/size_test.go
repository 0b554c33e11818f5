package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The binary is copied onto servers: with Prometheus' engine in it, it stays below
// 35 MB as a release builds it.
func TestBinarySize(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	path := filepath.Join(t.TempDir(), "sidecar")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 35e6 {
		t.Errorf("%.2f MB", float64(st.Size())/1e6)
	}
	t.Logf("%.2f MB", float64(st.Size())/1e6)
}
