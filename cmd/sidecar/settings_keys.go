package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mistakes are the keys that a type does not have and the values that do not fit,
// each with the key's whole path. The library names the line of a mistake but
// not the key, and in {cpu: many, memory: 1} many keys stand on one line.
func mistakes(doc *yaml.Node, t reflect.Type) []string {
	k := &keys{}
	for _, n := range doc.Content { // one of a document, none of an empty file
		k.walk(n, t, "")
	}
	return k.errs
}

type keys struct{ errs []string }

func (k *keys) add(path string, line int, reason string) {
	if path == "" {
		path = "settings"
	}
	k.errs = append(k.errs, fmt.Sprintf("%s (line %d): %s", path, line, reason))
}

func (k *keys) walk(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	before := len(k.errs)
	switch {
	case n.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		k.mapping(n, t, path)
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, entry := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			if entry.Tag == "!!null" {
				k.add(at, entry.Line, "there is nothing in this entry")
				continue
			}
			k.walk(entry, t.Elem(), at)
		}
	case cut(n, t):
		k.add(path, n.Line, fmt.Sprintf("%s does not fit: want a whole number", n.Value))
	}
	// What a type of its own makes of the value is asked last, since of a mistake
	// below it the path is known better.
	if len(k.errs) == before {
		if err := n.Decode(reflect.New(t).Interface()); err != nil {
			k.add(path, n.Line, reasonOf(err))
		}
	}
}

func (k *keys) mapping(n *yaml.Node, t reflect.Type, path string) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			for _, merged := range append([]*yaml.Node{value}, value.Content...) {
				if merged.Kind == yaml.AliasNode {
					k.walk(merged, t, path)
				}
			}
			continue
		}
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if line, twice := first[key.Value]; twice {
			k.add(at, key.Line, fmt.Sprintf("is there twice, first in line %d", line))
			continue
		}
		first[key.Value] = key.Line
		if t.Kind() == reflect.Map {
			k.walk(value, t.Elem(), at)
		} else if f, ok := fieldOf(t, key.Value); ok {
			k.walk(value, f, at)
		} else {
			k.add(at, key.Line, "no such key")
		}
	}
}

// fieldOf is the type of the field that a key is for.
func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(options, "inline"):
			if inner, ok := fieldOf(f.Type, key); ok {
				return inner, true
			}
		case !f.IsExported() || name == "-":
		case name == key, name == "" && strings.ToLower(f.Name) == key:
			return f.Type, true
		}
	}
	return nil, false
}

// cut says that the library would make a whole number of 3.7 without a word.
func cut(n *yaml.Node, t reflect.Type) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!float" || t == reflect.TypeFor[time.Duration]() {
		return false
	}
	v := reflect.New(t).Elem()
	if !v.CanInt() && !v.CanUint() {
		return false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return err != nil || f != math.Trunc(f)
}

var atLine = regexp.MustCompile(`^line \d+: `)

// reasonOf says in plain words what the library says of a value.
func reasonOf(err error) string {
	list := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		list = te.Errors
	}
	for i, reason := range list {
		reason = strings.ReplaceAll(atLine.ReplaceAllString(reason, ""), "!!", "")
		if at := strings.Index(reason, " into "); at >= 0 {
			reason = reason[:at] + ", which does not fit: want " + plainType(reason[at+len(" into "):])
		}
		list[i] = reason
	}
	return strings.Join(list, "; ")
}

// plainType says what a Go type means to somebody who writes YAML.
func plainType(t string) string {
	switch {
	case t == "time.Duration":
		return "a duration such as 30s or 1m30s"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["), strings.Contains(t, "."):
		return "a section with keys"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case t == "bool":
		return "true or false"
	}
	return t
}
