package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildLimit bounds the building of Prometheus: two to three minutes of CPU,
// which a machine with other work may stretch.
const buildLimit = 20 * time.Minute

// PinnedVersion is the version of Prometheus' module that internal/lab/tools
// pins.
func PinnedVersion() (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(root, "internal/lab/tools/go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "require" {
			return f[2], nil
		}
	}
	return "", fmt.Errorf("internal/lab/tools/go.mod requires nothing")
}

// Pinned builds prometheus and promtool of the version whose packages the
// engine is made of, and returns the folder with the two. Debian's are of
// another release, which counts the edges of ranges differently.
//
// The source is the released module, with its own go.sum for everything below
// it. Of its service discoveries only those are compiled in that need no cloud's
// library: the others are a list of imports in a package of its own, and more
// than half of the minutes and of the download.
func Pinned() (string, error) {
	version, err := PinnedVersion()
	if err != nil {
		return "", err
	}
	return once("prometheus-"+version, "Prometheus "+version, "built from source, to compare the engine with", func(ctx context.Context, dir string) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildLimit)
		defer cancel()
		return buildPrometheus(ctx, dir)
	})
}

func buildPrometheus(ctx context.Context, dir string) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	download := exec.Command("go", "mod", "download", "-json", "github.com/prometheus/prometheus")
	download.Dir = filepath.Join(root, "internal/lab/tools")
	out, err := run(ctx, download)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &module); err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	// A copy, since the go command lets no file below its cache be replaced. It is
	// not left in the cache of ours: it is in Go's already.
	source, err := os.MkdirTemp("", "prometheus-source")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	if err := copySource(source, module.Dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(source, "plugins/plugins.go"), []byte("package plugins\n"), 0o644); err != nil {
		return err
	}
	version, err := os.ReadFile(filepath.Join(source, "VERSION"))
	if err != nil {
		return err
	}
	flags := "-ldflags=-s -w -X github.com/prometheus/common/version.Version=" + strings.TrimSpace(string(version))
	build := exec.Command("go", "build", "-trimpath", flags, "-o", dir+string(filepath.Separator), "./cmd/prometheus", "./cmd/promtool")
	build.Dir, build.Env = source, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	_, err = run(ctx, build)
	return err
}

// copySource copies the tree, its files writable: those of the module cache are
// not.
func copySource(to, from string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}

// PinnedPromtool is Promtool of the pinned version.
func PinnedPromtool(dir string, args ...string) (string, error) {
	bin, err := Pinned()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(bin, "promtool"), args...)
	cmd.Dir = dir
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return run(ctx, cmd)
}

// StartPinnedPrometheus is StartPrometheus of the pinned version, with more
// options.
func StartPinnedPrometheus(dir, config string, more ...string) (*Prometheus, error) {
	bin, err := Pinned()
	if err != nil {
		return nil, err
	}
	return startPrometheus(filepath.Join(bin, "prometheus"), nil, dir, config, more...)
}

// Get is one answer of Prometheus' HTTP server, whatever its status.
func (p *Prometheus) Get(path string) (*http.Response, error) {
	client := http.Client{Timeout: 30 * time.Second}
	return client.Get("http://" + p.Addr + path)
}
