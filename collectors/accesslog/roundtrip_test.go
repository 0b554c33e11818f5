package accesslog

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exchange is a request and its answer as a server knows them.
type exchange struct {
	method, path, query, protocol string
	status                        int
	bytes                         int64
	micros, firstMillis           int64
	begin                         time.Time
	host, user, thread            string
	conn                          byte
	header                        string
}

func (x *exchange) end() time.Time { return x.begin.Add(time.Duration(x.micros) * time.Microsecond) }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomExchange(r *rand.Rand) *exchange {
	x := &exchange{
		method:   pick(r, "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get"),
		path:     "/" + pick(r, "", "orders/12", "a%20b", "x;v=1/y", "caf%C3%A9", strings.Repeat("a", r.IntN(300)), "index.html"),
		query:    pick(r, "", "?a=b", "?q=%22x%22&n=500", "?"+strings.Repeat("k=v&", r.IntN(40))),
		protocol: pick(r, "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"),
		status:   pick(r, 200, 101, 204, 302, 304, 404, 499, 500, 503),
		bytes:    pick(r, int64(0), 1, 512, r.Int64N(1<<40)),
		micros:   pick(r, int64(0), 1, 999, 1000, r.Int64N(10_000_000), r.Int64N(200_000_000)),
		begin:    time.UnixMilli(1_600_000_000_000 + r.Int64N(400_000_000_000)).UTC(),
		host:     pick(r, "10.20.0.10", "2001:db8::1", "fe80::1ff:fe23:4567:890a%eth0", "www.example.test", "-"),
		user:     pick(r, "-", "alice", "user@example.org"),
		thread:   pick(r, "http-nio-8080-exec-7", "catalina-exec-123", "http-nio-127.0.0.1-8080-exec-1", "qtp1589683045-15"),
		conn:     pick(r, byte('X'), '+', '-'),
		header: pick(r, "-", "curl/7.88.1", `he said "hi" \back\`, `x" 500 99 "-" "y`, `"`, `\`, `\\"`, `" 404 1 `, "tab\tin", "caf\xe9",
			"203.0.113.7, 198.51.100.2", `] "GET / HTTP/1.1" 500 7`),
	}
	x.firstMillis = x.micros / 1000
	return x
}

// field is one code of a pattern, as a server of the given version writes it.
type field struct {
	code  string
	write func(x *exchange) string
	check func(t *testing.T, x *exchange, r *Record)
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func dashOr(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func (x *exchange) request() string { return x.method + " " + x.path + x.query + " " + x.protocol }

// escape writes a header as Tomcat does since 9.0.42.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 32 || c >= 127:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func none(*testing.T, *exchange, *Record) {}

func durationIs(per int64) func(*testing.T, *exchange, *Record) {
	return func(t *testing.T, x *exchange, r *Record) {
		want := float64(x.micros*per/1_000_000) / float64(per)
		if math.Abs(r.Duration-want) > 1e-9 || r.Has&HasDuration == 0 {
			t.Errorf("duration: got %v, want %v", r.Duration, want)
		}
	}
}

func commonFields() []field {
	return []field{
		{"%s", func(x *exchange) string { return strconv.Itoa(x.status) }, func(t *testing.T, x *exchange, r *Record) { expect(t, "status", r.Status, x.status) }},
		{`"%r"`, func(x *exchange) string { return `"` + x.request() + `"` }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "method", string(r.RawMethod), x.method)
			expect(t, "path", string(r.Path), x.path)
			expect(t, "query", string(r.Query), x.query)
			expect(t, "protocol", string(r.Protocol), x.protocol)
		}},
		{"%m", func(x *exchange) string { return x.method }, func(t *testing.T, x *exchange, r *Record) { expect(t, "%m", string(r.RawMethod), x.method) }},
		{"%U", func(x *exchange) string { return x.path }, func(t *testing.T, x *exchange, r *Record) { expect(t, "%U", string(r.Path), x.path) }},
		{"%H", func(x *exchange) string { return x.protocol }, func(t *testing.T, x *exchange, r *Record) { expect(t, "%H", string(r.Protocol), x.protocol) }},
		{"%u", func(x *exchange) string { return x.user }, none},
		{"%X", func(x *exchange) string { return string(x.conn) }, func(t *testing.T, x *exchange, r *Record) { expect(t, "%X", r.Conn, x.conn) }},
	}
}

