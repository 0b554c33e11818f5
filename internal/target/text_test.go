package target

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " S 10129 1 1 0 -1 4194304 1 0 0 0 605 76 0 0 20 0 54 0 269233 2808832000 44257 1\n"
	for _, comm := range []string{"java", "a) R 1 (x", "x\n) Z 9 9", "sle (2) .sh", "", ")", "("} {
		s, ok := parseStat([]byte("10132 (" + comm + ")" + tail))
		if !ok || s.comm != comm || s.state != 'S' || s.ppid != 10129 || s.startTicks != 269233 || s.vsize != 2808832000 {
			t.Errorf("%q: %+v, %v", comm, s, ok)
		}
	}
	for _, bad := range []string{"", "1 (x", "1 x) S 1", "1 (x) S 1 2 3", "1 (x) SS" + tail, ") (" + tail} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

func TestParseStatus(t *testing.T) {
	s, ok := parseStatus([]byte("Name:\tjava\nUid:\t1001\t1002\t1003\t1004\nGid:\t5\t6\t7\t8\nGroups:\t10 20 \nNSpid:\t31337\t17\t1\n"))
	if !ok || s.uid != 1002 || s.gid != 6 || fmt.Sprint(s.groups, s.nspid) != "[10 20] [31337 17 1]" {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := parseStatus([]byte("Name:\tjava\nUid:\tx\n")); ok {
		t.Error("no uid, and yet good")
	}
}

func TestMapsLine(t *testing.T) {
	var m mapsFacts
	for _, l := range []string{
		"7f0 r-xp 0 08:01 5   /opt/my jdk/lib/server/libjvm.so (deleted)\n",
		"7f1 rw-s 0 08:01 6   /tmp/hsperfdata_app/1\n",
		"7f2 r-xp 0 08:01 7   /usr/lib/libtcnative-1.so.0.2.35\n",
		"7f3 rw-p 0 00:00 0   [heap]\n",
		"7f4 rw-p 0 00:00 0\n",
	} {
		m.add([]byte(l))
	}
	if m.libjvm != "/opt/my jdk/lib/server/libjvm.so" || m.perfdata != "/tmp/hsperfdata_app/1" || !m.tcnative {
		t.Errorf("%+v", m)
	}
}

func TestListeners(t *testing.T) {
	var got []listener
	for _, row := range []string{
		"   0: 0000000000000000FFFF00000100007F:46E8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 665822 1 0 100 0 0 10 0\n",
		"   1: 00000000:1F90 00000000:0000 0A 00000000:00000063 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0\n",
		"   2: 0200007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1 0 100 0 0 10 0\n",
	} {
		if !parseListener([]byte(row), func(l listener) { got = append(got, l) }) {
			t.Error("no LISTEN row: ", row)
		}
	}
	if fmt.Sprint(got) != "[{127.0.0.1 18152 665822} { 8080 7} {127.0.0.2 22 8}]" {
		t.Error(got)
	}
	for _, no := range []string{"", "junk", "   3: 0200007F:0016 0200007F:0017 01 0:0 0:0 0 0 0 8 1\n"} {
		if parseListener([]byte(no), func(listener) {}) {
			t.Error("taken for a LISTEN row: ", no)
		}
	}
}

func TestParseCommand(t *testing.T) {
	o := parseCommand(strings.Split("/usr/bin/java|-Xmx1g|-Da=1|-Da=2|-cp|/x:/y|--add-opens|java.base/java.lang=ALL-UNNAMED|-XX:+UseZGC|-XX:-UsePerfData|org.acme.Main|-Db=3|start", "|"))
	if o.main != "org.acme.Main" || o.props["a"] != "2" || o.props["b"] != "" || o.classpath != "/x:/y" || fmt.Sprint(o.args) != "[-Db=3 start]" || !o.has("UseZGC") || o.has("UsePerfData") {
		t.Errorf("%+v", o)
	}
	o = parseCommand([]string{"java", "-jar", "/opt/my app/srv.jar", "x"})
	if !o.jar || o.mainName() != "srv" {
		t.Errorf("%+v", o)
	}
	o = parseCommand([]string{"java", "-m", "mod/org.acme.Main", "x"})
	if o.main != "org.acme.Main" || o.mainName() != "Main" {
		t.Errorf("%+v", o)
	}
	for _, short := range [][]string{nil, {"java"}, {"java", "-cp"}, {"java", "-m"}, {"java", "-jar"}, {""}} {
		parseCommand(short)
	}
	// An option with a blank in it, as the JVM joins them.
	o = parseCommand([]string{"java", "@args", "Main"})
	o.addVMArgs("-Dname=my server -Xmx1g")
	if o.props["name"] != "my server" || !o.argfile || len(o.flags) != 2 {
		t.Errorf("%+v", o)
	}
	o = parseCommand([]string{"java", "@all"})
	o.addJavaCommand("/srv/x y/app.jar a")
	if o.main != "/srv/x" {
		t.Errorf("%+v", o)
	}
}

func TestProperties(t *testing.T) {
	got := parseProperties([]byte("# c\n! c\na=1\n b : two words \nc three\nd=x\\\n   y\\\\\ne\\:f=\\u00e4\\t\\u12\n\\#k=v\nlast"))
	want := map[string]string{"a": "1", "b": "two words ", "c": "three", "d": `xy\`, "e:f": "ä\tu12", "#k": "v", "last": ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestExpand(t *testing.T) {
	props := map[string]string{"a": "A", "b": "${a}b", "loop": "${loop}", "x": "${y}", "y": "${x}", "grow": "${grow}${grow}", "n.A": "nested"}
	look := func(k string) (string, bool) { v, ok := props[k]; return v, ok }
	for in, want := range map[string]string{
		"":              "",
		"plain":         "plain",
		"${a}/${b}":     "A/Ab",
		"${none}":       "${none}",
		"${none:-d}":    "d",
		"${none:-${a}}": "A",
		"${none:-}x":    "x",
		"${n.${a}}":     "nested",
		"${a":           "${a",
		"$a}":           "$a}",
		"${}":           "${}",
		"${loop}":       "${loop}",
	} {
		if got := expand(in, look); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, hostile := range []string{"${x}", "${grow}", strings.Repeat("${", 100_000), strings.Repeat("${a}", 100_000)} {
		if got := expand(hostile, look); len(got) > len(hostile)+maxExpanded {
			t.Errorf("%.20s grew to %d bytes", hostile, len(got))
		}
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"-Ddb.password=hunter2":                        "-Ddb.password=*****",
		"-DAPI_TOKEN=abc":                              "-DAPI_TOKEN=*****",
		"-Djavax.net.ssl.keyStorePassword=p w":         "-Djavax.net.ssl.keyStorePassword=*****",
		"-Djavax.net.ssl.keyStore=/x/y.jks":            "-Djavax.net.ssl.keyStore=*****",
		"-Xmx512m":                                     "-Xmx512m",
		"-Xlog:gc*:file=gc.log:time":                   "-Xlog:gc*:file=gc.log:time",
		"-Durl=jdbc:mysql://app:s3cret@db:3306/x":      "-Durl=jdbc:mysql://app:*****@db:3306/x",
		"-Durl=jdbc:oracle:thin:scott/tiger@db:1521:x": "-Durl=jdbc:oracle:thin:scott/*****@db:1521:x",
		"amqp://u:p@ss@h:5672/v":                       "amqp://u:*****@h:5672/v",
		"http://h:8080/x?m=a@b":                        "http://h:8080/x?m=a@b",
		"http://u:p@h/":                                "http://u:*****@h/",
		"-Durl=jdbc:x://h/d?user=a&password=b&ssl=on":  "-Durl=jdbc:x://h/d?user=a&password=*****&ssl=on",
		"--secret=x":                                   "--secret=*****",
		"-javaagent:/a.jar=license_key=abc,x=1":        "-javaagent:/a.jar=license_key=*****,x=1",
		"-Dhttp.keepAlive=true":                        "-Dhttp.keepAlive=true",
		"start":                                        "start",
		"user:pw@host":                                 "user:pw@host", // no URL
	} {
		if got := MaskArgs([]string{in})[0]; got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := MaskArgs([]string{"--password", "x", "--port", "80"}); fmt.Sprint(got) != "[--password ***** --port 80]" {
		t.Error(got)
	}
	if MaskValue("secret", "") != "" || MaskValue("connectionTimeout", "20") != "20" {
		t.Error("values")
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\nb\x1b[31m": "a\uFFFDb\uFFFD[31m", "\xff\xfe": "\uFFFD\uFFFD", "日本": "日本", "a\u202eb": "a\uFFFDb", "": "",
	} {
		if got := clean(in, 100); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := clean(strings.Repeat("ä", 100), 20); len(got) > 20 || !strings.HasSuffix(got, "…") {
		t.Error(len(got), got)
	}
}

func TestFoldName(t *testing.T) {
	for in, want := range map[string]string{
		"localhost_access_log.2026-11-30.txt": "localhost_access_log.txt",
		"catalina.2026-11-30.log":             "catalina.log",
		"2026_11_30.request.log":              "request.log",
		"gc-5680.log":                         "gc.log",
		"gc-pid42.log":                        "gc.log",
		"gc-1-2026-11-30_12-33-29.log":        "gc.log",
		"gc.log.0.current":                    "gc.log",
		"gc.log.3":                            "gc.log",
		"app.20261130.log":                    "app.log",
		"catalina.out":                        "catalina.out",
		"perf..log":                           "perf..log",
		"log4j2.log":                          "log4j2.log",
		"2026-11-30":                          "2026-11-30",
	} {
		if got := FoldName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestGCOptions(t *testing.T) {
	for _, tt := range []struct {
		flags string
		major int
		want  string // name path-or-match, matched example
		open  string
	}{
		{"-Xloggc:gc.log", 8, "gc.log /w/gc.log false", "/w/gc.log"},
		{"-Xloggc:/l/gc-%p.log", 8, "gc.log ^gc-pid7\\.log$ false", "/l/gc-pid7.log"},
		{"-Xloggc:gc.log -XX:+UseGCLogFileRotation", 8, "gc.log ^gc\\.log(?:\\.\\d+(?:\\.current)?)?$ false", "/w/gc.log.0.current"},
		{"-Xlog:gc*:file=gc-%p.log:time,uptime:filecount=5,filesize=10M", 17, "gc.log ^gc-7\\.log$ true", "/w/gc-7.log"},
		{"-Xlog:gc:logs/x.log", 17, "x.log /w/logs/x.log true", "/w/logs/x.log"},
		{"-Xlog:safepoint*,gc*=debug:file=\"/a b/gc.log\"", 17, "gc.log /a b/gc.log true", "/a b/gc.log"},
		{"-Xlog:gc:file=gc-%hn-%t.log", 25, "gc.log ^gc-[^/]+-\\d{4}-\\d\\d-\\d\\d_\\d\\d-\\d\\d-\\d\\d\\.log$ true", "/w/gc-host.a-2026-11-30_12-16-16.log"},
		{"-Xlog::all.log", 17, "all.log /w/all.log true", "/w/all.log"},
		{"-Xlog:all=info:all.log", 17, "all.log /w/all.log true", "/w/all.log"},
		{"-Xlog:gc", 17, "", ""},
		{"-Xlog:gc:stdout", 17, "", ""},
		{"-Xlog:class+load:file=c.log", 17, "", ""},
		{"-Xlog:disable", 17, "", ""},
		{"-Xlog:gc:file=", 17, "", ""},
		{"-Xlog:gc:file=a.log -Xlog:gc+heap:file=b.log -Xlog:gc:file=a.log", 17, "a.log /w/a.log true;b.log /w/b.log true", ""},
		{"-Xlog:gc:C:\\logs\\gc.log:time", 17, "", "windows"},
	} {
		o := &jvmOptions{flags: strings.Split(tt.flags, " ")}
		if strings.Contains(tt.flags, `"`) {
			o.flags = []string{tt.flags}
		}
		var got []string
		for _, g := range gcOptions(o, tt.major) {
			f, re := g.file("/w", 7)
			got = append(got, fmt.Sprintf("%s %s %v", f.Name, cmpOr(f.Path, f.Match), g.unified))
			if tt.open != "" && tt.open != "windows" && (re == nil || !re.MatchString(tt.open)) {
				t.Errorf("%s: %v does not match %s", tt.flags, re, tt.open)
			}
			if re != nil && re.MatchString("/w/gc-8.log") {
				t.Errorf("%s takes another JVM's log", tt.flags)
			}
		}
		if tt.open == "windows" {
			if len(got) != 1 {
				t.Errorf("%s: %v", tt.flags, got)
			}
			continue
		}
		if s := strings.Join(got, ";"); s != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.flags, s, tt.want)
		}
	}
}

