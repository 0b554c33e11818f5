package hsperf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made builds a small file in either byte order.
type made struct {
	order   binary.ByteOrder
	entries [][]byte
}

func (m *made) long(name string, v int64) *made {
	return m.entry(name, 'J', 0, binary.LittleEndian != m.order, v, nil)
}

func (m *made) text(name, v string, room int) *made {
	raw := make([]byte, room)
	copy(raw, v)
	return m.entry(name, 'B', int32(room), false, 0, raw)
}

func (m *made) entry(name string, kind byte, vector int32, _ bool, v int64, raw []byte) *made {
	nameRoom := len(name) + 1
	valueAt := (entryLen + nameRoom + 7) &^ 7
	if raw == nil {
		raw = make([]byte, 8)
		m.order.PutUint64(raw, uint64(v))
	}
	e := make([]byte, (valueAt+len(raw)+7)&^7)
	m.order.PutUint32(e[0:], uint32(len(e)))
	m.order.PutUint32(e[4:], entryLen)
	m.order.PutUint32(e[8:], uint32(vector))
	e[12], e[13], e[14], e[15] = kind, 0, byte(Bytes), byte(Variable)
	m.order.PutUint32(e[16:], uint32(valueAt))
	copy(e[entryLen:], name)
	copy(e[valueAt:], raw)
	m.entries = append(m.entries, e)
	return m
}

func (m *made) bytes() []byte {
	out := make([]byte, headLen)
	copy(out, "\xca\xfe\xc0\xc0")
	if m.order == binary.LittleEndian {
		out[4] = 1
	}
	out[5], out[7] = 2, 1
	for _, e := range m.entries {
		out = append(out, e...)
	}
	m.order.PutUint32(out[8:], uint32(len(out)))
	m.order.PutUint64(out[16:], 4711)
	m.order.PutUint32(out[24:], headLen)
	m.order.PutUint32(out[28:], uint32(len(m.entries)))
	return append(out, make([]byte, 64)...)
}

func small(o binary.ByteOrder) []byte {
	return (&made{order: o}).
		long("java.threads.live", 42).
		text("java.rt.vmArgs", "-Xmx64m -Dx=ä", 32).
		text("sun.full", "abcd", 4). // no NUL at the end
		long("sun.gc.big", -1<<62).
		bytes()
}

func TestDecode(t *testing.T) {
	for _, o := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		d, err := Decode(small(o))
		if err != nil {
			t.Fatal(o, err)
		}
		if v, ok := d.Long("java.threads.live"); !ok || v != 42 {
			t.Errorf("%v: live = %v, %v", o, v, ok)
		}
		if v, ok := d.Long("sun.gc.big"); !ok || v != -1<<62 {
			t.Errorf("%v: big = %v, %v", o, v, ok)
		}
		if v, ok := d.String("java.rt.vmArgs"); !ok || v != "-Xmx64m -Dx=ä" {
			t.Errorf("%v: args = %q, %v", o, v, ok)
		}
		if v, ok := d.String("sun.full"); !ok || v != "abcd" {
			t.Errorf("%v: full = %q, %v", o, v, ok)
		}
		for _, absent := range []string{"java.rt.vmArgs", "nothing", ""} {
			if v, ok := d.Long(absent); ok {
				t.Errorf("%v: Long(%q) = %v", o, absent, v)
			}
		}
		if _, ok := d.String("java.threads.live"); ok {
			t.Error("a number was read as a string")
		}
		if d.Stamp != 4711 || d.Partial || d.Len() != 4 {
			t.Errorf("%v: stamp %d, partial %v, len %d", o, d.Stamp, d.Partial, d.Len())
		}
		var names []string
		d.All(func(name string, u Units, v Variability, val Value) {
			names = append(names, name+" "+u.String()+" "+v.String())
		})
		if got := strings.Join(names, "; "); got != "java.threads.live bytes variable; java.rt.vmArgs bytes variable; sun.full bytes variable; sun.gc.big bytes variable" {
			t.Error(got)
		}
	}
}

