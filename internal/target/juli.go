package target

import (
	"path"
	"slices"
	"strings"
)

// This file reads logging.properties of Tomcat's juli, for the files into which
// the server itself writes its records.

// juliLog is one file handler.
type juliLog struct {
	file LogFile
	// root says that the handler gets all records (it is in ".handlers").
	root bool
}

// readJuli finds the file handlers and whether the console has the same records
// as those of the root. base is catalina.base.
func readJuli(p map[string]string, base string, value func(string) string) (logs []juliLog, console bool) {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	}
	all := split(p["handlers"])
	roots := split(p[".handlers"])
	if _, set := p[".handlers"]; !set {
		roots = all
	}
	for _, h := range all {
		if len(logs) >= maxPools {
			break
		}
		class := strings.TrimLeft(h, "0123456789")
		// "1catalina.org.apache.juli.AsyncFileHandler": the prefix ends at the
		// first dot.
		short := class[strings.LastIndexByte(class, '.')+1:]
		get := func(k string) string { return value(p[h+"."+k]) }
		switch short {
		case "ConsoleHandler":
			console = console || slices.Contains(roots, h)
		case "FileHandler", "AsyncFileHandler":
			l := juliLog{root: slices.Contains(roots, h)}
			if pattern := get("pattern"); pattern != "" {
				l.file = utilFile(pattern, base)
			} else {
				l.file = juliFile(get, base)
			}
			logs = append(logs, l)
		}
	}
	return logs, console
}

func juliFile(get func(string) string, base string) LogFile {
	dir := cmpOr(get("directory"), "logs")
	if !path.IsAbs(dir) {
		dir = path.Join(base, dir)
	}
	prefix, suffix := cmpOr(get("prefix"), "juli."), cmpOr(get("suffix"), ".log")
	if strings.EqualFold(get("rotatable"), "false") {
		return fixedFile(path.Join(dir, prefix+suffix))
	}
	return datedFile(path.Clean(dir), prefix, "yyyy-MM-dd", suffix)
}

// utilFile is the file of java.util.logging's own FileHandler: %g and %u are
// numbers, %h the home folder, %t the temporary one.
func utilFile(pattern, base string) LogFile {
	dir, name := path.Split(pattern)
	dir = strings.NewReplacer("%t", "/tmp", "%%", "%").Replace(dir)
	if !path.IsAbs(dir) {
		dir = path.Join(base, dir)
	}
	if !strings.Contains(name, "%") {
		return fixedFile(path.Join(dir, name))
	}
	re := strings.NewReplacer("%g", `\d+`, "%u", `\d+`, "%%", "%").Replace(quote(name))
	return LogFile{
		Name:  FoldName(strings.NewReplacer(".%g", "", ".%u", "", "%g", "", "%u", "", "%%", "%").Replace(name)),
		Dir:   path.Clean(dir),
		Match: "^" + re + "$",
	}
}
