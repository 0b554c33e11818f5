package follow

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
)

// isRotated says whether name is one under which an earlier part of base's
// stream may lie: what was added to the name, or put between stem and
// extension, is made of digits and the marks of dates.
//
//	app.log.1  app.log-20261130  app.log.2026-11-30.3  app-2026-11-30.log  app.log.old
//
// catalina.2026-11-30.log is no part of catalina.out, and app-error.log none of
// app.log.
func (f *Follower) isRotated(name, base string) bool {
	if f.spec.Rotated != nil {
		return f.spec.Rotated.MatchString(name)
	}
	if name == base || f.spec.Path == "" {
		return false
	}
	if rest, ok := strings.CutPrefix(name, base); ok && rest != "" {
		rest = strings.TrimSuffix(rest, packedExt(rest))
		return strings.ContainsRune("._-~", rune((rest + "x")[0])) && (dated(rest[1:]) || spare(rest[1:]))
	}
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	rest, ok := strings.CutPrefix(name, stem)
	if !ok {
		return false
	}
	rest = strings.TrimSuffix(rest, packedExt(rest))
	rest, ok = strings.CutSuffix(rest, ext)
	return ok && len(rest) > 1 && strings.ContainsRune("._-", rune(rest[0])) && dated(rest[1:])
}

// isCopy is wider: whether a copy is one is told by its bytes.
func (f *Follower) isCopy(name, base string) bool {
	if f.isRotated(name, base) {
		return true
	}
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	return name != base && stem != "" && strings.HasPrefix(name, stem)
}

// dated says that s is made of digits and what stands between them.
func dated(s string) bool {
	digit := false
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case strings.ContainsRune("._-:+TZ", c):
		default:
			return false
		}
	}
	return digit
}

func spare(s string) bool { return s == "old" || s == "bak" || s == "prev" || s == "save" }

// number is n for app.log.n, counted from 1 or 0 as log rotation does, else 1.
// log4j counts from 1, and so does logrotate, whose start=0 is rare.
func number(name string) int {
	name = strings.TrimSuffix(name, packedExt(name))
	i := strings.LastIndexByte(name, '.')
	if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 0 && n < 1000 {
		return n
	}
	return 1
}

var packedExts = []string{".gz", ".tgz", ".zip", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".gz.tmp", ".tmp"}

func packedExt(name string) string {
	for _, e := range packedExts {
		if strings.HasSuffix(name, e) {
			return e
		}
	}
	return ""
}

func packedName(path string) bool { return packedExt(path) != "" }

// packed says whether the file is a compressed one, by name or by its first
// bytes: what lies beside a log is not always named for what it is.
func (f *Follower) packed(path string) bool {
	if packedName(path) {
		return true
	}
	file, err := f.open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var b [6]byte
	n, _ := file.ReadAt(b[:], 0)
	for _, magic := range []string{"\x1f\x8b", "PK\x03\x04", "BZh", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(b[:n], []byte(magic)) {
			return true
		}
	}
	return false
}

// mayHold says whether a packed file may be the one that our part was packed
// into. gzip ends with the length of what it holds; of other formats we don't
// know better.
func (f *Follower) mayHold(path string, p *part) bool {
	st, err := p.statOpen()
	if err != nil || st.size == 0 {
		return false
	}
	file, err := f.open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var b [4]byte
	if n, _ := file.ReadAt(b[:2], 0); n < 2 || b[0] != 0x1f || b[1] != 0x8b {
		return true
	}
	z, err := statFile(file)
	if err != nil || z.size < 18 {
		return false
	}
	if _, err := file.ReadAt(b[:], z.size-4); err != nil {
		return false
	}
	return binary.LittleEndian.Uint32(b[:]) == uint32(st.size)
}
