package accesslog

import (
	"bytes"
	"math"
	"testing"
)

// holds checks what is true of every record and every refusal, whatever the
// line was.
func holds(t *testing.T, m *Matcher, line []byte) {
	t.Helper()
	before := bytes.Clone(line)
	var r, again Record
	why := m.Parse(line, &r)
	if !bytes.Equal(line, before) {
		t.Fatal("the line was written to")
	}
	if why >= refusals || why.String() == "BUG" {
		t.Fatalf("refusal %d is not in the list", why)
	}
	if m.w3c == nil && m.gathers == false {
		// Nothing is remembered from line to line but the last time stamp.
		again.Status, again.Duration, again.Has = 999, -1, 0xffff
		if m.Parse(line, &again) != why || why == Accepted && (again.Status != r.Status || again.Has != r.Has || again.End != r.End) {
			t.Fatal("a second reading differs")
		}
	}
	if why != Accepted {
		return
	}
	r.Split()
	if r.Status < 0 || r.Status > 999 || r.Has&HasStatus == 0 && r.Status != 0 {
		t.Fatalf("status %d", r.Status)
	}
	if r.Bytes < 0 || r.Duration < 0 || r.Duration != r.Duration || math.IsInf(r.Duration, 0) || r.Has&HasFirstByte != 0 && !(r.FirstByte >= 0) {
		t.Fatalf("%+v", r)
	}
	for _, s := range [][]byte{r.Request, r.RawMethod, r.Path, r.Query, r.Protocol, r.Host, r.Thread, r.Trace} {
		if len(s) > 0 && !bytes.Contains(line, s) {
			t.Fatalf("%q is no part of the line", s)
		}
	}
	if r.Method >= methods {
		t.Fatal("method")
	}
	poolOf(r.Thread)
	traceID(r.Trace)
	rt := newRouter(Routes{Fold: true})
	if n, _ := rt.number(&r); n >= len(rt.names) || len(rt.names[n]) > 1024 || bytes.ContainsAny([]byte(rt.names[n]), "?") {
		t.Fatalf("route %q", rt.names[n])
	}
	r.Span()
}

var fuzzLines = []string{
	`127.0.0.1 - - [30/Nov/2026:12:09:28 +0000] "GET /slow?ms=5 HTTP/1.1" 200 43 386229 383 http-nio-8080-exec-2`,
	`127.0.0.1 - - [30/Nov/2026:12:09:28 +0000] "GET /slow?ms=5 HTTP/1.1" 200 43 "-" "he said \"hi\" \\back\\ end" 19`,
	`2001:db8::1 - a b [30/Nov/2026:12:09:28 +0000] "- - -" 400 - "-" "x" 500 99 "-" "y" 7`,
	`- - - [] "" `, `"-" 408 -`, "\x16\x03\x01", `[30/Nov/2026:12:09:28 -0930] 200`, ``, ` `, "\x00\x00",
	`10.0.0.1 - - [30/Nov/2026:12:09:28 +0000] "GET /" 200 5 99999999999999999999 -5 x`,
	`10.0.0.1 - - [30/Nov/2026:12:09:28 +0000] "GET /a;b=c/5?x" 200 1.5 -3 0,7 x`,
}

func FuzzTomcat(f *testing.F) {
	for _, p := range []string{"common", "combined", "vcombined", loadPattern, longPattern, timesPattern,
		`%h %l %u %t "%r" %s %b "%{Referer}i" "%{User-Agent}i" %D`, `%{yyyy-MM-dd}t %{HH:mm:ss}t.%{msec_frac}t %m %U%q %H %s %T %{x}r`, `%D%%%X"%{traceparent}i"%I`} {
		for _, l := range fuzzLines {
			f.Add(p, l)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, line string) {
		m, err := Compile(FormatTomcat, pattern, Options{ServerVersion: "10.1"})
		if err != nil {
			return
		}
		holds(t, m, []byte(line))
	})
}

func FuzzJetty(f *testing.F) {
	for _, p := range []string{jettyNCSA, jettyExtended, jettyExtended + " %D %X", `%{dd.MMM.yyyy hh:mm a|GMT|en}t %s %!404,500{Referer}i %k %r`, `%{-path}uri %{x}attr|%{a}ti`} {
		for _, l := range fuzzLines {
			f.Add(p, l)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, line string) {
		m, err := Compile(FormatJetty, pattern, Options{ServerKind: "jetty"})
		if err != nil {
			return
		}
		holds(t, m, []byte(line))
	})
}

func FuzzNCSA(f *testing.F) {
	for _, p := range []string{"", "extended latency", "server extended cookies dispatch latency"} {
		for _, l := range fuzzLines {
			f.Add(p, l)
		}
	}
	f.Fuzz(func(t *testing.T, words, line string) {
		m, err := Compile(FormatNCSA, words, Options{})
		if err != nil {
			return
		}
		holds(t, m, []byte(line))
	})
}

func FuzzW3C(f *testing.F) {
	f.Add("date time c-ip cs-method cs-uri sc-status bytes time-taken cs(User-Agent)", `2026-11-30 12:09:27 127.0.0.1 GET /slow?ms=5 200 43 0.012 "he said ""hi"""`)
	f.Add("sc-status time-taken-us x-threadname", "#Fields: date time")
	f.Add("", "200")
	f.Fuzz(func(t *testing.T, fields, line string) {
		m, err := Compile(FormatW3C, fields, Options{})
		if err != nil {
			return
		}
		holds(t, m, []byte(line))
		holds(t, m, []byte("2026-11-30 12:09:27 127.0.0.1 GET / 200 1 2"))
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"host":"127.0.0.1","time":"[30/Nov/2026:12:09:28 +0000]","request":"GET / HTTP/1.1","statusCode":"200","size":"-","elapsedTime":"386","requestHeaders": {"User-Agent":"a\"b"}}`)
	f.Add(`{"a":{"b":[1,"]"]},"statusCode":200}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, line string) {
		m, err := Compile(FormatJSON, "", Options{ServerVersion: "9.0.80"})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, m, []byte(line))
	})
}

func FuzzRecognise(f *testing.F) {
	for _, l := range fuzzLines {
		f.Add([]byte(l + "\n" + l + "\n"))
	}
	f.Add([]byte("#Fields: date time sc-status\n2026-11-30 12:00:00 200\n"))
	f.Add([]byte(`{"statusCode":"200"}`))
	f.Fuzz(func(t *testing.T, head []byte) {
		g := Recognise(head)
		if g.Confidence < 0 || g.Confidence > 1 || g.Why == "" {
			t.Fatalf("%+v", g)
		}
		if g.Confidence > 0 {
			if _, err := Compile(g.Format, g.Pattern, Options{}); err != nil {
				t.Fatalf("a guess that does not compile: %v", err)
			}
		}
	})
}
