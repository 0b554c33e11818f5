package target

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// This file decides which file is which log: GC logs by the options, access and
// server logs by the settings, catalina.out by descriptors 1 and 2, and the rest
// by what the process holds open.

// matches says whether a path is a file of the stream.
func (f LogFile) matches(p string, re *regexp.Regexp) bool {
	if f.Path != "" && f.Path == p {
		return true
	}
	return re != nil && path.Dir(p) == f.Dir && re.MatchString(path.Base(p))
}

// take marks the open files of a stream as known, and says whether there are any.
func (b *builder) take(f LogFile) (open string, any bool) {
	re, _ := f.Pattern()
	for _, d := range b.fds {
		if (d.regular || d.unknown) && f.matches(d.path, re) {
			b.taken[d.path] = true
			open, any = d.path, true
			if d.deleted {
				b.find("log_deleted_but_open", "%s was deleted, but the server still writes to it: what it writes can't be seen by name and fills the disk until it is closed", d.path)
			}
		}
	}
	return open, any
}

func (b *builder) gcLogs() {
	for _, g := range gcOptions(b.o, b.t.JDK.Major) {
		if b.cwd == "" && !path.IsAbs(g.template) {
			b.blind("gclog", "no_permission", "CAP_SYS_PTRACE, or the user of the process", "the GC log %s is relative to a working directory that can't be read", clean(g.template, 200))
			continue
		}
		f, re := g.file(b.cwd, b.nspid)
		from := g.flag
		open := ""
		for _, d := range b.fds {
			if (d.regular || d.unknown) && !d.outside && re != nil && re.MatchString(d.path) {
				open = d.path
				b.taken[d.path] = true
			}
		}
		switch {
		case open != "":
			from += ", and the open file " + open
			if !g.rotated {
				f.Path, f.Match = open, ""
			}
		case f.Path == "" && !g.rotated:
			if n := b.newest(f); n != "" {
				f.Path, f.Match = n, ""
			}
		}
		b.t.GCLogs = append(b.t.GCLogs, GCLog{LogFile: f, Unified: g.unified, Options: clean(MaskText(g.flag), 256)})
		b.learn("gc_logs", "the GC log "+cmpOr(f.Path, path.Join(f.Dir, f.Match)), clean(from, 300))
	}
	if len(b.t.GCLogs) > 0 {
		return
	}
	// No option was seen (an @argfile without hsperfdata): an open file with
	// such a name is one all the same.
	for _, d := range b.fds {
		base := path.Base(d.path)
		if d.writes && !d.outside && (d.regular || d.unknown) && gcName.MatchString(base) && !b.taken[d.path] && len(b.t.GCLogs) < 4 {
			b.taken[d.path] = true
			f := fixedFile(d.path)
			b.t.GCLogs = append(b.t.GCLogs, GCLog{LogFile: f, Unified: b.t.JDK.Major == 0 || b.t.JDK.Major >= 9})
			b.learn("gc_logs", "the GC log "+d.path, "an open file of that name; no option was seen")
		}
	}
	if b.t.GCLogOnStdout() {
		if !slices.ContainsFunc(b.fds, func(d descriptor) bool { return d.number == 1 && d.regular && !d.outside && !d.deleted }) {
			b.blind("gclog", "on_stdout", "-Xlog:gc*:file=… or -Xloggc:…", "the GC log goes to standard output, which is no file that can be read")
		}
		return
	}
	if len(b.t.GCLogs) == 0 && !slices.ContainsFunc(b.t.Blind, func(x Blind) bool { return x.Source == "gclog" }) {
		b.blind("gclog", "not_enabled", "-Xlog:gc*:file=… or -Xloggc:…", "the JVM writes no GC log")
	}
}

var gcName = regexp.MustCompile(`(?i)(?:^|[._\-])gc(?:[._\-]|log|$).*`)

// newest finds the newest file of a stream, for a name with %p or %t that no
// open descriptor shows.
func (b *builder) newest(f LogFile) string {
	re, err := f.Pattern()
	if re == nil || err != nil {
		return ""
	}
	best := input{}
	for _, n := range b.w.list(f.Dir, 10_000) {
		if !re.MatchString(n) {
			continue
		}
		if in := statInput(path.Join(b.w.root, f.Dir, n)); in.mod.After(best.mod) {
			best, best.path = in, path.Join(f.Dir, n)
		}
	}
	return best.path
}

