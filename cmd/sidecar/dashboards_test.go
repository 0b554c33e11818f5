package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func sidecar(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(args, nil, &out, &errs)
	return out.String() + errs.String(), code
}

func TestDashboards(t *testing.T) {
	list, code := sidecar(t, "dashboards")
	names := strings.Fields(list)
	if code != 0 || len(names) != 6 {
		t.Fatalf("exit %d: %s", code, list)
	}
	dir := t.TempDir()
	if out, code := sidecar(t, "dashboards", "-o", dir); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, name := range names {
		printed, code := sidecar(t, "dashboards", name)
		if code != 0 || !json.Valid([]byte(printed)) {
			t.Errorf("dashboards %s: exit %d, %.80s", name, code, printed)
		}
		if written, err := os.ReadFile(filepath.Join(dir, name+".json")); err != nil || string(written) != printed {
			t.Errorf("%s.json in the folder is not what is printed: %v", name, err)
		}
	}
	if out, code := sidecar(t, "dashboards", "nosuch"); code != 1 || !strings.Contains(out, "sidecar dashboards lists them") {
		t.Errorf("unknown board: exit %d: %s", code, out)
	}
	if out, code := sidecar(t, "dashboards", "-o", filepath.Join(dir, "missing")); code != 1 || !strings.Contains(out, "missing") {
		t.Errorf("missing folder: exit %d: %s", code, out)
	}
}

// TestDashboardsAsConfigMaps: what kubectl would apply holds the dashboards, byte
// for byte.
func TestDashboardsAsConfigMaps(t *testing.T) {
	out, code := sidecar(t, "dashboards", "--configmaps")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	dec := yaml.NewDecoder(strings.NewReader(out))
	n := 0
	for {
		var m struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Data map[string]string
		}
		err := dec.Decode(&m)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		if m.Kind != "ConfigMap" || m.Metadata.Labels["grafana_dashboard"] != "1" || len(m.Data) != 1 {
			t.Errorf("%+v", m.Metadata)
		}
		name := strings.TrimPrefix(m.Metadata.Name, "sidecar-dashboard-")
		want, _ := sidecar(t, "dashboards", name)
		if got := m.Data["sidecar-"+name+".json"]; got != want {
			t.Errorf("%s differs in its ConfigMap", name)
		}
	}
	if n != 6 {
		t.Errorf("%d ConfigMaps", n)
	}
}
