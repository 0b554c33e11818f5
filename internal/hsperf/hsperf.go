// Package hsperf reads hsperfdata, the file of counters that HotSpot keeps in
// /tmp/hsperfdata_USER/PID unless it is told not to. It needs no agent, no
// attach and no safepoint: the JVM writes the counters for itself, and reading
// the file costs it nothing.
//
// The file has a head of 32 bytes and then entries, each with a name, a unit, a
// variability and a value. It is in the byte order of the JVM that made it,
// which the head names. The layout has been version 2.0 from JDK 5 to JDK 25;
// what changed are the counters: JDK 25 has no sun.rt._sync_* and has
// sun.threads.cpu_time.* instead. JDKs 17 and 25 are what this was run with.
//
// The file is read, never mapped: a mapped file that is truncated kills the
// reader with SIGBUS. It is never locked either: HotSpot takes a lock on its own
// file at start, and gives up its counters when it finds one there.
//
// A JVM may be adding a counter while the file is read. Its head carries a
// stamp that changes with each addition, so a read is good when the stamp was
// the same before and after (ReadFile looks). Values change all the time; each
// is eight aligned bytes and is copied whole by the kernel on the machines that
// JVMs run on.
package hsperf

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Refusal is why bytes are no hsperfdata. The list is closed.
type Refusal string

// The reasons.
const (
	TooShort      Refusal = "too_short"      // not even a head
	BadMagic      Refusal = "bad_magic"      // some other file
	BadByteOrder  Refusal = "bad_byte_order" // neither 0 nor 1
	BadVersion    Refusal = "bad_version"    // not 2.x
	NotAccessible Refusal = "not_accessible" // the JVM is still starting
	BadSize       Refusal = "bad_size"       // the head claims more than there is
	BadEntry      Refusal = "bad_entry"      // an entry that leads outside of itself
	Torn          Refusal = "torn"           // it changed while it was read, again and again
	TooLarge      Refusal = "too_large"      // beyond MaxSize
)

func (r Refusal) Error() string { return "hsperfdata refused: " + string(r) }

const (
	headLen  = 32
	entryLen = 20
	// MaxSize bounds what is read. The JVM's default is 32 KiB
	// (-XX:PerfDataMemorySize), and 32 MiB is the most it takes.
	MaxSize = 32 << 20
	// maxEntries bounds the table; JDK 25 has some 250 of them.
	maxEntries = 1 << 16
)

// Units says what a counter counts, in HotSpot's numbering.
type Units uint8

// The units.
const (
	None Units = iota + 1
	Bytes
	Ticks // of sun.os.hrt.frequency; nanoseconds in practice
	Events
	String
	Hertz
)

func (u Units) String() string {
	if names := [...]string{"?", "none", "bytes", "ticks", "events", "string", "hertz"}; int(u) < len(names) {
		return names[u]
	}
	return "?"
}

// Variability says how a counter changes, in HotSpot's numbering.
type Variability uint8

// The variabilities.
const (
	Constant Variability = iota + 1
	Monotonic
	Variable
)

func (v Variability) String() string {
	if names := [...]string{"?", "constant", "monotonic", "variable"}; int(v) < len(names) {
		return names[v]
	}
	return "?"
}

// Value is a counter's value: a number, or a string up to its first NUL.
type Value struct {
	IsString bool
	Int      int64
	Bytes    []byte // a part of the decoded data; copy it to keep it
}

// Data is a decoded file. It refers to the bytes it was decoded from.
type Data struct {
	order   binary.ByteOrder
	data    []byte
	entries []entry
	index   map[string]int
	// Stamp is the head's modification stamp, in the JVM's own ticks.
	Stamp int64
	// Overflow is how many bytes of counters found no room in the file.
	Overflow int32
	// Partial says that the JVM was in the middle of adding a counter: it and
	// those behind it are missing here.
	Partial bool
}

type entry struct {
	name        string
	at          int // offset of the value
	size        int // of a string's room, 0 for a number
	units       Units
	variability Variability
	text        string // the string value that was asked for last
}

// Decode reads a whole file. The error is a Refusal.
func Decode(data []byte) (*Data, error) {
	d := new(Data)
	if err := d.Decode(data); err != nil {
		return nil, err
	}
	return d, nil
}

// Decode reads a whole file again into d. While the JVM adds no counters, which
// is nearly always, nothing is allocated. After an error d is empty.
func (d *Data) Decode(data []byte) error {
	if err := d.decode(data); err != nil {
		d.data, d.entries, d.index = nil, d.entries[:0], nil
		return err
	}
	return nil
}

