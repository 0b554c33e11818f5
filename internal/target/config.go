package target

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
)

// Config is the section "targets" of the settings file.
type Config struct {
	// Discover says whether the machine is searched for JVMs. Off, only the
	// servers below are looked for.
	Discover bool `yaml:"discover"`
	// Servers correct what discovery learnt, one entry a server. What
	// "sidecar discover" prints is such a list. A server that is listed and does
	// not run has target_up 0, so that TargetDown fires for it too.
	Servers []Server `yaml:"servers,omitempty"`
	// WithoutOpenat2 says what to do on a kernel before 5.6, or under a seccomp
	// filter that forbids openat2: refuse opens no file that a target names, walk
	// opens them by walking the path name by name.
	WithoutOpenat2 string `yaml:"without_openat2"`

	// Proc is where the process file system is, and Root the folder that is "/"
	// for processes in our own mount namespace. They are parameters so that a
	// tree in testdata is as good as a machine, and so that a container can see
	// its host's.
	Proc string `yaml:"-"`
	Root string `yaml:"-"`
}

// DefaultConfig is what holds without a settings file.
func DefaultConfig() Config {
	return Config{Discover: true, WithoutOpenat2: "refuse", Proc: "/proc", Root: "/"}
}

// Server corrects one target. A list that is given takes the place of the one
// that was discovered; what is left out stays as discovered.
type Server struct {
	// Name is the name the target gets.
	Name string `yaml:"name"`
	// Match says which process it is. All that is given must hold.
	Match Match `yaml:"match"`
	// Ignore leaves the process out.
	Ignore bool `yaml:"ignore,omitempty"`
	// Kind, Version, Home and Base correct these facts.
	Kind    Kind   `yaml:"kind,omitempty"`
	Version string `yaml:"version,omitempty"`
	Home    string `yaml:"home,omitempty"`
	Base    string `yaml:"base,omitempty"`

	// Connectors, executors and logs: what is given stands for all of its kind.
	Connectors []Connector `yaml:"connectors,omitempty"`
	Executors  []Executor  `yaml:"executors,omitempty"`
	AccessLogs []AccessLog `yaml:"access_logs,omitempty"`
	AppLogs    []AppLog    `yaml:"app_logs,omitempty"`
	GCLogs     []GCLog     `yaml:"gc_logs,omitempty"`
	// MoreAppLogs are added to the application logs that were discovered.
	MoreAppLogs []AppLog `yaml:"more_app_logs,omitempty"`
}

// Match finds a process.
type Match struct {
	// PID is the process' number, for a try: it does not outlive a restart.
	PID int `yaml:"pid,omitempty"`
	// Base is catalina.base or jetty.base, as the server sees it.
	Base string `yaml:"base,omitempty"`
	// Port is one of its serving ports.
	Port int `yaml:"port,omitempty"`
	// MainClass is the main class or jar, and Cwd the working directory, for
	// JVMs that are neither Tomcat nor Jetty.
	MainClass string `yaml:"main_class,omitempty"`
	Cwd       string `yaml:"cwd,omitempty"`
}

func (m Match) empty() bool { return m == Match{} }

func (m Match) matches(t *Target) bool {
	if m.empty() ||
		m.PID != 0 && m.PID != t.Process.PID ||
		m.Base != "" && path.Clean(m.Base) != t.Base ||
		m.MainClass != "" && m.MainClass != t.Process.MainClass ||
		m.Cwd != "" && path.Clean(m.Cwd) != t.Process.Cwd {
		return false
	}
	if m.Port == 0 {
		return true
	}
	for _, c := range t.Connectors {
		if c.Port == m.Port {
			return true
		}
	}
	return false
}

// mayMatch says that a target could be the one, if more of it could be seen.
func (m Match) mayMatch(t *Target) bool {
	hidden := slices.ContainsFunc(t.Blind, func(b Blind) bool {
		return b.Source == "target" && b.Reason != "no_version" && b.Reason != "not_found"
	})
	return hidden &&
		(m.PID == 0 || m.PID == t.Process.PID) &&
		(m.Base == "" || t.Base == "" || path.Clean(m.Base) == t.Base) &&
		(m.MainClass == "" || t.Process.MainClass == "" || m.MainClass == t.Process.MainClass) &&
		(m.Cwd == "" || t.Process.Cwd == "" || path.Clean(m.Cwd) == t.Process.Cwd) &&
		(m.Port == 0 || len(t.Connectors) == 0 || slices.ContainsFunc(t.Connectors, func(c Connector) bool { return c.Port == m.Port }))
}

