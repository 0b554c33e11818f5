package check

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	alertmanager "github.com/prometheus/alertmanager/config"
	"sigs.k8s.io/yaml"
)

func compose(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy/compose/compose.yml")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every file that is mounted is in the repository, and no port leaves loopback.
func TestComposeFile(t *testing.T) {
	p := compose(t)
	if len(p.Services) != 6 {
		t.Errorf("%d services", len(p.Services))
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				if _, ok := p.Volumes[v.Source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, v.Source)
				}
				continue
			}
			if !v.ReadOnly {
				t.Errorf("%s: %s can be written to", name, v.Source)
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts what is not in the repository: %v", name, err)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the network", name, port.Published)
			}
		}
		if s.Build == nil && (!strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest")) {
			t.Errorf("%s: image %s has no tag", name, s.Image)
		}
	}
	s := p.Services["sidecar"]
	if s.Pid != "service:tomcat" || s.User != p.Services["tomcat"].User || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) != 0 {
		t.Errorf("the sidecar: pid %q, user %q, read-only %v, drop %v, add %v", s.Pid, s.User, s.ReadOnly, s.CapDrop, s.CapAdd)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
}

func TestComposeAlertmanager(t *testing.T) {
	c, err := alertmanager.LoadFile(filepath.Join(root, "deploy/compose/alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Route.Receiver != "page" || len(c.InhibitRules) != 1 {
		t.Errorf("%+v", c.Route)
	}
}

// decode reads YAML strictly into a type of ours that has just the keys we use: a
// key that is misspelt is found, though not a value.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy/compose", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Each data source points at a service of the compose file and its port, and the
// uids are those that the dashboards name.
func TestComposeGrafana(t *testing.T) {
	p := compose(t)
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, Type, UID, Access, URL string
			IsDefault                    bool           `json:"isDefault"`
			JSONData                     map[string]any `json:"jsonData"`
		} `json:"datasources"`
	}
	decode(t, "grafana/provisioning/datasources/datasources.yml", &sources)
	for _, d := range sources.Datasources {
		m := regexp.MustCompile(`^http://([a-z]+):(\d+)$`).FindStringSubmatch(d.URL)
		if m == nil {
			t.Errorf("%s: %q", d.Name, d.URL)
			continue
		}
		s, ok := p.Services[m[1]]
		if !ok || !slices.ContainsFunc(s.Ports, func(c types.ServicePortConfig) bool { return c.Published == m[2] }) {
			t.Errorf("%s: no service answers at %s", d.Name, d.URL)
		}
	}
	if len(sources.Datasources) != 3 {
		t.Errorf("%d data sources", len(sources.Datasources))
	}
	var providers struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			AllowUIUpdates     bool              `json:"allowUiUpdates"`
			Options            map[string]string `json:"options"`
		} `json:"providers"`
	}
	decode(t, "grafana/provisioning/dashboards/dashboards.yml", &providers)
	mounted := slices.ContainsFunc(p.Services["grafana"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == providers.Providers[0].Options["path"] && strings.HasSuffix(v.Source, "/dashboards")
	})
	if !mounted {
		t.Error("the dashboards are not where Grafana looks for them")
	}
}

func TestComposeLoki(t *testing.T) {
	var c map[string]any
	decode(t, "loki.yml", &c)
	for _, key := range []string{"auth_enabled", "server", "common", "schema_config", "limits_config", "compactor", "analytics"} {
		if _, ok := c[key]; !ok {
			t.Errorf("loki.yml has no %s", key)
		}
		delete(c, key)
	}
	for key := range c {
		t.Errorf("loki.yml: what is %s?", key)
	}
}

func TestComposeTomcat(t *testing.T) {
	f, err := os.Open(filepath.Join(root, "deploy/compose/tomcat/server.xml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The sidecar's settings are those that its own check takes, and it ships to the
// Loki of the compose file. It is started in the server's network, so that this
// is where the name has to be known.
func TestComposeSidecarShips(t *testing.T) {
	p := compose(t)
	data, err := os.ReadFile(filepath.Join(root, "deploy/compose/sidecar.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Loki struct{ URL string }
	}
	if err := yaml.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(settings.Loki.URL)
	if err != nil || u.Path != "/loki/api/v1/push" {
		t.Fatalf("loki.url is %q: %v", settings.Loki.URL, err)
	}
	service, ok := p.Services[u.Hostname()]
	if !ok || !slices.ContainsFunc(service.Ports, func(port types.ServicePortConfig) bool { return fmt.Sprint(port.Target) == u.Port() }) {
		t.Fatalf("%s is no service with that port", u.Host)
	}
	server := p.Services["tomcat"]
	if p.Services["sidecar"].NetworkMode != "service:tomcat" {
		t.Fatal("the sidecar is not in the server's network")
	}
	shared := false
	for name := range server.Networks {
		_, in := service.Networks[name]
		shared = shared || in
	}
	if !shared {
		t.Errorf("%s is in no network of the server", u.Hostname())
	}
	out, err := exec.Command("go", "run", "-C", root, "./cmd/sidecar", "check", "--config.file=deploy/compose/sidecar.yml").CombinedOutput()
	if err != nil {
		t.Errorf("sidecar check: %v\n%s", err, out)
	}
}
