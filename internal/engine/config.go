package engine

import (
	"errors"
	"fmt"
	"time"
)

// Config is the settings section engine. The one word off (or on) may stand in
// place of the section.
type Config struct {
	Mode       string        `yaml:"mode"`       // on, or off: then there are no alerts, no history and no query API, and nothing of them is in memory.
	Pack       string        `yaml:"pack"`       // The rules that come with the binary: load (holds of seconds), steady (minutes), or none.
	RuleFiles  []string      `yaml:"rule_files"` // Your own Prometheus rule files, loaded beside the pack; * may stand in a file name. A recording rule of yours takes the place of the pack's of that name, which is how a threshold is changed.
	Retention  time.Duration `yaml:"retention"`  // How long samples are kept.
	Size       int64         `yaml:"size"`       // How many bytes they may take on disk; the oldest go first.
	Evaluation time.Duration `yaml:"evaluation"` // How often groups that don't say are evaluated.
	Outage     time.Duration `yaml:"outage"`     // How long the sidecar may have been away for a pending alert to go on where it was.
}

// DefaultConfig is Config where the file says nothing.
func DefaultConfig() Config {
	return Config{
		Mode: "on", Pack: "load", Retention: 2 * time.Hour, Size: 256 << 20,
		Evaluation: 5 * time.Second, Outage: 2 * time.Minute,
	}
}

// UnmarshalYAML takes the section, or the one word.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	var word string
	if unmarshal(&word) == nil {
		c.Mode = word
		return nil
	}
	type section Config
	return unmarshal((*section)(c))
}

// Off says that there is to be no engine.
func (c *Config) Off() bool { return c.Mode == "off" }

// Check finds settings that make no sense.
func (c *Config) Check() error {
	switch {
	case c.Mode != "on" && c.Mode != "off":
		return fmt.Errorf("mode: %q is neither on nor off", c.Mode)
	case c.Pack != "load" && c.Pack != "steady" && c.Pack != "none":
		return fmt.Errorf("pack: %q is none of load, steady, none", c.Pack)
	case c.Retention < 10*time.Minute:
		return errors.New("retention: rules look back 10m and more, keep at least that")
	case c.Size < 16<<20:
		return errors.New("size: less than 16 MB holds not one block")
	case c.Evaluation < time.Second:
		return errors.New("evaluation: there is a snapshot each second, and not more often")
	case c.Outage < 0:
		return errors.New("outage: less than 0")
	}
	if _, _, err := userFiles(c.RuleFiles); err != nil {
		return fmt.Errorf("rule_files: %w", err)
	}
	return nil
}
