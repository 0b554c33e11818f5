package target

import (
	"path"
	"regexp"
	"strings"
)

// This file reads Jetty's settings: start.ini and start.d/*.ini of jetty.base,
// the start_*.properties that a launcher with --exec hands to its child, and the
// XML files, whose <Property> elements have the defaults. Known: 9.4, 10 to 12.

// jettySettings are the properties in force and the XML files named.
type jettySettings struct {
	props   map[string]string
	modules map[string]bool
	jvmArgs []string // options for the child, with --exec
	exec    bool
	xml     []string
}

func newJettySettings() *jettySettings {
	return &jettySettings{props: map[string]string{}, modules: map[string]bool{}}
}

// addIni reads one ini file, or the arguments of start.jar, which look the same.
// What is set first stays, except with += and for arguments, which come first.
func (j *jettySettings) addIni(data string) {
	for line := range strings.Lines(data) {
		j.addArg(strings.TrimSpace(line))
	}
}

func (j *jettySettings) addArg(a string) {
	switch {
	case a == "" || a[0] == '#':
	case a == "--exec":
		j.exec = true
	case strings.HasPrefix(a, "--module=") || strings.HasPrefix(a, "--modules=") || strings.HasPrefix(a, "--add-modules="):
		_, list, _ := strings.Cut(a, "=")
		for m := range strings.SplitSeq(list, ",") {
			if m = strings.TrimSpace(m); m != "" && len(j.modules) < 1000 {
				j.modules[m] = true
			}
		}
	case strings.HasPrefix(a, "-D"):
		j.jvmArgs = append(j.jvmArgs, a)
		j.set(a[2:])
	case strings.HasPrefix(a, "-X"):
		j.jvmArgs = append(j.jvmArgs, a)
	case strings.HasPrefix(a, "-"):
	case strings.HasSuffix(a, ".xml"):
		if len(j.xml) < 200 {
			j.xml = append(j.xml, a)
		}
	case strings.Contains(a, "="):
		j.set(a)
	}
}

func (j *jettySettings) set(a string) {
	k, v, _ := strings.Cut(a, "=")
	k = strings.TrimRight(strings.TrimSpace(k), "?+")
	if _, have := j.props[k]; !have && len(j.props) < 10_000 {
		j.props[k] = strings.TrimSpace(v)
	}
}

// addProperties takes a start_*.properties, which is final.
func (j *jettySettings) addProperties(p map[string]string) {
	for k, v := range p {
		j.props[k] = v
	}
}

func (j *jettySettings) get(names ...string) string {
	for _, n := range names {
		if v, ok := j.props[n]; ok {
			return expand(v, func(k string) (string, bool) { v, ok := j.props[k]; return v, ok })
		}
	}
	return ""
}

// connectors of the standard modules: http, https (ssl), and whatever the XML
// files define with a port of their own.
func (j *jettySettings) connectors(files []*element) []Connector {
	var out []Connector
	have := map[int]bool{}
	add := func(c Connector) {
		if c.Port > 0 && c.Port < 65536 && !have[c.Port] && len(out) < maxPools {
			have[c.Port] = true
			out = append(out, c)
		}
	}
	for _, root := range files {
		root.walk(func(e *element) bool {
			if e.name != "New" || !strings.HasSuffix(e.attr["class"], "Connector") {
				return true
			}
			c := Connector{Protocol: "jetty", TLS: strings.Contains(e.attr["id"], "ssl")}
			e.each("Set", func(s *element) {
				switch strings.ToLower(s.attr["name"]) {
				case "host":
					c.Address = j.value(s)
				case "port":
					c.Port = number(j.value(s), 0)
				case "idletimeout", "maxidletime":
					c.ConnectionTimeout = number(j.value(s), 30000)
				case "acceptqueuesize":
					c.AcceptCount = number(j.value(s), 0)
				}
			})
			add(c)
			return true
		})
	}
	if len(out) == 0 {
		// The XML could not be read. The modules' properties say as much, and in
		// Debian's Jetty and a plain distribution the defaults are these.
		if j.modules["http"] || j.get("jetty.http.port", "jetty.port") != "" || len(j.modules) == 0 {
			add(Connector{Protocol: "jetty", Port: number(j.get("jetty.http.port", "jetty.port"), 8080),
				Address: j.get("jetty.http.host", "jetty.host"), ConnectionTimeout: number(j.get("jetty.http.idleTimeout"), 30000),
				AcceptCount: number(j.get("jetty.http.acceptQueueSize"), 0)})
		}
		if j.modules["https"] || j.modules["ssl"] {
			add(Connector{Protocol: "jetty", TLS: true, Port: number(j.get("jetty.ssl.port"), 8443),
				Address: j.get("jetty.ssl.host"), ConnectionTimeout: number(j.get("jetty.ssl.idleTimeout"), 30000),
				AcceptCount: number(j.get("jetty.ssl.acceptQueueSize"), 0)})
		}
	}
	for i := range out {
		if out[i].AcceptCount == 0 {
			out[i].AcceptCount = 50 // what Java asks for when nothing is set
		}
	}
	return out
}

