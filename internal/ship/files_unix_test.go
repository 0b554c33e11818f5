//go:build unix

package ship

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that can't be written, of its own or above the one that is named, is
// found before the first line has to wait.
func TestSpoolDirThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shut")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.URL = "http://127.0.0.1:1/loki/api/v1/push"
	for _, spool := range []string{dir, filepath.Join(dir, "a", "b")} {
		cfg.SpoolDir = spool
		err := cfg.CheckFiles()
		if os.Geteuid() == 0 { // who may write everywhere
			if err != nil {
				t.Errorf("%s: %v", spool, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "spool_dir: "+spool+": can't be written: "+dir+": ") {
			t.Errorf("%s: %v", spool, err)
		}
	}
	cfg.SpoolBytes = 0
	if err := cfg.CheckFiles(); err != nil {
		t.Errorf("without a spool: %v", err)
	}
}
