package target

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// An element is one node of a settings file. The files are small, so a tree is
// simplest; the bounds below keep a hostile one small as well.
type element struct {
	name     string
	attr     map[string]string
	children []*element
	text     string // of a text node
}

// content is the text directly inside of the element.
func (e *element) content() string {
	var b strings.Builder
	for _, c := range e.children {
		b.WriteString(c.text)
	}
	return b.String()
}

// textNode is the name of the nodes that hold text between elements.
const textNode = "#text"

const (
	maxXML      = 4 << 20
	maxElements = 50_000
	maxDepth    = 64
	maxText     = 64 << 10
)

// errXMLBounds says that a settings file is larger or deeper than any real one.
var errXMLBounds = errors.New("too many elements, too deep or too long")

// entityDecl finds the entities that a DOCTYPE declares with a literal value.
var entityDecl = regexp.MustCompile(`<!ENTITY\s+([\w.\-]+)\s+(?:"([^"<&%]*)"|'([^'<&%]*)')\s*>`)

// externalDecl finds those whose value is in another file. That file is never
// read; the entity is empty here.
var externalDecl = regexp.MustCompile(`<!ENTITY\s+([\w.\-]+)\s+(?:SYSTEM|PUBLIC)\b`)

// parseXML reads a settings file into a tree. Comments are passed over.
// Entities are replaced once, by literal text from the DOCTYPE: an entity that
// names others is taken for unknown, so nothing can grow.
func parseXML(data []byte) (root *element, external bool, err error) {
	if len(data) > maxXML {
		return nil, false, errXMLBounds
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Entity = map[string]string{}
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.HasPrefix(strings.ToLower(charset), "utf-16") {
			return nil, fmt.Errorf("encoding %s", clean(charset, 40))
		}
		return latin1{in}, nil
	}
	top := &element{}
	stack := []*element{top}
	count := 0
	for {
		tok, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, external, err
		}
		at := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			if count++; count > maxElements || len(stack) > maxDepth {
				return nil, external, errXMLBounds
			}
			e := &element{name: t.Name.Local, attr: make(map[string]string, len(t.Attr))}
			for _, a := range t.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			at.children = append(at.children, e)
			stack = append(stack, e)
		case xml.EndElement:
			if len(stack) == 1 || at.name != t.Name.Local {
				line, _ := d.InputPos()
				return nil, external, fmt.Errorf("line %d: </%s> without its beginning", line, clean(t.Name.Local, 60))
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				if count++; count > maxElements || len(text) > maxText {
					return nil, external, errXMLBounds
				}
				at.children = append(at.children, &element{name: textNode, text: text})
			}
		case xml.Directive:
			for _, m := range entityDecl.FindAllSubmatch(t, 100) {
				d.Entity[string(m[1])] = string(m[2]) + string(m[3])
			}
			for _, m := range externalDecl.FindAllSubmatch(t, 100) {
				d.Entity[string(m[1])] = ""
				external = true
			}
		}
	}
	if len(stack) != 1 {
		return nil, external, fmt.Errorf("<%s> does not end", clean(stack[len(stack)-1].name, 60))
	}
	if len(top.children) != 1 || top.children[0].name == textNode {
		return nil, external, errors.New("no single root element")
	}
	return top.children[0], external, nil
}

// each calls do with the direct children of that name.
func (e *element) each(name string, do func(*element)) {
	for _, c := range e.children {
		if c.name == name {
			do(c)
		}
	}
}

// walk calls do with the element and all beneath it, until do says stop.
func (e *element) walk(do func(*element) bool) bool {
	if !do(e) {
		return false
	}
	for _, c := range e.children {
		if !c.walk(do) {
			return false
		}
	}
	return true
}

// latin1 reads any encoding that has ASCII in its lower half as Latin-1. What
// is needed from a settings file is ASCII; other letters come out as some
// letters.
type latin1 struct{ in io.Reader }

func (l latin1) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	raw := make([]byte, len(p)/2)
	n, err := l.in.Read(raw)
	out := p[:0]
	for _, c := range raw[:n] {
		out = appendLatin1(out, c)
	}
	return len(out), err
}

func appendLatin1(out []byte, c byte) []byte {
	if c < 0x80 {
		return append(out, c)
	}
	return append(out, 0xc0|c>>6, 0x80|c&0x3f)
}
