package applog

import "bytes"

// portOf finds the connector's port of a record: in the thread's name, else in
// the socket that the message prints.
func (o *Observer) portOf(h *head) string {
	if len(h.thread) > 0 {
		if !bytes.Equal(o.lastThread, h.thread) {
			o.lastThread = append(o.lastThread[:0], h.thread...)
			o.lastPort = o.portOfThread(h.thread)
		}
		if o.lastPort != "" {
			return o.lastPort
		}
	}
	return o.portOfText(h.message)
}

// portOfThread reads the port out of a thread's name: http-nio-7020-Poller,
// http-nio-127.0.0.1-18081-exec-3, ajp-nio-8009-exec-1, http-8080-2 (Tomcat 6),
// http-nio-auto-1-34567-exec-2, and Jetty's acceptors, whose names end in
// {host:port}.
func portOfThread(name []byte) []byte {
	if n := len(name); n > 3 && name[n-1] == '}' {
		return portAtEnd(name[:n-1])
	}
	if !bytes.HasPrefix(name, []byte("http")) && !bytes.HasPrefix(name, []byte("ajp-")) {
		return nil
	}
	_, rest, _ := bytes.Cut(name, dash)
	for len(rest) > 0 {
		var part []byte
		part, rest, _ = bytes.Cut(rest, dash)
		if string(part) == "auto" { // auto-N-PORT
			_, rest, _ = bytes.Cut(rest, dash)
			continue
		}
		if isPort(part) {
			return part
		}
	}
	return nil
}

// portOfThread is the function of that name, its result as a string that is
// kept: a storm from many threads allocates nothing.
func (o *Observer) portOfThread(name []byte) string { return o.intern(portOfThread(name)) }

func (o *Observer) intern(port []byte) string {
	if len(port) == 0 {
		return ""
	}
	if s, ok := o.ports[string(port)]; ok {
		return s
	}
	s := string(port)
	if len(o.ports) < 4*maxPorts {
		o.ports[s] = s
	}
	return s
}

var (
	localMark = []byte("local=")
	jettyMark = []byte("{l=")
)

// portOfText reads the port out of "local=/127.0.0.1:18080 remote=…", or out of
// Jetty's "{l=/127.0.0.1:18201,r=…".
func (o *Observer) portOfText(m []byte) string {
	m = m[:min(len(m), maxReach)]
	i := bytes.Index(m, localMark)
	if i >= 0 {
		i += len(localMark)
	} else if i = bytes.Index(m, jettyMark); i >= 0 {
		i += len(jettyMark)
	} else {
		return ""
	}
	end := i
	for end < len(m) && m[end] != ' ' && m[end] != ',' && m[end] != ']' && m[end] != '}' {
		end++
	}
	_, p, ok := lastCut(m[i:end], ':')
	if !ok || !isPort(p) {
		return ""
	}
	return o.intern(p)
}

func portAtEnd(b []byte) []byte {
	_, p, ok := lastCut(b, ':')
	if !ok || !isPort(p) {
		return nil
	}
	return p
}

func isPort(b []byte) bool {
	if len(b) == 0 || len(b) > 5 {
		return false
	}
	n := 0
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n > 0 && n < 65536
}
