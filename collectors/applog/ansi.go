package applog

// plain appends line to dst without terminal escapes: CSI sequences (colours)
// and OSC sequences (links, titles). Text that only looks like one, "[31m" with
// no ESC before it, stays.
func plain(dst, line []byte) []byte {
	for i := 0; i < len(line); i++ {
		if line[i] != 0x1b {
			dst = append(dst, line[i])
			continue
		}
		if i+1 == len(line) {
			break
		}
		switch line[i+1] {
		case '[': // parameters and intermediates, then one final byte
			for i += 2; i < len(line) && (line[i] < 0x40 || line[i] > 0x7e); i++ {
			}
		case ']': // to BEL or ESC \
			for i += 2; i < len(line) && line[i] != 7; i++ {
				if line[i] == 0x1b && i+1 < len(line) && line[i+1] == '\\' {
					i++
					break
				}
			}
		default: // a two-byte escape
			i++
		}
	}
	return dst
}
