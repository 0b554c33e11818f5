package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/rules"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// printed is what `sidecar rules` prints.
func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(append([]string{"rules"}, args...), nil, &out, &errs); code != 0 {
		t.Fatalf("sidecar rules %v: exit %d: %s", args, code, errs.String())
	}
	return out.Bytes()
}

// parsed reads rules as Prometheus does, and fails where they name a recording
// rule that is not among them: then they would be silent for ever.
func parsed(t *testing.T, what string, text []byte) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.Parse(text, false)
	if len(errs) > 0 {
		t.Fatalf("%s: %v\n%s", what, errs, text)
	}
	recorded := map[string]bool{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			recorded[r.Record] = true
		}
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				t.Fatal(err)
			}
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok && strings.Contains(v.Name, ":") && !recorded[v.Name] {
					t.Errorf("%s: %s%s needs %s, which is not there", what, r.Alert, r.Record, v.Name)
				}
				return nil
			})
		}
	}
	return groups
}

// count is how many alerts and recording rules there are.
func count(groups *rulefmt.RuleGroups) (alerts, records int) {
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts++
			} else {
				records++
			}
		}
	}
	return alerts, records
}

// The pack as plain files, as one manifest, and each alert alone say the same,
// and promtool takes each of them.
func TestRulesCommand(t *testing.T) {
	for _, pack := range []string{"load", "steady"} {
		t.Run(pack, func(t *testing.T) {
			dir := t.TempDir()
			printed(t, "--pack="+pack, "--out="+dir)
			files, err := fs.Glob(rules.Files, pack+"/*.yml")
			if err != nil || len(files) < 10 {
				t.Fatalf("%d files: %v", len(files), err)
			}
			var check []string
			together := printed(t, "--pack="+pack)
			names, alerts, records := map[string]bool{}, 0, 0
			for _, file := range files {
				want, err := fs.ReadFile(rules.Files, file)
				if err != nil {
					t.Fatal(err)
				}
				to := filepath.Join(dir, path.Base(file))
				if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s is not written as it is: %v", file, err)
				}
				check = append(check, to)
				groups := parsed(t, file, want)
				a, r := count(groups)
				alerts, records = alerts+a, records+r
				for _, g := range groups.Groups {
					for _, r := range g.Rules {
						if r.Alert != "" {
							names[r.Alert] = true
						}
					}
				}
				for _, part := range bytes.Split(want, []byte("\ngroups:\n")) {
					if !bytes.Contains(together, part) {
						t.Errorf("%s is not printed as it is", file)
					}
				}
			}
			if a, r := count(parsed(t, "what is printed", together)); a != alerts || r != records {
				t.Errorf("printed are %d alerts and %d recording rules, the files have %d and %d", a, r, alerts, records)
			}
			all := filepath.Join(dir, "together.yml")
			if err := os.WriteFile(all, together, 0o644); err != nil {
				t.Fatal(err)
			}
			check = append(check, all)
			var manifest struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
				Spec       yaml.Node
			}
			if err := yaml.Unmarshal(printed(t, "--pack="+pack, "--format=prometheusrule"), &manifest); err != nil {
				t.Fatal(err)
			}
			if manifest.APIVersion != "monitoring.coreos.com/v1" || manifest.Kind != "PrometheusRule" || manifest.Metadata.Name != "sidecar-"+pack {
				t.Errorf("%+v", manifest)
			}
			spec, err := yaml.Marshal(&manifest.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if a, r := count(parsed(t, "the manifest", spec)); a != alerts || r != records {
				t.Errorf("the manifest has %d alerts and %d recording rules, the files %d and %d", a, r, alerts, records)
			}
			one := filepath.Join(dir, "manifest.yml")
			if err := os.WriteFile(one, spec, 0o644); err != nil {
				t.Fatal(err)
			}
			check = append(check, one)
			for name := range names {
				text := printed(t, "--pack="+pack, "--alert="+name)
				groups := parsed(t, name, text)
				for _, g := range groups.Groups {
					for _, r := range g.Rules {
						if r.Alert != "" && r.Alert != name {
							t.Errorf("%s alone comes with %s", name, r.Alert)
						}
					}
				}
				if a, _ := count(groups); a < 1 {
					t.Errorf("%s alone is not there", name)
				}
				file := filepath.Join(dir, "alone-"+name+".yml")
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
				check = append(check, file)
			}
			if testing.Short() {
				return
			}
			out, err := lab.Promtool(dir, append([]string{"check", "rules"}, check...)...)
			lab.Need(t, err)
			if n := strings.Count(out, "SUCCESS"); n != len(check) {
				t.Errorf("promtool takes %d of %d:\n%s", n, len(check), out)
			}
			loads(t, all, alerts+records)
		})
	}
	for _, c := range []struct{ arg, want string }{
		{"--alert=NoSuchAlert", `no alert "NoSuchAlert" in the load rules`},
		{"--out=x --alert=TargetDown", "--out writes one file a topic"},
		{"--out=x --format=prometheusrule", "--out writes one file a topic"},
		{"--alert=TargetDown --format=prometheusrule", "--alert gives a rule file"},
		{"weather", `no topic "weather": there are connections, errors, executor`},
	} {
		var out, errs bytes.Buffer
		if code := Main(append([]string{"rules"}, strings.Fields(c.arg)...), nil, &out, &errs); code != 1 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit %d, %s", c.arg, code, errs.String())
		}
	}
	if text := printed(t, "executor", "gc"); !bytes.Contains(text, []byte("load/gc.yml")) {
		t.Error("of two topics one is printed")
	} else {
		parsed(t, "two topics", text)
	}
	if text := printed(t, "executor"); bytes.Contains(text, []byte("load/gc.yml")) || !bytes.Contains(text, []byte("load/executor.yml")) {
		t.Error("one topic prints others")
	}
}

// loads has a real Prometheus load the file, and counts its rules.
func loads(t *testing.T, file string, want int) {
	t.Helper()
	p, err := lab.StartPrometheus(t.TempDir(), fmt.Sprintf("rule_files: [%q]\n", file))
	lab.Need(t, err)
	defer p.Stop()
	res, err := p.Get("/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Data struct {
			Groups []struct {
				File  string
				Rules []struct{ Name string }
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range answer.Data.Groups {
		n += len(g.Rules)
	}
	if n != want {
		t.Errorf("Prometheus has loaded %d rules of %s, want %d", n, file, want)
	}
}
