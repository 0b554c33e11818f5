package accesslog

import (
	"os"
	"testing"
)

func TestRecogniseCorpus(t *testing.T) {
	for _, tt := range []struct {
		file, format, pattern string
		unitKnown             bool
	}{
		{"tomcat10-mixedA-common.log", FormatTomcat, aliases["common"], true},
		{"tomcat10-mixedA-combined.log", FormatTomcat, aliases["combined"], true},
		{"tomcat10-weird-combined.log", FormatTomcat, aliases["combined"], true},
		{"tomcat10-mixedA-localhost_access_log.log", FormatTomcat, `%h %l %u %t "%r" %s %b %D %F %I %S "%{Referer}i" "%{User-Agent}i" %{begin:msec}t %X %S %S %S`, false},
		{"tomcat10-mixedA-json.json", FormatJSON, "", false},
		{"tomcat10-mixedA-w3c.log", FormatW3C, w3cPattern, true},
		{"jetty94-mixed1-ncsa-latency.log", FormatTomcat, `%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i" %D`, false},
	} {
		data, err := os.ReadFile(shared(t, "corpus", "accesslog", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		g := Recognise(data[:min(len(data), 32<<10)])
		if g.Format != tt.format || g.Pattern != tt.pattern || g.UnitKnown != tt.unitKnown || g.Confidence < 0.5 {
			t.Errorf("%s: %+v", tt.file, g)
		}
		t.Logf("%s: %.2f %s", tt.file, g.Confidence, g.Why)
	}
}

func TestRecogniseOthers(t *testing.T) {
	for _, tt := range []struct{ name, head, pattern string }{
		{"empty", "", ""},
		{"prose", "WARNING: rotation of this file was delayed\nsecond line\n", ""},
		{"catalina.out", "30-Nov-2026 11:56:15.195 WARNING [main] a.b.c text\n", ""},
		{"one line, no end", `127.0.0.1 - - [30/Nov/2026:12:26:48 +0000] "GET / HTTP/1.1" 200 44`, aliases["common"]},
		{"virtual hosts", "www.example.test 127.0.0.1 - - [30/Nov/2026:12:26:48 +0000] \"GET / HTTP/1.1\" 200 44\n", aliases["vcommon"]},
		{"seconds with decimals", "127.0.0.1 - - [30/Nov/2026:12:26:48 +0000] \"GET / HTTP/1.1\" 200 44 0.202 catalina-exec-1\n", `%h %l %u %t "%r" %s %b %T %I`},
		{"NCSARequestLog with latency", "127.0.0.1 - - [30/Nov/2026:14:30:03 +0000] \"GET /slow?ms=50 HTTP/1.0\" 200 12  52\n", "latency"},
	} {
		if g := Recognise([]byte(tt.head)); g.Pattern != tt.pattern || (g.Confidence > 0) != (tt.pattern != "") {
			t.Errorf("%s: %+v", tt.name, g)
		}
	}
}
