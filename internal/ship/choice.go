package ship

import "slices"

// A Choice is what Select says for the lines of one source.
type Choice struct {
	Select
	// Match gives a line chosen by one of the settings' own selections that
	// selection's name, or ""; nil where there is none.
	Match func(line []byte) string
	level int
}

// Choice reads the selections for a source: accesslog, applog or gclog.
func (c *Config) Choice(source string) Choice {
	out := Choice{Select: c.Select}
	out.level, _ = c.Select.level()
	var own []Selection
	for _, l := range c.Select.Lines {
		if l.Source == "" || l.Source == source {
			if l.re == nil && l.compile() != nil {
				continue // Check said so
			}
			own = append(own, l)
		}
	}
	if len(own) > 0 {
		out.Match = func(line []byte) string {
			for i := range own {
				if own[i].re.Match(line) {
					return own[i].Name
				}
			}
			return ""
		}
	}
	switch source {
	case "accesslog":
		out.GCPause = 0
	case "gclog":
		out.Slow, out.Status = 0, 0
	}
	return out
}

// Any says whether anything of a source that has no records is chosen.
func (c *Choice) Any() bool { return c.Match != nil || c.Slow > 0 || c.Status > 0 || c.GCPause > 0 }

// Record says whether a record with this level ("" for none) that tells this
// event ("" for none) is chosen.
func (c *Choice) Record(level, event string) bool {
	if event != "" && c.Events {
		return true
	}
	i := slices.Index(levels, level)
	return i > 0 && i >= c.level
}