// pool is the server's thread pool: 200 threads, 10 of them from the start, and
// a queue without a bound, where nothing else is set.
func (j *jettySettings) pool(files []*element) Executor {
	x := Executor{Name: "qtp", NamePrefix: "qtp", MaxThreads: 200, MinSpare: 10, MaxQueueSize: unbounded}
	for _, root := range files {
		root.walk(func(e *element) bool {
			if !strings.HasSuffix(e.attr["class"], "QueuedThreadPool") && e.attr["id"] != "threadPool" {
				return true
			}
			e.walk(func(s *element) bool {
				switch n := s.attr["name"]; {
				case s.name != "Set" && s.name != "Arg":
				case n == "maxThreads":
					x.MaxThreads = number(j.value(s), x.MaxThreads)
				case n == "minThreads":
					x.MinSpare = number(j.value(s), x.MinSpare)
				case n == "name":
					if v := strings.TrimSpace(j.value(s)); v != "" {
						x.Name, x.NamePrefix = v, v+"-"
					}
				}
				if s.name == "New" && strings.HasSuffix(s.attr["class"], "Queue") {
					// BlockingArrayQueue(capacity) or (capacity, growBy, max); with two
					// arguments it grows without end.
					var args []string
					s.each("Arg", func(a *element) { args = append(args, j.value(a)) })
					if n := len(args); n == 1 || n == 3 {
						x.MaxQueueSize = number(args[n-1], x.MaxQueueSize)
					}
				}
				return true
			})
			return false
		})
	}
	x.MaxThreads = number(j.get("jetty.threadPool.maxThreads", "threads.max"), x.MaxThreads)
	x.MinSpare = number(j.get("jetty.threadPool.minThreads", "threads.min"), x.MinSpare)
	return x
}

// value is what a Jetty XML element comes to: its text, with Property,
// SystemProperty and Env children put in place. A call to resolve a path
// against jetty.base comes to that path. Depth is bounded by the parser.
func (j *jettySettings) value(e *element) string {
	var b strings.Builder
	for _, c := range e.children {
		switch c.name {
		case textNode:
			b.WriteString(c.text)
		case "Property", "SystemProperty":
			b.WriteString(j.property(c))
		case "Call":
			var args []string
			c.each("Arg", func(a *element) { args = append(args, j.value(a)) })
			if n := len(args); n > 1 && path.IsAbs(args[n-1]) {
				args = args[n-1:] // resolvePath(base, path)
			}
			b.WriteString(strings.Join(args, "/"))
		}
		if b.Len() > maxExpanded {
			return ""
		}
	}
	return b.String()
}

func (j *jettySettings) property(e *element) string {
	name := e.attr["name"]
	e.each("Name", func(n *element) { name = strings.TrimSpace(n.content()) })
	names := append([]string{name}, strings.Split(e.attr["deprecated"], ",")...)
	e.each("Deprecated", func(n *element) { names = append(names, strings.TrimSpace(n.content())) })
	for _, n := range names {
		if v := j.get(strings.TrimSpace(n)); v != "" {
			return v
		}
	}
	def := e.attr["default"]
	e.each("Default", func(d *element) { def = j.value(d) })
	return def
}

// NCSA and extended format of CustomRequestLog.
const (
	jettyNCSA     = `%{client}a - %u %t "%r" %s %O`
	jettyExtended = jettyNCSA + ` "%{Referer}i" "%{User-Agent}i"`
)

