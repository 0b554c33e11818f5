package gclog

import (
	"bytes"
	"fmt"
	"strings"
)

// A KeptLine is a line with what was made of it, for whoever wants to see how
// the log is read.
type KeptLine struct {
	Line string // cut to its first bytes
	// Made is what the line was found to say; nothing for one that is only a part
	// of a record.
	Made []string
	// Unrecognised says that the line has no known form.
	Unrecognised bool
}

const (
	keptLines = 40
	keptBytes = 512
	// keptMade is how much a line may be found to say.
	keptMade = 8
	// linesOfCollection is how many lines a collection writes, in the order of
	// magnitude.
	linesOfCollection = 8
)

// keeper keeps some of the last lines, and of those that were not recognised
// some more. A line that is not kept costs one comparison: the caller gives leave
// for a few lines each second.
type keeper struct {
	leave, badLeave int
	lines, bad      keptRing
	at              *keptSlot // the line at hand, where it is kept
	whole           []byte    // the line at hand; nil between lines
}

type keptRing struct {
	slots []keptSlot
	next  int
}

type keptSlot struct {
	line         []byte
	made         []string
	unrecognised bool
}

func (k *keptRing) slot(line []byte) *keptSlot {
	if len(k.slots) < keptLines {
		k.slots = append(make([]keptSlot, 0, keptLines), k.slots...)[:len(k.slots)+1]
	}
	s := &k.slots[k.next]
	k.next = (k.next + 1) % keptLines
	*s = keptSlot{line: append(s.line[:0], line[:min(len(line), keptBytes)]...), made: s.made[:0]}
	return s
}

func (k *keptRing) list() []KeptLine {
	out := make([]KeptLine, 0, len(k.slots))
	for i := range k.slots {
		s := &k.slots[(k.next+i)%len(k.slots)]
		out = append(out, KeptLine{strings.ToValidUTF8(string(s.line), "\uFFFD"), append([]string(nil), s.made...), s.unrecognised})
	}
	return out
}

// Keep gives leave to keep the next lines for the page: several times n, since a
// collection writes dozens of lines at once and the last one says most. The caller
// holds the Set's lock.
func (o *Observer) Keep(n int) { o.kept.leave, o.kept.badLeave = n*linesOfCollection, n }

// Kept are the lines that were kept, the newest last, and in refused those that
// were not recognised. The caller holds the Set's lock.
func (o *Observer) Kept() (lines, refused []KeptLine) {
	return o.kept.lines.list(), o.kept.bad.list()
}

// keep reads a line that is kept.
func (o *Observer) keep(line []byte) {
	o.kept.leave--
	o.kept.whole = line
	o.kept.at = o.kept.lines.slot(line)
	o.dec.line(line)
	o.kept.at = nil
}

// refuse keeps the line at hand as one that was not recognised. It may be found
// out only when the next one comes, or when none does: then it is not there any
// more, and its count has to do.
func (k *keeper) refuse() {
	if k.badLeave > 0 && k.whole != nil {
		k.badLeave--
		k.bad.slot(k.whole).unrecognised = true
	}
}

// made notes what was made of the line at hand.
func (k *keeper) made(d *decoder, e *Event) {
	s := k.at
	if e.Type == UnrecognisedEvent {
		s.unrecognised = true
		return
	}
	said := inWords(d, e)
	if d.releasing {
		said = "of the line before: " + said
	}
	if said != "" && len(s.made) < keptMade {
		s.made = append(s.made, said)
	}
}

// inWords puts an event into the words of the metrics that count it.
func inWords(d *decoder, e *Event) string {
	switch e.Type {
	case PauseEvent:
		text := fmt.Sprintf("pause %s %s %.6g s", d.Collector, e.Kind, e.Seconds)
		if e.Cause != causeNone {
			text += ", cause " + e.Cause.String()
		}
		if e.Nested {
			text += ", inside of another one"
		}
		return text
	case ConcurrentEvent:
		return fmt.Sprintf("concurrent %s %.6g s", phaseLabel(e.Name), e.Seconds)
	case StoppedEvent:
		return fmt.Sprintf("stopped for %s %.6g s, %.6g s to get there", text(e.Name), e.Seconds, e.Sync)
	case StallEvent:
		return fmt.Sprintf("allocation stall of %s %.6g s", text(poolOf(e.Name)), e.Seconds)
	case RelocationStallEvent:
		return fmt.Sprintf("relocation stall of %s %.6g s", text(poolOf(e.Name)), e.Seconds)
	case FailureEvent:
		return "failure " + e.Failure.String()
	case HeapEvent:
		return fmt.Sprintf("%s %.0f to %.0f bytes", e.Gen, e.Heap.Before, e.Heap.After)
	case CycleEvent:
		return "end of a cycle " + text(e.Name)
	case DroppedEvent:
		return fmt.Sprintf("%d messages dropped by the JVM", e.Count)
	case IncompleteEvent:
		return "a record that will not be whole"
	case RestartEvent:
		return "another JVM writes from here on"
	case AllocatedEvent:
		return fmt.Sprintf("%.0f bytes allocated, %.0f promoted", max(0, e.Heap.After), max(0, e.Promoted))
	}
	return ""
}

func text(b []byte) string { return strings.ToValidUTF8(string(bytes.TrimSpace(b)), "\uFFFD") }
