//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who has no home keeps his state among the temporary files, where anybody could
// have laid out that folder for him.
func TestHomelessStorage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := homelessStorage()
	refused := func(what string) {
		t.Helper()
		unlock, err := lockStorage(dir)
		if err == nil {
			unlock()
		}
		if err == nil || !strings.Contains(err.Error(), "--storage.path") {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "lock")); err == nil {
			t.Errorf("%s: written to all the same", what)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	refused("everybody may write")
	if os.Geteuid() == 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		refused("another user's")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	refused("a link")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockStorage(dir)
	if err != nil {
		t.Fatalf("a new one: %v", err)
	}
	unlock()
	if unlock, err = lockStorage(dir); err != nil {
		t.Fatalf("its own of before: %v", err)
	}
	unlock()
}
