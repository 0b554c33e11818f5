package process

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockDiag asks the kernel for the TCP sockets of our own network namespace
// (the interface behind ss). Beside /proc/net/tcp it costs a fraction, since the kernel
// picks the ports and sends binary rows, and it alone tells an accept
// queue's limit. No right is needed.
type sockDiag struct {
	fd  int // -1 until it is wanted
	buf []byte
	req []byte
	seq uint32

	info  bool // ask for tcp_info
	fresh int  // what untouched counts

	walks     int     // of the machine's table so far
	listeners int     // of the family asked for last
	families  []uint8 // in which something listened when asked last, or both
	found     []socket
	mayFind   int // as many sockets are found anew, and counted in any case
}

// socket is what the kernel finds one socket by: its family, and an inet_diag_sockid
// as the kernel wrote it. The cookie in it is never given to another socket.
type socket struct {
	family uint8
	id     [48]byte
}

const (
	sockDiagByFamily = 20
	inetDiagBytecode = 1
	inetDiagInfo     = 2
	inetDiagMsgLen   = 72

	// Operations of the kernel's filter, see inet_diag.h.
	bcJump      = 1
	bcPortAbove = 2 // source port at least
	bcPortBelow = 3 // source port at most
)

func (d *sockDiag) open() error {
	if d.fd >= 0 {
		return nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return fmt.Errorf("open sock_diag: %w", err)
	}
	// The answer is in the kernel already when a read begins, so this bound is
	// for a kernel in trouble.
	tv := unix.NsecToTimeval(int64(2 * time.Second))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	d.fd = fd
	if d.buf == nil {
		d.buf = make([]byte, 64<<10)
	}
	return nil
}

func (d *sockDiag) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
	d.fd = -1
}

// untouched counts the established connections of a port of which the server
// never read a byte: as many are unread as ever came. It asks for more about
// each socket than walk, comes after listening, and is used only while a connector
// is suspected.
func (d *sockDiag) untouched(port uint16) (int, error) {
	if err := d.open(); err != nil {
		return 0, err
	}
	d.info, d.fresh = true, 0
	defer func() { d.info = false }()
	list := []uint16{port}
	for _, family := range d.families {
		if err := d.dumpFamily(family, 1<<tcpEstablished, list, nil); err != nil {
			return 0, err
		}
	}
	return d.fresh, nil
}

// takeInfo looks into the attributes behind a socket's row for its tcp_info.
func (d *sockDiag) takeInfo(body []byte) {
	if body[1] != tcpEstablished {
		return
	}
	unread := binary.NativeEndian.Uint32(body[56:])
	const receivedAt = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	for b := body[inetDiagMsgLen:]; len(b) >= 4; {
		length, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if length < 4 || length > len(b) {
			return
		}
		if kind == inetDiagInfo && length >= 4+receivedAt+8 {
			if received := binary.NativeEndian.Uint64(b[4+receivedAt:]); unread > 0 && uint64(unread) == received {
				d.fresh++
			}
			return
		}
		b = b[min((length+3)&^3, len(b)):]
	}
}

// listening adds the listening sockets of the given ports, IPv4 and IPv6, which
// are few and have a table of their own.
func (d *sockDiag) listening(list []uint16, ports map[uint16]*portFigures) error {
	if err := d.open(); err != nil {
		return err
	}
	d.families = d.families[:0]
	for _, family := range bothFamilies {
		d.listeners = 0
		if err := d.dumpFamily(family, 1<<tcpListen, list, ports); err != nil {
			return err
		}
		if d.listeners > 0 {
			d.families = append(d.families, family)
		}
	}
	if len(d.families) == 0 {
		d.families = append(d.families, bothFamilies...)
	}
	return nil
}

// walk adds the other sockets of the given ports that are in one of the states (a
// mask of the kernel's), after listening. They are in a table of the whole machine's
// that the kernel walks from end to end (of 262,144 places in 16 GB of memory,
// however few are taken: some 4 ms), and only for the families in which something
// listens. (A connection over IPv4 to a listener of IPv6 is one of IPv6.) Where
// nothing listens, both are walked: what is left of a server that has closed its
// ports.
//
// It returns the sockets that it found, or one more than most of them.
func (d *sockDiag) walk(list []uint16, states uint32, ports map[uint16]*portFigures, most int) ([]socket, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	d.walks++
	d.found, d.mayFind = d.found[:0], most+1
	for _, family := range d.families {
		if err := d.dumpFamily(family, states, list, ports); err != nil {
			return nil, err
		}
	}
	return d.found, nil
}

// again adds these sockets as they are now, each asked for by name: about a
// microsecond each. It takes out those that are gone, and returns the rest.
func (d *sockDiag) again(sockets []socket, ports map[uint16]*portFigures) ([]socket, error) {
	// As many answers as surely fit into what the kernel keeps for a reader.
	const atOnce = 64
	d.found, d.mayFind = d.found[:0], len(sockets)
	for part := range slices.Chunk(sockets, atOnce) {
		if err := d.askFor(part, ports); err != nil {
			d.close()
			return nil, fmt.Errorf("sock_diag: %w", err)
		}
	}
	return append(sockets[:0], d.found...), nil
}

func (d *sockDiag) askFor(sockets []socket, ports map[uint16]*portFigures) error {
	d.seq++
	d.req = d.req[:0]
	for i := range sockets {
		const length = unix.NLMSG_HDRLEN + 8 + len(sockets[i].id)
		d.header(length, unix.NLM_F_REQUEST)
		d.req = append(d.req, sockets[i].family, unix.IPPROTO_TCP, 0, 0)
		d.req = binary.NativeEndian.AppendUint32(d.req, allStates)
		d.req = append(d.req, sockets[i].id[:]...)
	}
	if err := d.send(); err != nil {
		return err
	}
	for range sockets { // each is answered by itself
		b, err := d.read()
		if err != nil {
			return err
		}
		if _, err := d.take(b, ports); err != nil && err != unix.ENOENT && err != unix.ESTALE { // it is gone
			return err
		}
	}
	return nil
}

