package process

import "bytes"

// ticksPerSecond is USER_HZ, which is 100 on every Linux that runs a JVM today;
// the kernel scales its own clock to it for /proc.
const ticksPerSecond = 100

// A stat is what /proc/PID/stat or /proc/PID/task/TID/stat says.
type stat struct {
	comm         []byte // a part of the bytes that were parsed
	state        byte
	minorFaults  uint64
	majorFaults  uint64
	user, system uint64 // ticks
	threads      int
	start        uint64 // ticks after boot: with the pid, the identity
}

// parse reads a whole stat file. The name lies between the first ( and the last
// ): it may hold blanks, parentheses and a line end. It reports false for
// anything that is no whole stat.
func (s *stat) parse(b []byte) bool {
	open := bytes.IndexByte(b, '(')
	end := bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || end+3 >= len(b) || b[end+1] != ' ' {
		return false
	}
	s.comm = b[open+1 : end]
	s.state = b[end+2]
	rest := b[end+3:]
	// The state is field 3; fields are counted from 1 as in proc(5).
	field := 3
	for i := 0; i < len(rest); {
		if rest[i] == ' ' {
			i++
			continue
		}
		var v uint64
		begin := i
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			v = v*10 + uint64(rest[i]-'0')
			i++
		}
		for i < len(rest) && rest[i] != ' ' && rest[i] != '\n' { // a sign, which no field of ours has
			i++
		}
		if i == begin { // the line end
			break
		}
		field++
		switch field {
		case 10:
			s.minorFaults = v
		case 12:
			s.majorFaults = v
		case 14:
			s.user = v
		case 15:
			s.system = v
		case 20:
			s.threads = int(v)
		case 22:
			s.start = v
			return true
		}
	}
	return false
}

// number reads the unsigned number that follows key at the start of a line, as
// in /proc/PID/status or cgroup files.
func number(b []byte, key string) (uint64, bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(line) > len(key) && string(line[:len(key)]) == key {
			return digitsAt(line[len(key):])
		}
	}
	return 0, false
}

// digitsAt reads a number after blanks, tabs and colons.
func digitsAt(b []byte) (uint64, bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == ':') {
		i++
	}
	begin := i
	var v uint64
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	return v, i > begin
}

// softLimit reads the soft limit from a line of /proc/PID/limits; unlimited is
// no number.
func softLimit(b []byte, name string) (v uint64, known, unlimited bool) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		rest = bytes.TrimLeft(rest, " ")
		if bytes.HasPrefix(rest, []byte("unlimited")) {
			return 0, true, true
		}
		v, known = digitsAt(rest)
		return v, known, false
	}
	return 0, false, false
}

// cpuList counts the cores in a list like 0-3,8.
func cpuList(b []byte) int {
	n := 0
	for part := range bytes.SplitSeq(bytes.TrimSpace(b), []byte(",")) {
		lo, ok := digitsAt(part)
		if !ok {
			return 0
		}
		hi := lo
		if _, after, isRange := bytes.Cut(part, []byte("-")); isRange {
			if hi, ok = digitsAt(after); !ok || hi < lo {
				return 0
			}
		}
		n += int(hi-lo) + 1
	}
	return n
}

// line returns what follows key on its line, without blanks around it.
func line(b []byte, key string) ([]byte, bool) {
	for l := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(l, []byte(key)); ok {
			return bytes.TrimSpace(rest), true
		}
	}
	return nil, false
}