const clfFormat = "02/Jan/2006:15:04:05 -0700"

func tomcatFields(micro bool) []field {
	d, per := "ms", int64(1000)
	if micro {
		d, per = "us", 1_000_000
	}
	_ = d
	bytes := func(t *testing.T, x *exchange, r *Record) { expect(t, "bytes", r.Bytes, x.bytes) }
	fs := append(commonFields(), []field{
		{"%h", func(x *exchange) string { return x.host }, func(t *testing.T, x *exchange, r *Record) { expect(t, "host", string(r.Host), x.host) }},
		{"%l", func(x *exchange) string { return "-" }, none},
		{"%t", func(x *exchange) string { return "[" + x.end().Format(clfFormat) + "]" }, func(t *testing.T, x *exchange, r *Record) { expect(t, "end", r.End/1000, x.end().Unix()) }},
		{"%b", func(x *exchange) string { return dashOr(x.bytes) }, bytes},
		{"%B", func(x *exchange) string { return strconv.FormatInt(x.bytes, 10) }, bytes},
		{"%D", func(x *exchange) string { return strconv.FormatInt(x.micros*per/1_000_000, 10) }, durationIs(per)},
		{"%F", func(x *exchange) string { return strconv.FormatInt(x.firstMillis, 10) }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "first byte", r.FirstByte, float64(x.firstMillis)/1000)
		}},
		{"%I", func(x *exchange) string { return x.thread }, func(t *testing.T, x *exchange, r *Record) { expect(t, "thread", string(r.Thread), x.thread) }},
		{"%S", func(x *exchange) string { return "-" }, none},
		{"%p", func(x *exchange) string { return "8080" }, none},
		{"%v", func(x *exchange) string { return "localhost" }, none},
		{"%%", func(x *exchange) string { return "%" }, none},
		{`"%{User-Agent}i"`, func(x *exchange) string { return `"` + escape(x.header) + `"` }, none},
		{`"%{Referer}i"`, func(x *exchange) string { return `"` + escape(x.header) + `"` }, none},
		{`"%{JSESSIONID}c"`, func(x *exchange) string { return `"-"` }, none},
		{"%{begin:msec}t", func(x *exchange) string { return strconv.FormatInt(x.begin.UnixMilli(), 10) }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "begin", r.Begin, x.begin.UnixMilli())
		}},
		{"%{sec}t", func(x *exchange) string { return strconv.FormatInt(x.end().Unix(), 10) }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "end", r.End/1000, x.end().Unix())
		}},
		{"%{yyyy-MM-dd'T'HH:mm:ss.SSSZ}t", func(x *exchange) string { return x.end().Format("2006-01-02T15:04:05.000-0700") }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "end", r.End, x.end().UnixMilli())
		}},
	}...)
	return fs
}

func jettyFields() []field {
	return append(commonFields(), []field{
		{"%{client}a", func(x *exchange) string { return x.host }, func(t *testing.T, x *exchange, r *Record) { expect(t, "host", string(r.Host), x.host) }},
		{"%t", func(x *exchange) string { return "[" + x.begin.Format(clfFormat) + "]" }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "begin", r.Begin/1000, x.begin.Unix())
		}},
		{"%{yyyy-MM-dd HH:mm:ss.SSS|GMT}t", func(x *exchange) string { return "[" + x.begin.Format("2006-01-02 15:04:05.000") + "]" }, func(t *testing.T, x *exchange, r *Record) {
			expect(t, "begin", r.Begin, x.begin.UnixMilli())
		}},
		{"%O", func(x *exchange) string { return strconv.FormatInt(x.bytes, 10) }, func(t *testing.T, x *exchange, r *Record) { expect(t, "bytes", r.Bytes, x.bytes) }},
		{"%D", func(x *exchange) string { return strconv.FormatInt(x.micros, 10) }, durationIs(1_000_000)},
		{"%{ms}T", func(x *exchange) string { return strconv.FormatInt(x.micros/1000, 10) }, none},
		{"%!200{Host}i", func(x *exchange) string { return "-" }, none},
		{"%p", func(x *exchange) string { return "8080" }, none},
		{"%k", func(x *exchange) string { return "1" }, none},
		{"%I", func(x *exchange) string { return "77" }, none},
	}...)
}

