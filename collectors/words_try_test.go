package collectors

import (
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/ship"
)

// TestBuiltInExamples: each of the settings that choose lines does what it says,
// at its default, off, and at values around the edges. The lines go through the
// rooms as real ones do.
func TestBuiltInExamples(t *testing.T) {
	for name, change := range map[string]func(*ship.Select){
		"defaults":     func(*ship.Select) {},
		"nothing":      func(s *ship.Select) { *s = ship.Select{Level: "none"} },
		"all":          func(s *ship.Select) { *s = ship.Select{Level: "trace", Events: true, GCPause: 1, Slow: 1, Status: 1} },
		"info":         func(s *ship.Select) { s.Level = "INFO"; s.Status = 400; s.Slow = 1500 * time.Microsecond },
		"fatal":        func(s *ship.Select) { s.Level = "FATAL"; s.Events = false; s.Slow = 0; s.GCPause = time.Minute },
		"no status":    func(s *ship.Select) { s.Status = 0; s.GCPause = 0 },
		"each answer":  func(s *ship.Select) { s.Status = 100 },
		"most answers": func(s *ship.Select) { s.Status = 200; s.Slow = time.Hour },
		"no answer":    func(s *ship.Select) { s.Status = 999 },
	} {
		t.Run(name, func(t *testing.T) {
			c := Defaults()
			change(&c.Loki.Select)
			if key, err := c.Check(); err != nil {
				t.Fatal(key, err)
			}
			keys, chosen := map[string]bool{}, 0
			for _, tried := range c.TryLoki() {
				if tried.Err != nil {
					t.Errorf("%s %s: %v", tried.Key, tried.Value, tried.Err)
				}
				keys[tried.Key] = true
				if len(tried.Shown) > 0 {
					chosen++
				}
			}
			if len(keys) < 3 {
				t.Errorf("only %v tried", keys)
			}
			if none := name == "nothing"; none != (chosen == 0) {
				t.Errorf("%d lines are chosen", chosen)
			}
		})
	}
}

// TestTryShowsLabels: what is shown is what would be sent, labels, masks and all.
func TestTryShowsLabels(t *testing.T) {
	c := Defaults()
	c.Loki.Host, c.Loki.Labels = "h", map[string]string{"env": "prod"}
	c.Loki.Select.Tests = []ship.Trial{{Source: "applog", Want: ship.WantChosen,
		Line: "30-Jun-2024 12:00:00.001 SEVERE [main] com.acme.Db.open no connection: password=hunter2\n\tjava.io.IOException: x\n\t\tat com.acme.Db.open(Db.java:1)"}}
	tried := c.TryLoki()
	last := tried[len(tried)-1]
	if last.Err != nil || len(last.Shown) != 1 {
		t.Fatalf("%+v", last)
	}
	if want := `{env="prod", host="h", level="ERROR", source="applog", target="example"}`; last.Shown[0].Labels != want {
		t.Errorf("labels %s, want %s", last.Shown[0].Labels, want)
	}
	if text := last.Shown[0].Text; !strings.Contains(text, "password=*****") || !strings.HasSuffix(text, "(Db.java:1)") {
		t.Errorf("%q", text)
	}
}

// TestOwnTests: a line that is not what the settings say it is, is one error
// with its key and its reason.
func TestOwnTests(t *testing.T) {
	const access = `192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12 7000`
	for _, x := range []struct {
		trial ship.Trial
		want  string // a part of the error; empty is none
	}{
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 WARN [main] a.B - x", Want: "chosen"}, ""},
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 INFO [main] a.B - x", Want: "none"}, ""},
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 INFO [main] a.B - x", Want: "chosen"}, "select.tests[0]: the line is not chosen, want chosen: 2026"},
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 WARN [main] a.B - x", Want: "none"}, `select.tests[0]: the line is chosen and should not be, as {`},
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 WARN [main] a.B - x", Want: "executor_rejected"}, "want the event executor_rejected"},
		{ship.Trial{Source: "applog", Line: "2026-11-30 12:00:00,001 INFO [main] a.B - Deploying shop", Want: "deploying"}, ""},
		{ship.Trial{Source: "accesslog", Pattern: `%h %l %u %t "%r" %s %b %{ms}T`, Line: access, Want: "request_slow"}, ""},
		{ship.Trial{Source: "accesslog", Pattern: `%h %l %u %t "%r" %s %b %{us}T`, Line: access, Want: "none"}, ""},
		{ship.Trial{Source: "accesslog", Pattern: `%h %l %u %t "%r" %s %b %{ms}T`, Line: "what is this", Want: "none"}, "the line is none of this pattern"},
		{ship.Trial{Source: "accesslog", Pattern: `%h %Q`, Line: access, Want: "none"}, "none of this pattern"},
		{ship.Trial{Source: "accesslog", Line: "what is this", Want: "none"}, "give it as pattern"},
		{ship.Trial{Source: "accesslog", Line: strings.Replace(access, " 200 ", " 503 ", 1), Want: "request_failed"}, ""},
		{ship.Trial{Source: "gclog", Line: "[1.5s][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 100M->20M(256M) 612.000ms", Want: "gc_pause"}, ""},
		{ship.Trial{Source: "gclog", Line: "2024-06-30T12:00:00.000+0000: 12.345: [Full GC (Ergonomics) [PSYoungGen: 100K->0K(200K)] [ParOldGen: 1000K->900K(2000K)] 1100K->900K(2200K), [Metaspace: 20K->20K(30K)], 0.7001000 secs] [Times: user=0.07 sys=0.00, real=0.70 secs]", Want: "gc_pause"}, ""},
		{ship.Trial{Source: "syslog", Line: "x", Want: "none"}, "source"},
		{ship.Trial{Source: "applog", Want: "none"}, "line"},
		{ship.Trial{Source: "applog", Line: "x"}, "want"},
		{ship.Trial{Source: "applog", Line: "x", Pattern: "%h", Want: "none"}, "pattern"},
	} {
		c := Defaults()
		c.Loki.Select.Lines = []ship.Selection{{Name: "deploying", Match: "Deploying", Test: "Deploying x", TestNot: "Deployed x"}}
		c.Loki.Select.Tests = []ship.Trial{x.trial}
		key, err := c.Check()
		if x.want == "" && err != nil || x.want != "" && (err == nil || key != "loki" || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v\nhave %s: %v\nwant %q", x.trial, key, err, x.want)
		}
	}
}
