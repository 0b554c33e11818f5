package target

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// This file reads Tomcat's server.xml. Facts about versions are from the
// sources and documentation of Tomcat 6 to 11:
//
//   - HTTP/1.1 means the blocking connector (BIO) up to 7.0, the non-blocking one
//     (NIO) from 8.0. Where the native library is loaded it means APR up to 8.0.
//   - maxThreads 200, acceptCount 100, minSpareThreads 10 everywhere.
//   - maxConnections: BIO as many as threads; APR 8192; NIO and NIO2 10000, then
//     8192: read in the class files, 7.0.109, 8.5.32 to 8.5.70 and 9.0.20 to 9.0.27
//     have 10000, 8.5.100, 9.0.33 and later, 10.1 and 11.0 have 8192 (their
//     documentation is behind).
//   - connectionTimeout is 60000 ms where it is not set (the server.xml that
//     Tomcat comes with sets 20000), and endless for AJP.
//   - Names of threads: "http-nio-8080-exec-1", with the address before the port
//     when there is one, "https-jsse-nio-…" with TLS from 8.5 on. AJP listens on
//     loopback from 7.0.100, 8.5.51 and 9.0.31 on when no address is given, and
//     then has it in the name.

const unbounded = math.MaxInt32

// serverXML is what one server.xml says.
type serverXML struct {
	connectors []Connector
	executors  []Executor
	valves     []valve
	engines    []engine // one for each service
	findings   []Finding
}

// engine is the container of one service.
type engine struct {
	name  string
	hosts []string
}

// valve is one access-log valve, not yet resolved into files.
type valve struct {
	service int    // which one of the server's
	scope   string // engine, host:NAME, context:PATH
	attr    map[string]string
	class   string
}

// tomcatVersion is major and minor, 0 when unknown, and the patch.
type tomcatVersion struct{ major, minor, patch int }