var bothFamilies = []uint8{unix.AF_INET, unix.AF_INET6}

// allStates are the states of a TCP socket, as a mask of the kernel's.
const allStates = 1<<13 - 1

// otherStates are those of connections.
const otherStates = uint32(allStates &^ (1 << tcpListen))

func (d *sockDiag) dumpFamily(family uint8, states uint32, list []uint16, ports map[uint16]*portFigures) error {
	if err := d.exchange(family, states, list, ports); err != nil {
		// Whatever is still to come belongs to a lost answer.
		d.close()
		return fmt.Errorf("sock_diag: %w", err)
	}
	return nil
}

func (d *sockDiag) exchange(family uint8, states uint32, list []uint16, ports map[uint16]*portFigures) error {
	d.seq++
	d.request(family, states, list)
	if err := d.send(); err != nil {
		return err
	}
	for {
		b, err := d.read()
		if err != nil {
			return err
		}
		done, err := d.take(b, ports)
		if done || err != nil {
			return err
		}
	}
}

func (d *sockDiag) send() error {
	var to unix.SockaddrNetlink
	to.Family = unix.AF_NETLINK
	return unix.Sendto(d.fd, d.req, 0, &to)
}

// read returns the next datagram, until the next read.
func (d *sockDiag) read() ([]byte, error) {
	for {
		n, err := unix.Read(d.fd, d.buf)
		if err == unix.EINTR {
			continue
		}
		return d.buf[:max(n, 0)], err
	}
}

// take reads the messages of one datagram.
func (d *sockDiag) take(b []byte, ports map[uint16]*portFigures) (done bool, err error) {
	for len(b) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(b))
		kind := binary.NativeEndian.Uint16(b[4:])
		seq := binary.NativeEndian.Uint32(b[8:])
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			return true, fmt.Errorf("message of %d bytes in %d", length, len(b))
		}
		body := b[unix.NLMSG_HDRLEN:length]
		if seq == d.seq {
			switch kind {
			case unix.NLMSG_DONE:
				return true, nil
			case unix.NLMSG_ERROR:
				if len(body) >= 4 {
					return true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
				}
				return true, unix.EIO
			case sockDiagByFamily:
				d.row(body, ports)
			}
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return false, nil
}

// row takes one socket.
func (d *sockDiag) row(body []byte, ports map[uint16]*portFigures) {
	if len(body) < inetDiagMsgLen {
		return
	}
	if d.info {
		d.takeInfo(body)
		return
	}
	state := body[1]
	if state == tcpListen {
		d.listeners++
	}
	if p := ports[binary.BigEndian.Uint16(body[4:])]; p != nil {
		if state != tcpListen && len(d.found) < d.mayFind {
			d.found = append(d.found, socket{family: body[0], id: [48]byte(body[4:52])})
		}
		p.add(state, binary.NativeEndian.Uint32(body[56:]), binary.NativeEndian.Uint32(body[60:]), true)
	}
}

// request builds the dump request with the filter in it.
func (d *sockDiag) request(family uint8, states uint32, list []uint16) {
	code := portFilter(list)
	d.req = d.req[:0]
	d.header(unix.NLMSG_HDRLEN+8+48+4+len(code), unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	var extensions uint8
	if d.info {
		extensions = 1 << (inetDiagInfo - 1)
	}
	d.req = append(d.req, family, unix.IPPROTO_TCP, extensions, 0)
	d.req = binary.NativeEndian.AppendUint32(d.req, states)
	d.req = append(d.req, make([]byte, 48)...) // no particular socket
	d.req = binary.NativeEndian.AppendUint16(d.req, uint16(4+len(code)))
	d.req = binary.NativeEndian.AppendUint16(d.req, inetDiagBytecode)
	d.req = append(d.req, code...)
}

// header begins a message of so many bytes.
func (d *sockDiag) header(length int, flags uint16) {
	b := binary.NativeEndian.AppendUint32(d.req, uint32(length))
	b = binary.NativeEndian.AppendUint16(b, sockDiagByFamily)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, d.seq)
	d.req = binary.NativeEndian.AppendUint32(b, 0)
}

// portFilter is the kernel's program that accepts sockets with one of these
// local ports. An operation is a code, the way ahead in bytes when it holds, and
// when not; a program is left at its end (accepted) or four bytes past it
// (refused).
//
//	port >= p ? next : to the next port's part
//	port <= p ? next : to the next port's part
//	jump to the end
func portFilter(list []uint16) []byte {
	const op = 4
	part := 5 * op
	if len(list) > 200 { // the way ahead is 16 bits; nobody has so many ports
		list = list[:200]
	}
	total := len(list)*part - op // the last part needs no jump
	code := make([]byte, 0, total)
	put := func(kind, yes uint8, no int) {
		code = append(code, kind, yes)
		code = binary.NativeEndian.AppendUint16(code, uint16(no))
	}
	for i, port := range list {
		left := total - len(code)
		last := i == len(list)-1
		no := part
		if last {
			no = left + op
		}
		put(bcPortAbove, 2*op, no)
		put(0, 0, int(port))
		no -= 2 * op
		put(bcPortBelow, 2*op, no)
		put(0, 0, int(port))
		if !last {
			put(bcJump, op, total-len(code))
		}
	}
	return code
}
