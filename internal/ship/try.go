package ship

import "time"

// A Trial is a line that the whole choice is tried with.
type Trial struct {
	Source  string `yaml:"source"`  // The log that the line is from: accesslog, applog or gclog.
	Line    string `yaml:"line"`    // The line as the log has it; further lines where they decide, as in a trace.
	Pattern string `yaml:"pattern"` // Of an access log: its pattern, as in server.xml. Empty: told from the line.
	Want    string `yaml:"want"`    // The event that it has to be chosen with; chosen, where any will do; none, where it is not to be chosen.
}

// What a Trial may want beside an event.
const (
	WantChosen = "chosen"
	WantNone   = "none"
)

// A Shown is a line as it would be sent.
type Shown struct {
	Event  string // its label event
	Labels string // all of its labels: {event="…", …}
	Text   string // without its secrets, cut where it is too long
}

// Try lets feed offer lines to a Shipper that sends nothing and keeps nothing
// on disk, and returns them as they would be sent. However old a line is, it is
// taken: the examples in somebody's settings grow old.
func Try(cfg Config, feed func(*Shipper)) (out []Shown) {
	cfg.MaxAge, cfg.SpoolDir = 1<<62, ""
	s := unstarted(cfg, nil, nil)
	defer s.cancel()
	feed(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summarise(time.Now())
	for s.queue.lines() > 0 {
		l := s.queue.pop()
		out = append(out, Shown{Event: l.stream.event, Labels: l.stream.text, Text: l.text})
	}
	return out
}
