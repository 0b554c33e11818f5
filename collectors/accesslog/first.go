package accesslog

import "bytes"

// FirstTime is the time of the first line in head that the pattern reads, in
// Unix milliseconds; 0 when there is none. Files are put in order by it.
func (m *Matcher) FirstTime(head []byte) int64 {
	var rec Record
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		if m.Parse(bytes.TrimSuffix(line, []byte{'\r'}), &rec) == Accepted {
			if ms, ok := rec.Time(); ok {
				return ms
			}
		}
		head = rest
	}
	return 0
}
