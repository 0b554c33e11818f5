package process

import (
	"bytes"
	"math"
)

// pressure is one line of a PSI file.
type pressure struct {
	resource, kind string
	seconds        float64
}

// parsePressure reads a PSI file: "some avg10=0.00 … total=123" (microseconds).
func parsePressure(out []pressure, resource string, b []byte) []pressure {
	for row := range bytes.Lines(b) {
		kind, rest, ok := bytes.Cut(row, []byte(" "))
		if !ok || (string(kind) != "some" && string(kind) != "full") {
			continue
		}
		_, total, ok := bytes.Cut(rest, []byte("total="))
		if !ok {
			continue
		}
		if v, ok := digitsAt(total); ok && v < math.MaxInt64 {
			out = append(out, pressure{resource, string(kind), float64(v) / 1e6})
		}
	}
	return out
}
