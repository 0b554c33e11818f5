// Package status says what the sidecar sees and what it can't, in the form in
// which it is shown to a person: on the page, in `sidecar discover`, in tests.
package status

import (
	"time"

	"github.com/jvm-sidecar/sidecar/internal/target"
)

// Status is the whole state at one tick.
type Status struct {
	At      time.Time `json:"at"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	// Ready says that the backlog of the start is read for every stream.
	Ready   bool     `json:"ready"`
	Targets []Server `json:"targets"`
	// Problems are the sidecar's own: a checkpoint that can't be written.
	Problems []string `json:"problems,omitempty"`
}

// Server is one target and its sources.
type Server struct {
	Target *target.Target `json:"target"`
	Up     bool           `json:"up"`
	// Findings are the settings that will hurt under load.
	Findings []target.Finding `json:"findings,omitempty"`
	Sources  []Source         `json:"sources"`
}

// Source is one room at work for one target; a followed file is a source of
// its own.
type Source struct {
	// Name is the room; File the label of the stream, empty for a poller.
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	// Path is where the stream is read.
	Path string `json:"path,omitempty"`
	// Detail is what the room has to say of itself: the pattern in use, the
	// layout recognised, the collector.
	Detail string `json:"detail,omitempty"`
	// Error is the last passing error, with its time; empty when all is well.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
	// Blind are lasting gaps in what can be seen.
	Blind []target.Blind `json:"blind,omitempty"`
	// Ledger is the account of a stream's bytes.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Refused are the last lines that could not be read, newest last. They are
	// raw text of a stranger: shown only on loopback or to users.
	Refused []Refused `json:"refused,omitempty"`
	// Explain looks closely. With lines it takes the source's lock for as long as it
	// takes to copy a few, so it is called for a person and not each tick, and not
	// for one who may not see them. nil where there is nothing more to say.
	Explain func(lines bool) Explained `json:"-"`
}

// Explained says how a source is read.
type Explained struct {
	// Entries are some of the last lines with what was made of them, Refused the
	// last ones that could not be read, both newest last. Patterns are the most
	// frequent kinds of records. All three are a stranger's text with what looks
	// like a secret masked: shown only on loopback or to users.
	Entries  []Entry   `json:"entries,omitempty"`
	Refused  []Refused `json:"refused,omitempty"`
	Patterns []Pattern `json:"patterns,omitempty"`
	// Settings are those in force for the source, as the settings file has them.
	Settings string `json:"settings,omitempty"`
}

// Entry is a line, or a run of lines of one kind, with what was made of it.
type Entry struct {
	Line string `json:"line"`
	Made []Fact `json:"made,omitempty"`
	// Refused is the reason where it could not be read.
	Refused string `json:"refused,omitempty"`
	// Again is how many of the same kind followed at once.
	Again uint64 `json:"again,omitempty"`
}

// Fact is one thing that was read from a line.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Pattern is a kind of records: the text with what varies taken out.
type Pattern struct {
	Level   string `json:"level,omitempty"`
	Logger  string `json:"logger,omitempty"`
	Text    string `json:"text"`
	Records uint64 `json:"records"`
	// New says that it was seen for the first time since the log is followed.
	New bool `json:"new,omitempty"`
}

// Ledger accounts for each byte that the kernel showed: written is read plus
// skipped plus lost plus the lag.
type Ledger struct {
	Written int64 `json:"written"`
	Read    int64 `json:"read"`
	Skipped int64 `json:"skipped"`
	Lost    int64 `json:"lost"`
	Lag     int64 `json:"lag"`
	Gaps    int64 `json:"gaps"`
	// LagSeconds is how long the oldest byte that was not read has been there.
	LagSeconds float64 `json:"lag_seconds"`
}

// Refused is one line that a parser turned away.
type Refused struct {
	Reason string `json:"reason"`
	Line   string `json:"line"`
}
