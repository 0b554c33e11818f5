package accesslog

// A Record is one line read. The slices point into the line and are valid as
// long as it is.
type Record struct {
	Has Has
	// Method is one of the registered methods or MethodOther, also where the
	// line has no request.
	Method Method
	// Nameless says that there was no request that could be read: "-", TLS
	// bytes, a target the server refused to take. It is known after Split.
	Nameless bool
	whole    bool  // Request has not been split yet
	space    uint8 // where its method ends, 0 when that is no usual method
	// Conn is what %X logs: 'X', '+' or '-'.
	Conn byte
	// Coarse says that Duration was logged as a whole number of seconds.
	Coarse bool
	// Negative says that a negative duration was logged (the clock stepped
	// back); it is no duration then.
	Negative bool
	// MillisBegin and MillisEnd say that Begin and End are known to the
	// millisecond, and not only to the second.
	MillisBegin, MillisEnd bool

	// Request is the request line as it was logged with %r. Split takes it apart
	// into the four below; where they are logged one by one they are set at once.
	Request   []byte
	RawMethod []byte
	Path      []byte // the target without query; may carry ;parameters
	Query     []byte // with its question mark where the log has it
	Protocol  []byte
	Host      []byte // %h or %a
	Thread    []byte // %I
	Trace     []byte // a header or attribute that carries a trace or request id

	Status int   // 0 where none is logged
	Bytes  int64 // of the answer
	// Duration and FirstByte are in seconds.
	Duration, FirstByte float64
	// Begin and End are Unix milliseconds.
	Begin, End int64
}

// Has says which figures of a Record were in the line. A dash is no figure.
type Has uint16

const (
	HasStatus Has = 1 << iota
	HasBytes
	HasDuration
	HasFirstByte
	HasBegin
	HasEnd
	HasConn
	HasThread
	HasRequest // a method, a target or a request line was in the pattern
	HasTrace
)

// Time is the instant at which the line counts, in Unix milliseconds: the end
// of the request where it is known, else its start.
func (r *Record) Time() (ms int64, ok bool) {
	if r.Has&HasEnd != 0 {
		return r.End, true
	}
	return r.Begin, r.Has&HasBegin != 0
}

// A Refusal says why a line is no record.
type Refusal uint8

const (
	// Accepted is no refusal.
	Accepted Refusal = iota
	// Directive is a line about the log itself, as W3C's #Fields: neither a
	// request nor an error.
	Directive
	// Empty is a line without a byte, or of blanks only.
	Empty
	// Binary is a line with NUL bytes, or that begins with a control byte: a
	// hole in the file, or something that is no log line at all.
	Binary
	// Truncated is a line that ends before the pattern does.
	Truncated
	// Mismatch is a line in which something else stands where the pattern has
	// a literal text.
	Mismatch
	// BadTime is a time stamp that can't be read.
	BadTime
	// BadStatus is a status that is no number of three digits.
	BadStatus
	// BadNumber is any other number that is none.
	BadNumber
	// BadJSON is a line that is no flat JSON object.
	BadJSON

	refusals
)

// String is the value of the label reason.
func (r Refusal) String() string {
	if r < refusals {
		return [...]string{"", "directive", "empty", "binary", "truncated", "mismatch", "time", "status", "number", "json"}[r]
	}
	return "BUG"
}

// Method is a request method of RFC 9110 or PATCH.
type Method uint8

const (
	MethodOther Method = iota
	GET
	HEAD
	POST
	PUT
	DELETE
	CONNECT
	OPTIONS
	TRACE
	PATCH

	methods
)

var methodNames = [methods]string{"other", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func (m Method) String() string { return methodNames[m] }

// methodOf reads a method. Methods are case-sensitive: "get" is another.
func methodOf(b []byte) Method {
	switch len(b) {
	case 3:
		if string(b) == "GET" {
			return GET
		}
		if string(b) == "PUT" {
			return PUT
		}
	case 4:
		if string(b) == "POST" {
			return POST
		}
		if string(b) == "HEAD" {
			return HEAD
		}
	case 5:
		if string(b) == "PATCH" {
			return PATCH
		}
		if string(b) == "TRACE" {
			return TRACE
		}
	case 6:
		if string(b) == "DELETE" {
			return DELETE
		}
	case 7:
		if string(b) == "OPTIONS" {
			return OPTIONS
		}
		if string(b) == "CONNECT" {
			return CONNECT
		}
	}
	return MethodOther
}
