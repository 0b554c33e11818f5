package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"
)

// A Registry turns one scan after the other into targets that stay: the same
// server after a restart has the same name, and a server that went away is
// reported as down for a day. It is used by one goroutine.
//
//	the same process                  goes on
//	a new process, key of a down one  that entry, one restart more
//	a new process, key not known      a new entry, with a name of its own
//	no process any more               down; forgotten after 24 hours
//	the same, and it served no port   forgotten at once: a build tool has ended
//	no process, but in the settings   down, as long as they list it
//	left out or renamed by settings   forgotten at once
//
// A process is its pid and start ticks within one boot of the machine. Wall time
// plays no part, so a stepped clock restarts nobody.
type Registry struct {
	entries map[string]*Entry // by name
	missing []Server
}

// Entry is one server through its restarts.
type Entry struct {
	Name string `json:"name"`
	// Key is empty for a server of the settings that was never seen.
	Key      string `json:"key"`
	Kind     Kind   `json:"kind"`
	Restarts int    `json:"restarts"`
	// Seen is when its process was last there.
	Seen time.Time `json:"seen"`
	// Serves says that it was seen to be a server, or may have been one.
	Serves bool `json:"serves,omitempty"`
	// PID, StartTicks and Boot are the process it was last.
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Boot       string `json:"boot,omitempty"`

	// Up says that its process is there now.
	Up bool `json:"-"`
	// Target is the last that was seen of it; nil after a start of the sidecar
	// until it is seen again.
	Target *Target `json:"-"`
	// Changed says that it has another process than at the Update before, or has
	// just been found: what belongs to the old process is to be let go.
	Changed bool `json:"-"`
	// known is false for a JVM that is no server and was seen only once.
	known bool
}

// keptFor is how long a target that went away is still reported as down.
const keptFor = 24 * time.Hour

// NewRegistry makes an empty one.
func NewRegistry() *Registry { return &Registry{entries: map[string]*Entry{}} }

// Expect takes the servers that the settings list and the next scan to be given to
// Update did not see: each of them is a target that is down.
func (r *Registry) Expect(missing []Server) { r.missing = missing }

// Update takes one scan, and the boot id of the machine (Scanner.Boot). The
// result is every target, those that are down too, sorted by name.
//
// A JVM that is neither Tomcat nor Jetty becomes a target when a second scan
// still sees it: a build tool that lives for a moment is none.
func (r *Registry) Update(found []*Target, boot string, now time.Time) []*Entry {
	for _, e := range r.entries {
		e.Up, e.Changed = false, false
	}
	var strangers []*Target
	for _, t := range found {
		e := r.rename(r.byProcess(t, boot), t)
		if e == nil {
			strangers = append(strangers, t)
			continue
		}
		if key := t.key(); e.Key != key {
			// It is seen better by now: a program that turned out to be an embedded
			// Tomcat. It keeps its name once that is out.
			if e.Key = key; !e.known {
				delete(r.entries, e.Name)
				e.Name = r.freeName(t)
				r.entries[e.Name] = e
			}
		}
		e.Changed = !e.known
		e.known = true
		r.see(e, t, boot, now)
	}
	for _, t := range strangers {
		e := r.rename(r.byKey(t), t)
		expected := t.named && r.neverSeen(t.Name)
		switch {
		case e == nil && expected:
			e = r.entries[t.Name]
			e.Key = t.key()
		case e == nil:
			e = &Entry{Name: r.freeName(t), Key: t.key(), known: t.Kind != JVM}
			r.entries[e.Name] = e
		case e.known:
			e.Restarts++
		}
		e.Changed = true
		r.see(e, t, boot, now)
	}
	listed := map[string]bool{}
	for _, s := range r.missing {
		listed[s.Name] = true
		if r.entries[s.Name] == nil {
			r.entries[s.Name] = &Entry{Name: s.Name, Kind: s.Kind, known: true}
		}
	}
	for name, e := range r.entries {
		if !e.Up && !listed[name] && (!e.known || !e.server() || now.Sub(e.Seen) > keptFor) {
			delete(r.entries, name)
		}
	}
	r.bound()
	return r.List()
}

