package applog

import (
	"bytes"
	"time"
)

// jsonLines is every layout that writes one object a line. The fields are found
// by the names that these writers give them:
//
//   - juli's JsonFormatter (Tomcat 9.0.42, 10.0 and later): time, level, thread,
//     class, method, message, throwable (an array of lines)
//   - logstash-logback-encoder and Log4j's LogstashJsonEventLayoutV1: @timestamp,
//     level, thread_name, logger_name, message, stack_trace
//   - ECS, dotted or nested: @timestamp, log.level, log.logger,
//     process.thread.name, message, error.type, error.message, error.stack_trace
//   - Log4j 2's JsonLayout and JsonTemplateLayout: instant.epochSecond, thread,
//     level, loggerName, message, thrown.name, thrown.extendedStackTrace,
//     exception.exception_class, exception.stacktrace
//   - logback's own JsonEncoder (1.5): timestamp, level, threadName, loggerName,
//     message or formattedMessage, throwable.className
//   - GELF: level as a number, short_message, full_message, timestamp
//
// A line is a record only if it is one whole object that has a level or a
// logger, and a message: other JSON on stdout is raw.
type jsonLines struct {
	dialect string
	join    []byte // class.method
	path    []byte
	thrown  []byte
}

func (j *jsonLines) name() string {
	if j.dialect == "" {
		return "json"
	}
	return "json-" + j.dialect
}

func (*jsonLines) spaced() bool { return false }

// fields are the values found in an object, as they stand in the line with
// their escapes.
type fields struct {
	level, thread, logger, class, method, message, time []byte
	excClass, excText, stack                            []byte
	levelNumber                                         bool
	array                                               bool // stack is an array of strings
	dialect                                             string
}

func (j *jsonLines) head(line []byte, h *head) verdict {
	if len(line) < 20 || line[0] != '{' || line[len(line)-1] != '}' {
		return no
	}
	var f fields
	if n := j.object(line, 0, &f, 0); n != len(line) {
		return no
	}
	if f.message == nil || f.level == nil && f.logger == nil && f.class == nil {
		return no
	}
	h.level = None
	if f.levelNumber {
		var n int64
		for _, c := range f.level {
			if !isDigit(c) || n > 1000 {
				return no
			}
			n = n*10 + int64(c-'0')
		}
		h.level = levelOfNumber(n)
	} else if l, ok := levelOf(f.level); ok {
		h.level = l
	} else if l, ok := levelOf(bytes.ToUpper(f.level)); ok {
		h.level = l
	}
	h.thread, h.message, h.logger, h.method = f.thread, f.message, f.logger, false
	if f.class != nil && (h.logger == nil || f.dialect == "juli") {
		j.join = append(append(append(j.join[:0], f.class...), '.'), f.method...)
		h.logger, h.method = j.join, true
	}
	h.at = jsonTime(f.time)
	j.stack(&f, h)
	if f.dialect != "" {
		j.dialect = f.dialect
	}
	return yes
}

// stack finds what was thrown, its deepest cause and the first frame.
func (j *jsonLines) stack(f *fields, h *head) {
	h.thrown, h.root, h.frame = nil, nil, nil
	if f.excClass != nil {
		j.thrown = append(j.thrown[:0], f.excClass...)
		if len(f.excText) > 0 {
			j.thrown = append(append(j.thrown, ": "...), f.excText...)
		}
		h.thrown = j.thrown
	}
	if len(f.stack) == 0 {
		return
	}
	s := f.stack
	sep, cause := []byte(`\n`), []byte(`\nCaused by: `)
	at := []byte(`\n\tat `)
	if f.array {
		sep, cause, at = []byte(`"`), []byte(`"Caused by: `), []byte(`" `)
		s = bytes.TrimLeft(s, "[ \t")
		s = bytes.TrimPrefix(s, sep)
	}
	if h.thrown == nil {
		first, _, _ := bytes.Cut(s, sep)
		first = bytes.TrimLeft(first, " \t")
		if throwable(first) == nil {
			return
		}
		h.thrown = first
	}
	if i := bytes.Index(s, at); i >= 0 {
		fr, _, _ := bytes.Cut(s[i+len(at):], sep)
		h.frame = bytes.TrimPrefix(fr, []byte("at "))
	}
	if i := bytes.LastIndex(s, cause); i >= 0 {
		c, _, _ := bytes.Cut(s[i+len(cause):], sep)
		if throwable(c) != nil {
			h.root = c
		}
	}
}

