package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/jvm-sidecar/sidecar/collectors"
	"go.yaml.in/yaml/v3"
)

const module = "github.com/jvm-sidecar/sidecar"

// settingsTable lists every key with its type, default and the comment that
// stands beside the field in the source.
func settingsTable(root string) string {
	var b strings.Builder
	b.WriteString("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	s := settings{root: root, out: &b, comments: map[string]map[string]string{}}
	s.walk("", reflect.ValueOf(collectors.Defaults()))
	b.WriteString("\n")
	return b.String()
}

type settings struct {
	root     string
	out      *strings.Builder
	comments map[string]map[string]string // folder → "Type.Field" → comment
}

func (s *settings) walk(prefix string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		tag, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if strings.Contains(opts, "inline") && !strings.HasPrefix(f.Type.PkgPath(), module) {
			s.row(prefix+"…", "", "", "How to talk HTTP, with the keys that Prometheus' own programs have: `basic_auth`, `authorization`, `oauth2`, `tls_config`, `proxy_url`, `follow_redirects`, `http_headers`.")
			continue
		}
		if strings.Contains(opts, "inline") {
			s.walk(prefix, v.Field(i))
			continue
		}
		if tag == "" {
			tag = strings.ToLower(f.Name)
		}
		key := prefix + tag
		comment := s.comment(t, f.Name)
		switch ft := f.Type; {
		case ft.Kind() == reflect.Struct && isSection(ft):
			s.walk(key+".", v.Field(i))
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct && isSection(ft.Elem()):
			s.row(key, "list", "", comment)
			s.walk(key+"[].", reflect.New(ft.Elem()).Elem())
		default:
			s.row(key, typeName(ft), defaultText(v.Field(i)), comment)
		}
	}
}

// isSection says that a struct is ours and has keys of its own, as against a
// type that is written as one word.
func isSection(t reflect.Type) bool {
	_, plain := reflect.New(t).Interface().(yaml.Unmarshaler)
	return strings.HasPrefix(t.PkgPath(), module) && !plain
}

func (s *settings) row(key, typ, def, comment string) {
	fmt.Fprintf(s.out, "| `%s` | %s | %s | %s |\n", key, typ, def, comment)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "map"
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "string"
	}
	return strings.TrimPrefix(t.String(), "*")
}

func defaultText(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	text, err := yaml.Marshal(v.Interface())
	if err != nil {
		return fmt.Sprint(v.Interface())
	}
	return "`" + string(bytes.TrimSpace(text)) + "`"
}

// comment is the doc or line comment of a field, read from the source.
func (s *settings) comment(t reflect.Type, field string) string {
	dir := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), module), "/")
	if s.comments[dir] == nil {
		s.comments[dir] = readComments(filepath.Join(s.root, dir))
	}
	return s.comments[dir][t.Name()+"."+field]
}

func readComments(dir string) map[string]string {
	out := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range paths {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				return true
			}
			above, line := "", 0 // a comment above several fields is of them all
			for _, field := range st.Fields.List {
				text := field.Doc.Text()
				if at := files.Position(field.Pos()).Line; text != "" || at != line+1 {
					above = text
				}
				line = files.Position(field.End()).Line
				if text == "" {
					text = field.Comment.Text()
				}
				if text == "" {
					text = above
				}
				text = asKeys(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|"), st)
				for _, name := range field.Names {
					out[ts.Name.Name+"."+name.Name] = text
				}
			}
			return true
		})
	}
	return out
}

// asKeys writes the fields of a struct that its comments name as the keys of the
// settings file: whoever reads the table knows those alone.
func asKeys(text string, st *ast.StructType) string {
	for _, field := range st.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml")
		key, _, _ := strings.Cut(tag, ",")
		for _, name := range field.Names {
			if key != "" && key != "-" {
				before := `(^|[\s(])`
				if name.Name == strings.ToUpper(name.Name) {
					before = `(^)` // HTTP and TLS are words of their own elsewhere
				}
				text = regexp.MustCompile(before+name.Name+`\b`).ReplaceAllString(text, "${1}`"+key+"`")
			}
		}
	}
	return text
}
