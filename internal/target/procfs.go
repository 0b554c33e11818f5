package target

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"
)

// This file reads the texts of /proc: bytes in, values out, no opening of
// anything, so that they can be tested on every system.

// statLine is what discovery takes from /proc/PID/stat.
type statLine struct {
	comm       string
	state      byte
	ppid       int
	startTicks uint64
	vsize      uint64
}

// parseStat reads /proc/PID/stat. The command's name is set by the process
// itself and may hold blanks, parentheses and line ends; it lies between the
// first "(" and the last ")" of the whole content.
func parseStat(b []byte) (s statLine, ok bool) {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return s, false
	}
	var f [21][]byte // by hand: this is read of every process of the machine
	n := 0
	for field := range bytes.FieldsSeq(b[to+1:]) {
		if f[n] = field; n == len(f)-1 {
			break
		}
		n++
	}
	if f[len(f)-1] == nil || len(f[0]) != 1 {
		return s, false
	}
	s.comm, s.state = string(b[from+1:to]), f[0][0]
	var err1, err2, err3 error
	s.ppid, err1 = strconv.Atoi(string(f[1]))
	s.startTicks, err2 = strconv.ParseUint(string(f[19]), 10, 64)
	s.vsize, err3 = strconv.ParseUint(string(f[20]), 10, 64)
	return s, err1 == nil && err2 == nil && err3 == nil
}

// statusFile is what discovery takes from /proc/PID/status.
type statusFile struct {
	uid, gid int // the effective ones
	groups   []int
	nspid    []int // from our namespace inwards
}

func parseStatus(b []byte) (s statusFile, ok bool) {
	var haveUID bool
	for line := range bytes.Lines(b) {
		key, rest, found := bytes.Cut(line, []byte(":"))
		if !found {
			continue
		}
		switch string(key) {
		case "Uid":
			if n := numbers(rest); len(n) >= 2 {
				s.uid, haveUID = n[1], true
			}
		case "Gid":
			if n := numbers(rest); len(n) >= 2 {
				s.gid = n[1]
			}
		case "Groups":
			s.groups = numbers(rest)
		case "NSpid":
			s.nspid = numbers(rest)
		}
	}
	return s, haveUID
}

func numbers(b []byte) []int {
	var out []int
	for _, f := range bytes.Fields(b) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// splitNUL parts cmdline or environ at its NULs only: an argument may hold
// blanks and line ends. The last one of a cut file is kept as it is.
func splitNUL(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}

// mapsFacts is what the list of mappings tells of a process.
type mapsFacts struct {
	libjvm   string // the library's path, empty when the process is no JVM
	perfdata string // a mapped hsperfdata file
	tcnative bool   // Tomcat's native library, with which HTTP/1.1 may mean APR
}

// add takes one line of /proc/PID/maps. The path is all behind the fifth field.
func (m *mapsFacts) add(line []byte) {
	i := bytes.IndexByte(line, '/')
	if i < 0 {
		return
	}
	p := bytes.TrimSuffix(bytes.TrimRight(line[i:], "\n"), []byte(" (deleted)"))
	base := p[bytes.LastIndexByte(p, '/')+1:]
	switch {
	case string(base) == "libjvm.so":
		m.libjvm = string(p)
	case bytes.HasPrefix(base, []byte("libtcnative")):
		m.tcnative = true
	case bytes.Contains(p, []byte("/hsperfdata_")) && digits(string(base)):
		m.perfdata = string(p)
	}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// listener is one listening TCP socket.
type listener struct {
	addr  string // as Java prints it; empty for all addresses
	port  int
	inode uint64
}

// parseListener reads one row of net/tcp or net/tcp6. It is false for a row that
// is no LISTEN row.
func parseListener(line []byte, add func(listener)) bool {
	f := bytes.Fields(line)
	if len(f) < 10 || string(f[3]) != "0A" {
		return false
	}
	addr, port, ok := bytes.Cut(f[1], []byte(":"))
	if !ok {
		return false
	}
	n, err1 := strconv.ParseUint(string(port), 16, 16)
	inode, err2 := strconv.ParseUint(string(f[9]), 10, 64)
	if err1 == nil && err2 == nil {
		add(listener{addr: procAddr(addr), port: int(n), inode: inode})
	}
	return true
}

// procAddr turns the kernel's spelling, words in the machine's byte order, into
// an address. It is only shown to people and compared, so an odd one is "".
func procAddr(b []byte) string {
	raw, err := hex.DecodeString(string(b))
	if err != nil || (len(raw) != 4 && len(raw) != 16) {
		return ""
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	a := addrFrom(raw)
	if a.IsUnspecified() {
		return ""
	}
	return a.String()
}

// parseBtime finds the boot time, in Unix seconds, in /proc/stat.
func parseBtime(b []byte) (int64, bool) {
	i := bytes.Index(b, []byte("\nbtime "))
	if i < 0 {
		return 0, false
	}
	f := bytes.Fields(b[i+len("\nbtime ") : min(len(b), i+40)])
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[0]), 10, 64)
	return n, err == nil
}
