package target

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// This file joins what was seen of a Tomcat or a Jetty with its settings files.

func (b *builder) isTomcat() bool {
	if strings.HasPrefix(b.o.main, "org.apache.catalina.startup.") || strings.HasPrefix(b.o.main, "org.apache.tomcat.startup.") {
		b.learn("kind", "that it is a Tomcat", "the main class "+clean(b.o.main, 100))
		return true
	}
	if b.o.props["catalina.base"] != "" || b.o.props["catalina.home"] != "" {
		if _, ok := b.openHas("catalina", "tomcat", "bootstrap", "tomee"); ok || b.fdsDenied {
			b.learn("kind", "that it is a Tomcat", "-Dcatalina.base on the command line")
			return true
		}
	}
	if jar, ok := b.openHas("tomcat-embed-core"); ok {
		b.learn("kind", "that it is an embedded Tomcat", "the open file "+jar)
		return true
	}
	return false
}

func (b *builder) tomcat() {
	b.t.Kind = Tomcat
	b.t.Home, b.t.Base = b.abs(b.o.props["catalina.home"]), b.abs(b.o.props["catalina.base"])
	env := func(k string) string { return b.abs(b.environ[k]) }
	switch {
	case b.t.Base != "":
		b.learn("base", "catalina.base "+b.t.Base, "-Dcatalina.base")
	case b.t.Home != "":
		b.t.Base = b.t.Home
		b.learn("base", "catalina.base "+b.t.Base, "-Dcatalina.home; there is no -Dcatalina.base")
	case env("CATALINA_BASE") != "":
		b.t.Base = env("CATALINA_BASE")
		b.learn("base", "catalina.base "+b.t.Base, "CATALINA_BASE in the environment")
	case env("CATALINA_HOME") != "":
		b.t.Base = env("CATALINA_HOME")
		b.learn("base", "catalina.base "+b.t.Base, "CATALINA_HOME in the environment")
	default:
		b.t.Base = path.Clean(b.cwd)
		b.learn("base", "catalina.base "+b.t.Base, "the working directory; nothing names it")
	}
	if b.t.Home == "" {
		b.t.Home = cmpOr(env("CATALINA_HOME"), b.t.Base)
	}
	b.tomcatVersion()
	s := b.serverXML()
	b.t.Connectors, b.t.Executors = s.connectors, s.executors
	b.t.Findings = append(b.t.Findings, s.findings...)
	b.listening(b.t.Connectors)
	for i := range s.engines {
		from := len(b.t.AccessLogs)
		for _, v := range s.valves {
			if v.service == i {
				b.t.AccessLogs = append(b.t.AccessLogs, v.accessLog(b.t.Base, b.v))
			}
		}
		countOnce(b.t.AccessLogs[from:])
	}
	b.juli()
}

// tomcatVersion reads catalina.jar beneath the home folder, or the open jar
// that has its classes.
func (b *builder) tomcatVersion() {
	try := func(name string) bool {
		f, err := b.w.open(name)
		if err != nil {
			return false
		}
		defer f.Close()
		if v := tomcatVersionOf(f); v != "" {
			b.t.Version = v
			b.learn("version", "the version "+v, "ServerInfo in "+name)
		}
		return b.t.Version != ""
	}
	found := try(path.Join(b.t.Home, "lib/catalina.jar")) || try(path.Join(b.t.Base, "lib/catalina.jar"))
	if !found {
		if jar, ok := b.openHas("catalina.jar", "tomcat-embed-core", "tomcat10-catalina-1", "tomcat9-catalina-9", "tomcat8-catalina-8", "tomcat-catalina"); ok {
			if !try(jar) {
				// The name itself has it: tomcat10-catalina-10.1.60.jar.
				base := strings.TrimSuffix(path.Base(jar), ".jar")
				if v := dotted(base[strings.LastIndexByte(base, '-')+1:]); v != "" {
					b.t.Version = v
					b.learn("version", "the version "+v, "the name of "+jar)
				}
			}
		}
	}
	if b.t.Version == "" {
		b.blind("target", "no_version", "", "the Tomcat's version could not be found: %%D is read as the newest versions write it, and defaults are theirs")
	}
	b.v = parseTomcatVersion(b.t.Version)
}

