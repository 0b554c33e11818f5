package target

import (
	"fmt"
	"strings"
	"testing"
)

func readXML(t *testing.T, text, version string, native bool, props map[string]string) serverXML {
	t.Helper()
	root, _, err := parseXML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return readServerXML(root, parseTomcatVersion(version), native, func(s string) string {
		return expand(s, func(k string) (string, bool) { v, ok := props[k]; return v, ok })
	})
}

// What a bare connector comes to in each version.
func TestConnectorDefaults(t *testing.T) {
	for _, tt := range []struct {
		version, attrs string
		native         bool
		want           string
	}{
		{"6.0.53", `port="8080"`, false, "bio 8080 threads=200 accept=100 conns=200 timeout=60000 http-8080-"},
		{"7.0.109", `port="8080" protocol="HTTP/1.1"`, false, "bio 8080 threads=200 accept=100 conns=200 timeout=60000 http-bio-8080-exec-"},
		{"7.0.109", `port="8080" protocol="HTTP/1.1"`, true, "apr 8080 threads=200 accept=100 conns=8192 timeout=60000 http-apr-8080-exec-"},
		{"7.0.109", `port="8080" protocol="org.apache.coyote.http11.Http11NioProtocol"`, false, "nio 8080 threads=200 accept=100 conns=10000 timeout=60000 http-nio-8080-exec-"},
		{"8.5.32", `port="7020" protocol="org.apache.coyote.http11.Http11Nio2Protocol"`, false, "nio2 7020 threads=200 accept=100 conns=10000 timeout=60000 http-nio2-7020-exec-"},
		{"8.5.32", `port="8080" protocol="HTTP/1.1"`, true, "nio 8080 threads=200 accept=100 conns=10000 timeout=60000 http-nio-8080-exec-"},
		{"9.0.70", `port="8443" SSLEnabled="true"`, false, "nio 8443 threads=200 accept=100 conns=8192 timeout=60000 https-jsse-nio-8443-exec-"},
		{"9.0.70", `port="8080" address="10.1.2.3" protocol="org.apache.coyote.http11.Http11AprProtocol"`, true, "apr 8080 threads=200 accept=100 conns=8192 timeout=60000 http-apr-10.1.2.3-8080-exec-"},
		{"8.5.32", `port="8009" protocol="AJP/1.3"`, false, "ajp-nio 8009 threads=200 accept=100 conns=10000 timeout=-1 ajp-nio-8009-exec-"},
		{"8.5.100", `port="8080"`, false, "nio 8080 threads=200 accept=100 conns=8192 timeout=60000 http-nio-8080-exec-"},
		{"9.0.27", `port="8080"`, false, "nio 8080 threads=200 accept=100 conns=10000 timeout=60000 http-nio-8080-exec-"},
		{"8.5.51", `port="8009" protocol="AJP/1.3"`, false, "ajp-nio 8009 threads=200 accept=100 conns=10000 timeout=-1 ajp-nio-127.0.0.1-8009-exec-"},
		{"10.1.60", `port="8080" maxThreads="500" acceptCount="7" maxConnections="-1" connectionTimeout="20000"`, false, "nio 8080 threads=500 accept=7 conns=-1 timeout=20000 http-nio-8080-exec-"},
		{"11.0.1", `port="8080" portOffset="100"`, false, "nio 8180 threads=200 accept=100 conns=8192 timeout=60000 http-nio-8180-exec-"},
		{"", `port="8080" maxThreads="lots"`, false, "nio 8080 threads=200 accept=100 conns=8192 timeout=60000 http-nio-8080-exec-"},
	} {
		s := readXML(t, `<Server><Service><Connector `+tt.attrs+`/></Service></Server>`, tt.version, tt.native, nil)
		if len(s.connectors) != 1 {
			t.Errorf("%s %s: %d connectors", tt.version, tt.attrs, len(s.connectors))
			continue
		}
		c := s.connectors[0]
		got := fmt.Sprintf("%s %d threads=%d accept=%d conns=%d timeout=%d %s", c.Protocol, c.Port, c.MaxThreads, c.AcceptCount, c.MaxConnections, c.ConnectionTimeout, c.ThreadPrefix)
		if got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.version, tt.attrs, got, tt.want)
		}
	}
}