func TestXMLIsBounded(t *testing.T) {
	deep := strings.Repeat("<a>", 10_000) + strings.Repeat("</a>", 10_000)
	wide := "<a>" + strings.Repeat("<b/>", 100_000) + "</a>"
	for name, text := range map[string]string{
		"deep": deep, "wide": wide, "large": "<a>" + strings.Repeat(" ", maxXML) + "</a>",
		"not closed": "<Server><Service>", "closed twice": "<Server></Server></Server>", "two roots": "<a/><b/>",
		"crossed": "<a><b></a></b>", "empty": "", "no xml": "hello", "nul": "\x00", "utf-16": `<?xml version="1.0" encoding="UTF-16"?><a/>`,
		"unknown entity": "<a>&who;</a>",
	} {
		if e, _, err := parseXML([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// A thousand million laughs: an entity that names others is none.
	laughs := `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]><x y="&a;">&a;</x>`
	e, external, err := parseXML([]byte(laughs))
	if err != nil || external || e.attr["y"] != "ha" || e.content() != "ha" {
		t.Errorf("%+v %v %v", e, external, err)
	}
	if _, _, err := parseXML([]byte(strings.ReplaceAll(laughs, "&a;</x>", "&c;</x>"))); err == nil {
		t.Error("a nested entity was taken")
	}
	e, external, err = parseXML([]byte(`<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>`))
	if err != nil || !external || e.content() != "" {
		t.Errorf("%+v %v %v", e, external, err)
	}
	e, _, err = parseXML([]byte("<?xml version='1.0' encoding='ISO-8859-1'?><x y='\xe4'>\xfc</x>"))
	if err != nil || e.attr["y"] != "ä" || e.content() != "ü" {
		t.Errorf("%+v %v", e, err)
	}
}

func FuzzServerXML(f *testing.F) {
	f.Add([]byte(`<Server><Service><Executor name="x" maxThreads="5"/><Connector port="${p}" executor="x"/><Engine name="e"><Host name="h"><Valve className="a.AccessLogValve" pattern="%D" prefix="x" fileDateFormat="yyyy-MM-dd'T'"/></Host></Engine></Service></Server>`))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		root, _, err := parseXML(b)
		if err != nil {
			return
		}
		s := readServerXML(root, tomcatVersion{}, false, func(s string) string {
			return expand(s, func(k string) (string, bool) { return "${" + k + "}x", k != "" })
		})
		for _, c := range s.connectors {
			if c.Port < 1 || c.Port > 65535 {
				t.Fatal(c.Port)
			}
		}
		for _, v := range s.valves {
			a := v.accessLog("/b", tomcatVersion{})
			if _, err := a.LogFile.Pattern(); err != nil {
				t.Fatal(err)
			}
		}
		j := newJettySettings()
		j.connectors([]*element{root})
		j.pool([]*element{root})
		j.requestLogs([]*element{root}, "/b", tomcatVersion{})
	})
}

func FuzzCommand(f *testing.F) {
	f.Add("java\x00-Xlog:gc*:file=x-%p-%t.log:time\x00-Dp=1\x00-jar\x00x.jar\x00a")
	f.Add("java\x00-Xloggc:%p%%\x00@x\x00Main")
	f.Fuzz(func(t *testing.T, s string) {
		o := parseCommand(splitNUL([]byte(s)))
		o.addVMArgs(s)
		o.addJavaCommand(s)
		for _, major := range []int{8, 17} {
			for _, g := range gcOptions(&o, major) {
				file, re := g.file("/w", 7)
				if _, err := file.Pattern(); err != nil || re == nil {
					t.Fatal(file, err)
				}
			}
		}
		for _, a := range MaskArgs(o.flags) {
			clean(a, 256)
		}
		parseProperties([]byte(s))
		labelName(o.mainName())
	})
}
