package target

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// This file finds the GC logs in a JVM's options. Up to JDK 8 there is one,
// -Xloggc:FILE, where %p becomes "pid" and the number, and which
// -XX:+UseGCLogFileRotation spreads over FILE.0, FILE.1 and so on, the live one
// with ".current" behind from 7u40 on. From JDK 9 on -Xlog:WHAT:FILE may be
// given several times, rotated files get ".0", ".1" and the live one keeps its
// name. All are relative to the folder the JVM was started in.

// gcOption is one GC log as an option names it.
type gcOption struct {
	template string // with %p, %t, %hn
	unified  bool
	rotated  bool // FILE.0 and so on are the live names (JDK 8)
	flag     string
}

func gcOptions(o *jvmOptions, major int) []gcOption {
	var out []gcOption
	seen := map[string]bool{}
	add := func(g gcOption) {
		g.template = strings.Trim(g.template, `"`)
		if g.template != "" && !seen[g.template] && len(out) < 16 {
			seen[g.template] = true
			out = append(out, g)
		}
	}
	for _, f := range o.flags {
		if name, ok := strings.CutPrefix(f, "-Xloggc:"); ok {
			g := gcOption{template: name, flag: f, unified: major >= 9}
			g.rotated = !g.unified && o.has("UseGCLogFileRotation")
			add(g)
			continue
		}
		if spec, ok := strings.CutPrefix(f, "-Xlog:"); ok {
			if name, ok := unifiedFile(spec); ok {
				add(gcOption{template: name, unified: true, flag: f})
			}
		}
	}
	return out
}

// unifiedFile finds the file of an -Xlog option that has to do with gc or
// safepoints: what:output:decorators:options. A colon of a Windows drive does
// not part; output may be quoted.
func unifiedFile(spec string) (string, bool) {
	what, rest, ok := strings.Cut(spec, ":")
	if !ok {
		return "", false
	}
	gc := what == "" || what == "all" || strings.HasPrefix(what, "all=")
	for tags := range strings.SplitSeq(what, ",") {
		tags, _, _ = strings.Cut(tags, "=")
		for tag := range strings.SplitSeq(tags, "+") {
			gc = gc || strings.HasPrefix(tag, "gc") || strings.HasPrefix(tag, "safepoint")
		}
	}
	if !gc {
		return "", false
	}
	out := strings.TrimPrefix(rest, "file=")
	switch {
	case strings.HasPrefix(out, `"`):
		if end := strings.IndexByte(out[1:], '"'); end >= 0 {
			return out[1 : 1+end], true
		}
		return "", false
	case len(out) > 2 && out[1] == ':' && (out[2] == '\\' || out[2] == '/'):
		name, _, _ := strings.Cut(out[2:], ":")
		return out[:2] + name, true
	}
	out, _, _ = strings.Cut(out, ":")
	if out == "" || out == "stdout" || out == "stderr" || strings.HasPrefix(out, "#") {
		return "", false
	}
	return out, true
}

// GCLogOnStdout says that the JVM logs its collections, and to standard output
// alone: among the lines of the application.
func (t *Target) GCLogOnStdout() bool {
	if len(t.GCLogs) > 0 {
		return false
	}
	for _, a := range t.Process.Args {
		switch {
		case a == "-verbose:gc", a == "-XX:+PrintGC", a == "-XX:+PrintGCDetails", a == "-Xlog":
			return true
		case strings.HasPrefix(a, "-Xlog:"):
			what, rest, _ := strings.Cut(a[len("-Xlog:"):], ":")
			out, _, _ := strings.Cut(rest, ":")
			if (out == "" || out == "stdout") && !strings.HasSuffix(what, "=off") && what != "disable" && strings.Contains(what, "gc") {
				return true
			}
		}
	}
	return false
}

// file makes the option into a stream. nspid is the JVM's pid in its own
// namespace. The second result is a pattern of whole paths, for the comparison
// with open descriptors, in which %t and %hn may be anything of their kind.
func (g gcOption) file(cwd string, nspid int) (LogFile, *regexp.Regexp) {
	full := g.template
	if !path.IsAbs(full) {
		full = path.Join(cwd, full)
	}
	dir, base := path.Split(path.Clean(full))
	pid := strconv.Itoa(nspid)
	if !g.unified {
		pid = "pid" + pid
	}
	const date = `\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d`
	expand := func(s string) string {
		return strings.NewReplacer("%p", quote(pid), "%t", date, "%hn", `[^/]+`, "%%", "%").Replace(quote(s))
	}
	tail := ""
	if g.rotated {
		tail = `(?:\.\d+(?:\.current)?)?`
	}
	f := LogFile{Name: FoldName(foldTemplate(base)), Dir: path.Clean(dir)}
	switch {
	case g.rotated || strings.Contains(base, "%t") || strings.Contains(base, "%hn") || strings.Contains(base, "%p"):
		// With this very pid: another JVM may have the same option and folder.
		f.Match = "^" + expand(base) + tail + "$"
	default:
		f.Path = path.Clean(full)
	}
	re, err := regexp.Compile("^" + expand(path.Clean(full)) + tail + "$")
	if err != nil {
		return f, nil
	}
	return f, re
}

// foldTemplate takes the placeholders out of a name, with one separator each.
func foldTemplate(base string) string {
	for _, p := range []string{"%p", "%t", "%hn"} {
		for _, sep := range []string{"-", "_", "."} {
			base = strings.ReplaceAll(base, sep+p, "")
		}
		for _, sep := range []string{"-", "_"} {
			base = strings.ReplaceAll(base, p+sep, "")
		}
		base = strings.ReplaceAll(base, p, "")
	}
	if strings.HasPrefix(base, ".") {
		base = "gc" + base
	}
	return cmpOr(base, "gc.log")
}
