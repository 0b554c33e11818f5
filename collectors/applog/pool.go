package applog

import (
	"bytes"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// jettyPool reads the figures that a Jetty pool prints of itself:
//
//	QueuedThreadPool[qtp1589683045]@5ec0a365{STARTED,4<=12<=12,i=0,r=-1,q=10}[…]
//
// Jetty 12 has t=…ms between r and q, so keys are looked for and unknown ones
// passed. r is -1 when threads are not reserved by the pool: then it is absent.
func (o *Observer) jettyPool(m []byte) {
	i := bytes.Index(m, []byte("QueuedThreadPool["))
	if i < 0 {
		return
	}
	m = m[i+len("QueuedThreadPool["):]
	i = bytes.IndexByte(m, ']')
	if i < 0 || i > 100 {
		return
	}
	name := m[:i]
	open := bytes.IndexByte(m, '{')
	if open < 0 || open > i+40 {
		return
	}
	end := bytes.IndexByte(m[open:], '}')
	if end < 0 || end > 200 {
		return
	}
	unit := poolUnit(name)
	p := o.pools[string(unit)]
	if p == nil {
		if len(o.pools) >= 4 {
			return
		}
		p = &poolGauges{}
		u := string(unit)
		for i, f := range poolFamilies {
			p[i] = o.figures.Gauge(f, u)
		}
		o.pools[u] = p
	}
	rest := m[open+1 : open+end]
	for len(rest) > 0 {
		var part []byte
		part, rest, _ = bytes.Cut(rest, []byte(","))
		if lo, more, ok := bytes.Cut(part, []byte("<=")); ok {
			now, hi, _ := bytes.Cut(more, []byte("<="))
			p.set(2, lo)
			p.set(0, now)
			p.set(3, hi)
			continue
		}
		if len(part) < 3 || part[1] != '=' {
			continue
		}
		switch part[0] {
		case 'i':
			p.set(1, part[2:])
		case 'r':
			p.set(6, part[2:])
		case 'q':
			p.set(4, part[2:])
			p.set(5, part[2:])
		}
	}
}

// poolUnit folds the default name, "qtp" and a hash that differs at each start.
func poolUnit(name []byte) []byte {
	if rest, ok := bytes.CutPrefix(name, []byte("qtp")); ok && len(rest) == digits(rest) {
		return name[:3]
	}
	return name
}

// poolGauges are the figures of one pool, in the order of poolFamilies.
type poolGauges [7]*metric.Number

var poolFamilies = [7]*metric.Family{poolThreads, poolIdle, poolMin, poolMax, poolQueue, poolJobs, poolReserve}

func (p *poolGauges) set(i int, v []byte) {
	n, d := 0.0, digits(v)
	if d == 0 || d != len(v) {
		p[i].Clear()
		return
	}
	for _, c := range v {
		n = n*10 + float64(c-'0')
	}
	p[i].Set(n)
}