func TestRefusals(t *testing.T) {
	le := binary.LittleEndian
	change := func(do func(b []byte) []byte) []byte { return do(small(le)) }
	put := func(at int, v int32) []byte {
		return change(func(b []byte) []byte { le.PutUint32(b[at:], uint32(v)); return b })
	}
	tests := []struct {
		name string
		data []byte
		want Refusal
	}{
		{"empty", nil, TooShort},
		{"head cut", small(le)[:31], TooShort},
		{"magic", change(func(b []byte) []byte { b[0] = 0; return b }), BadMagic},
		{"order", change(func(b []byte) []byte { b[4] = 7; return b }), BadByteOrder},
		{"version", change(func(b []byte) []byte { b[5] = 1; return b }), BadVersion},
		{"starting", change(func(b []byte) []byte { b[7] = 0; return b }), NotAccessible},
		{"used beyond the end", put(8, 1<<30), BadSize},
		{"used negative", put(8, -5), BadSize},
		{"count negative", put(28, -1), BadSize},
		{"count huge", put(28, 1<<30), BadSize},
		{"count one too many", put(28, 5), BadEntry},
		{"first inside the head", put(24, 4), BadSize},
		{"first beyond used", put(24, 1<<29), BadSize},
		{"entry length negative", put(headLen, -8), BadEntry},
		{"entry length 1", put(headLen, 1), BadEntry},
		{"entry length huge", put(headLen, 1<<31-1), BadEntry},
		{"name outside", put(headLen+4, 4000), BadEntry},
		{"name negative", put(headLen+4, -4), BadEntry},
		{"value outside", put(headLen+16, 60), BadEntry},
		{"value negative", put(headLen+16, -60), BadEntry},
		{"cut", small(le)[:100], BadSize},
	}
	for _, tt := range tests {
		d, err := Decode(tt.data)
		if err != tt.want || d != nil {
			t.Errorf("%s: %v, %v, want %v", tt.name, d, err, tt.want)
		}
	}
}

// A counter for which the JVM has made room but which it has not written yet
// hides those behind it, and nothing else.
func TestPartial(t *testing.T) {
	b := small(binary.LittleEndian)
	second := headLen + int(binary.LittleEndian.Uint32(b[headLen:]))
	binary.LittleEndian.PutUint32(b[second:], 0)
	d, err := Decode(b)
	if err != nil || !d.Partial || d.Len() != 1 {
		t.Fatalf("%v, %+v", err, d)
	}
	if _, ok := d.Long("java.threads.live"); !ok {
		t.Error("the whole counter is gone too")
	}
}