func parseTomcatVersion(s string) (v tomcatVersion) {
	f := strings.SplitN(s, ".", 4)
	for i, p := range []*int{&v.major, &v.minor, &v.patch} {
		if i < len(f) {
			*p, _ = strconv.Atoi(strings.TrimRight(f[i], "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		}
	}
	return v
}

// atLeast is true for an unknown version too: the newest is the likeliest.
func (v tomcatVersion) atLeast(major, minor, patch int) bool {
	if v.major == 0 {
		return true
	}
	if v.major != major {
		return v.major > major
	}
	if v.minor != minor {
		return v.minor > minor
	}
	return v.patch >= patch
}

// executorIsService says whether Tomcat's own shared Executor is an
// ExecutorService, which is what NIO2 can run on. Seen in the class files: not in
// 8.5.100, 9.0.86 and 10.1.19, in 9.0.87, 10.1.20 and 11.0.0-M18.
func (v tomcatVersion) executorIsService() bool {
	if v.major == 9 {
		return v.atLeast(9, 0, 87)
	}
	return v.atLeast(10, 1, 20)
}

// readServerXML takes the connectors, executors and valves out of the tree.
// value resolves ${…}.
func readServerXML(root *element, v tomcatVersion, native bool, value func(string) string) serverXML {
	var s serverXML
	// From 8.5 on the native library is used for HTTP/1.1 only when a listener
	// asks for it; 10.1 has no such connector any more.
	apr := native && v.major != 0 && !v.atLeast(8, 5, 0)
	root.each("Listener", func(l *element) {
		if strings.HasSuffix(l.attr["className"], "AprLifecycleListener") && strings.EqualFold(value(l.attr["useAprConnector"]), "true") {
			apr = native && !(v.major != 0 && v.atLeast(10, 1, 0))
		}
	})
	root.each("Service", func(service *element) {
		// In the order of the file: Tomcat looks an executor up when it comes to
		// the connector, so one that is defined further down does not count.
		executors := map[string]bool{}
		for _, e := range service.children {
			switch {
			case e.name == "Executor" && len(s.executors) < maxPools:
				x := readExecutor(e, v, value, &s)
				s.executors = append(s.executors, x)
				executors[x.Name] = true
			case e.name == "Connector" && len(s.connectors) < maxPools:
				if c, ok := readConnector(e, v, apr, executors, value, &s); ok {
					s.connectors = append(s.connectors, c)
				}
			}
		}
		service.each("Engine", func(e *element) {
			n := len(s.engines)
			in := engine{name: value(e.attr["name"])}
			readValves(e, n, "engine", value, &s.valves)
			e.each("Host", func(host *element) {
				name := value(host.attr["name"])
				in.hosts = append(in.hosts, name)
				readValves(host, n, "host:"+name, value, &s.valves)
				host.each("Context", func(c *element) {
					readValves(c, n, "context:"+value(c.attr["path"]), value, &s.valves)
				})
			})
			s.engines = append(s.engines, in)
		})
	})
	return s
}

// maxPools bounds the connectors and the executors of one server.
const maxPools = 64

func (s *serverXML) find(id, format string, args ...any) {
	s.findings = append(s.findings, Finding{ID: id, Detail: fmt.Sprintf(format, args...)})
}

func readExecutor(e *element, v tomcatVersion, value func(string) string, s *serverXML) Executor {
	get := func(k string) string { return value(e.attr[k]) }
	x := Executor{
		Name:         get("name"),
		NamePrefix:   get("namePrefix"),
		MaxThreads:   number(get("maxThreads"), 200),
		MinSpare:     number(get("minSpareThreads"), 25),
		MaxQueueSize: number(get("maxQueueSize"), unbounded),
		Virtual:      strings.HasSuffix(get("className"), "StandardVirtualThreadExecutor"),
	}
	if x.NamePrefix == "" {
		x.NamePrefix = "tomcat-exec-"
		if x.Virtual {
			x.NamePrefix = "tomcat-virt-"
		}
	}
	if x.Virtual {
		// A virtual thread a request: there is neither a ceiling nor a queue.
		x.MaxThreads, x.MinSpare, x.MaxQueueSize = unbounded, 0, unbounded
	}
	if _, set := e.attr["prestartminSpareThreads"]; set && v.atLeast(9, 0, 0) {
		s.find("attribute_ignored", "Executor %q sets prestartminSpareThreads, which Tomcat %d no longer has: minSpareThreads are started anyway", x.Name, v.major)
	}
	return x
}

func readConnector(e *element, v tomcatVersion, apr bool, executors map[string]bool, value func(string) string, s *serverXML) (Connector, bool) {
	get := func(k string) string { return value(e.attr[k]) }
	port, err := strconv.Atoi(strings.TrimSpace(get("port")))
	if err != nil || port < -1 || port > 65535 {
		s.find("connector_port_unknown", "a connector's port is %q, which can't be resolved", clean(get("port"), 80))
		return Connector{}, false
	}
	if offset := number(get("portOffset"), 0); port > 0 && offset > 0 {
		port += offset
	}
	c := Connector{
		Port:              port,
		Address:           get("address"),
		Protocol:          protocolOf(get("protocol"), v, apr),
		TLS:               strings.EqualFold(get("SSLEnabled"), "true"),
		Executor:          get("executor"),
		AcceptCount:       number(cmpOr(get("acceptCount"), get("backlog")), 100),
		ConnectionTimeout: number(get("connectionTimeout"), 60000),
		KeepAliveTimeout:  number(get("keepAliveTimeout"), 0),
		MaxQueueSize:      number(get("maxQueueSize"), 0),
	}
	if c.Executor != "" && !executors[c.Executor] {
		s.find("executor_missing", "the connector on port %d names the executor %q, which server.xml does not define before it: the connector uses a pool of its own", c.Port, clean(c.Executor, 80))
		c.Executor = ""
	}
	ajp := strings.HasPrefix(c.Protocol, "ajp")
	if _, set := e.attr["connectionTimeout"]; ajp && !set {
		c.ConnectionTimeout = -1
	}
	if ajp && c.Address == "" && (v.atLeast(9, 0, 31) || v.major == 8 && v.atLeast(8, 5, 51) || v.major == 7 && v.atLeast(7, 0, 100)) {
		c.Address = "127.0.0.1"
	}
	if c.KeepAliveTimeout == 0 {
		c.KeepAliveTimeout = c.ConnectionTimeout
	}
	if c.Executor == "" {
		c.MaxThreads = number(get("maxThreads"), 200)
		c.MinSpare = number(get("minSpareThreads"), 10)
		c.ThreadPrefix = threadPrefix(c, v)
	} else {
		for _, k := range []string{"maxThreads", "minSpareThreads"} {
			if _, set := e.attr[k]; set {
				s.find("connector_threads_ignored", "connector on port %d sets %s=%s, but it uses the executor %q, whose own size counts", c.Port, k, get(k), c.Executor)
			}
		}
	}
	c.MaxConnections = number(get("maxConnections"), maxConnections(c, v, s))
	for _, k := range []string{"maxSpareThreads", "minProcessors", "maxProcessors", "maxKeepAliveThreads", "debug"} {
		if _, set := e.attr[k]; set && v.atLeast(6, 0, 0) {
			s.find("attribute_ignored", "connector on port %d sets %s, which Tomcat has ignored since version 6", c.Port, k)
		}
	}
	if val := get("enableLookups"); val != "" && val != "true" && val != "false" {
		s.find("attribute_ignored", "connector on port %d sets enableLookups=%q, which is neither true nor false and counts as false", c.Port, clean(val, 40))
	}
	return c, port > 0
}

// protocolOf names the kind of a connector by its protocol attribute.
func protocolOf(p string, v tomcatVersion, apr bool) string {
	old := v.major != 0 && v.major <= 7
	auto := "nio"
	switch {
	case apr:
		auto = "apr"
	case old:
		auto = "bio"
	}
	switch class := p[strings.LastIndexByte(p, '.')+1:]; {
	case p == "" || strings.EqualFold(p, "HTTP/1.1") || strings.EqualFold(p, "HTTP/1.0"):
		return auto
	case strings.EqualFold(p, "AJP/1.3"):
		return "ajp-" + auto
	case class == "Http11Nio2Protocol":
		return "nio2"
	case class == "Http11NioProtocol":
		return "nio"
	case class == "Http11AprProtocol":
		return "apr"
	case class == "Http11Protocol":
		if v.major != 0 && v.major >= 8 {
			return "nio" // 8.0 kept the name as another for NIO
		}
		return "bio"
	case class == "AjpNio2Protocol":
		return "ajp-nio2"
	case class == "AjpNioProtocol":
		return "ajp-nio"
	case class == "AjpAprProtocol":
		return "ajp-apr"
	case class == "AjpProtocol":
		return "ajp-" + auto
	default:
		return clean(class, 60)
	}
}

// threadPrefix is how the names of a connector's own threads begin.
func threadPrefix(c Connector, v tomcatVersion) string {
	kind, ajp := strings.CutPrefix(c.Protocol, "ajp-")
	name := "http-" + kind
	switch {
	case ajp:
		name = "ajp-" + kind
	case c.TLS && v.atLeast(8, 5, 0) && kind == "apr":
		name = "https-openssl-apr"
	case c.TLS && v.atLeast(8, 5, 0):
		name = "https-jsse-" + kind
	}
	if v.major == 6 {
		name = map[bool]string{false: "http", true: "ajp"}[ajp]
	}
	if c.Address != "" {
		a := c.Address
		if a == "localhost" {
			a = "127.0.0.1"
		}
		name += "-" + a
	}
	name += "-" + strconv.Itoa(c.Port)
	if v.major == 6 && kind == "bio" {
		return name + "-"
	}
	return name + "-exec-"
}

func maxConnections(c Connector, v tomcatVersion, s *serverXML) int {
	kind := strings.TrimPrefix(c.Protocol, "ajp-")
	switch {
	case kind == "bio":
		for _, x := range s.executors {
			if x.Name == c.Executor {
				return x.MaxThreads
			}
		}
		return c.MaxThreads
	case kind == "apr", v.atLeast(9, 0, 28), v.major == 8 && v.atLeast(8, 5, 71):
		return 8192
	}
	return 10000
}

func readValves(e *element, service int, scope string, value func(string) string, out *[]valve) {
	e.each("Valve", func(v *element) {
		class := v.attr["className"]
		switch class[strings.LastIndexByte(class, '.')+1:] {
		case "AccessLogValve", "FastCommonAccessLogValve", "ExtendedAccessLogValve", "JsonAccessLogValve":
		default:
			return
		}
		if strings.EqualFold(value(v.attr["enabled"]), "false") || len(*out) >= maxPools {
			return
		}
		attr := make(map[string]string, len(v.attr))
		for k, a := range v.attr {
			attr[k] = value(a)
		}
		*out = append(*out, valve{service: service, scope: scope, attr: attr, class: class})
	})
}

// Tomcat's names for two patterns.
const (
	commonPattern   = `%h %l %u %t "%r" %s %b`
	combinedPattern = commonPattern + ` "%{Referer}i" "%{User-Agent}i"`
)

// accessLog resolves a valve into a log file. Defaults: folder logs, prefix
// access_log (access_log. up to 7.0), no suffix, a day in the name.
func (vl valve) accessLog(base string, v tomcatVersion) AccessLog {
	class := vl.class[strings.LastIndexByte(vl.class, '.')+1:]
	a := AccessLog{Format: "tomcat", Scope: vl.scope, Buffered: true, Rotatable: true, Pattern: vl.attr["pattern"]}
	switch class {
	case "ExtendedAccessLogValve":
		a.Format = "w3c"
	case "JsonAccessLogValve":
		a.Format = "json"
	case "FastCommonAccessLogValve":
		a.Pattern = cmpOr(a.Pattern, "common")
	}
	switch a.Pattern {
	case "common", "":
		if a.Format != "w3c" {
			a.Pattern = commonPattern
		}
	case "combined":
		a.Pattern = combinedPattern
	}
	old := v.major != 0 && v.major <= 7
	prefix, format := "access_log", ".yyyy-MM-dd"
	if old {
		prefix, format = "access_log.", "yyyy-MM-dd"
	}
	if p, ok := vl.attr["prefix"]; ok {
		prefix = p
	}
	if f := vl.attr["fileDateFormat"]; f != "" {
		format = f
	}
	suffix := vl.attr["suffix"]
	a.Buffered = !strings.EqualFold(vl.attr["buffered"], "false")
	a.Rotatable = !strings.EqualFold(vl.attr["rotatable"], "false")
	a.MaxDays, _ = strconv.Atoi(vl.attr["maxDays"])
	dir := vl.attr["directory"]
	if dir == "" {
		dir = "logs"
	}
	if !path.IsAbs(dir) {
		dir = path.Join(base, dir)
	}
	a.Dir = path.Clean(dir)
	switch {
	case !a.Rotatable || strings.EqualFold(vl.attr["renameOnRotate"], "true"):
		a.LogFile = fixedFile(path.Join(a.Dir, prefix+suffix))
	default:
		a.LogFile = datedFile(a.Dir, prefix, format, suffix)
	}
	var conds []string
	for _, k := range []string{"condition", "conditionUnless", "conditionIf"} {
		if c := vl.attr[k]; c != "" {
			conds = append(conds, k+"="+clean(c, 80))
		}
	}
	a.Conditions = strings.Join(conds, " ")
	return a
}

// countOnce marks which of the access logs count the requests. A request passes
// the valves of its context, its host and the engine, and each writes a line.
// So: the engine's valve covers all hosts; without one, each host's; a context's
// only when nothing wider is there. Of several in the same place the one counts
// whose pattern tells most: a duration first, then the thread, then the rest. A
// log with conditions leaves requests out, and comes after any other.
//
// All logs are of one service: another has its own connectors, and so its own
// requests.
func countOnce(logs []AccessLog) {
	best := map[string]int{}
	for i := range logs {
		scope := logs[i].Scope
		if j, ok := best[scope]; !ok || worth(logs[i]) > worth(logs[j]) {
			best[scope] = i
		}
	}
	_, engine := best["engine"]
	_, every := best["context:*"]
	hosts := false
	for scope := range best {
		hosts = hosts || strings.HasPrefix(scope, "host:")
	}
	for i := range logs {
		scope := logs[i].Scope
		context := strings.HasPrefix(scope, "context:")
		covered := scope != "engine" && engine || context && hosts || context && scope != "context:*" && every
		logs[i].Counted = best[scope] == i && !covered
	}
}

func worth(a AccessLog) int {
	w := 0
	if a.Conditions == "" {
		w += 1000
	}
	if hasDuration(a) {
		w += 100
	}
	for _, code := range []string{"%I", "%F", "%X", "%r", "%m", "%s", "%t", "%b", "%B", "%O"} {
		if strings.Contains(a.Pattern, code) {
			w++
		}
	}
	return w
}

// hasDuration says whether the lines of a log tell how long a request took.
func hasDuration(a AccessLog) bool {
	switch a.Format {
	case "w3c":
		return strings.Contains(a.Pattern, "time-taken")
	case "jetty-ncsa":
		return strings.Contains(a.Pattern, "latency")
	}
	for i := 0; i+1 < len(a.Pattern); i++ {
		if a.Pattern[i] != '%' {
			continue
		}
		rest := a.Pattern[i+1:]
		if rest[0] == '{' {
			end := strings.IndexByte(rest, '}')
			if end < 0 || end+1 >= len(rest) {
				return false
			}
			rest = rest[end+1:]
		}
		if rest[0] == 'D' || rest[0] == 'T' {
			return true
		}
		if rest[0] == '%' {
			i++
		}
	}
	return false
}

// number reads a whole number; what is none gives the default, as in Tomcat.
func number(s string, def int) int {
	s = strings.TrimSpace(s)
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		return def
	}
	return int(n)
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// servingPorts are the ports of a server's connectors, lowest first, those for
// HTTP before AJP.
func servingPorts(cs []Connector) []int {
	var http, ajp []int
	for _, c := range cs {
		if c.Port <= 0 {
			continue
		}
		if strings.HasPrefix(c.Protocol, "ajp") {
			ajp = append(ajp, c.Port)
		} else {
			http = append(http, c.Port)
		}
	}
	slices.Sort(http)
	slices.Sort(ajp)
	return append(http, ajp...)
}
