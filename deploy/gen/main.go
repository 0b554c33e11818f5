// Command gen writes the Kubernetes objects that carry the rules and the
// dashboards: a PrometheusRule for each set of rules, a ConfigMap for each
// dashboard, and the kustomization that lists them. rules/ and dashboards/ are
// the truth; `go generate ./deploy/gen` mends the copies, and a test compares
// them.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:generate go run . ../..

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := write(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Folder is where the generated files are, under the root of the checkout.
const Folder = "deploy/kubernetes/monitoring"

func write(root string) error {
	files, err := generated(root)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(root, Folder, "dashboards", "*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(root, Folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const note = "# Generated from %s: go generate ./deploy/gen\n"

// generated is every file by its name under Folder.
func generated(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, set := range []string{"steady", "load"} {
		text, err := prometheusRule(root, set)
		if err != nil {
			return nil, err
		}
		// Each set in a folder of its own: kustomize takes nothing from outside of
		// a kustomization's folder but another kustomization.
		out["rules-"+set+"/rules.yaml"] = text
		out["rules-"+set+"/kustomization.yaml"] = kustomization("The rules of rules/"+set+".", []string{"rules.yaml"})
	}
	boards, err := filepath.Glob(filepath.Join(root, "dashboards", "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(boards)
	resources := []string{"podmonitor.yaml", "rules-steady"}
	for _, path := range boards {
		text, err := configMap(path)
		if err != nil {
			return nil, err
		}
		name := "dashboards/" + base(path) + ".yaml"
		out[name] = text
		resources = append(resources, name)
	}
	out["kustomization.yaml"] = kustomization("PodMonitor, the rules for every day, and the dashboards. The operator must select\n# them: in kube-prometheus-stack add its release label with labels:.", resources)
	return out, nil
}

func base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// prometheusRule makes one object of all rule files of a set. The groups keep
// their comments and the way they are written.
func prometheusRule(root, set string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "rules", set, "*.yml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("rules/%s: no rule files: %w", set, err)
	}
	slices.Sort(files)
	groups := &yaml.Node{Kind: yaml.SequenceNode}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		var doc struct {
			Groups yaml.Node `yaml:"groups"`
		}
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if doc.Groups.Kind != yaml.SequenceNode {
			return "", fmt.Errorf("%s: no groups", path)
		}
		groups.Content = append(groups.Content, doc.Groups.Content...)
	}
	object := mapping(
		"apiVersion", scalar("monitoring.coreos.com/v1"),
		"kind", scalar("PrometheusRule"),
		"metadata", mapping(
			"name", scalar("sidecar-"+set),
			"labels", mapping("app.kubernetes.io/part-of", scalar("sidecar"))),
		"spec", mapping("groups", groups),
	)
	return encode(fmt.Sprintf(note, "rules/"+set), object)
}

// configMap carries a dashboard to Grafana's own sidecar, which looks for this
// label (grafana.sidecar.dashboards of its Helm chart and of
// kube-prometheus-stack).
func configMap(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	object := mapping(
		"apiVersion", scalar("v1"),
		"kind", scalar("ConfigMap"),
		"metadata", mapping(
			"name", scalar("sidecar-dashboard-"+base(path)),
			"labels", mapping(
				"app.kubernetes.io/part-of", scalar("sidecar"),
				"grafana_dashboard", &yaml.Node{Kind: yaml.ScalarNode, Value: "1", Style: yaml.DoubleQuotedStyle})),
		"data", mapping(filepath.Base(path), &yaml.Node{Kind: yaml.ScalarNode, Value: string(data), Style: yaml.LiteralStyle}),
	)
	return encode(fmt.Sprintf(note, "dashboards/"+filepath.Base(path)), object)
}

func kustomization(what string, resources []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, note, "rules/ and dashboards/")
	fmt.Fprintf(&b, `# %s
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
`, what)
	for _, r := range resources {
		fmt.Fprintf(&b, "  - %s\n", r)
	}
	return b.String()
}

func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// mapping takes keys and values in turn, and keeps their order.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		n.Content = append(n.Content, scalar(pairs[i].(string)), pairs[i+1].(*yaml.Node))
	}
	return n
}

func encode(head string, object *yaml.Node) (string, error) {
	var b bytes.Buffer
	b.WriteString(head)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(object); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}
