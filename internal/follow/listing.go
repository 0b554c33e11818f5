package follow

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"
)

// list is the files in Dir whose names match, each file once however many
// names it has.
func (f *Follower) list() ([]found, error) {
	began, names := time.Now(), 0
	all := crowd{once: map[ident]bool{}}
	err := eachName(f.spec.Dir, func(name string) bool {
		names++
		if !f.spec.Pattern.MatchString(name) && !(f.spec.Rotated != nil && f.spec.Rotated.MatchString(name)) {
			return true
		}
		path := filepath.Join(f.spec.Dir, name)
		if st, err := statPath(path); err == nil && st.regular && !packedName(path) {
			all.add(found{path, st})
		}
		return true
	})
	// A folder of the usual size costs nothing; if its listing took long, then
	// somebody else had the processor.
	if f.listTook = 0; names > 4*maxListed {
		f.listTook = time.Since(began)
	}
	if absent(err) {
		err = nil
	}
	f.crowded = f.crowded || all.cut
	return all.newest(), err
}

// siblings are the regular files beside path whose base names is accepts, oldest
// first.
func (f *Follower) siblings(path string, is func(name, base string) bool) ([]found, error) {
	dir, base := filepath.Split(path)
	var all crowd
	if err := eachName(dir, func(name string) bool {
		if !is(name, base) {
			return true
		}
		p := filepath.Join(dir, name)
		if st, err := statPath(p); err == nil && st.regular {
			all.add(found{p, st})
		}
		return true
	}); err != nil {
		return nil, err
	}
	list := all.newest()
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(a.mtime, b.mtime), cmp.Compare(a.path, b.path)) })
	return list, nil
}

// A crowd is the files of a folder that may be ours. Somebody may have made a
// million of them, so only the newest are kept: what is live, and what was live a
// moment ago, is among them.
type crowd struct {
	files []found
	once  map[ident]bool // not nil: a file counts once, by whichever name
	cut   bool
}

func (c *crowd) add(f found) {
	if c.once != nil {
		if c.once[f.id] {
			return
		}
		c.once[f.id] = true
	}
	c.files = append(c.files, f)
	if len(c.files) >= 2*maxListed {
		c.newest()
	}
}

// newest cuts the crowd down to its bound.
func (c *crowd) newest() []found {
	if len(c.files) <= maxListed {
		return c.files
	}
	slices.SortFunc(c.files, func(a, b found) int {
		switch {
		case a.before(b.stat):
			return 1
		case b.before(a.stat):
			return -1
		}
		return cmp.Compare(b.path, a.path)
	})
	if c.once != nil {
		for _, f := range c.files[maxListed:] {
			delete(c.once, f.id)
		}
	}
	c.files, c.cut = c.files[:maxListed], true
	return c.files
}