// outputs looks where descriptors 1 and 2 go. A regular file there is the one
// complete log (catalina.out). A pipe belongs to somebody else and is not
// touched; then the server's own file must do, and raw lines are missing.
func (b *builder) outputs() {
	var files []string
	elsewhere := ""
	for _, d := range b.fds {
		if d.number != 1 && d.number != 2 {
			continue
		}
		switch {
		case d.regular && d.deleted:
			b.find("log_deleted_but_open", "%s (descriptor %d) was deleted, but the server still writes to it", d.path, d.number)
		case d.regular && d.outside:
			elsewhere = "a file outside of the target's root, " + d.path
		case (d.regular || d.unknown) && strings.HasPrefix(d.path, "/") && !strings.HasPrefix(d.path, "/dev/"):
			if !slices.Contains(files, d.path) {
				files = append(files, d.path)
			}
		case d.path != "":
			elsewhere = d.path
		}
	}
	for i, f := range files {
		role := "primary"
		if i > 0 {
			role = "own"
		}
		b.taken[f] = true
		b.t.AppLogs = append([]AppLog{{LogFile: fixedFile(f), Role: role}}, b.t.AppLogs...)
		b.learn("app_logs", "the console log "+f, "descriptors 1 and 2")
	}
	if len(files) > 0 {
		slices.SortStableFunc(b.t.AppLogs, func(x, y AppLog) int { return roleOrder(x) - roleOrder(y) })
		return
	}
	if out := b.abs(b.environ["CATALINA_OUT"]); b.fdsDenied && b.t.Kind == Tomcat {
		// Without a look at the descriptors the usual place is the best guess.
		out = cmpOr(out, path.Join(b.t.Base, "logs/catalina.out"))
		if b.w.regular(out) {
			b.t.AppLogs = append([]AppLog{{LogFile: fixedFile(out), Role: "primary"}}, b.t.AppLogs...)
			b.learn("app_logs", "the console log "+out, "its usual place; the descriptors can't be read")
			return
		}
	}
	if len(b.fds) == 0 && !b.fdsDenied {
		return
	}
	what := "not open"
	switch {
	case b.fdsDenied:
		what = "not visible for lack of rights"
	case strings.HasPrefix(elsewhere, "pipe:"):
		what = "a pipe, whose lines belong to its reader"
	case strings.HasPrefix(elsewhere, "socket:"):
		what = "a socket (the journal's, usually)"
	case elsewhere == "/dev/null":
		what = "/dev/null"
	case elsewhere != "":
		what = clean(elsewhere, 200)
	}
	reason, needs := "stdout_is_pipe", ""
	switch {
	case b.fdsDenied:
		reason, needs = "no_permission", "CAP_SYS_PTRACE, or the user of the process"
	case elsewhere == "/dev/null":
		reason = "stdout_is_null"
	case strings.HasPrefix(elsewhere, "a file"):
		reason = "stdout_is_outside"
	}
	for i := range b.t.AppLogs {
		if b.t.AppLogs[i].Role == "copy" {
			b.t.AppLogs[i].Role, b.t.AppLogs[i].Incomplete = "primary", true
			b.blind("applog", reason, needs, "standard output is %s: %s is read instead, in which raw lines of the JVM and of programs may be missing", what, b.t.AppLogs[i].Name)
			return
		}
	}
	b.blind("applog", reason, needs, "standard output is %s, and no log of the server's own stands in for it", what)
}

func roleOrder(a AppLog) int {
	switch a.Role {
	case "primary":
		return 0
	case "copy":
		return 1
	}
	return 2
}

// maxLogs bounds the logs of one target. A program may hold a million files
// open; beyond this the rest is said to be left out.
const maxLogs = 40