// serverXML reads conf/server.xml, or what -config names.
func (b *builder) serverXML() serverXML {
	name := path.Join(b.t.Base, "conf/server.xml")
	for i, a := range b.o.args {
		if a == "-config" && i+1 < len(b.o.args) {
			name = b.o.args[i+1]
			if !path.IsAbs(name) {
				name = path.Join(b.t.Base, name)
			}
		}
	}
	data, err := b.w.settings(name)
	if err != nil {
		b.unread = true
		if jar, embedded := b.openHas("tomcat-embed-core"); embedded {
			b.blind("target", "embedded", "", "a Tomcat inside of a program (%s) has no server.xml: pools and access logs are not known", jar)
			b.embedded()
			return serverXML{connectors: b.t.Connectors}
		}
		reason, needs := why(err)
		b.blind("target", reason, needs, "%s can't be read: connectors, pools and access logs are not known from it", name)
		if errors.Is(err, errTooLarge) {
			b.find(findingUnreadable, "%s is larger than %d MB", name, maxSettings>>20)
		}
		b.embedded()
		return serverXML{connectors: b.t.Connectors}
	}
	root, external, err := parseXML(data)
	b.unread = err != nil || external
	if err != nil {
		b.find(findingUnreadable, "%s: %s", name, clean(err.Error(), 200))
		b.blind("target", "unreadable", "", "%s is no well-formed XML: connectors, pools and access logs are not known", name)
		b.embedded()
		return serverXML{connectors: b.t.Connectors}
	}
	if external {
		b.blind("target", "external_entity", "", "%s takes in other files by external entities, which are not read", name)
	}
	b.learn("connectors", "connectors, executors and access logs", name)

	var catalina map[string]string
	if data, err := b.w.settings(path.Join(b.t.Base, "conf/catalina.properties")); err == nil {
		catalina = parseProperties(data)
	} else if b.t.Home != b.t.Base {
		if data, err := b.w.settings(path.Join(b.t.Home, "conf/catalina.properties")); err == nil {
			catalina = parseProperties(data)
		}
	}
	builtin := map[string]string{"catalina.base": b.t.Base, "catalina.home": b.t.Home, "user.dir": b.cwd, "java.io.tmpdir": path.Join(b.t.Base, "temp")}
	more := []map[string]string{catalina, builtin}
	if strings.Contains(b.o.props["org.apache.tomcat.util.digester.PROPERTY_SOURCE"]+catalina["org.apache.tomcat.util.digester.PROPERTY_SOURCE"], "EnvironmentPropertySource") {
		more = append([]map[string]string{b.environ}, more...)
	}
	value := b.value(more...)
	s := readServerXML(root, b.v, b.maps.tcnative, value)
	b.contexts(&s, value)
	return s
}

// contexts reads the access-log valves of conf/context.xml, which every context
// has, and of conf/ENGINE/HOST/*.xml.
func (b *builder) contexts(s *serverXML, value func(string) string) {
	read := func(name string, service int, scope string) {
		data, err := b.w.settings(name)
		if err != nil {
			return
		}
		if root, _, err := parseXML(data); err == nil {
			readValves(root, service, scope, value, &s.valves)
		}
	}
	for n, e := range s.engines {
		read(path.Join(b.t.Base, "conf/context.xml"), n, "context:*")
		for i, h := range e.hosts {
			if i == 16 || e.name == "" || strings.ContainsAny(e.name+h, "/\x00") {
				break
			}
			dir := path.Join(b.t.Base, "conf", e.name, h)
			for _, f := range b.w.list(dir, 64) {
				if strings.HasSuffix(f, ".xml") {
					read(path.Join(dir, f), n, "context:/"+strings.TrimSuffix(f, ".xml"))
				}
			}
		}
	}
}

// embedded makes connectors of the ports that the process listens on, where no
// settings tell more. What is not known stays 0. Ports on loopback alone (the
// shutdown port, JMX) only count when there is no other.
func (b *builder) embedded() {
	open := func(l listener) bool { return !strings.HasPrefix(l.addr, "127.") && l.addr != "::1" }
	some := slices.ContainsFunc(b.listeners, open)
	for _, l := range b.listeners {
		if some && !open(l) || l.port == 8005 || l.port >= 32768 || len(b.t.Connectors) >= 8 {
			continue
		}
		if !slices.ContainsFunc(b.t.Connectors, func(c Connector) bool { return c.Port == l.port }) {
			b.t.Connectors = append(b.t.Connectors, Connector{Port: l.port, Address: l.addr, Protocol: "unknown", Listening: true})
		}
	}
	slices.SortFunc(b.t.Connectors, func(x, y Connector) int { return x.Port - y.Port })
}

