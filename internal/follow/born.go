package follow

import (
	"path/filepath"
	"regexp"
	"time"
)

// Born is when the file that a stream would read now was made: that of path,
// or the newest in dir whose base name matches. ok is false where there is none,
// where there are too many, or where the file system does not know.
func Born(path, dir string, pattern *regexp.Regexp) (born time.Time, ok bool) {
	if pattern != nil {
		path = newest(dir, pattern)
	}
	st, err := statPath(path)
	if err != nil || st.id.Birth == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, st.id.Birth), true
}

// newest is "" where there are too many to look at: the caller waits, and with
// him all other servers.
func newest(dir string, pattern *regexp.Regexp) (path string) {
	var latest stat
	n := 0
	eachName(dir, func(name string) bool {
		if !pattern.MatchString(name) {
			return true
		}
		p := filepath.Join(dir, name)
		if st, err := statPath(p); err == nil && (path == "" || latest.mtime < st.mtime || latest.mtime == st.mtime && path < p) {
			path, latest = p, st
		}
		n++
		return n <= maxListed
	})
	if n > maxListed {
		return ""
	}
	return path
}