// requestLog finds the request log in the XML files, or in the properties of
// the modules.
func (j *jettySettings) requestLogs(files []*element, base string, v tomcatVersion) []AccessLog {
	var out []AccessLog
	for _, root := range files {
		root.walk(func(e *element) bool {
			if e.name == "New" && strings.HasSuffix(e.attr["class"], "RequestLog") && len(out) < maxPools {
				if a, ok := j.requestLog(e, base); ok {
					out = append(out, a)
				}
			}
			return true
		})
	}
	if len(out) == 0 && (j.modules["requestlog"] || j.modules["customrequestlog"]) {
		name := j.get("jetty.requestlog.absoluteFilePath", "jetty.requestlog.filePath")
		if name == "" {
			name = cmpOr(j.get("jetty.requestlog.dir", "jetty.logs"), "logs") + "/yyyy_mm_dd.request.log"
		}
		a := AccessLog{Format: "jetty", Pattern: j.get("jetty.requestlog.formatString", "jetty.customrequestlog.formatString"), Scope: "engine", Rotatable: true}
		if v.major == 9 && !j.modules["customrequestlog"] && a.Pattern == "" {
			a.Format = "jetty-ncsa"
			var flags []string
			for _, f := range []string{"extended", "latency", "cookies"} {
				if j.get("jetty.requestlog."+f, "jetty.requestlog.log"+f) == "true" {
					flags = append(flags, f)
				}
			}
			a.Pattern = strings.Join(flags, " ")
		}
		if a.Format == "jetty" {
			a.Pattern = cmpOr(a.Pattern, jettyExtended)
		}
		a.LogFile = jettyFile(name, j.get("jetty.requestlog.filenameDateFormat"), base)
		out = append(out, a)
	}
	for i := range out {
		out[i].Counted = i == 0
	}
	return out
}

func (j *jettySettings) requestLog(e *element, base string) (AccessLog, bool) {
	a := AccessLog{Format: "jetty", Scope: "engine", Rotatable: true}
	class := e.attr["class"]
	if strings.HasSuffix(class, "NCSARequestLog") {
		a.Format = "jetty-ncsa"
	}
	var name, dateFormat string
	var flags []string
	e.walk(func(s *element) bool {
		switch n := strings.ToLower(s.attr["name"]); {
		case s.name != "Set":
		case n == "filename":
			name = j.value(s)
		case n == "filenamedateformat":
			dateFormat = j.value(s)
		case n == "extended" || n == "loglatency" || n == "logcookies" || n == "preferproxiedforaddress":
			if strings.EqualFold(j.value(s), "true") {
				flags = append(flags, strings.TrimPrefix(n, "log"))
			}
		}
		return true
	})
	var args []*element
	e.each("Arg", func(x *element) { args = append(args, x) })
	if a.Format == "jetty" {
		if len(args) > 1 {
			a.Pattern = j.format(args[1])
		}
		if len(args) > 0 && name == "" {
			name = j.writerFile(args[0])
		}
		a.Pattern = cmpOr(a.Pattern, jettyExtended)
	} else {
		if name == "" && len(args) > 0 {
			name = j.value(args[0])
		}
		// This log has no pattern, but switches: extended, latency, cookies.
		a.Pattern = strings.Join(flags, " ")
	}
	if name == "" {
		return a, false
	}
	a.LogFile = jettyFile(name, dateFormat, base)
	return a, true
}

// format is a CustomRequestLog's format: text, a property, or one of the two
// constants of the class.
func (j *jettySettings) format(e *element) string {
	named := ""
	e.walk(func(s *element) bool {
		if s.name == "Get" {
			named = s.attr["name"]
		}
		return true
	})
	if v := j.value(e); v != "" {
		return v
	}
	switch named {
	case "NCSA_FORMAT":
		return jettyNCSA
	case "EXTENDED_NCSA_FORMAT":
		return jettyExtended
	}
	return ""
}

// writerFile is the file name handed to a request log's writer.
func (j *jettySettings) writerFile(e *element) string {
	name := ""
	e.walk(func(s *element) bool {
		if name == "" && s.name == "Arg" && s != e {
			name = j.value(s)
		}
		return name == ""
	})
	return name
}

var jettyDay = regexp.MustCompile(`(?i)yyyy_mm_dd`)

// jettyFile is a file of Jetty's rolling stream, where yyyy_mm_dd in the name
// stands for the date.
func jettyFile(name, dateFormat, base string) LogFile {
	if !path.IsAbs(name) {
		name = path.Join(base, name)
	}
	name = path.Clean(name)
	dir, file := path.Split(name)
	at := jettyDay.FindStringIndex(file)
	if at == nil {
		return fixedFile(name)
	}
	return datedFile(path.Clean(dir), file[:at[0]], cmpOr(dateFormat, "yyyy_MM_dd"), file[at[1]:])
}
