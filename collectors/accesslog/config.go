package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// Config are the settings of this room.
type Config struct {
	// Codes is "class" for 2xx, 4xx, 5xx, or "exact" for 200, 404, 503.
	Codes string `yaml:"codes"`
	// DurationUnit is the unit of %D (s, ms, us, ns) where it can't be learnt
	// from the server's version. Empty: learn it.
	DurationUnit string `yaml:"duration_unit"`
	// TimeZone is the zone of time stamps that carry none, as in Europe/Berlin.
	// Empty is the sidecar's own zone.
	TimeZone string `yaml:"time_zone"`
	// Routes say what the label route is. Off by default.
	Routes Routes `yaml:"routes"`
	// KeepRefused is how many refused lines are kept for the page.
	KeepRefused int `yaml:"keep_refused"`
}

// Routes turn the path of a request into a bounded label. Patterns are tried
// first, then prefixes, then folding. A query string never becomes a label.
type Routes struct {
	// Patterns are paths in which {name} stands for one segment and a final *
	// for the rest: /orders/{id}, /static/*.
	Patterns []string `yaml:"patterns"`
	// Prefixes are literal beginnings of paths, the longest that fits wins.
	Prefixes []string `yaml:"prefixes"`
	// Fold replaces numbers, UUIDs, hashes and session ids in paths by {id}.
	Fold bool `yaml:"fold"`
	// Max is the number of routes, above which everything new is "other".
	// Patterns and prefixes have their places reserved.
	Max int `yaml:"max"`
}

// On says whether routes are wanted at all.
func (r Routes) On() bool { return r.Fold || len(r.Patterns) > 0 || len(r.Prefixes) > 0 }

// DefaultConfig is what holds where the settings say nothing.
func DefaultConfig() Config {
	return Config{Codes: "class", Routes: Routes{Max: 50}, KeepRefused: 16}
}

// Check finds the mistakes. An empty field is its default.
func (c *Config) Check() error {
	switch c.Codes {
	case "", "class", "exact":
	default:
		return fmt.Errorf("codes: %q is neither class nor exact", c.Codes)
	}
	if c.DurationUnit != "" && perSecond[c.DurationUnit] == 0 {
		return fmt.Errorf("duration_unit: %q is none of s, ms, us, ns", c.DurationUnit)
	}
	if _, err := c.Location(); err != nil {
		return err
	}
	if c.Routes.Max < 0 || c.Routes.Max > 1000 {
		return fmt.Errorf("routes.max: %d is not between 0 and 1000", c.Routes.Max)
	}
	if n := len(c.Routes.Patterns) + len(c.Routes.Prefixes); c.Routes.Max > 0 && n > c.Routes.Max {
		return fmt.Errorf("routes: %d patterns and prefixes are more than routes.max, %d", n, c.Routes.Max)
	}
	for _, p := range c.Routes.Patterns {
		if _, err := compileRoute(p); err != nil {
			return fmt.Errorf("routes.patterns: %w", err)
		}
	}
	for _, p := range c.Routes.Prefixes {
		if !strings.HasPrefix(p, "/") {
			return fmt.Errorf("routes.prefixes: %q does not begin with a slash", p)
		}
	}
	if c.KeepRefused < 0 || c.KeepRefused > 1000 {
		return fmt.Errorf("keep_refused: %d is not between 0 and 1000", c.KeepRefused)
	}
	return nil
}

// Location is TimeZone read.
func (c *Config) Location() (*time.Location, error) {
	if c.TimeZone == "" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("time_zone: %w", err)
	}
	return loc, nil
}
