package root

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOpenOurs: a link to a file is a file, a folder is none, and the error names
// the path. That a pipe is left alone is seen in cmd/sidecar's bad_settings.
func TestOpenOurs(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	f, err := OpenOurs(link)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := OpenOurs(dir); err == nil || err.Error() != dir+": no regular file" {
		t.Error(err)
	}
	if _, err := OpenOurs(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
