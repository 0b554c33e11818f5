package target

import (
	"fmt"
	"strings"
	"testing"
)

func jettyOf(t *testing.T, ini string, files ...string) (*jettySettings, []*element) {
	t.Helper()
	j := newJettySettings()
	j.addIni(ini)
	j.addProperties(map[string]string{"jetty.base": "/srv/j"})
	var es []*element
	for _, f := range files {
		e, _, err := parseXML([]byte(f))
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	return j, es
}

const jettyHTTP = `<?xml version="1.0"?><!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://www.eclipse.org/jetty/configure_10_0.dtd">
<Configure id="Server"><Call name="addConnector"><Arg><New id="httpConnector" class="org.eclipse.jetty.server.ServerConnector">
<Set name="host"><Property name="jetty.http.host" deprecated="jetty.host"/></Set>
<Set name="port"><Property name="jetty.http.port"><Deprecated>jetty.port</Deprecated><Default>8080</Default></Property></Set>
<Set name="idleTimeout"><Property name="jetty.http.idleTimeout" default="30000"/></Set>
<Set name="acceptQueueSize" property="x"><Property name="jetty.http.acceptQueueSize" default="0"/></Set>
</New></Arg></Call></Configure>`

const jettyPool = `<Configure><New id="threadPool" class="org.eclipse.jetty.util.thread.QueuedThreadPool">
<Arg name="queue"><New class="org.eclipse.jetty.util.BlockingArrayQueue"><Arg>6</Arg></New></Arg>
<Set name="minThreads"><Property name="jetty.threadPool.minThreads" default="4"/></Set>
<Set name="maxThreads" type="int"><Property name="jetty.threadPool.maxThreads" default="12"/></Set></New></Configure>`

func TestJettySettings(t *testing.T) {
	for _, tt := range []struct {
		name, ini string
		files     []string
		want      string
	}{
		{"nothing", "", nil, "8080@ 50 30000; pool 10-200 2147483647"},
		{"ini only", "--module=http,requestlog\n# jetty.http.port=1\njetty.http.port=9090\njetty.http.port=9091\njetty.threadPool.maxThreads=33\n", nil, "9090@ 50 30000; pool 10-33 2147483647"},
		{"https", "--modules=https\njetty.ssl.port=9443", nil, "9443@tls 50 30000; pool 10-200 2147483647"},
		{"xml", "jetty.http.host=127.0.0.1", []string{jettyHTTP, jettyPool}, "8080@127.0.0.1 50 30000; pool 4-12 6"},
		{"xml and ini", "jetty.port=7\njetty.http.acceptQueueSize=9\njetty.threadPool.maxThreads=5", []string{jettyHTTP, jettyPool}, "7@ 9 30000; pool 4-5 6"},
		{"a name for another", "my.port=8123\njetty.http.port=${my.port}", []string{jettyHTTP}, "8123@ 50 30000; pool 10-200 2147483647"},
		{"a loop", "jetty.http.port=${jetty.http.port}", []string{jettyHTTP}, "; pool 10-200 2147483647"},
	} {
		j, es := jettyOf(t, tt.ini, tt.files...)
		var got []string
		// A connector without a port that is known is none.
		cs := j.connectors(es)
		if tt.name == "a loop" {
			cs = nil
		}
		for _, c := range cs {
			a := c.Address
			if c.TLS {
				a = "tls"
			}
			got = append(got, fmt.Sprintf("%d@%s %d %d", c.Port, a, c.AcceptCount, c.ConnectionTimeout))
		}
		x := j.pool(es)
		if s := fmt.Sprintf("%s; pool %d-%d %d", strings.Join(got, ","), x.MinSpare, x.MaxThreads, x.MaxQueueSize); s != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, s, tt.want)
		}
	}
}