// openLogs takes the remaining log files that the process has open. Those of
// the settings are marked first.
func (b *builder) openLogs() {
	for i := range b.t.AccessLogs {
		b.take(b.t.AccessLogs[i].LogFile)
	}
	for i := range b.t.AppLogs {
		b.take(b.t.AppLogs[i].LogFile)
	}
	left := 0
	primary := slices.ContainsFunc(b.t.AppLogs, func(a AppLog) bool { return a.Role == "primary" })
	for _, d := range b.fds {
		if d.number <= 2 || !d.writes || d.deleted || d.outside || b.taken[d.path] || !(d.regular || d.unknown) || !looksLikeLog(d.path) {
			continue
		}
		b.taken[d.path] = true
		if len(b.t.AppLogs)+len(b.t.AccessLogs) >= maxLogs {
			left++
			continue
		}
		f := observedFile(d.path)
		if isAccessName(path.Base(d.path)) {
			format := "tomcat"
			if b.t.Kind == Jetty {
				format = "jetty"
			}
			counted := !slices.ContainsFunc(b.t.AccessLogs, func(a AccessLog) bool { return a.Counted })
			b.t.AccessLogs = append(b.t.AccessLogs, AccessLog{LogFile: f, Format: format, Scope: "engine", Buffered: true, Rotatable: f.Match != "", Counted: counted})
			b.learn("access_logs", "the access log "+d.path, "an open file; no setting names it, so its pattern is not known")
			continue
		}
		a := AppLog{LogFile: f, Role: "own"}
		if b.t.Kind == Jetty && !primary && jettyConsole.MatchString(f.Name) {
			// The module console-capture writes standard output there from within
			// Java; what the JVM itself prints is not in it.
			a.Role, a.Incomplete, primary = "primary", true, true
		}
		b.t.AppLogs = append(b.t.AppLogs, a)
		b.learn("app_logs", "the log "+d.path, "an open file")
	}
	if left > 0 {
		b.blind("applog", "too_many_logs", "", "%d more log files are open than the %d that are followed", left, maxLogs)
	}
}

var jettyConsole = regexp.MustCompile(`(?i)(?:^|[._\-])(?:jetty|stderrout)\.log$`)

// observedFile makes a stream of one file that was seen: a date in its name
// makes its successors part of it.
func observedFile(p string) LogFile {
	dir, base := path.Split(p)
	at := dateInName.FindStringIndex(base)
	if at == nil {
		return fixedFile(p)
	}
	date := regexp.MustCompile(`\d`).ReplaceAllString(quote(base[at[0]:at[1]]), `\d`)
	return LogFile{Name: FoldName(base), Dir: path.Clean(dir),
		Match: "^" + quote(base[:at[0]]) + date + quote(base[at[1]:]) + "$"}
}

var dateInName = regexp.MustCompile(`(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_T.][0-2]\d(?:[-_:]?[0-5]\d){0,2})?`)

var logSuffix = regexp.MustCompile(`(?i)\.(?:log|out|err|txt|json)(?:[._\-]?\d+)?$|(?:^|[._\-])log(?:[._\-]|$)|[._\-](?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d`)

func looksLikeLog(p string) bool {
	for _, no := range []string{"/dev/", "/proc/", "/sys/", "/memfd:", "/SYSV"} {
		if strings.HasPrefix(p, no) {
			return false
		}
	}
	if !strings.HasPrefix(p, "/") {
		return false
	}
	return logSuffix.MatchString(path.Base(p))
}

func isAccessName(base string) bool {
	l := strings.ToLower(base)
	return strings.Contains(l, "access") && !strings.Contains(l, "accessor") || strings.Contains(l, "request.log") || strings.Contains(l, "requestlog")
}

// finish puts the name, the labels and the findings in place.
func (b *builder) finish() {
	b.name()
	var all []*LogFile
	for i := range b.t.AccessLogs {
		all = append(all, &b.t.AccessLogs[i].LogFile)
	}
	for i := range b.t.AppLogs {
		all = append(all, &b.t.AppLogs[i].LogFile)
	}
	for i := range b.t.GCLogs {
		all = append(all, &b.t.GCLogs[i].LogFile)
	}
	uniqueNames(all)
	b.findings()
	b.maskAll()
}