func (r *Registry) see(e *Entry, t *Target, boot string, now time.Time) {
	if e.Name != t.Name {
		c := *t
		c.Name = e.Name
		t = &c
	}
	e.Up, e.Target, e.Kind, e.Seen = true, t, t.Kind, now
	e.PID, e.StartTicks, e.Boot = t.Process.PID, t.Process.StartTicks, boot
	unseen := func(b Blind) bool { return b.Reason == "no_permission" }
	e.Serves = e.Serves || t.named || len(t.Connectors) > 0 || slices.ContainsFunc(t.Blind, unseen)
}

// server is false for a JVM that is neither Tomcat nor Jetty, that the settings
// don't list, and that was never seen to listen where it could be seen. Nobody
// misses it when it has done its work.
func (e *Entry) server() bool { return e.Kind != JVM || e.Serves }

// rename lets an entry go whose server the settings call otherwise by now; where
// another entry has that name, the old one stays.
func (r *Registry) rename(e *Entry, t *Target) *Entry {
	if e == nil || !t.named || e.Name == t.Name || r.entries[t.Name] != nil && !r.neverSeen(t.Name) {
		return e
	}
	delete(r.entries, e.Name)
	return nil
}

// neverSeen says that a name stands for a server that only the settings know.
func (r *Registry) neverSeen(name string) bool {
	e := r.entries[name]
	return e != nil && e.Key == ""
}

// Drop lets go of what the settings leave out: it is not down.
func (r *Registry) Drop(left []*Target, boot string) {
	for _, t := range left {
		for name, e := range r.entries {
			same := e.PID == t.Process.PID && e.StartTicks == t.Process.StartTicks && e.Boot == boot
			if same || !e.Up && e.Key == t.key() {
				delete(r.entries, name)
			}
		}
	}
}

// byProcess finds the entry with this very process.
func (r *Registry) byProcess(t *Target, boot string) *Entry {
	for _, e := range r.entries {
		if e.PID == t.Process.PID && e.StartTicks == t.Process.StartTicks && e.Boot == boot && !e.Up {
			return e
		}
	}
	return nil
}

// byKey finds an entry that this target continues: the same base, and without a
// process now. Of several the one with the target's own name is taken first,
// then the first by name.
func (r *Registry) byKey(t *Target) *Entry {
	key := t.key()
	var best *Entry
	for _, e := range r.entries {
		if e.Key != key || e.Up {
			continue
		}
		if best == nil || e.Name == t.Name || best.Name != t.Name && e.Name < best.Name {
			best = e
		}
	}
	return best
}

// freeName gives the target's name. Where another entry has it, one that is down
// perhaps, the base folder's name is added, then a number.
func (r *Registry) freeName(t *Target) string {
	name := t.Name
	if r.entries[name] == nil {
		return name
	}
	if base := path.Base(cmp.Or(t.Base, t.Process.Cwd, "/")); base != "/" && base != "." {
		name += "-" + labelName(base)
	}
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
	all := make([]*Entry, 0, len(r.entries))
	for _, e := range r.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int {
		if a.Up != b.Up {
			if a.Up {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range all[MaxTargets:] {
		delete(r.entries, e.Name)
	}
}

// List is every target, sorted by name.
func (r *Registry) List() []*Entry {
	out := make([]*Entry, 0, len(r.entries))
	for _, e := range r.entries {
		if e.known {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Save writes the targets down for the next start of the sidecar, but for those
// that only the settings know.
func (r *Registry) Save() ([]byte, error) {
	return json.Marshal(slices.DeleteFunc(r.List(), func(e *Entry) bool { return e.Key == "" }))
}

// Load takes back what Save wrote. A server that is still the same process goes
// on; one that came back meanwhile has one restart more at the next Update.
func (r *Registry) Load(data []byte) error {
	var in []*Entry
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("load targets: %w", err)
	}
	for _, e := range in {
		if e != nil && e.Name != "" && len(r.entries) < MaxTargets {
			e.known = true
			r.entries[e.Name] = e
		}
	}
	return nil
}
