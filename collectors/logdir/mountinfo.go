package logdir

import "bytes"

// mountRow is one line of /proc/PID/mountinfo.
type mountRow struct {
	id    int
	dev   string // major:minor
	point string
}

// parseMountinfo reads the mounts as a process sees them. Lines that are not as
// proc(5) has them are left out. Nothing in it touches a file system, so it
// answers beside a hung mount.
func parseMountinfo(b []byte) []mountRow {
	var rows []mountRow
	for line := range bytes.Lines(b) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
		f := bytes.Fields(line)
		if len(f) < 6 {
			continue
		}
		id, ok := decimal(f[0])
		if !ok {
			continue
		}
		rows = append(rows, mountRow{id: id, dev: string(f[2]), point: unescape(f[4])})
	}
	return rows
}

func decimal(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0
}

// unescape undoes the kernel's \040 for space, tab, newline and backslash.
func unescape(b []byte) string {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && octal(b[i+1]) && octal(b[i+2]) && octal(b[i+3]) {
			out = append(out, (b[i+1]-'0')<<6|(b[i+2]-'0')<<3|(b[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, b[i])
	}
	return string(out)
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// findMount looks a mount up by its id, or, on kernels that don't tell it, by
// its device: then of several mounts of one device the one nearest to the root.
func findMount(rows []mountRow, id int, dev string) (mountRow, bool) {
	var found mountRow
	ok := false
	for _, r := range rows {
		if r.id == id {
			return r, true
		}
		if r.dev == dev && (!ok || len(r.point) < len(found.point)) {
			found, ok = r, true
		}
	}
	return found, ok
}
