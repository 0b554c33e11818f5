package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeBase makes a CATALINA_BASE: what the distribution's conf folder has,
// with a server.xml and logging of our own, and the lab's web application as
// ROOT.
func (o Tomcat) writeBase(s *Server) error {
	for _, dir := range []string{"conf", "logs", "temp", "work", "webapps"} {
		if err := os.MkdirAll(filepath.Join(s.Base, dir), 0o755); err != nil {
			return err
		}
	}
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(s.Base, "conf", name), []byte(text), 0o640)
	}
	// The stock web.xml would start Jasper, which is most of the start's time
	// and serves nothing here; the default servlet is all we need of it.
	if err := write("web.xml", fmt.Sprintf(defaultWebXML, o.namespace())); err != nil {
		return err
	}
	xml, err := o.serverXML(s)
	if err != nil {
		return err
	}
	if err := write("server.xml", xml); err != nil {
		return err
	}
	if err := write("logging.properties", o.logging()); err != nil {
		return err
	}
	properties, err := os.ReadFile(filepath.Join(s.Home, "conf/catalina.properties"))
	if os.IsNotExist(err) { // Debian keeps it elsewhere
		properties, err = os.ReadFile(filepath.Join(s.Home, "etc/catalina.properties"))
	}
	if err != nil {
		return err
	}
	if err := write("catalina.properties", string(properties)); err != nil {
		return err
	}
	if o.TLS {
		if err := writeKeys(filepath.Join(s.Base, "conf"), s.JDK); err != nil {
			return err
		}
	}
	return writeWebapp(filepath.Join(s.Base, "webapps/ROOT"), s.JDK, filepath.Join(s.Home, "lib", "servlet-api.jar"), o.jakarta())
}

func (o Tomcat) jakarta() bool {
	major, _, _ := strings.Cut(o.Version, ".")
	return major == "10" || major == "11" || o.Version == DebianTomcat
}

func (o Tomcat) namespace() string {
	if o.jakarta() {
		return `xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0"`
	}
	return `xmlns="http://java.sun.com/xml/ns/javaee" version="3.0"`
}

const defaultWebXML = `<?xml version="1.0" encoding="UTF-8"?>
<web-app %s>
  <servlet>
    <servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
  <welcome-file-list><welcome-file>index.html</welcome-file></welcome-file-list>
</web-app>
`

// protocols are the connector classes; "HTTP/1.1" would be APR where the native
// library is found.
var protocols = map[string]string{
	"":     "org.apache.coyote.http11.Http11NioProtocol",
	"nio":  "org.apache.coyote.http11.Http11NioProtocol",
	"nio2": "org.apache.coyote.http11.Http11Nio2Protocol",
	"bio":  "org.apache.coyote.http11.Http11Protocol",
	"apr":  "org.apache.coyote.http11.Http11AprProtocol",
}

