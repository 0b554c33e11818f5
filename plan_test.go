// Package sidecar holds the tests that speak of the whole tree.
package sidecar

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/jvm-sidecar/sidecar/"

// imports reads the import lines of every non-test source file of the tree. It
// parses in its own process: a test that runs `go list` is answered from the
// test cache and goes stale.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if !slices.Contains(out[pkg], p) {
				out[pkg] = append(out[pkg], p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rooms are the folders directly under collectors.
func isRoom(pkg string) bool { return strings.HasPrefix(pkg, "collectors/") }

// room is the first folder under collectors: a room's bench folder is a part of it.
func room(pkg string) string {
	return strings.SplitN(strings.TrimPrefix(pkg, "collectors/"), "/", 2)[0]
}

func under(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// isTool says that a package is a program beside the product: benchmarks, the
// lab that starts real servers, the builder of the dashboards.
func isTool(pkg string) bool {
	return under(pkg, "internal/lab", "dashboards/gen") || strings.Contains(pkg+"/", "/bench/") || strings.Contains(pkg+"/", "/gen/")
}

// TestImportPlan holds the walls of the house: what may import what.
func TestImportPlan(t *testing.T) {
	for pkg, list := range imports(t) {
		if isTool(pkg) {
			continue
		}
		for _, imp := range list {
			if why := forbidden(pkg, imp); why != "" {
				t.Errorf("%s imports %s: %s", pkg, imp, why)
			}
		}
	}
}

func forbidden(pkg, imp string) string {
	own, ours := strings.CutPrefix(imp, module)
	switch {
	case imp == "os/exec" && !under(pkg, "cmd/sidecar"):
		return "only a subcommand that exists to start a program may"
	case imp == "net/http" && !under(pkg, "internal/web", "internal/ship", "internal/notify", "internal/engine", "cmd"):
		return "only web, ship, notify, engine and cmd speak HTTP"
	case imp == "flag" && !under(pkg, "cmd"):
		return "flags belong to cmd/sidecar"
	case imp == "gopkg.in/yaml.v3":
		return "use go.yaml.in/yaml/v3, which is kept up"
	case strings.HasPrefix(imp, "github.com/grafana/grafana-foundation-sdk"):
		return "only the builder in dashboards/gen needs it, so that it stays out of the binary"
	case !ours:
		return ""
	case under(own, "cmd"):
		return "nobody imports cmd"
	case isTool(own):
		return "the product imports no tool"
	case isRoom(pkg) && isRoom(own) && room(pkg) != room(own):
		return "rooms don't know each other"
	case isRoom(pkg) && under(own, "internal/follow", "internal/engine", "internal/ship", "internal/web", "internal/notify"):
		return "a room is bytes in, numbers out"
	case under(pkg, "internal") && under(own, "collectors"):
		return "internal does not know the collectors"
	case under(pkg, "rules", "dashboards"):
		return "rules and dashboards know metric names, not code"
	}
	return ""
}

// TestForbiddenForbids shows that the plan above can fail.
func TestForbiddenForbids(t *testing.T) {
	for _, c := range []struct{ pkg, imp string }{
		{"collectors/gclog", module + "collectors/applog"},
		{"collectors/gclog", module + "internal/follow"},
		{"internal/metric", module + "collectors"},
		{"internal/web", module + "cmd/sidecar"},
		{"collectors/process", "os/exec"},
		{"collectors", "net/http"},
		{"internal/follow", "flag"},
		{"rules", module + "collectors"},
		{"cmd/sidecar", module + "internal/lab"},
		{"dashboards", "github.com/grafana/grafana-foundation-sdk/go/dashboard"},
	} {
		if forbidden(c.pkg, c.imp) == "" {
			t.Errorf("%s may import %s", c.pkg, c.imp)
		}
	}
	if why := forbidden("collectors", module+"internal/follow"); why != "" {
		t.Error(why)
	}
}

// TestParsersDoNotAskTheTime keeps time.Now out of rooms that parse: what they
// make of a line may not depend on when it is read.
func TestParsersDoNotAskTheTime(t *testing.T) {
	for _, dir := range []string{"collectors/gclog", "collectors/accesslog", "collectors/applog", "internal/engine"} {
		files, _ := filepath.Glob(dir + "/*.go")
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if uses(f, "time", "Now") {
				t.Errorf("%s calls time.Now", path)
			}
		}
	}
}

// uses says whether the file names pkg.name.
func uses(f *ast.File, pkg, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				found = true
			}
		}
		return !found
	})
	return found
}
