package applog

import (
	"bytes"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// FuzzSplit: whatever the text and wherever it is cut, the figures are the same,
// and each line is in exactly one place.
func FuzzSplit(f *testing.F) {
	f.Add(stormText(4), uint16(100), uint16(7))
	f.Add([]byte("30-Nov-2026 12:00:00.000 INFO [main] a.B.c one\n\x1b[0m\n"), uint16(9), uint16(1))
	f.Add([]byte("Nov 30, 2026 11:59:36 AM a.b.C d\nINFO: x\njava.lang.Error\n\tat x\nraw\n"), uint16(10), uint16(2))
	f.Add([]byte("2024-06-30 12:00:00,100 ERROR [x] a.B - y\na.b.C: d\n e\n\tat f\nCaused by: g.H\n"), uint16(50), uint16(3))
	f.Add([]byte("{\"level\":\"WARN\",\"message\":\"x\",\"stack_trace\":\"a.B: c\\n\\tat d\"}\n\"main\" #1 prio=5\n\tat x\n"), uint16(33), uint16(1))
	f.Fuzz(func(t *testing.T, text []byte, size, restart uint16) {
		if len(text) > 1<<16 {
			return
		}
		// Observe is given lines without \r\n.
		text = append(bytes.ReplaceAll(text, []byte("\r"), nil), '\n')
		lines := New(metric.NewSet(), DefaultConfig())
		for rest := text; len(rest) > 0; {
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			lines.Observe(bytes.Clone(line))
		}
		lines.Idle(time.Time{})
		if lines.open() {
			t.Error("still open after Idle")
		}
		lines.Gap()
		want := figures(lines)

		blocks := New(metric.NewSet(), DefaultConfig())
		feed(blocks, text, int(size)+1)
		blocks.Idle(time.Time{})
		blocks.Gap()
		if got := figures(blocks); got != want {
			t.Errorf("blocks of %d:\n got %s\nwant %s", int(size)+1, got, want)
		}
		if v, _ := blocks.bytes.Value(); v != float64(len(text)) {
			t.Errorf("%v of %d bytes", v, len(text))
		}

		again := New(metric.NewSet(), DefaultConfig())
		n := 0
		for rest := text; len(rest) > 0; n++ {
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			again.Observe(bytes.Clone(line))
			if n == int(restart) {
				data, err := again.Save()
				if err != nil {
					t.Fatal(err)
				}
				again = New(metric.NewSet(), DefaultConfig())
				if err := again.Load(data); err != nil {
					t.Fatal(err)
				}
			}
		}
		again.Idle(time.Time{})
		again.Gap()
		if got := figures(again); got != want {
			t.Errorf("a restart after line %d:\n got %s\nwant %s", restart, got, want)
		}
		_ = lines.Recent()
		_ = (&Report{o: lines}).Result()
	})
}

// FuzzLayouts: no layout falls over a line, and what it returns lies in it.
func FuzzLayouts(f *testing.F) {
	for _, l := range []string{
		"30-Jun-2024 12:00:00.123 WARNING [x] a.b.C.d y", "Nov 30, 2026 11:59:36 AM a.b.C d", "INFO: x",
		"2024-06-30 12:00:00.123:WARN:oejs.HttpChannel:qtp1-16: /slow", "2024-06-30 12:00:00,123 ERROR [main] a.B - x",
		`{"time": "2024-06-30T12:00:00.123Z", "level": "WARNING", "thread": "main", "class": "a.b.C", "method": "d", "message": "x", "throwable": ["a.B"," c"]}`,
		`{"@timestamp":"2024-06-30T14:00:00.123+02:00","log.level":"WARN","message":"x","error":{"type":"a.B","message":"c"}}`,
		"2024-06-30T12:00:00.123+02:00  INFO 77 --- [app] [main] a.B : x", "\x1b[31m12:00:00.123 [main] DEBUG a.B - x",
	} {
		f.Add([]byte(l))
	}
	given := []layout{}
	for _, p := range []string{"%d %-5level [%thread] %logger - %msg%n", "%5p [%t] (%F:%L) - %m%n", "%d{dd/MM/yyyy hh:mm:ss a} %p %C.%M %m", "%r %p %m"} {
		l, err := compilePattern(p)
		if err != nil {
			f.Fatal(err)
		}
		given = append(given, l)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.ReplaceAll(line, []byte("\n"), nil)
		all := append(builtin(), given...)
		if p := infer(line); p != nil {
			all = append(all, p)
			// What was inferred must be a pattern that can be given.
			if _, err := compilePattern(p.text); err != nil {
				t.Errorf("inferred %q: %v", p.text, err)
			}
		}
		for _, l := range all {
			var h head
			if l.head(line, &h) == yes && len(h.message)+len(h.thread) > len(line)+1 {
				t.Errorf("%s: message %q thread %q of %q", l.name(), h.message, h.thread, line)
			}
		}
		p := plain(nil, line)
		if bytes.IndexByte(p, 0x1b) >= 0 {
			t.Errorf("an escape is left in %q", p)
		}
	})
}

// FuzzFingerprint: a message's own template matches it, and a template matches
// only messages with its fingerprint.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte("Executor rejected socket [a@1:[b]] for processing"), []byte("Executor rejected socket [c] for processing"))
	f.Add([]byte("it's 'a b' @dead 12,5 10.0.0.1:80 550e8400-e29b"), []byte("it's 'c' @beef 1 2 3-x"))
	f.Add([]byte("x [a"), []byte("x [b]"))
	f.Add([]byte("\"a\"b\" {x[y}]"), []byte("[]{}''"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var ta template
		fa := string(fingerprint(nil, a, &ta))
		fb := string(fingerprint(nil, b, nil))
		if len(fa) > maxPattern+8 {
			t.Errorf("a fingerprint of %d bytes", len(fa))
		}
		if ta.fast && !ta.matches(a) {
			t.Errorf("%q does not match its own template", a)
		}
		// (The other way round a * in the text itself may hide that they are equal,
		// which only costs the slow way.)
		if ta.fast && ta.matches(b) && fa != fb {
			t.Errorf("%q and %q: template says %v, fingerprints %q %q", a, b, ta.matches(b), fa, fb)
		}
	})
}