// object walks over one object that starts at line[i], whose fields stand at the
// path that j.path[:base] holds, and returns the position behind it, or -1 when
// it is none. It checks as much as it needs to find the fields.
func (j *jsonLines) object(line []byte, i int, f *fields, base int) int {
	if base > 64 {
		return skipValue(line, i)
	}
	i++
	for {
		i = skipSpace(line, i)
		if i >= len(line) {
			return -1
		}
		switch line[i] {
		case '}':
			return i + 1
		case ',':
			i++
			continue
		case '"':
		default:
			return -1
		}
		end := skipString(line, i)
		if end < 0 {
			return -1
		}
		key := line[i+1 : end-1]
		i = skipSpace(line, end)
		if i >= len(line) || line[i] != ':' {
			return -1
		}
		i = skipSpace(line, i+1)
		if i >= len(line) {
			return -1
		}
		j.path = append(j.path[:base], key...)
		if line[i] == '{' && nests(j.path) {
			j.path = append(j.path, '.')
			if i = j.object(line, i, f, len(j.path)); i < 0 {
				return -1
			}
			continue
		}
		end = skipValue(line, i)
		if end < 0 {
			return -1
		}
		f.take(j.path, line[i:end])
		i = end
	}
}

// nests says which objects are looked into.
func nests(path []byte) bool {
	switch string(path) {
	case "log", "error", "process", "process.thread", "thrown", "exception", "throwable", "instant":
		return true
	}
	return false
}

func (f *fields) take(path, v []byte) {
	text, isText := v, false
	if len(v) >= 2 && v[0] == '"' {
		text, isText = v[1:len(v)-1], true
	}
	switch string(path) {
	case "time":
		f.time = text
	case "@timestamp":
		f.time = text
		if f.dialect == "" {
			f.dialect = "logstash"
		}
	case "timestamp", "timeMillis":
		f.time = text
	case "instant.epochSecond":
		f.time, f.dialect = text, "log4j2"
	case "level", "severity":
		f.level, f.levelNumber = text, !isText
	case "log.level":
		f.level, f.dialect = text, "ecs"
	case "thread", "thread_name", "threadName", "process.thread.name":
		if isText {
			f.thread = text
		}
	case "logger", "logger_name", "log.logger":
		f.logger = text
	case "loggerName":
		f.logger = text
		if f.dialect == "" {
			f.dialect = "log4j2"
		}
	case "class":
		f.class = text
	case "method":
		f.method = text
		if f.class != nil && f.dialect == "" {
			f.dialect = "juli"
		}
	case "message", "formattedMessage":
		if isText {
			f.message = text
		}
	case "sequenceNumber":
		f.dialect = "logback"
	case "short_message":
		f.message, f.dialect = text, "gelf"
	case "error.type", "thrown.name", "exception.exception_class", "throwable.className":
		f.excClass = text
	case "error.message", "thrown.message", "exception.exception_message", "throwable.message":
		f.excText = text
	case "stack_trace", "error.stack_trace", "thrown.extendedStackTrace", "exception.stacktrace", "stackTrace", "throwable", "exception", "full_message":
		switch {
		case isText:
			f.stack, f.array = text, false
		case len(v) > 0 && v[0] == '[':
			f.stack, f.array = v, true
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the position behind the string that starts at b[i].
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(tail(b, i), '"')
		if n < 0 {
			return -1
		}
		// An odd number of backslashes before it makes the quote a part.
		k := i + n - 1
		for k >= i && b[k] == '\\' {
			k--
		}
		i += n + 1
		if (i-1-k)%2 == 1 {
			return i
		}
	}
}

// skipValue returns the position behind any value.
func skipValue(b []byte, i int) int {
	switch {
	case i >= len(b):
		return -1
	case b[i] == '"':
		return skipString(b, i)
	case b[i] != '{' && b[i] != '[':
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
			i++
		}
		return i
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}

// jsonTime reads an ISO time, or seconds or milliseconds since 1970.
func jsonTime(b []byte) int64 {
	if y, mo, d, ok := isoDate(pad(b, 10)); ok && len(b) > 18 {
		if hh, m, s, ms, n := clock(b[11:]); n > 0 {
			at := millis(y, mo, d, hh, m, s, ms)
			return at - zone(b[11+n:]).Milliseconds()
		}
	}
	var n int64
	for _, c := range b {
		if !isDigit(c) || n > 1<<52 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	switch {
	case n > 1e11: // milliseconds
		return n
	case n > 1e8:
		return n * 1000
	}
	return 0
}

// pad makes sure that b has n bytes to look at.
func pad(b []byte, n int) []byte {
	if len(b) >= n {
		return b
	}
	var p [16]byte
	copy(p[:], b)
	return p[:n]
}

// zone reads an offset: Z, +01, +0100, +01:00.
func zone(b []byte) time.Duration {
	if len(b) < 3 || b[0] != '+' && b[0] != '-' {
		return 0
	}
	h, m := two(b[1:]), 0
	if rest := bytes.TrimPrefix(b[3:], []byte(":")); len(rest) >= 2 {
		m = two(rest)
	}
	if h < 0 || m < 0 {
		return 0
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if b[0] == '-' {
		return -d
	}
	return d
}
