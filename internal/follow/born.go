package follow

import (
	"path/filepath"
	"regexp"
	"time"
)

// Born is when the file that a stream would read now was made: that of path,
// or the newest in dir whose base name matches. ok is false where there is none
// or the file system does not know.
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

func newest(dir string, pattern *regexp.Regexp) (path string) {
	entries, err := readDir(dir)
	if err != nil {
		return ""
	}
	var latest time.Time
	for _, e := range entries {
		if !pattern.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(latest) {
			path, latest = filepath.Join(dir, e.Name()), info.ModTime()
		}
	}
	return path
}
