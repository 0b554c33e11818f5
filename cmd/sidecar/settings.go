package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jvm-sidecar/sidecar/collectors"
	"go.yaml.in/yaml/v3"
)

// loadSettings reads the settings file. No file name is no settings: every
// default stands. A mistake is one line with file, key and reason.
func loadSettings(path string) (*collectors.Config, error) {
	cfg := collectors.Defaults()
	if path == "" {
		return &cfg, nil
	}
	data, err := readSettings(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if err := decodeStrict(path, data, &cfg); err != nil {
		return nil, err
	}
	if key, err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, key, err)
	}
	return &cfg, nil
}

// maxSettings is far more than anybody writes by hand. A device that never
// ends, given by mistake, must not fill the memory.
const maxSettings = 4 << 20

func readSettings(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(data) > maxSettings {
		err = fmt.Errorf("%s: larger than %d MB", path, maxSettings>>20)
	}
	return data, err
}

// decodeStrict decodes one YAML document into v, and refuses keys that v does
// not have. The library names the line of a mistake but not the key; a person
// who looks for the mistake wants both.
func decodeStrict(path string, data []byte, v any) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	err := dec.Decode(v)
	switch {
	case errors.Is(err, io.EOF): // an empty file is no settings
		return nil
	case err != nil:
		return fmt.Errorf("%s: %s", path, nameKeys(err, &doc))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: a second document begins after ---: one is enough", path)
	}
	return nil
}

var atLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// nameKeys turns the library's "line 3: field routs not found in type …" into
// "accesslog.routs (line 3): no such key".
func nameKeys(err error, doc *yaml.Node) string {
	list := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		list = te.Errors
	}
	for i, e := range list {
		m := atLine.FindStringSubmatch(e)
		if m == nil {
			continue
		}
		line, _ := strconv.Atoi(m[1])
		reason := m[2]
		if strings.Contains(reason, "not found in type") {
			reason = "no such key"
		} else {
			reason = strings.ReplaceAll(reason, "!!", "")
			if at := strings.Index(reason, " into "); at >= 0 {
				reason = reason[:at] + ", which does not fit: want " + plainType(reason[at+len(" into "):])
			}
		}
		list[i] = fmt.Sprintf("%s (line %d): %s", keyAt(doc, line), line, reason)
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

// keyAt is the dotted path of the key that stands on a line.
func keyAt(n *yaml.Node, line int) string {
	best := ""
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				p := strings.TrimPrefix(path+"."+key.Value, ".")
				if key.Line <= line {
					best = p
				}
				walk(value, p)
			}
			return
		}
		for i, c := range n.Content {
			p := path
			if n.Kind == yaml.SequenceNode {
				p = fmt.Sprintf("%s[%d]", path, i)
				if c.Line <= line {
					best = p
				}
			}
			walk(c, p)
		}
	}
	walk(n, "")
	return best
}