// quotedRaw is Jetty's: no escaping at all. It may stand once, and last but for
// bounded fields, where a planted text can't be told from a field.
var quotedRaw = field{`"%{User-Agent}i"`, func(x *exchange) string { return `"` + x.header + `"` }, none}

// roundTrip renders a random exchange by a random pattern, and reads it back.
func roundTrip(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	format, opt := FormatTomcat, Options{ServerKind: "tomcat", ServerVersion: "9.0.98"}
	fields := tomcatFields(false)
	switch r.IntN(3) {
	case 0:
		opt.ServerVersion = "10.1.34"
		fields = tomcatFields(true)
	case 1:
		format, opt = FormatJetty, Options{ServerKind: "jetty", ServerVersion: "12.0.16"}
		fields = jettyFields()
	}
	// A random choice in random order, with a duration's rival left out: one
	// code for one figure.
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	fields = fields[:1+r.IntN(len(fields))]
	seen := map[string]bool{}
	var use []field
	for _, f := range fields {
		kind := f.code
		switch {
		case strings.HasSuffix(kind, "t") && !strings.HasPrefix(kind, "%{begin"):
			kind = "t"
		case kind == `"%r"`, kind == "%m", kind == "%U", kind == "%H":
			if kind != `"%r"` && seen[`r`] || kind == `"%r"` && (seen["%m"] || seen["%U"] || seen["%H"]) {
				continue
			}
			if kind == `"%r"` {
				kind = "r"
			}
		case kind == "%b" || kind == "%B":
			kind = "b"
		}
		if seen[kind] {
			continue
		}
		seen[kind] = true
		use = append(use, f)
	}
	if format == FormatJetty && r.IntN(2) == 0 {
		use = append(use, quotedRaw)
		if r.IntN(2) == 0 {
			use = append(use, field{"%s", func(x *exchange) string { return strconv.Itoa(x.status) }, none})
		}
	}
	var pattern, line strings.Builder
	x := randomExchange(r)
	if format == FormatJetty && seen["r"] {
		// The raw agent may plant what looks like the end of the request; the
		// request comes first, so it is found first.
		x.query = strings.ReplaceAll(x.query, `"`, "")
	}
	if lit := pick(r, "", "", "> "); lit != "" {
		pattern.WriteString(lit)
		line.WriteString(lit)
	}
	for i, f := range use {
		if i > 0 {
			lit := pick(r, " ", " ", " ", " | ", "\t", " ~ ")
			pattern.WriteString(lit)
			line.WriteString(lit)
		}
		pattern.WriteString(f.code)
		line.WriteString(f.write(x))
	}
	m, err := Compile(format, pattern.String(), opt)
	if err != nil {
		t.Fatalf("seed %d: %q: %v", seed, pattern.String(), err)
	}
	var rec Record
	rec.Status, rec.Path = 999, []byte("stale")
	if why := m.Parse([]byte(line.String()), &rec); why != Accepted {
		t.Errorf("seed %d: %s\n%q refused: %v", seed, pattern.String(), line.String(), why)
		return
	}
	rec.Split()
	for _, f := range use {
		f.check(t, x, &rec)
	}
	if t.Failed() {
		t.Errorf("seed %d: %s\n%q", seed, pattern.String(), line.String())
	}
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20000) {
		if roundTrip(t, seed); t.Failed() {
			return
		}
	}
}