func TestJettyRequestLogs(t *testing.T) {
	const custom = `<Configure><Set name="RequestLog"><New class="org.eclipse.jetty.server.CustomRequestLog"><Arg><New class="org.eclipse.jetty.server.AsyncRequestLogWriter">
<Arg><Property name="jetty.requestlog.absoluteFilePath"><Default><Property name="jetty.base" default="."/>/<Property name="jetty.requestlog.filePath"><Default><Property name="jetty.requestlog.dir" default="logs"/>/yyyy_mm_dd.request.log</Default></Property></Default></Property></Arg>
<Set name="filenameDateFormat"><Property name="jetty.requestlog.filenameDateFormat" default="yyyy_MM_dd"/></Set></New></Arg>
<Arg><Property name="jetty.requestlog.formatString"><Default><Get class="org.eclipse.jetty.server.CustomRequestLog" name="NCSA_FORMAT"/></Default></Property></Arg></New></Set></Configure>`
	const resolved = `<Configure><New class="org.eclipse.jetty.server.CustomRequestLog"><Arg><New class="org.eclipse.jetty.server.RequestLogWriter"><Arg>
<Call name="resolvePath" class="org.eclipse.jetty.xml.XmlConfiguration"><Arg><Property name="jetty.base"/></Arg><Arg>logs/access.log</Arg></Call></Arg></New></Arg><Arg>%s %D</Arg></New></Configure>`
	const ncsa = `<Configure><New id="RequestLogImpl" class="org.eclipse.jetty.server.AsyncNCSARequestLog"><Set name="filename"><Property name="jetty.logs" default="./logs"/>/yyyy_mm_dd.request.log</Set><Set name="extended">true</Set><Set name="LogLatency">true</Set><Set name="logCookies">false</Set></New></Configure>`
	const day = `^\d{4}_\d{2}_\d{2}\.request\.log$`
	for _, tt := range []struct {
		name, ini, file, want string
	}{
		{"custom", "", custom, "jetty request.log /srv/j/logs " + day + " " + jettyNCSA},
		{"custom, set", "jetty.requestlog.dir=/var/log/j\njetty.requestlog.formatString=%s %{us}T", custom, "jetty request.log /srv/j/var/log/j " + day + " %s %{us}T"},
		{"resolved", "", resolved, "jetty access.log /srv/j/logs/access.log %s %D"},
		{"ncsa", "", ncsa, "jetty-ncsa request.log /srv/j/logs " + day + " extended latency"},
		{"the module alone, 9", "--module=requestlog\njetty.requestlog.loglatency=true", "", "jetty-ncsa request.log /srv/j/logs " + day + " latency"},
		{"none", "--module=http", "", ""},
	} {
		var files []string
		if tt.file != "" {
			files = append(files, tt.file)
		}
		j, es := jettyOf(t, tt.ini, files...)
		got := ""
		for _, a := range j.requestLogs(es, "/srv/j", tomcatVersion{major: 9}) {
			got += strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", a.Format, a.Name, cmpOr(a.Path, a.Dir), a.Match, a.Pattern)), " ")
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestJuli(t *testing.T) {
	p := parseProperties([]byte(`handlers = 1catalina.org.apache.juli.AsyncFileHandler, 2localhost.org.apache.juli.FileHandler, 3x.java.util.logging.FileHandler, java.util.logging.ConsoleHandler
.handlers = 1catalina.org.apache.juli.AsyncFileHandler, java.util.logging.ConsoleHandler
1catalina.org.apache.juli.AsyncFileHandler.directory = ${catalina.base}/logs
1catalina.org.apache.juli.AsyncFileHandler.prefix = catalina.
2localhost.org.apache.juli.FileHandler.directory = elsewhere
2localhost.org.apache.juli.FileHandler.prefix = localhost
2localhost.org.apache.juli.FileHandler.rotatable = false
3x.java.util.logging.FileHandler.pattern = %t/x.%g.log
`))
	value := func(s string) string { return strings.ReplaceAll(s, "${catalina.base}", "/b") }
	logs, console := readJuli(p, "/b", value)
	got := ""
	for _, l := range logs {
		got += fmt.Sprintf("%s %s %s %v; ", l.file.Name, l.file.Dir, cmpOr(l.file.Path, l.file.Match), l.root)
	}
	if want := `catalina.log /b/logs ^catalina\.\d{4}-\d{2}-\d{2}\.log$ true; localhost.log /b/elsewhere /b/elsewhere/localhost.log false; x.log /tmp ^x\.\d+\.log$ false; `; got != want || !console {
		t.Errorf("got  %s\nwant %s, console %v", got, want, console)
	}
}
