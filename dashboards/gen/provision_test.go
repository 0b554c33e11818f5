package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// provisioned reads a file of deploy/grafana, strictly: Grafana passes over a key
// that it doesn't know without a word.
func provisioned(t *testing.T, name string, into any) (text string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../deploy/grafana", name, "sidecar.yml"))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(strings.NewReader(string(raw)))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Errorf("deploy/grafana/%s: %v", name, err)
	}
	return string(raw)
}

// TestProvisioning: Grafana finds the boards where the file says that they are put,
// and has a data source of each kind that they ask.
func TestProvisioning(t *testing.T) {
	var boardsOf struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			AllowUIUpdates     bool `yaml:"allowUiUpdates"`
			Options            struct{ Path string }
		}
	}
	text := provisioned(t, "dashboards", &boardsOf)
	if boardsOf.APIVersion != 1 || len(boardsOf.Providers) != 1 || boardsOf.Providers[0].Type != "file" {
		t.Fatalf("providers: %+v", boardsOf)
	}
	// The words of the comment may be on two lines.
	words := strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " ")
	if path := boardsOf.Providers[0].Options.Path; path == "" || !strings.Contains(words, "sidecar dashboards --output "+path+"`") {
		t.Errorf("Grafana reads %q, and the comment puts the boards elsewhere: %s", path, words)
	}
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, Access, URL string
			JSONData                struct {
				TimeInterval string `yaml:"timeInterval"`
				HTTPMethod   string `yaml:"httpMethod"`
			} `yaml:"jsonData"`
		}
	}
	provisioned(t, "datasources", &sources)
	var kinds []string
	for _, s := range sources.Datasources {
		kinds = append(kinds, s.Type)
		if s.Type == "prometheus" && s.JSONData.TimeInterval != "1s" {
			t.Errorf("the scrape interval of %s is %q: a load run is scraped each second", s.Name, s.JSONData.TimeInterval)
		}
	}
	for _, ref := range []*string{source.Type, loki.Type} {
		if !slices.Contains(kinds, *ref) {
			t.Errorf("the boards ask a data source of type %s; there are %v", *ref, kinds)
		}
	}
}