var targetName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.$:-]*$`)

// Check finds the first mistake. Its text begins with the key.
func (c Config) Check() error {
	if c.WithoutOpenat2 != "refuse" && c.WithoutOpenat2 != "walk" {
		return fmt.Errorf("without_openat2: %q is none of refuse, walk", c.WithoutOpenat2)
	}
	names := map[string]bool{}
	for i, s := range c.Servers {
		key := fmt.Sprintf("servers[%d]", i)
		switch {
		case s.Name == "" && !s.Ignore:
			return fmt.Errorf("%s.name: missing", key)
		case s.Name != "" && (!targetName.MatchString(s.Name) || len(s.Name) > 120):
			return fmt.Errorf("%s.name: %q is no name: letters, digits, and . _ - $ : only", key, s.Name)
		case s.Name != "" && names[s.Name]:
			return fmt.Errorf("%s.name: %q is given twice", key, s.Name)
		case s.Match.empty():
			return fmt.Errorf("%s.match: nothing to find the process by: give base, port, main_class, cwd or pid", key)
		case s.Match.Port < 0 || s.Match.Port > 65535:
			return fmt.Errorf("%s.match.port: %d is no port", key, s.Match.Port)
		case s.Match.PID < 0:
			return fmt.Errorf("%s.match.pid: %d is no pid", key, s.Match.PID)
		}
		names[s.Name] = true
		switch s.Kind {
		case "", Tomcat, Jetty, JVM:
		default:
			return fmt.Errorf("%s.kind: %q is none of tomcat, jetty, jvm", key, s.Kind)
		}
		if err := s.checkLists(); err != nil {
			return fmt.Errorf("%s.%w", key, err)
		}
	}
	if !c.Discover && len(c.Servers) == 0 {
		return errors.New("discover: off, and no servers are given: there is nothing to watch")
	}
	return nil
}

func (s Server) checkLists() error {
	for i, c := range s.Connectors {
		if c.Port < 1 || c.Port > 65535 {
			return fmt.Errorf("connectors[%d].port: %d is no port", i, c.Port)
		}
	}
	for i, x := range s.Executors {
		if x.Name == "" {
			return fmt.Errorf("executors[%d].name: missing", i)
		}
	}
	for i, a := range s.AccessLogs {
		if err := a.LogFile.check(); err != nil {
			return fmt.Errorf("access_logs[%d].%w", i, err)
		}
		switch a.Format {
		case "tomcat", "w3c", "json", "jetty", "jetty-ncsa":
		default:
			return fmt.Errorf("access_logs[%d].format: %q is none of tomcat, w3c, json, jetty, jetty-ncsa", i, a.Format)
		}
	}
	for key, logs := range map[string][]AppLog{"app_logs": s.AppLogs, "more_app_logs": s.MoreAppLogs} {
		for i, a := range logs {
			if err := a.LogFile.check(); err != nil {
				return fmt.Errorf("%s[%d].%w", key, i, err)
			}
			switch a.Role {
			case "primary", "copy", "own":
			default:
				return fmt.Errorf("%s[%d].role: %q is none of primary, copy, own", key, i, a.Role)
			}
		}
	}
	for i, g := range s.GCLogs {
		if err := g.LogFile.check(); err != nil {
			return fmt.Errorf("gc_logs[%d].%w", i, err)
		}
	}
	return nil
}

func (f LogFile) check() error {
	switch {
	case f.Name == "":
		return errors.New("name: missing")
	case f.Path == "" && (f.Dir == "" || f.Match == ""):
		return errors.New("path: missing; give path, or dir and match")
	case f.Path != "" && !path.IsAbs(f.Path):
		return fmt.Errorf("path: %q is not absolute", f.Path)
	case f.Dir != "" && !path.IsAbs(f.Dir):
		return fmt.Errorf("dir: %q is not absolute", f.Dir)
	}
	if _, err := f.Pattern(); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// apply puts the corrections of the settings into a target.
func (s Server) apply(t *Target) {
	t.Name = s.Name
	t.Learned = append(t.Learned, Fact{Key: "name", What: "the name " + s.Name, From: "the settings"})
	from := func(key, what string) {
		t.Learned = append(t.Learned, Fact{Key: key, What: what, From: "the settings"})
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{(*string)(&t.Kind), string(s.Kind)}, {&t.Version, s.Version}, {&t.Home, s.Home}, {&t.Base, s.Base}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if s.Connectors != nil {
		listening := map[int]bool{}
		for _, c := range t.Connectors {
			listening[c.Port] = c.Listening
		}
		t.Connectors = append([]Connector(nil), s.Connectors...)
		for i := range t.Connectors {
			t.Connectors[i].Listening = listening[t.Connectors[i].Port]
		}
		from("connectors", "connectors")
	}
	if s.Executors != nil {
		t.Executors = s.Executors
		from("executors", "executors")
	}
	if s.AccessLogs != nil {
		t.AccessLogs = s.AccessLogs
		from("access_logs", "access logs")
	}
	if s.AppLogs != nil {
		t.AppLogs = s.AppLogs
		from("app_logs", "application logs")
	}
	if s.GCLogs != nil {
		t.GCLogs = s.GCLogs
		from("gc_logs", "GC logs")
	}
	if len(s.MoreAppLogs) > 0 {
		t.AppLogs = append(t.AppLogs[:len(t.AppLogs):len(t.AppLogs)], s.MoreAppLogs...)
		from("app_logs", "more application logs")
	}
}
