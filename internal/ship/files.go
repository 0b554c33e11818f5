package ship

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jvm-sidecar/sidecar/internal/root"
	promconfig "github.com/prometheus/common/config"
)

// CheckFiles looks at what the settings name on this machine: files that have to
// be read for each push, and the folder that lines wait in. Where one of them is
// not there, nothing would be shipped. It is apart from Check, since settings are
// read elsewhere than where they are in force, too. Nothing is made or written.
func (c *Config) CheckFiles() error {
	if !c.On() {
		return nil
	}
	h := &c.HTTP
	for _, f := range []struct{ key, path string }{
		{"ca_file", h.CAFile}, {"cert_file", h.CertFile}, {"key_file", h.KeyFile},
		{"password_file", h.PasswordFile}, {"bearer_file", h.BearerFile},
	} {
		if f.path == "" {
			continue
		}
		if err := readable(f.path); err != nil {
			return fmt.Errorf("http.%s: %w", f.key, err)
		}
	}
	settings, err := h.client()
	if err != nil {
		return fmt.Errorf("http.%w", err)
	}
	client, err := promconfig.NewClientFromConfig(settings, "loki")
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	client.CloseIdleConnections()
	if c.SpoolDir != "" && c.SpoolBytes > 0 {
		if err := canHold(c.SpoolDir); err != nil {
			return fmt.Errorf("spool_dir: %w", err)
		}
	}
	return nil
}

func readable(path string) error {
	f, err := root.OpenOurs(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// canHold says whether files can be made in a folder, or the folder itself in
// the nearest one above it that is there.
func canHold(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at:
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s: %s is no folder", dir, at)
		}
		if err := writable(at); err != nil {
			return fmt.Errorf("%s: can't be written: %s: %w", dir, at, err)
		}
		return nil
	}
}