// The server of the 253 GB: shared Executor, NIO.
func TestSharedExecutor(t *testing.T) {
	s := readXML(t, `<?xml version='1.0'?>
<Server port="8005"><Service name="Catalina">
  <Executor name="pool" namePrefix="catalina-exec-" maxThreads="${max}" minSpareThreads="30" maxQueueSize="${queue:-100}" prestartminSpareThreads="true"/>
  <!-- <Connector port="9999"/> -->
  <Connector executor="pool" port="${http.port}" protocol="org.apache.coyote.http11.Http11NioProtocol" maxThreads="9" acceptCount="100" maxConnections="10000"/>
  <Connector executor="nowhere" port="7021"/>
  <Connector port="${nobody.knows}"/>
  <Connector port="-1"/>
  <Connector port="7022" maxSpareThreads="5" enableLookups="maybe"/>
</Service></Server>`, "9.0.1", false, map[string]string{"max": "500", "http.port": "7020"})
	if got := fmt.Sprint(s.executors); got != "[{pool catalina-exec- 500 30 100 false}]" {
		t.Error(got)
	}
	var ports []int
	for _, c := range s.connectors {
		ports = append(ports, c.Port)
	}
	if fmt.Sprint(ports) != "[7020 7021 7022]" {
		t.Error(ports)
	}
	if c := s.connectors[0]; c.Executor != "pool" || c.MaxThreads != 0 || c.ThreadPrefix != "" {
		t.Errorf("%+v", c)
	}
	if c := s.connectors[1]; c.Executor != "" || c.MaxThreads != 200 {
		t.Errorf("%+v", c)
	}
	var ids []string
	for _, f := range s.findings {
		ids = append(ids, f.ID)
	}
	if got := strings.Join(ids, " "); got != "attribute_ignored connector_threads_ignored executor_missing connector_port_unknown attribute_ignored attribute_ignored" {
		t.Error(got)
	}
}

func TestAccessLogFiles(t *testing.T) {
	for _, tt := range []struct{ version, attrs, want string }{
		{"10.1.60", `className="org.apache.catalina.valves.AccessLogValve" prefix="localhost_access_log" suffix=".txt" pattern="combined"`,
			`localhost_access_log.txt "" /b/logs ^localhost_access_log\.\d{4}-\d{2}-\d{2}\.txt$ tomcat true`},
		{"7.0.109", `className="org.apache.catalina.valves.AccessLogValve" directory="/var/log/t"`,
			`access_log "" /var/log/t ^access_log\.\d{4}-\d{2}-\d{2}$ tomcat true`},
		{"9.0.70", `className="org.apache.catalina.valves.AccessLogValve" prefix="a" suffix=".log" rotatable="false" buffered="false"`,
			`a.log "/b/logs/a.log" /b/logs  tomcat false`},
		{"9.0.70", `className="org.apache.catalina.valves.AccessLogValve" prefix="a" suffix=".log" renameOnRotate="true"`,
			`a.log "/b/logs/a.log" /b/logs  tomcat true`},
		{"9.0.70", `className="org.apache.catalina.valves.ExtendedAccessLogValve" prefix="w3c." fileDateFormat="yyyy-MM-dd.HH" pattern="date time-taken"`,
			`w3c "" /b/logs ^w3c\.\d{4}-\d{2}-\d{2}\.\d{2}$ w3c true`},
		{"9.0.90", `className="org.apache.catalina.valves.JsonAccessLogValve" prefix="j" suffix=".json"`,
			`j.json "" /b/logs ^j\.\d{4}-\d{2}-\d{2}\.json$ json true`},
	} {
		s := readXML(t, `<Server><Service><Engine name="C"><Valve `+tt.attrs+`/></Engine></Service></Server>`, tt.version, false, nil)
		a := s.valves[0].accessLog("/b", parseTomcatVersion(tt.version))
		if got := fmt.Sprintf("%s %q %s %s %s %v", a.Name, a.Path, a.Dir, a.Match, a.Format, a.Buffered); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.attrs, got, tt.want)
		}
	}
}

