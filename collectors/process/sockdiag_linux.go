package process

import (
	"encoding/binary"
	"fmt"
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
	families  []uint8 // in which the last dump found something listening, or both
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
// each socket than dump, after which it comes, and is used only while a connector
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

// dump adds the sockets of the given ports, IPv4 and IPv6. It asks for the
// listening ones first, which are few and have a table of their own. All others
// are in a table of the whole machine's that the kernel walks from end to end, so
// that a quiet server's largest cost is that walk: it is made only for the families
// in which something listens. (A connection over IPv4 to a listener of IPv6 is
// one of IPv6.) Where nothing listens, both are walked: what is left of a server
// that has closed its ports.
//
// Without walk it asks for the listening ones alone.
func (d *sockDiag) dump(list []uint16, ports map[uint16]*portFigures, walk bool) error {
	if len(list) == 0 {
		return nil
	}
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
	if !walk {
		return nil
	}
	d.walks++
	if len(d.families) == 0 {
		d.families = append(d.families, bothFamilies...)
	}
	for _, family := range d.families {
		if err := d.dumpFamily(family, allStates&^(1<<tcpListen), list, ports); err != nil {
			return err
		}
	}
	return nil
}

var bothFamilies = []uint8{unix.AF_INET, unix.AF_INET6}

// allStates are the states of a TCP socket, as a mask of the kernel's.
const allStates = 1<<13 - 1

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
	var to unix.SockaddrNetlink
	to.Family = unix.AF_NETLINK
	if err := unix.Sendto(d.fd, d.req, 0, &to); err != nil {
		return err
	}
	for {
		n, err := unix.Read(d.fd, d.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		done, err := d.take(d.buf[:n], ports)
		if done || err != nil {
			return err
		}
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
		p.add(state, binary.NativeEndian.Uint32(body[56:]), binary.NativeEndian.Uint32(body[60:]), true)
	}
}

// request builds the dump request with the filter in it.
func (d *sockDiag) request(family uint8, states uint32, list []uint16) {
	b := d.req[:0]
	b = append(b, make([]byte, unix.NLMSG_HDRLEN)...)
	var extensions uint8
	if d.info {
		extensions = 1 << (inetDiagInfo - 1)
	}
	b = append(b, family, unix.IPPROTO_TCP, extensions, 0)
	b = binary.NativeEndian.AppendUint32(b, states)
	b = append(b, make([]byte, 48)...) // no particular socket
	code := portFilter(list)
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(code)))
	b = binary.NativeEndian.AppendUint16(b, inetDiagBytecode)
	b = append(b, code...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(b[8:], d.seq)
	d.req = b
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
