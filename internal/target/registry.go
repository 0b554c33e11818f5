package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Registry turns one scan after the other into targets that stay: the same
// server after a restart has the same name, and a server that went away is
// reported as down for a day. It is used by one goroutine.
//
//	new process, unknown key     -> a new entry, with a name of its own
//	new process, key of a down one -> that entry, one restart more
//	process gone                 -> down; after 24 hours forgotten
type Registry struct {
	entries map[string]*Entry // by name
}

// Entry is one server through its restarts.
type Entry struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Restarts int    `json:"restarts"`
	Up       bool   `json:"up"`
	// Seen is when its process was last there.
	Seen time.Time `json:"seen"`
	// PID and StartTicks are the process it was last.
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Boot       string `json:"boot,omitempty"` // the kernel's boot id: pids and ticks begin anew with each
	Kind       Kind   `json:"kind"`
	// Target is the last that was seen of it; nil after a start of the sidecar
	// until it is seen again.
	Target *Target `json:"-"`
	// New says that the entry has another process than at the last Update.
	New bool `json:"-"`
	// sightings counts the scans of a JVM that is no server, before it becomes
	// a target.
	sightings int
}

// NewRegistry makes an empty one.
func NewRegistry() *Registry { return &Registry{entries: map[string]*Entry{}} }

// sightings is how many scans in a row must show a JVM that is neither Tomcat
// nor Jetty: a build or a tool that lives for a moment is no target.
const sightings = 2

// Update takes one scan. boot tells one boot of the machine from the next, and
// may be empty. The result is every entry, those that are down too, by name.
func (r *Registry) Update(found []*Target, boot string, now time.Time) []*Entry {
	for _, e := range r.entries {
		e.New = false
	}
	present := map[*Entry]bool{}
	var strangers []*Target
	for _, t := range found {
		if e := r.byProcess(t, boot); e != nil && !present[e] {
			present[e] = true
			r.see(e, t, boot, now)
			continue
		}
		strangers = append(strangers, t)
	}
	for _, t := range strangers {
		e := r.byKey(t, present)
		if e == nil {
			e = &Entry{Name: r.freeName(t.Name, present), Key: t.key()}
			r.entries[e.Name] = e
		} else if e.sightings == 0 || e.sightings >= need(t) {
			e.Restarts++
		}
		e.New, e.sightings = true, 0
		present[e] = true
		r.see(e, t, boot, now)
	}
	for name, e := range r.entries {
		if present[e] {
			continue
		}
		if e.Up = false; now.Sub(e.Seen) > keptFor || e.sightings > 0 && e.sightings < sightings && e.Kind == JVM && e.Restarts == 0 {
			delete(r.entries, name)
		}
	}
	r.bound()
	return r.List()
}

func need(t *Target) int {
	if t.Kind == JVM {
		return sightings
	}
	return 1
}

func (r *Registry) see(e *Entry, t *Target, boot string, now time.Time) {
	if e.Name != t.Name {
		c := *t
		c.Name = e.Name
		t = &c
	}
	if e.sightings < sightings {
		e.sightings++
	}
	e.Target, e.Kind, e.Seen, e.Boot = t, t.Kind, now, boot
	e.Up = e.sightings >= need(t)
	e.PID, e.StartTicks = t.Process.PID, t.Process.StartTicks
}

// byProcess finds the entry with this very process. The key must be the same
// too: a process that execs another server is another server.
func (r *Registry) byProcess(t *Target, boot string) *Entry {
	for _, e := range r.entries {
		if e.PID == t.Process.PID && e.StartTicks == t.Process.StartTicks && e.Boot == boot {
			return e
		}
	}
	return nil
}

// byKey finds an entry that this target continues: the same base, and without a
// process now. Of several the one with the target's own name is taken first.
func (r *Registry) byKey(t *Target, present map[*Entry]bool) *Entry {
	key := t.key()
	var best *Entry
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[name]
		if e.Key != key || present[e] {
			continue
		}
		if best == nil || e.Name == t.Name && best.Name != t.Name {
			best = e
		}
	}
	return best
}

// freeName gives the name, or one with a number where another entry, down
// perhaps, has it.
func (r *Registry) freeName(name string, _ map[*Entry]bool) string {
	free := name
	for n := 2; r.entries[free] != nil; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// bound keeps at most MaxTargets entries: those that are up, then those seen
// last.
func (r *Registry) bound() {
	if len(r.entries) <= MaxTargets {
		return
	}
	all := r.List()
	slices.SortStableFunc(all, func(a, b *Entry) int {
		if a.Up != b.Up {
			if a.Up {
				return -1
			}
			return 1
		}
		return b.Seen.Compare(a.Seen)
	})
	for _, e := range all[MaxTargets:] {
		delete(r.entries, e.Name)
	}
}

// List is every entry that is a target, by name.
func (r *Registry) List() []*Entry {
	out := make([]*Entry, 0, len(r.entries))
	for _, e := range r.entries {
		if e.sightings == 0 || e.sightings >= sightings || e.Kind != JVM || e.Restarts > 0 {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Save writes the entries down for the next start of the sidecar.
func (r *Registry) Save() ([]byte, error) { return json.Marshal(r.List()) }

// Load takes back what Save wrote. A server that is still the same process goes
// on; one that came back meanwhile has one restart more.
func (r *Registry) Load(data []byte) error {
	var in []*Entry
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("load targets: %w", err)
	}
	for _, e := range in {
		if e != nil && e.Name != "" && len(r.entries) < MaxTargets {
			e.Up = false
			r.entries[e.Name] = e
		}
	}
	return nil
}
