package collectors

import (
	"github.com/jvm-sidecar/sidecar/collectors/accesslog"
	"github.com/jvm-sidecar/sidecar/collectors/applog"
	"github.com/jvm-sidecar/sidecar/collectors/gclog"
	"github.com/jvm-sidecar/sidecar/collectors/jvm"
	"github.com/jvm-sidecar/sidecar/collectors/logdir"
	"github.com/jvm-sidecar/sidecar/collectors/process"
	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/internal/follow"
	"github.com/jvm-sidecar/sidecar/internal/notify"
	"github.com/jvm-sidecar/sidecar/internal/ship"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// Config is the settings file: a section for each room.
type Config struct {
	Targets   target.Config    `yaml:"targets"`   // Which servers are watched, and what is to be corrected in what was found.
	Limits    follow.Limits    `yaml:"limits"`    // What the sidecar may take from the machine.
	Process   process.Config   `yaml:"process"`   // The room process.
	JVM       jvm.Config       `yaml:"jvm"`       // The room jvm.
	GCLog     gclog.Config     `yaml:"gclog"`     // The room gclog.
	AccessLog accesslog.Config `yaml:"accesslog"` // The room accesslog.
	AppLog    applog.Config    `yaml:"applog"`    // The room applog.
	LogDir    logdir.Config    `yaml:"logdir"`    // The room logdir.
	Loki      ship.Config      `yaml:"loki"`      // Chosen lines to Loki.
	Engine    engine.Config    `yaml:"engine"`    // The history, the rules and the query API; engine: off leaves all three out.
	Notify    notify.Config    `yaml:"notify"`    // Who is told of alerts.
}

// Defaults are the settings where the file says nothing.
func Defaults() Config {
	return Config{
		Targets:   target.DefaultConfig(),
		Limits:    follow.DefaultLimits(),
		Process:   process.DefaultConfig(),
		JVM:       jvm.DefaultConfig(),
		GCLog:     gclog.DefaultConfig(),
		AccessLog: accesslog.DefaultConfig(),
		AppLog:    applog.DefaultConfig(),
		LogDir:    logdir.DefaultConfig(),
		Loki:      ship.DefaultConfig(),
		Engine:    engine.DefaultConfig(),
		Notify:    notify.DefaultConfig(),
	}
}

// Check finds settings that make no sense; key is the section that holds them.
func (c *Config) Check() (key string, err error) {
	for _, section := range []struct {
		key   string
		check func() error
	}{
		{"targets", c.Targets.Check},
		{"limits", c.Limits.Check},
		{"process", c.Process.Check},
		{"jvm", c.JVM.Check},
		{"gclog", c.GCLog.Check},
		{"accesslog", c.AccessLog.Check},
		{"applog", c.AppLog.Check},
		{"logdir", c.LogDir.Check},
		{"loki", c.Loki.Check},
		{"loki", c.checkLoki},
		{"engine", c.Engine.Check},
		{"notify", c.Notify.Check},
	} {
		if err := section.check(); err != nil {
			return section.key, err
		}
	}
	return "", nil
}

// CheckFiles looks at what the settings name on this machine, where a start or a
// reload would miss it.
func (c *Config) CheckFiles() (key string, err error) { return "loki", c.Loki.CheckFiles() }
