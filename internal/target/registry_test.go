package target

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func server(pid int, base string, port int) *Target {
	return &Target{Name: fmt.Sprintf("tomcat-%d", port), Kind: Tomcat, Base: base,
		Connectors: []Connector{{Port: port, Protocol: "nio", MaxThreads: 200, ThreadPrefix: fmt.Sprintf("http-nio-%d-exec-", port)}},
		Process:    Process{PID: pid, StartTicks: uint64(pid) * 10}}
}

func program(pid int, main, cwd string) *Target {
	return &Target{Name: main, Kind: JVM, Process: Process{PID: pid, StartTicks: uint64(pid) * 10, MainClass: main, Cwd: cwd}}
}

// state is the registry in one line.
func state(es []*Entry) string {
	var out []string
	for _, e := range es {
		s := fmt.Sprintf("%s/%d", e.Name, e.Restarts)
		if !e.Up {
			s += "/down"
		}
		if e.Changed {
			s += "/changed"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	at := start
	step := func(want string, found ...*Target) {
		t.Helper()
		at = at.Add(5 * time.Second)
		if got := state(r.Update(found, "b1", at)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	a, b := server(1, "/srv/a", 8080), server(2, "/srv/b", 8080)
	step("tomcat-8080/0/changed", a)
	step("tomcat-8080/0", a)
	step("tomcat-8080/0/down")
	// Another server takes the port while the first is down: it is another.
	step("tomcat-8080/0/down tomcat-8080-b/0/changed", b)
	// The first is back: same name, one restart.
	step("tomcat-8080/1/changed tomcat-8080-b/0", server(3, "/srv/a", 8080), b)
	// It moves to another port: still the same.
	step("tomcat-8080/2/changed tomcat-8080-b/0", server(4, "/srv/a", 9090), b)
	step("tomcat-8080/2/down tomcat-8080-b/0/down")
	at = at.Add(23 * time.Hour)
	step("tomcat-8080/2/down tomcat-8080-b/0/down")
	at = at.Add(time.Hour)
	step("")
	// Forgotten: it begins anew.
	step("tomcat-8080/0/changed", server(5, "/srv/a", 8080))
}

// What the settings leave out is not down: it is no target any more. And a name
// that they give holds for a server that is known by another.
func TestRegistryFollowsTheSettings(t *testing.T) {
	r := NewRegistry()
	a, b, c := server(1, "/srv/a", 8080), server(2, "/srv/b", 8081), server(3, "/srv/c", 8082)
	r.Update([]*Target{a, b, c}, "b1", start)
	saved, err := r.Save()
	if err != nil {
		t.Fatal(err)
	}
	restarted := NewRegistry()
	if err := restarted.Load(saved); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Discover: true, Servers: []Server{{Match: Match{Base: "/srv/b"}, Ignore: true}, {Name: "shop", Match: Match{Base: "/srv/c"}}}}
	for name, r := range map[string]*Registry{"reloaded": r, "restarted": restarted} {
		kept, left := settle([]*Target{a, b, c}, nil, cfg)
		r.Drop(left, "b1")
		if got, want := state(r.Update(kept, "b1", start.Add(5*time.Second))), "shop/0/changed tomcat-8080/0"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		r.Drop(left, "b1")
		if got, want := state(r.Update(kept, "b1", start.Add(10*time.Second))), "shop/0 tomcat-8080/0"; got != want {
			t.Errorf("%s, again: got %q, want %q", name, got, want)
		}
		if got, want := state(r.Update(nil, "b1", start.Add(15*time.Second))), "shop/0/down tomcat-8080/0/down"; got != want {
			t.Errorf("%s, stopped: got %q, want %q", name, got, want)
		}
	}
}

// A server that the settings list and that was never seen is down from the first
// scan on, comes without a restart counted, and stays for as long as it is listed.
func TestRegistryListed(t *testing.T) {
	r := NewRegistry()
	cfg := Config{Discover: true, Servers: []Server{{Name: "shop", Kind: Tomcat, Match: Match{Base: "/srv/c"}}}}
	at := start
	step := func(want string, found ...*Target) {
		t.Helper()
		at = at.Add(5 * time.Second)
		r.Expect(missing(found, cfg, nil))
		kept, _ := settle(found, nil, cfg)
		if got := state(r.Update(kept, "b1", at)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	step("shop/0/down")
	at = at.Add(48 * time.Hour)
	step("shop/0/down")
	// What only the settings know is not kept: they may be others at the next start.
	if saved, err := r.Save(); err != nil || string(saved) != "[]" {
		t.Errorf("saved %s, %v", saved, err)
	}
	step("shop/0/changed", server(3, "/srv/c", 8082))
	step("shop/0", server(3, "/srv/c", 8082))
	step("shop/0/down")
	step("shop/1/changed", server(4, "/srv/c", 8082))
	step("shop/1/down")
	at = at.Add(48 * time.Hour)
	step("shop/1/down")
	cfg.Servers = nil
	step("")

	// It was known by the name that discovery gave, and is down when it is listed.
	step("tomcat-8080/0/changed", server(5, "/srv/c", 8080))
	step("tomcat-8080/0/down")
	cfg.Servers = []Server{{Name: "shop", Match: Match{Base: "/srv/c"}}}
	step("shop/0/down tomcat-8080/0/down")
	step("shop/0/changed", server(6, "/srv/c", 8080))
}

// It is said that a server is not there only where it would be seen.
func TestMissing(t *testing.T) {
	listed := Config{Servers: []Server{{Name: "shop", Match: Match{Base: "/srv/c", Port: 8082}}, {Match: Match{Base: "/x"}, Ignore: true}}}
	hidden := program(9, "", "")
	hidden.Blind = []Blind{{Source: "target", Reason: "options_hidden"}}
	elsewhere := server(7, "/srv/d", 8083)
	elsewhere.Blind = []Blind{{Source: "target", Reason: "no_permission"}}
	old := server(8, "", 8082)
	old.Blind = []Blind{{Source: "target", Reason: "no_version"}}
	for name, c := range map[string]struct {
		found []*Target
		blind []Blind
		want  int
	}{
		"nobody":                     {want: 1},
		"the server":                 {found: []*Target{server(1, "/srv/c", 8082)}},
		"others":                     {found: []*Target{server(1, "/srv/a", 8080), program(2, "Main", "/w")}, want: 1},
		"it on another port":         {found: []*Target{server(1, "/srv/c", 9090)}, want: 1},
		"processes are hidden":       {blind: []Blind{{Reason: "hidepid"}}},
		"a process is stuck":         {blind: []Blind{{Reason: "stuck"}}},
		"links are not followed":     {blind: []Blind{{Reason: "no_openat2"}}, want: 1},
		"one may be it":              {found: []*Target{hidden}},
		"one can't be it":            {found: []*Target{elsewhere}, want: 1},
		"only the version is hidden": {found: []*Target{old}, want: 1},
	} {
		if got := missing(c.found, listed, c.blind); len(got) != c.want || c.want == 1 && got[0].Name != "shop" {
			t.Errorf("%s: %d missing, want %d", name, len(got), c.want)
		}
	}
}

// A program that lives for a moment is no target.
func TestRegistryPrograms(t *testing.T) {
	r := NewRegistry()
	p := program(1, "Main", "/w")
	if got := state(r.Update([]*Target{p, program(2, "Javac", "/w")}, "", start)); got != "" {
		t.Error(got)
	}
	if got := state(r.Update([]*Target{p}, "", start.Add(5*time.Second))); got != "Main/0/changed" {
		t.Error(got)
	}
	if got := state(r.Update([]*Target{p}, "", start.Add(10*time.Second))); got != "Main/0" {
		t.Error(got)
	}
	// Two of the same in one folder are two, and a restart of one is that one's.
	p2 := program(3, "Main", "/w")
	p2.Name = "Main-w"
	r.Update([]*Target{p, p2}, "", start.Add(15*time.Second))
	if got := state(r.Update([]*Target{p, p2}, "", start.Add(20*time.Second))); got != "Main/0 Main-w/0/changed" {
		t.Error(got)
	}
	p3 := program(4, "Main", "/w")
	if got := state(r.Update([]*Target{p, p3}, "", start.Add(25*time.Second))); got != "Main/0 Main-w/1/changed" {
		t.Error(got)
	}
}

// What is first seen as a program and then turns out to be a server stays one
// target.
func TestRegistrySeenBetter(t *testing.T) {
	for scans, want := range map[int]string{1: "tomcat-8080/0/changed", 2: "Main/0"} {
		r := NewRegistry()
		for i := range scans {
			r.Update([]*Target{program(1, "Main", "/w")}, "", start.Add(time.Duration(i)*time.Second))
		}
		if got := state(r.Update([]*Target{server(1, "/w", 8080)}, "", start.Add(time.Minute))); got != want {
			t.Errorf("after %d scans: %q, want %q", scans, got, want)
		}
	}
}

func TestRegistrySaved(t *testing.T) {
	r := NewRegistry()
	a, b := server(1, "/srv/a", 8080), server(2, "/srv/b", 8081)
	r.Update([]*Target{a, b}, "b1", start)
	saved, err := r.Save()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		boot, want string
		found      []*Target
	}{
		{"b1", "tomcat-8080/0 tomcat-8081/0", []*Target{a, b}},
		{"b1", "tomcat-8080/1/changed tomcat-8081/0/down", []*Target{server(9, "/srv/a", 8080)}},
		// After a boot of the machine the same pid and ticks are another process.
		{"b2", "tomcat-8080/1/changed tomcat-8081/1/changed", []*Target{a, b}},
	} {
		n := NewRegistry()
		if err := n.Load(saved); err != nil {
			t.Fatal(err)
		}
		if got := state(n.Update(tt.found, tt.boot, start.Add(time.Minute))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.boot, got, tt.want)
		}
	}
	if err := NewRegistry().Load([]byte("{")); err == nil {
		t.Error("nonsense was loaded")
	}
	if err := NewRegistry().Load([]byte("[null,{}]")); err != nil {
		t.Error(err)
	}
}

func TestRegistryIsBounded(t *testing.T) {
	r := NewRegistry()
	for i := range 5 {
		var found []*Target
		for j := range 40 {
			n := i*40 + j
			found = append(found, server(n+1, fmt.Sprintf("/srv/%d", n), 1000+n))
		}
		es := r.Update(found, "", start.Add(time.Duration(i)*time.Minute))
		up := 0
		for _, e := range es {
			if e.Up {
				up++
			}
		}
		if len(es) > MaxTargets || up != 40 {
			t.Errorf("%d entries, %d up", len(es), up)
		}
	}
}

func TestMetrics(t *testing.T) {
	if err := metric.Check(Metrics); err != nil {
		t.Fatal(err)
	}
	x := server(1, "/srv/a", 8080)
	x.Version, x.JDK.Version = "9.0.70", "17.0.15"
	x.Connectors[0].AcceptCount, x.Connectors[0].MaxConnections = 100, -1
	x.Findings = []Finding{{ID: "queue_unbounded", Detail: "1"}, {ID: "queue_unbounded", Detail: "2"}}
	x.Blind = []Blind{{Source: "gclog", Reason: "not_enabled"}}
	e := &Entry{Name: x.Name, Restarts: 3, Up: true, Target: x}
	s := metric.ForTarget(x.Name)
	for _, want := range []string{
		`` +
			`target_finding{finding=queue_unbounded} 1; target_info{base=/srv/a,jdk=17.0.15,jdk_vendor=,kind=tomcat,version=9.0.70,vm=} 1; ` +
			`target_restarts_total{} 3; target_up{} 1; tomcat_connector_info{address=,executor=,port=8080,protocol=nio,tls=false} 1`,
		`target_restarts_total{} 3; target_up{} 0`,
	} {
		s.Begin()
		e.WriteTo(s)
		s.Sweep()
		g := metric.NewGathering()
		g.Add(s)
		var got []string
		for _, f := range g.Snapshot(start).Families {
			for _, m := range f.Metric {
				var ls []string
				for _, l := range m.Label {
					if l.GetName() != "target" {
						ls = append(ls, l.GetName()+"="+l.GetValue())
					}
				}
				got = append(got, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(ls, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
			}
		}
		if have := strings.Join(got, "; "); have != want {
			t.Errorf("got  %s\nwant %s", have, want)
		}
		e.Up = false
	}
	x.Executors = []Executor{{Name: "p", NamePrefix: "catalina-exec-", MaxThreads: 10}, {Name: "v", NamePrefix: "tomcat-virt-", MaxThreads: unbounded, Virtual: true}}
	if got := fmt.Sprint(x.PoolLimits()); got != "map[catalina-exec-:10 http-nio-8080-exec-:200]" {
		t.Error(got)
	}
}

// What Settings prints can be loaded as it is, and says the same.
func TestSettingsAgain(t *testing.T) {
	x := server(7, "/srv/a", 8080)
	x.Version = "9.0.70"
	x.Executors = []Executor{{Name: "p", NamePrefix: "catalina-exec-", MaxThreads: 10, MaxQueueSize: 10}}
	x.AccessLogs = []AccessLog{{LogFile: datedFile("/srv/a/logs", "access", ".yyyy-MM-dd", ".txt"), Format: "tomcat", Pattern: combinedPattern, Scope: "host:localhost", Counted: true}}
	x.AppLogs = []AppLog{{LogFile: fixedFile("/srv/a/logs/cat: \"alina\x1b\n#.out"), Role: "primary"}}
	x.GCLogs = []GCLog{{LogFile: fixedFile("/srv/a/gc.log"), Unified: true, Options: "-Xlog:gc:gc.log"}}
	x.Connectors[0].Listening = true
	x.Learned = []Fact{{Key: "version", What: "the version 9.0.70", From: "catalina.jar"}, {Key: "gc_logs", What: "the GC log /srv/a/gc.log", From: "-Xlog\nevil: [x"}}
	x.Blind = []Blind{{Source: "jvm", Reason: "no_perfdata", Detail: "there is\nnone"}}
	x.Findings = []Finding{{ID: "f", Detail: "hurts"}}
	y := program(8, "org.acme.Main", "/w")
	y.Name = "Main"

	out, err := Settings([]*Target{x, y})
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Targets Config `yaml:"targets"`
	}
	file.Targets = DefaultConfig()
	dec := yaml.NewDecoder(strings.NewReader(string(out)))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := file.Targets.Check(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !file.Targets.Discover {
		t.Error("discovery is off")
	}
	for _, want := range []string{"version: 9.0.70 # catalina.jar", "# tomcat-8080: tomcat 9.0.70, pid 7", "# can't see (jvm, no_perfdata): there is\uFFFDnone", "# will hurt (f): hurts"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	bare := []*Target{server(7, "/srv/a", 8080), program(8, "org.acme.Main", "/w")}
	bare[0].Connectors[0].Listening = true
	got, _ := settle(bare, nil, file.Targets)
	for i, want := range []*Target{x, y} {
		g := *got[i]
		w := *want
		g.Learned, w.Learned, w.Blind, w.Findings = nil, nil, nil, nil
		g.named = false
		if fmt.Sprintf("%+v", g) != fmt.Sprintf("%+v", w) {
			t.Errorf("got  %+v\nwant %+v", g, w)
		}
	}
	if out, err := Settings(nil); err != nil || !strings.Contains(string(out), "discover: on") {
		t.Errorf("%s %v", out, err)
	}
}

func TestConfigCheck(t *testing.T) {
	for text, want := range map[string]string{
		"discover: on":                                 "",
		"without_openat2: walk":                        "",
		"without_openat2: allow":                       `without_openat2: "allow" is none of refuse, walk`,
		"servers: [{name: a, match: {base: /x}}]":      "",
		"servers: [{match: {base: /x}, ignore: true}]": "",
		"discover: off":                                "discover: off, and no servers are given: there is nothing to watch",
		"servers: [{match: {base: /x}}]":               "servers[0].name: missing",
		"servers: [{name: 'a b', match: {base: /x}}]":  `servers[0].name: "a b" is no name: letters, digits, and . _ - $ : only`,
		"servers: [{name: a}]":                         "servers[0].match: nothing to find the process by: give base, port, main_class, cwd or pid",
		"servers: [{name: a, match: {port: 1}}, {name: a, match: {port: 2}}]":                        `servers[1].name: "a" is given twice`,
		"servers: [{name: a, match: {port: 70000}}]":                                                 "servers[0].match.port: 70000 is no port",
		"servers: [{name: a, match: {port: 1}, kind: nginx}]":                                        `servers[0].kind: "nginx" is none of tomcat, jetty, jvm`,
		"servers: [{name: a, match: {port: 1}, connectors: [{port: 0}]}]":                            "servers[0].connectors[0].port: 0 is no port",
		"servers: [{name: a, match: {port: 1}, app_logs: [{name: x, role: own}]}]":                   "servers[0].app_logs[0].path: missing; give path, or dir and match",
		"servers: [{name: a, match: {port: 1}, app_logs: [{name: x, path: x, role: own}]}]":          `servers[0].app_logs[0].path: "x" is not absolute`,
		"servers: [{name: a, match: {port: 1}, app_logs: [{name: x, path: /x}]}]":                    `servers[0].app_logs[0].role: "" is none of primary, copy, own`,
		"servers: [{name: a, match: {port: 1}, gc_logs: [{name: x, dir: /x, match: '('}]}]":          "servers[0].gc_logs[0].match: error parsing regexp: missing closing ): `(`",
		"servers: [{name: a, match: {port: 1}, access_logs: [{name: x, path: /x, format: apache}]}]": `servers[0].access_logs[0].format: "apache" is none of tomcat, w3c, json, jetty, jetty-ncsa`,
	} {
		cfg := DefaultConfig()
		dec := yaml.NewDecoder(strings.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&cfg); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := ""
		if err := cfg.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	for _, bad := range []string{"discover: maybe", "disco: on", "servers: {}", "servers: [{name: a, match: {port: x}}]", "servers: [{name: a, connectors: [{prot: 1}]}]"} {
		cfg := DefaultConfig()
		dec := yaml.NewDecoder(strings.NewReader(bad))
		dec.KnownFields(true)
		if err := dec.Decode(&cfg); err == nil {
			t.Errorf("%s was taken: %+v", bad, cfg)
		}
	}
}

// A build tool that ends is not a server that is down; a program that listened,
// that is in the settings, or of which it can't be seen, may be one.
func TestEndedPrograms(t *testing.T) {
	serving, listed, hidden := program(2, "Server", "/a"), program(3, "Batch", "/b"), program(4, "Other", "/c")
	serving.Connectors = []Connector{{Port: 9000, Protocol: "unknown", Listening: true}}
	listed.named = true
	hidden.Blind = []Blind{{Source: "target", Reason: "no_permission"}}
	r := NewRegistry()
	found := []*Target{program(1, "Launcher", "/d"), serving, listed, hidden}
	r.Update(found, "b1", start)
	if got := state(r.Update(found, "b1", start.Add(5*time.Second))); got != "Batch/0/changed Launcher/0/changed Other/0/changed Server/0/changed" {
		t.Fatal(got)
	}
	const down = "Batch/0/down Other/0/down Server/0/down"
	if got := state(r.Update(nil, "b1", start.Add(10*time.Second))); got != down {
		t.Errorf("%q, want %q", got, down)
	}
	saved, err := r.Save()
	if err != nil {
		t.Fatal(err)
	}
	again := NewRegistry()
	if err := again.Load(saved); err != nil {
		t.Fatal(err)
	}
	if got := state(again.Update(nil, "b1", start.Add(15*time.Second))); got != down {
		t.Errorf("after a restart of the sidecar: %q, want %q", got, down)
	}
}
