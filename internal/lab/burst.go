package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Tally is what the clients of a load saw, each connection counted once.
type Tally struct {
	// Answers counts complete answers by status code.
	Answers map[int]int
	// Closed were closed in order and without one byte of answer, as Tomcat
	// does with a rejected connection.
	Closed int
	// Reset were closed the hard way, Hung got neither an answer nor a close
	// until the timeout, Cut got only a part of an answer, Refused could not
	// connect at all.
	Reset, Hung, Cut, Refused int
	Took                      time.Duration
}

// Complete is the number of complete answers of any status.
func (t Tally) Complete() (n int) {
	for _, c := range t.Answers {
		n += c
	}
	return n
}

// Add puts another tally's counts into this one.
func (t *Tally) Add(u Tally) {
	if t.Answers == nil {
		t.Answers = map[int]int{}
	}
	for code, n := range u.Answers {
		t.Answers[code] += n
	}
	t.Closed += u.Closed
	t.Reset += u.Reset
	t.Hung += u.Hung
	t.Cut += u.Cut
	t.Refused += u.Refused
	t.Took += u.Took
}

func (t Tally) String() string {
	var codes []string
	for code, n := range t.Answers {
		codes = append(codes, fmt.Sprintf("%dx%d", n, code))
	}
	sort.Strings(codes)
	return fmt.Sprintf("answers [%s] closed %d reset %d hung %d cut %d refused %d in %.1f s",
		strings.Join(codes, " "), t.Closed, t.Reset, t.Hung, t.Cut, t.Refused, t.Took.Seconds())
}

// Burst sends n requests for path at once: first all connections are made, then
// all requests are written, so that the server sees them together and its law
// can be held against the counts. The timeout is for each step.
func Burst(addr, path string, n int, timeout time.Duration) Tally {
	began := time.Now()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: lab-burst\r\nConnection: close\r\n\r\n", path)
	conns := make([]net.Conn, n)
	var connected, answered sync.WaitGroup
	for i := range conns {
		connected.Go(func() { conns[i], _ = net.DialTimeout("tcp", addr, timeout) })
	}
	connected.Wait()
	t := Tally{Answers: map[int]int{}}
	var mu sync.Mutex
	for _, c := range conns {
		if c == nil {
			t.Refused++
			continue
		}
		answered.Go(func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(timeout))
			code, end := ask(c, request)
			mu.Lock()
			defer mu.Unlock()
			if end == nil {
				t.Answers[code]++
			} else {
				*t.bad(end)++
			}
		})
	}
	answered.Wait()
	t.Took = time.Since(began)
	return t
}

// errCut says that an answer began and did not end.
var errCut = errors.New("answer cut short")

// ask writes one request and reads its answer to the end.
func ask(c net.Conn, request []byte) (code int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	r := bufio.NewReader(c)
	if _, err := r.Peek(1); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, errCut
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, errCut
	}
	return response.StatusCode, nil
}

// bad is the counter that an end without a complete answer belongs to.
func (t *Tally) bad(err error) *int {
	var timeout net.Error
	switch {
	case errors.Is(err, errCut):
		return &t.Cut
	case errors.As(err, &timeout) && timeout.Timeout():
		return &t.Hung
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &t.Reset
	default: // io.EOF
		return &t.Closed
	}
}
