package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

func TestGeneratedIsUpToDate(t *testing.T) {
	want, err := generated(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(root, Folder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(have) != text {
			t.Errorf("%s/%s is not of rules/ and dashboards/: run go generate ./deploy/gen", Folder, name)
		}
	}
	there, _ := filepath.Glob(filepath.Join(root, Folder, "dashboards", "*"))
	for _, path := range there {
		if _, ok := want["dashboards/"+filepath.Base(path)]; !ok {
			t.Errorf("%s is of nothing any more: run go generate ./deploy/gen", path)
		}
	}
}

// TestRulesSurviveTheTurn: writing YAML anew can fold a text differently; what it
// means must be the same.
func TestRulesSurviveTheTurn(t *testing.T) {
	for _, set := range []string{"load", "steady"} {
		text, err := prometheusRule(root, set)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Spec struct{ Groups []any }
		}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		var want []any
		files, _ := filepath.Glob(filepath.Join(root, "rules", set, "*.yml"))
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f struct{ Groups []any }
			if err := yaml.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			want = append(want, f.Groups...)
		}
		if len(want) == 0 || !reflect.DeepEqual(object.Spec.Groups, want) {
			t.Errorf("%s: %d groups are not the %d of the files", set, len(object.Spec.Groups), len(want))
		}
	}
}
