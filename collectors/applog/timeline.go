package applog

// timeline counts records by level over the log's own time, in a bounded number
// of steps: a minute each at first, doubled when the log is longer.
type timeline struct {
	step  int64 // milliseconds
	start int64 // of steps[0]
	steps []levelCounts
	last  *levelCounts
	lo    int64 // of last
}

type levelCounts [levels]uint64

const maxSteps = 1024

func (t *timeline) add(at int64, l Level) {
	if at == 0 {
		return
	}
	if t.last != nil && at >= t.lo && at < t.lo+t.step {
		t.last[l]++
		return
	}
	t.place(at)[l]++
}

func (t *timeline) place(at int64) *levelCounts {
	if t.step == 0 {
		t.step = 60_000
	}
	if len(t.steps) == 0 {
		t.start = at - at%t.step
	}
	if at < t.start { // a clock that went back
		at = t.start
	}
	for (at-t.start)/t.step >= maxSteps {
		t.double()
	}
	i := int((at - t.start) / t.step)
	for len(t.steps) <= i {
		t.steps = append(t.steps, levelCounts{})
	}
	t.last, t.lo = &t.steps[i], t.start+int64(i)*t.step
	return t.last
}

func (t *timeline) double() {
	t.step *= 2
	start := t.start - t.start%t.step
	var out []levelCounts
	for i, c := range t.steps {
		k := int((t.start + int64(i)*t.step/2 - start) / t.step)
		for len(out) <= k {
			out = append(out, levelCounts{})
		}
		for l, n := range c {
			out[k][l] += n
		}
	}
	t.start, t.steps, t.last = start, out, nil
}