func TestDecodeAgain(t *testing.T) {
	le := binary.LittleEndian
	d, err := Decode(small(le))
	if err != nil {
		t.Fatal(err)
	}
	d.String("java.rt.vmArgs")
	next := (&made{order: le}).long("java.threads.live", 43).text("java.rt.vmArgs", "-Xmx64m -Dx=ä", 32).
		text("sun.full", "efgh", 4).long("sun.gc.big", 7).bytes()
	allocs := testing.AllocsPerRun(100, func() {
		if err := d.Decode(next); err != nil {
			t.Fatal(err)
		}
		d.Long("java.threads.live")
		d.String("java.rt.vmArgs")
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a file with the same counters", allocs)
	}
	if v, _ := d.Long("java.threads.live"); v != 43 {
		t.Error("old value", v)
	}
	if v, _ := d.String("sun.full"); v != "efgh" {
		t.Error("old string", v)
	}
	// One counter more, one fewer, another order.
	for _, m := range []*made{
		(&made{order: le}).long("java.threads.live", 1).long("new", 2).long("sun.gc.big", 3),
		(&made{order: le}).long("sun.gc.big", 3),
		(&made{order: le}).long("new", 2).long("sun.gc.big", 3),
	} {
		if err := d.Decode(m.bytes()); err != nil {
			t.Fatal(err)
		}
		if d.Len() != len(m.entries) {
			t.Errorf("%d counters, want %d", d.Len(), len(m.entries))
		}
		if v, ok := d.Long("sun.gc.big"); !ok || v != 3 {
			t.Error(v, ok)
		}
		if _, ok := d.String("sun.full"); ok {
			t.Error("a counter that is gone is still found")
		}
	}
	if err := d.Decode([]byte("no")); err == nil {
		t.Fatal("no error")
	}
	if _, ok := d.Long("sun.gc.big"); ok || d.Len() != 0 {
		t.Error("values of before, after an error")
	}
}

// changing is a file whose stamp moves the first n times it is read.
type changing struct {
	data []byte
	left int
}

func (c *changing) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, c.data[at:])
	if c.left > 0 {
		c.left--
		c.data[16]++
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestTornReadIsRepeated(t *testing.T) {
	c := &changing{data: small(binary.LittleEndian), left: 2}
	b, err := Read(c, len(c.data), nil)
	if err != nil || !bytes.Equal(b, c.data) {
		t.Errorf("after two changes: %v", err)
	}
	c = &changing{data: small(binary.LittleEndian), left: 1000}
	if _, err := Read(c, len(c.data), nil); err != Torn {
		t.Errorf("always changing: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "1")
	if err := os.WriteFile(path, small(binary.LittleEndian), 0o600); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	b, err := ReadFile(path, buf)
	if err != nil || &b[0] != &buf[:1][0] {
		t.Fatalf("%v; the buffer was not reused", err)
	}
	if _, err := Decode(b); err != nil {
		t.Error(err)
	}
	if _, err := ReadFile(dir, nil); err == nil {
		t.Error("a folder was read")
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Truncate(path, MaxSize+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, nil); !errors.Is(err, TooLarge) {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(path, nil); err != nil || string(b) != "hello" {
		t.Error(b, err)
	}
}

// The corpus has files of real JVMs; it is not part of the project.
func TestCorpus(t *testing.T) {
	shared := sharedDir(t)
	files, _ := filepath.Glob(filepath.Join(shared, "corpus/discovery/*/hsperfdata"))
	if len(files) < 5 {
		t.Fatal("corpus has", len(files), "files")
	}
	for _, f := range files {
		b, err := ReadFile(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decode(b)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		cmd, ok := d.String("sun.rt.javaCommand")
		if v, good := d.String("java.property.java.version"); !ok || cmd == "" || !good || d.Len() < 180 || d.Partial {
			t.Errorf("%s: command %q, version %q, %d counters", f, cmd, v, d.Len())
		}
		if strings.Contains(f, "argfile") {
			if a, _ := d.String("java.rt.vmArgs"); a != "-Dfoo=bar -XX:+UseSerialGC -Xmx52m -Xlog:gc:file=logs/argfile-gc.log" {
				t.Errorf("vmArgs = %q", a)
			}
		}
	}
}

// sharedDir is the shared folder beside the checkout.
func sharedDir(t testing.TB) string {
	dir, _ := os.Getwd()
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == "/" {
			t.Fatal("no go.mod above")
		}
	}
	shared := filepath.Join(dir, "../shared")
	if _, err := os.Stat(shared); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no shared folder: ", err)
		}
		t.Skip("no shared folder beside the checkout")
	}
	return shared
}

func FuzzDecode(f *testing.F) {
	f.Add(small(binary.LittleEndian))
	f.Add(small(binary.BigEndian))
	f.Add([]byte("\xca\xfe\xc0\xc0"))
	reused := new(Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Decode(b)
		if again := reused.Decode(b); again != err {
			t.Fatalf("fresh %v, reused %v", err, again)
		}
		if err != nil {
			if _, ok := err.(Refusal); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		if reused.Len() != d.Len() {
			t.Fatal("reused and fresh differ")
		}
		d.All(func(name string, _ Units, _ Variability, v Value) {
			if name == "" {
				t.Fatal("no name")
			}
		})
		for name := range d.index {
			l, isLong := d.Long(name)
			s, isString := d.String(name)
			if isLong == isString {
				t.Fatal(name, l, s)
			}
			if l2, _ := reused.Long(name); l2 != l {
				t.Fatal(name, l, l2)
			}
			if s2, _ := reused.String(name); s2 != s {
				t.Fatal(name, s, s2)
			}
		}
	})
}

func BenchmarkDecodeAgain(b *testing.B) {
	m := &made{order: binary.LittleEndian}
	for i := range 250 {
		m.long("sun.gc.counter.number."+string(rune('a'+i%26))+strings.Repeat("x", i/26), int64(i))
	}
	data := m.bytes()
	d, err := Decode(data)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
