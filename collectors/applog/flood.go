package applog

import "bytes"

type bodies struct{}

// ObserveBlock takes whole lines at once, each with its end.
func (o *Observer) ObserveBlock(block []byte) (open bool) {
	for len(block) > 0 {
		i := bytes.IndexByte(block, '\n')
		if i < 0 {
			i = len(block)
		}
		line := block[:i]
		block = tail(block, i+1)
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		o.Observe(line)
	}
	return o.open()
}