// juli reads logging.properties for the server's own files.
func (b *builder) juli() {
	name := b.abs(b.o.props["java.util.logging.config.file"])
	if name == "" {
		name = path.Join(b.t.Base, "conf/logging.properties")
	}
	data, err := b.w.settings(name)
	value := b.value(map[string]string{"catalina.base": b.t.Base, "catalina.home": b.t.Home})
	var logs []juliLog
	console := true
	if err == nil {
		logs, console = readJuli(parseProperties(data), b.t.Base, value)
		b.learn("app_logs", "the server's own log files", name)
	} else {
		// What Tomcat comes with.
		for _, p := range []string{"catalina.", "localhost.", "manager.", "host-manager."} {
			logs = append(logs, juliLog{root: p == "catalina.", file: datedFile(path.Join(b.t.Base, "logs"), p, "yyyy-MM-dd", ".log")})
		}
		b.learn("app_logs", "the server's own log files", "Tomcat's defaults; "+name+" can't be read")
	}
	for _, l := range logs {
		a := AppLog{LogFile: l.file, Role: "own"}
		if l.root && console {
			a.Role = "copy"
		}
		b.t.AppLogs = append(b.t.AppLogs, a)
	}
}

// --- Jetty

const jettyXML = "org.eclipse.jetty.xml.XmlConfiguration"

func (b *builder) isJetty() bool {
	switch {
	case b.o.main == jettyXML, b.o.main == "org.eclipse.jetty.start.Main", b.o.main == "org.mortbay.start.Main":
		b.learn("kind", "that it is a Jetty", "the main class "+b.o.main)
		return true
	case b.o.jar && path.Base(b.o.main) == "start.jar" && b.startJar():
		b.learn("kind", "that it is a Jetty", "-jar start.jar, and Jetty's settings or jars beside it")
		return true
	}
	if jar, ok := b.openHas("jetty-server", "jetty9-server", "jetty12-server"); ok && b.o.props["jetty.home"] != "" {
		b.learn("kind", "that it is a Jetty", "the open file "+jar)
		return true
	}
	return false
}

// startJar tells Jetty's start.jar from any other.
func (b *builder) startJar() bool {
	if b.o.props["jetty.home"] != "" || b.o.props["jetty.base"] != "" {
		return true
	}
	if _, ok := b.openHas("jetty"); ok {
		return true
	}
	return b.w.regular(path.Join(path.Dir(b.abs(b.o.main)), "modules/server.mod"))
}

func (b *builder) jetty() {
	b.t.Kind = Jetty
	j := newJettySettings()
	child := b.o.main == jettyXML
	if child {
		// The launcher hands over a file with all properties, then XML files.
		for i, a := range b.o.args {
			if i == 0 && strings.HasSuffix(a, ".properties") {
				if data, err := b.w.settings(b.abs(a)); err == nil {
					j.addProperties(parseProperties(data))
					b.learn("connectors", "Jetty's properties", b.abs(a))
				}
			} else {
				j.addArg(a)
			}
		}
	}
	b.t.Home, b.t.Base = b.abs(cmpOr(b.o.props["jetty.home"], j.props["jetty.home"])), b.abs(cmpOr(b.o.props["jetty.base"], j.props["jetty.base"]))
	if b.t.Home == "" && b.o.jar {
		b.t.Home = path.Dir(b.abs(b.o.main))
	}
	if b.t.Base == "" {
		b.t.Base = path.Clean(b.cwd)
		b.learn("base", "jetty.base "+b.t.Base, "the working directory; there is no -Djetty.base")
	} else {
		b.learn("base", "jetty.base "+b.t.Base, "-Djetty.base")
	}
	if !child {
		for _, a := range b.o.args {
			j.addArg(a)
		}
	}
	b.jettyIni(j)
	j.addProperties(map[string]string{"jetty.base": b.t.Base, "jetty.home": b.t.Home})
	for k, v := range b.o.props {
		j.props[k] = v
	}
	b.jettyVersion()

	files := b.jettyXML(j, child)
	if j.exec && !child {
		// This launcher serves nothing; its child is another JVM.
		b.t.Connectors = nil
		b.learn("connectors", "that it serves nothing itself", "--exec in start.ini")
	} else {
		b.t.Connectors = j.connectors(files)
		b.listening(b.t.Connectors)
		b.t.Executors = []Executor{j.pool(files)}
		for i := range b.t.Connectors {
			b.t.Connectors[i].Executor = b.t.Executors[0].Name
			b.t.Connectors[i].MaxConnections = -1
		}
		b.t.AccessLogs = j.requestLogs(files, b.t.Base, b.v)
	}
}

