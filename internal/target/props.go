package target

import (
	"strconv"
	"strings"
)

// parseProperties reads a file in Java's .properties form: "key=value",
// "key: value" or "key value", comments with # and !, lines continued by a
// backslash. Escapes are undone; a wrong one is kept as it stands.
func parseProperties(data []byte) map[string]string {
	out := map[string]string{}
	var whole strings.Builder
	for line := range strings.SplitSeq(strings.ReplaceAll(string(data), "\r", "\n"), "\n") {
		line = strings.TrimLeft(line, " \t\f")
		if whole.Len() == 0 && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		slashes := len(line) - len(strings.TrimRight(line, `\`))
		if slashes%2 == 1 {
			whole.WriteString(line[:len(line)-1])
			continue
		}
		whole.WriteString(line)
		addProperty(out, whole.String())
		whole.Reset()
	}
	addProperty(out, whole.String())
	return out
}

func addProperty(out map[string]string, line string) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	key := unescapeProperty(line[:end])
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if key != "" {
		out[key] = unescapeProperty(rest)
	}
}

func unescapeProperty(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					b.WriteRune(rune(n))
					i += 4
					continue
				}
			}
			b.WriteByte('u')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

const (
	// maxExpand bounds ${a} that holds ${b} that holds ${a}.
	maxExpand = 8
	// maxExpanded bounds what may come out.
	maxExpanded = 16 << 10
)

// expand replaces ${name} and ${name:-default}. A name that nobody knows stays
// as it is, which is what Tomcat does with it too.
func expand(s string, lookup func(string) (string, bool)) string {
	for range maxExpand {
		if !strings.Contains(s, "${") {
			return s
		}
		out, changed := expandOnce(s, lookup)
		if !changed || len(out) > maxExpanded {
			return s
		}
		s = out
	}
	return s
}

func expandOnce(s string, lookup func(string) (string, bool)) (string, bool) {
	var b strings.Builder
	changed := false
	for {
		from := strings.Index(s, "${")
		if from < 0 {
			break
		}
		to := strings.IndexByte(s[from:], '}')
		if to < 0 {
			break
		}
		// The innermost of ${a${b}} goes first.
		if inner := strings.LastIndex(s[from:from+to], "${"); inner > 0 {
			b.WriteString(s[:from+inner])
			s, to, from = s[from+inner:], to-inner, 0
		}
		name := s[from+2 : from+to]
		b.WriteString(s[:from])
		value, ok := lookup(name)
		if !ok {
			if n, def, has := strings.Cut(name, ":-"); has {
				if value, ok = lookup(n); !ok {
					value, ok = def, true
				}
			}
		}
		if ok {
			b.WriteString(value)
			changed = true
		} else {
			b.WriteString(s[from : from+to+1])
		}
		s = s[from+to+1:]
		if b.Len() > maxExpanded {
			return "", false
		}
	}
	b.WriteString(s)
	return b.String(), changed
}