func (d *Data) decode(data []byte) error {
	h, err := readHead(data)
	if err != nil {
		return err
	}
	if !h.accessible {
		return NotAccessible
	}
	if int64(h.used) > int64(len(data)) || h.used < headLen || h.entries < 0 || h.entries > maxEntries ||
		h.first < headLen || int64(h.first) > int64(h.used) {
		return BadSize
	}
	d.order, d.data = h.order, data[:h.used]
	d.Stamp, d.Overflow, d.Partial = h.stamp, h.overflow, false

	same := d.index != nil
	at, n := int(h.first), 0
	for ; n < int(h.entries); n++ {
		length, ok := d.number32(at)
		if !ok {
			return BadEntry
		}
		if length == 0 {
			// Room has been taken for it, but nothing is written yet.
			d.Partial = true
			break
		}
		if length < entryLen || int64(at)+int64(length) > int64(len(d.data)) {
			return BadEntry
		}
		raw := d.data[at : at+int(length)]
		e, name, ok := d.entry(raw, at)
		if !ok {
			return BadEntry
		}
		if n < len(d.entries) && d.entries[n].name == string(name) {
			e.name, e.text = d.entries[n].name, d.entries[n].text
			d.entries[n] = e
		} else {
			same = false
			e.name = string(name)
			d.entries = append(d.entries[:n], e)
		}
		at += int(length)
	}
	if n != len(d.entries) {
		same = false
		d.entries = d.entries[:n]
	}
	if !same || len(d.index) == 0 {
		d.index = make(map[string]int, len(d.entries))
		for i, e := range d.entries {
			if e.name != "" {
				d.index[e.name] = i
			}
		}
	}
	return nil
}

type head struct {
	order      binary.ByteOrder
	accessible bool
	used       int32
	overflow   int32
	stamp      int64
	first      int32
	entries    int32
}

func readHead(data []byte) (head, error) {
	var h head
	if len(data) < headLen {
		return h, TooShort
	}
	if !bytes.Equal(data[:4], []byte{0xca, 0xfe, 0xc0, 0xc0}) {
		return h, BadMagic
	}
	switch data[4] {
	case 0:
		h.order = binary.BigEndian
	case 1:
		h.order = binary.LittleEndian
	default:
		return h, BadByteOrder
	}
	if data[5] != 2 {
		return h, BadVersion
	}
	h.accessible = data[7] != 0
	h.used = int32(h.order.Uint32(data[8:]))
	h.overflow = int32(h.order.Uint32(data[12:]))
	h.stamp = int64(h.order.Uint64(data[16:]))
	h.first = int32(h.order.Uint32(data[24:]))
	h.entries = int32(h.order.Uint32(data[28:]))
	return h, nil
}

func (d *Data) number32(at int) (int32, bool) {
	if at < 0 || at+4 > len(d.data) {
		return 0, false
	}
	return int32(d.order.Uint32(d.data[at:])), true
}

// entry reads one entry. An entry of a type that HotSpot defines but never uses
// is kept without a name, so that it is passed over.
func (d *Data) entry(raw []byte, at int) (e entry, name []byte, ok bool) {
	nameAt := int32(d.order.Uint32(raw[4:]))
	vector := int32(d.order.Uint32(raw[8:]))
	kind := raw[12]
	e.units, e.variability = Units(raw[14]), Variability(raw[15])
	valueAt := int32(d.order.Uint32(raw[16:]))
	if nameAt < entryLen || int64(nameAt) >= int64(len(raw)) || valueAt < entryLen || int64(valueAt) > int64(len(raw)) || vector < 0 {
		return e, nil, false
	}
	end := bytes.IndexByte(raw[nameAt:], 0)
	if end <= 0 {
		return e, nil, false
	}
	name = raw[nameAt : int(nameAt)+end]
	e.at = at + int(valueAt)
	switch {
	case kind == 'J' && vector == 0:
		if int(valueAt)+8 > len(raw) {
			return e, nil, false
		}
	case kind == 'B' && vector > 0:
		if int64(valueAt)+int64(vector) > int64(len(raw)) {
			return e, nil, false
		}
		e.size = int(vector)
	default:
		return e, nil, true
	}
	return e, name, true
}

// Len is how many counters there are.
func (d *Data) Len() int { return len(d.index) }

// Long is a number by name.
func (d *Data) Long(name string) (int64, bool) {
	i, ok := d.index[name]
	if !ok || d.entries[i].size > 0 {
		return 0, false
	}
	return int64(d.order.Uint64(d.data[d.entries[i].at:])), true
}

// String is a string by name. It allocates only when the value has changed
// since it was last asked for.
func (d *Data) String(name string) (string, bool) {
	i, ok := d.index[name]
	if !ok || d.entries[i].size == 0 {
		return "", false
	}
	e := &d.entries[i]
	raw := d.text(e)
	if e.text != string(raw) {
		e.text = string(raw)
	}
	return e.text, true
}

func (d *Data) text(e *entry) []byte {
	raw := d.data[e.at : e.at+e.size]
	if end := bytes.IndexByte(raw, 0); end >= 0 {
		raw = raw[:end]
	}
	return raw
}

// All calls do with each counter in the order of the file.
func (d *Data) All(do func(name string, units Units, variability Variability, v Value)) {
	for i := range d.entries {
		e := &d.entries[i]
		switch {
		case e.name == "":
		case e.size > 0:
			do(e.name, e.units, e.variability, Value{IsString: true, Bytes: d.text(e)})
		default:
			do(e.name, e.units, e.variability, Value{Int: int64(d.order.Uint64(d.data[e.at:]))})
		}
	}
}

func wrap(path string, err error) error { return fmt.Errorf("read hsperfdata %s: %w", path, err) }
