package target

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Settings prints targets as a settings file that can be used as it is: each
// value with a comment that says how it was learnt. What can't be seen, and the
// settings that will hurt, stand above each server as comments.
func Settings(ts []*Target) ([]byte, error) {
	servers := &yaml.Node{Kind: yaml.SequenceNode}
	for _, t := range ts {
		n, err := t.settingsNode()
		if err != nil {
			return nil, fmt.Errorf("print target %s: %w", t.Name, err)
		}
		servers.Content = append(servers.Content, n)
	}
	section := mapping("discover", &yaml.Node{Kind: yaml.ScalarNode, Value: "on"})
	section.Content[1].LineComment = "look for servers that are not listed here too"
	if len(servers.Content) > 0 {
		section.Content = append(section.Content, scalar("servers"), servers)
	}
	doc := mapping("targets", section)
	doc.HeadComment = "What sidecar discover found. Lists given here take the place of what is discovered;\nleave out what may be discovered anew."
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(key), value}}
}

// server is the target as the settings have it.
func (t *Target) server() Server {
	s := Server{Name: t.Name, Kind: t.Kind, Version: t.Version, Home: t.Home, Base: t.Base,
		Connectors: t.Connectors, Executors: t.Executors, AccessLogs: t.AccessLogs, AppLogs: t.AppLogs, GCLogs: t.GCLogs}
	if t.Kind == JVM {
		s.Match = Match{MainClass: t.Process.MainClass, Cwd: t.Process.Cwd}
	} else {
		s.Match = Match{Base: t.Base}
		if p := servingPorts(t.Connectors); len(p) > 0 {
			s.Match.Port = p[0] // containers have the same base each
		}
	}
	if s.Match.empty() {
		s.Match.PID = t.Process.PID
	}
	return s
}

func (t *Target) settingsNode() (*yaml.Node, error) {
	n := &yaml.Node{}
	if err := n.Encode(t.server()); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch value.Kind {
		case yaml.ScalarNode:
			value.LineComment = t.how(key.Value, "")
		case yaml.SequenceNode:
			list := key.Value
			if list == "executors" || list == "access_logs" {
				list = "connectors" // all three are from the same files
			}
			key.HeadComment = t.how(list, "")
			for _, item := range value.Content {
				t.comment(key.Value, item)
			}
		}
	}
	n.HeadComment = t.about()
	return n, nil
}

// comment puts beside one log how it was found, and leaves out what is no
// setting.
func (t *Target) comment(list string, item *yaml.Node) {
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, value := item.Content[i].Value, item.Content[i+1]
		switch key {
		case "listening":
			item.Content = slices.Delete(item.Content, i, i+2)
			i -= 2
		case "path":
			if value.Value != "" {
				value.LineComment = t.how(list, value.Value)
			}
		}
	}
}

// how says where the facts about a key are from; with part, only those that
// name it.
func (t *Target) how(key, part string) string {
	var out []string
	for _, f := range t.Learned {
		about := strings.HasPrefix(f.What, "the log ") || strings.HasPrefix(f.What, "the console log ") ||
			strings.HasPrefix(f.What, "the GC log ") || strings.HasPrefix(f.What, "the access log ")
		if f.Key != key || part == "" && about || part != "" && !strings.HasSuffix(f.What, " "+part) {
			continue
		}
		if !slices.Contains(out, f.From) {
			out = append(out, f.From)
		}
	}
	return clean(strings.Join(out, "; "), 400)
}

// about is what stands above a server: what runs it, what can't be seen, and
// what will hurt.
func (t *Target) about() string {
	who := strings.TrimSpace(fmt.Sprintf("%s: %s %s", t.Name, t.Kind, t.Version))
	java := ""
	if t.JDK.Version != "" {
		java = strings.TrimSpace(fmt.Sprintf(", Java %s %s", t.JDK.Version, t.JDK.VM))
	}
	lines := []string{fmt.Sprintf("%s, pid %d of user %d%s", who, t.Process.PID, t.Process.UID, java)}
	for _, b := range t.Blind {
		line := fmt.Sprintf("can't see (%s, %s): %s", b.Source, b.Reason, b.Detail)
		if b.Needs != "" {
			line += "; needs " + b.Needs
		}
		lines = append(lines, line)
	}
	for _, f := range t.Findings {
		lines = append(lines, fmt.Sprintf("will hurt (%s): %s", f.ID, f.Detail))
	}
	for i, l := range lines {
		lines[i] = clean(l, 1000)
	}
	return strings.Join(lines, "\n")
}