// Each request is counted once, whatever valves it passes.
func TestCountOnce(t *testing.T) {
	log := func(scope, pattern, cond string) AccessLog {
		return AccessLog{Format: "tomcat", Scope: scope, Pattern: pattern, Conditions: cond}
	}
	for _, tt := range []struct {
		name string
		logs []AccessLog
		want string
	}{
		{"one", []AccessLog{log("host:a", "%h", "")}, "[true]"},
		{"two hosts", []AccessLog{log("host:a", "%h", ""), log("host:b", "%h", "")}, "[true true]"},
		{"the engine covers hosts", []AccessLog{log("host:a", "%h %D", ""), log("engine", "%h", "")}, "[false true]"},
		{"a duration tells more", []AccessLog{log("host:a", "%h %r %s", ""), log("host:a", "%D", "")}, "[false true]"},
		{"the thread tells more", []AccessLog{log("host:a", "%s %D", ""), log("host:a", "%s %D %I", "")}, "[false true]"},
		{"equal: the first", []AccessLog{log("host:a", "%s %D", ""), log("host:a", "%s %D", "")}, "[true false]"},
		{"a condition leaves requests out", []AccessLog{log("host:a", "%s %D %I", "conditionIf=x"), log("host:a", "%s", "")}, "[false true]"},
		{"contexts only", []AccessLog{log("context:/x", "%s", ""), log("context:/y", "%s", "")}, "[true true]"},
		{"every context has the same valve", []AccessLog{log("context:*", "%s", ""), log("context:/y", "%s", "")}, "[true false]"},
		{"a context inside of a host", []AccessLog{log("context:/x", "%s %D", ""), log("host:a", "%s", "")}, "[false true]"},
	} {
		countOnce(tt.logs)
		var got []bool
		for _, l := range tt.logs {
			got = append(got, l.Counted)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHasDuration(t *testing.T) {
	for pattern, want := range map[string]bool{
		`%h %l %u %t "%r" %s %b`: false, `%D`: true, `%T`: true, `%{ms}T`: true, `%{X-T}i`: false,
		`%%D`: false, `%%%D`: true, `%{T`: false, `%`: false, `%{X}`: false, `%F`: false,
	} {
		if got := hasDuration(AccessLog{Format: "tomcat", Pattern: pattern}); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
	if !hasDuration(AccessLog{Format: "w3c", Pattern: "date time-taken"}) || hasDuration(AccessLog{Format: "w3c", Pattern: "date"}) {
		t.Error("w3c")
	}
}

func TestNativeConnector(t *testing.T) {
	for _, tt := range []struct {
		version, listener string
		native            bool
		want              string
	}{
		{"9.0.98", `useAprConnector="true"`, true, "apr"},
		{"9.0.98", `useAprConnector="true"`, false, "nio"},
		{"9.0.98", ``, true, "nio"},
		{"10.1.34", `useAprConnector="true"`, true, "nio"},
		{"7.0.109", ``, true, "apr"},
	} {
		s := readXML(t, `<Server><Listener className="org.apache.catalina.core.AprLifecycleListener" `+tt.listener+`/><Service><Connector port="1"/></Service></Server>`, tt.version, tt.native, nil)
		if got := s.connectors[0].Protocol; got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	for _, tt := range []struct {
		v            string
		maj, min, pa int
		want         bool
	}{{"9.0.31", 9, 0, 31, true}, {"9.0.30", 9, 0, 31, false}, {"9.1.0", 9, 0, 31, true}, {"10.0.0-M2", 10, 0, 0, true}, {"8.5.100", 9, 0, 0, false}, {"", 11, 0, 0, true}} {
		if got := parseTomcatVersion(tt.v).atLeast(tt.maj, tt.min, tt.pa); got != tt.want {
			t.Errorf("%s >= %d.%d.%d: %v", tt.v, tt.maj, tt.min, tt.pa, got)
		}
	}
}
