package applog

import "bytes"

// Sniff says how sure it is, from 0 to 1, that a file whose first bytes are
// head is an application log: the share of its lines that open a record or go
// on with one.
func Sniff(head []byte) float64 {
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	}
	o := NewReport(DefaultConfig())
	lines, n := 0, 0
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		o.Observe(bytes.TrimSuffix(line, []byte("\r")))
		lines++
		if n++; n > 2000 {
			break
		}
	}
	raw, _ := o.o.raw.Value()
	if o.o.records == 0 || lines == 0 {
		return 0
	}
	// Even one whole record is a strong sign; raw lines share such a file often.
	return 0.5 + 0.5*(1-raw/float64(lines))
}