// TestRoundTripJSON and W3C: their order is theirs, so only values vary.
func TestRoundTripJSON(t *testing.T) {
	m := mustCompile(t, FormatJSON, `%h %t "%r" %s %b %D %F %I %X %{begin:msec}t "%{User-Agent}i"`, Options{ServerVersion: "10.1.34"})
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 9))
		x := randomExchange(r)
		members := []string{
			`"host":"` + x.host + `"`, `"time":"[` + x.end().Format(clfFormat) + `]"`, `"request":"` + escape(x.request()) + `"`,
			`"statusCode":"` + strconv.Itoa(x.status) + `"`, `"size":"` + dashOr(x.bytes) + `"`, `"elapsedTime":"` + strconv.FormatInt(x.micros, 10) + `"`,
			`"firstByteTime":"` + strconv.FormatInt(x.firstMillis, 10) + `"`, `"threadName":"` + x.thread + `"`, `"connectionStatus":"` + string(x.conn) + `"`,
			`"time-begin:msec":"` + strconv.FormatInt(x.begin.UnixMilli(), 10) + `"`, `"requestHeaders": {"User-Agent":"` + escape(x.header) + `","X":"}"}`,
			`"unknown":[1,{"a":"]"}]`, `"number":17`,
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		line := "{" + strings.Join(members, ",") + "}"
		var rec Record
		if why := m.Parse([]byte(line), &rec); why != Accepted {
			t.Fatalf("seed %d: %s refused: %v", seed, line, why)
		}
		rec.Split()
		expect(t, "status", rec.Status, x.status)
		expect(t, "bytes", rec.Bytes, x.bytes)
		expect(t, "method", string(rec.RawMethod), x.method)
		expect(t, "path", string(rec.Path), x.path)
		expect(t, "thread", string(rec.Thread), x.thread)
		expect(t, "conn", rec.Conn, x.conn)
		expect(t, "begin", rec.Begin, x.begin.UnixMilli())
		expect(t, "end", rec.End/1000, x.end().Unix())
		durationIs(1_000_000)(t, x, &rec)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, line)
		}
	}
}

func TestRoundTripW3C(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 11))
		x := randomExchange(r)
		fields := []field{
			{"date", func(x *exchange) string { return x.begin.Format("2006-01-02") }, none},
			{"time", func(x *exchange) string { return x.begin.Format("15:04:05") }, none},
			{"c-ip", func(x *exchange) string { return x.host }, none},
			{"cs-method", func(x *exchange) string { return x.method }, func(t *testing.T, x *exchange, r *Record) { expect(t, "method", string(r.RawMethod), x.method) }},
			{"cs-uri", func(x *exchange) string { return x.path + x.query }, func(t *testing.T, x *exchange, r *Record) { expect(t, "path", string(r.Path), x.path) }},
			{"sc-status", func(x *exchange) string { return strconv.Itoa(x.status) }, func(t *testing.T, x *exchange, r *Record) { expect(t, "status", r.Status, x.status) }},
			{"bytes", func(x *exchange) string { return strconv.FormatInt(x.bytes, 10) }, func(t *testing.T, x *exchange, r *Record) { expect(t, "bytes", r.Bytes, x.bytes) }},
			{"time-taken-us", func(x *exchange) string { return strconv.FormatInt(x.micros, 10) }, durationIs(1_000_000)},
			{"cs(User-Agent)", func(x *exchange) string {
				if x.header == "-" {
					return "-"
				}
				return `"` + strings.ReplaceAll(strings.ReplaceAll(x.header, `"`, `""`), "\t", `\t`) + `"`
			}, none},
			{"x-threadname", func(x *exchange) string { return x.thread }, func(t *testing.T, x *exchange, r *Record) { expect(t, "thread", string(r.Thread), x.thread) }},
		}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		names, values := []string{}, []string{}
		for _, f := range fields {
			names, values = append(names, f.code), append(values, f.write(x))
		}
		m := mustCompile(t, FormatW3C, "", Options{ServerVersion: "10.1.34"})
		var rec Record
		if why := m.Parse([]byte("#Fields: "+strings.Join(names, " ")), &rec); why != Directive {
			t.Fatal(why)
		}
		line := strings.Join(values, " ") + " "
		if why := m.Parse([]byte(line), &rec); why != Accepted {
			t.Fatalf("seed %d: %v\n%s refused: %v", seed, names, line, why)
		}
		expect(t, "begin", rec.Begin/1000, x.begin.Unix())
		for _, f := range fields {
			f.check(t, x, &rec)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v\n%s", seed, names, line)
		}
	}
}