func (b *builder) jettyIni(j *jettySettings) {
	names := []string{path.Join(b.t.Base, "start.ini")}
	list := b.w.list(path.Join(b.t.Base, "start.d"), 200)
	slices.Sort(list)
	for _, f := range list {
		if strings.HasSuffix(f, ".ini") {
			names = append(names, path.Join(b.t.Base, "start.d", f))
		}
	}
	var read []string
	for _, n := range names {
		if data, err := b.w.settings(n); err == nil {
			j.addIni(string(data))
			read = append(read, n)
		}
	}
	if len(read) > 0 {
		b.learn("connectors", "ports, pool and request log", strings.Join(read, ", "))
	} else {
		b.blind("target", "not_found", "", "neither start.ini nor start.d of %s can be read: Jetty's defaults are assumed", b.t.Base)
	}
}

// jettyXML reads the XML files in force: those on the child's command line, or
// those of the standard modules, from jetty.base before jetty.home.
func (b *builder) jettyXML(j *jettySettings, child bool) []*element {
	names := j.xml
	if !child {
		for _, m := range []string{"threadpool", "", "http", "https", "ssl", "requestlog", "customrequestlog"} {
			f := "etc/jetty-" + m + ".xml"
			if m == "" {
				f = "etc/jetty.xml"
			}
			if m == "" || m == "threadpool" || j.modules[m] {
				names = append(names, f)
			}
		}
	}
	var out []*element
	for _, n := range names {
		candidates := []string{b.abs(n)}
		if !path.IsAbs(n) {
			candidates = []string{path.Join(b.t.Base, n), path.Join(b.t.Home, n)}
		}
		for _, c := range candidates {
			data, err := b.w.settings(c)
			if err != nil {
				continue
			}
			root, _, err := parseXML(data)
			if err != nil {
				b.find("jetty_xml_unreadable", "%s: %s", c, clean(err.Error(), 200))
				continue
			}
			out = append(out, root)
			break
		}
	}
	return out
}

func (b *builder) jettyVersion() {
	names := []string{}
	if jar, ok := b.openHas("jetty-server", "jetty9-server", "jetty12-server"); ok {
		names = append(names, jar)
	}
	for cp := range strings.SplitSeq(b.o.classpath, ":") {
		if base := path.Base(cp); strings.HasPrefix(base, "jetty") && strings.Contains(base, "-server") && len(names) < 4 {
			names = append(names, b.abs(cp))
		}
	}
	names = append(names, path.Join(b.t.Home, "start.jar"))
	for _, n := range names {
		base := strings.TrimSuffix(path.Base(n), ".jar")
		if v := dotted(base[strings.LastIndexByte(base, '-')+1:]); v != "" {
			b.t.Version = v
			b.learn("version", "the version "+v, "the name of "+n)
			break
		}
		f, err := b.w.open(n)
		if err != nil {
			continue
		}
		v := jettyVersionOf(f)
		f.Close()
		if v != "" {
			b.t.Version = v
			b.learn("version", "the version "+v, "the manifest of "+n)
			break
		}
	}
	b.v = parseTomcatVersion(b.t.Version)
	if b.t.Version == "" {
		b.blind("target", "no_version", "", "the Jetty's version could not be found")
		for _, n := range names {
			if strings.HasPrefix(path.Base(n), "jetty9-") {
				b.v.major = 9 // Debian's name for it
			}
		}
	}
}

// name is kind and lowest serving port.
func (b *builder) name() {
	if b.t.Kind == JVM {
		return
	}
	ports := servingPorts(b.t.Connectors)
	if len(ports) == 0 {
		b.t.Name = string(b.t.Kind) + "-" + labelName(path.Base(b.t.Base))
		b.learn("name", "the name "+b.t.Name, "the base folder; no port is known")
		return
	}
	b.t.Name = fmt.Sprintf("%s-%d", b.t.Kind, ports[0])
	b.learn("name", "the name "+b.t.Name, "kind and lowest port of the settings")
}