func (o Tomcat) serverXML(s *Server) (string, error) {
	protocol, ok := protocols[o.Protocol]
	if !ok {
		return "", fmt.Errorf("no protocol %q", o.Protocol)
	}
	var b strings.Builder
	fmt.Fprintln(&b, "<?xml version='1.0' encoding='utf-8'?>")
	// No shutdown port: nobody but us stops this server.
	fmt.Fprintln(&b, `<Server port="-1" shutdown="NO">`)
	if o.Protocol == "apr" {
		fmt.Fprintln(&b, `  <Listener className="org.apache.catalina.core.AprLifecycleListener"/>`)
	}
	if !strings.HasPrefix(o.Version, "7.") {
		fmt.Fprintln(&b, `  <Listener className="org.apache.catalina.startup.VersionLoggerListener"/>`)
	}
	fmt.Fprintln(&b, `  <Service name="Catalina">`)
	fmt.Fprintln(&b, `    <!-- <Connector port="18443" protocol="HTTP/1.1" SSLEnabled="true"/> is not in use -->`)
	if e := o.Executor; e != nil {
		fmt.Fprintf(&b, `    <Executor name="tomcatThreadPool" namePrefix="catalina-exec-" maxThreads="%d" minSpareThreads="%d"`, e.MaxThreads, e.MinSpare)
		if e.MaxQueueSize > 0 {
			fmt.Fprintf(&b, ` maxQueueSize="%d"`, e.MaxQueueSize)
		}
		fmt.Fprintf(&b, " %s/>\n", e.Attributes)
	}
	if o.Service != "" {
		fmt.Fprintln(&b, "    "+o.Service)
	}
	o.connector(&b, s.Port, protocol, "", "")
	if o.TLS {
		attributes, inside := o.tls()
		o.connector(&b, s.TLSPort, protocol, attributes, inside)
	}
	fmt.Fprintln(&b, `    <Engine name="Catalina" defaultHost="localhost">`)
	fmt.Fprintln(&b, `      <Host name="localhost" appBase="webapps" unpackWARs="false" autoDeploy="false">`)
	if o.AccessLogPattern != "-" {
		class, pattern := o.ValveClass, o.AccessLogPattern
		if class == "" {
			class = "org.apache.catalina.valves.AccessLogValve"
		}
		if pattern == "" {
			pattern = "common"
		}
		fmt.Fprintf(&b, `        <Valve className="%s" directory="logs" prefix="localhost_access_log" suffix=".txt" buffered="%t" pattern="%s" %s/>`+"\n",
			class, o.Buffered, strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(pattern), o.Valve)
	}
	fmt.Fprint(&b, "      </Host>\n    </Engine>\n  </Service>\n</Server>\n")
	return b.String(), nil
}

// connector writes one Connector with what the options say of both.
func (o Tomcat) connector(b *strings.Builder, port int, protocol, attributes, inside string) {
	fmt.Fprintf(b, `    <Connector port="%d" protocol="%s" connectionTimeout="20000"`, port, protocol)
	if !o.AnyAddress {
		fmt.Fprint(b, ` address="127.0.0.1"`)
	}
	if o.Executor != nil {
		fmt.Fprint(b, ` executor="tomcatThreadPool"`)
	}
	for _, a := range []struct {
		name string
		n    int
	}{{"maxThreads", o.MaxThreads}, {"acceptCount", o.AcceptCount}, {"maxConnections", o.MaxConnections}} {
		if a.n != 0 {
			fmt.Fprintf(b, ` %s="%d"`, a.name, a.n)
		}
	}
	fmt.Fprintf(b, " %s %s>%s</Connector>\n", o.Connector, attributes, inside)
}

// logging is the distribution's own set-up in short: each record to the console
// and to catalina.DATE.log, application errors to localhost.DATE.log.
func (o Tomcat) logging() string {
	formatter := o.Formatter
	if formatter == "" {
		formatter = "org.apache.juli.OneLineFormatter"
	}
	async := "org.apache.juli.AsyncFileHandler"
	if strings.HasPrefix(o.Version, "7.") { // FileHandler in its stock file
		async = "org.apache.juli.FileHandler"
	}
	return strings.NewReplacer("FILE", async, "FORMATTER", formatter).Replace(`handlers = 1catalina.FILE, 2localhost.FILE, java.util.logging.ConsoleHandler
.handlers = 1catalina.FILE, java.util.logging.ConsoleHandler
1catalina.FILE.level = FINE
1catalina.FILE.directory = ${catalina.base}/logs
1catalina.FILE.prefix = catalina.
1catalina.FILE.formatter = FORMATTER
2localhost.FILE.level = FINE
2localhost.FILE.directory = ${catalina.base}/logs
2localhost.FILE.prefix = localhost.
2localhost.FILE.formatter = FORMATTER
java.util.logging.ConsoleHandler.level = FINE
java.util.logging.ConsoleHandler.formatter = FORMATTER
org.apache.catalina.core.ContainerBase.[Catalina].[localhost].level = INFO
org.apache.catalina.core.ContainerBase.[Catalina].[localhost].handlers = 2localhost.FILE
`)
}
