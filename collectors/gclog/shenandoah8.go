package gclog

import "bytes"

// shenandoah8 reads "[Pause Init Mark, start]" and "[Pause Init Mark, 3.341 ms]"
// of the builds for JDK 8, and answers what follows; nil when nothing does.
func (d *decoder) shenandoah8(b []byte) []byte {
	end := bytes.IndexByte(b, ']')
	if end < 0 {
		return nil
	}
	m := b[1:end]
	rest := b[end+1:]
	comma := bytes.LastIndex(m, []byte(", "))
	if comma < 0 {
		return rest
	}
	secs, ok := millis(m[comma+2:])
	if !ok {
		return rest
	}
	d.Collector = Shenandoah
	pause := has(m, "Pause ")
	m = m[bytes.IndexByte(m, ' ')+1 : comma]
	n := words(m)
	name := m[:n]
	m = m[n:]
	var t Transition
	for {
		m = m[spaces(m):]
		if len(m) == 0 {
			break
		}
		if m[0] == '(' {
			_, k := group(m)
			if k == 0 {
				break
			}
			m = m[k:]
			continue
		}
		var k int
		if t, k = transition(m); k == 0 {
			break
		}
		m = m[k:]
	}
	if !pause {
		e := d.event(ConcurrentEvent)
		e.Name, e.Seconds = name, secs
		d.out(e)
		if t.Set {
			d.heap(Heap, t, false)
		}
		return rest
	}
	kind := kindByPause[string(name)]
	if kind == KindDegenerated {
		d.failure(Degenerated)
	}
	e := d.event(PauseEvent)
	e.Kind, e.Seconds = kind, secs
	d.out(e)
	if t.Set {
		d.heap(Heap, t, false)
	}
	return rest
}
