package accesslog

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// shared finds ../shared beside the checkout. Where it is absent the test is
// skipped, but not in CI.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(append([]string{dir, "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI=true and no shared corpus: %v", err)
		}
		t.Skipf("no shared corpus: %v", err)
	}
	return path
}

// lines splits a file as the splitter of internal/follow does.
func lines(data []byte) [][]byte {
	data = bytes.TrimSuffix(data, []byte("\n"))
	out := bytes.Split(data, []byte("\n"))
	for i := range out {
		out[i] = bytes.TrimSuffix(out[i], []byte("\r"))
	}
	return out
}

// tally is what a test wants to know of a log.
type tally struct {
	requests, directives int
	refused              map[Refusal]int
	status               map[int]int
	method               map[string]int
	bytes                int64
	durations            int
	sum, max             float64
	first                int
	conn                 map[byte]int
	nameless             int
}

func tallyOf(m *Matcher, data []byte) tally {
	c := tally{refused: map[Refusal]int{}, status: map[int]int{}, method: map[string]int{}, conn: map[byte]int{}}
	var r Record
	for _, line := range lines(data) {
		switch why := m.Parse(line, &r); why {
		case Accepted:
		case Directive:
			c.directives++
			continue
		default:
			c.refused[why]++
			continue
		}
		c.requests++
		r.Split()
		c.status[r.Status]++
		c.method[string(r.RawMethod)]++
		c.bytes += r.Bytes
		if r.Has&HasDuration != 0 {
			c.durations++
			c.sum += r.Duration
			c.max = math.Max(c.max, r.Duration)
		}
		if r.Has&HasFirstByte != 0 {
			c.first++
		}
		if r.Has&HasConn != 0 {
			c.conn[r.Conn]++
		}
		if r.Nameless {
			c.nameless++
		}
	}
	return c
}

const longPattern = `%h %l %u %t "%r" %s %b %D %F %I %S "%{User-Agent}i" "%{X-Forwarded-For}i" %{begin:msec}t %X %v %p %A`

const w3cPattern = `date time c-ip cs-method cs-uri-stem cs-uri-query sc-status bytes time-taken cs(User-Agent)`

const timesPattern = `%{yyyy-MM-dd HH:mm:ss.SSS}t|%{sec}t|%{msec}t|%{msec_frac}t|%{end:msec}t|%{begin:yyyy-MM-dd'T'HH:mm:ss.SSSZ}t|%T|%{ms}T|%{us}T|%{ns}T|%{s}T|%{fracsec}T|%D|%F|%B|%H|%m|%q|%U|%L|%a|%{peer}a|%{remote}p|%{local}p|%{X-Nope}i|%{Content-Length}o|%{JSESSIONID}c|%{xyz}r|%{xyz}s`

// TestCorpus holds the matchers against the right readings that the corpus'
// README gives of logs of real servers.
func TestCorpus(t *testing.T) {
	tomcat10 := Options{ServerKind: "tomcat", ServerVersion: "10.1.60"}
	tomcat9 := Options{ServerKind: "tomcat", ServerVersion: "9.0.70"}
	mixed := map[int]int{200: 442, 304: 30, 400: 5, 404: 60, 500: 40, 503: 40}
	weird10 := map[int]int{200: 22, 101: 1, 304: 2, 400: 12, 404: 3, 500: 1, 501: 3, 503: 1, 505: 1}
	for _, tt := range []struct {
		file, format, pattern string
		opt                   Options
		requests              int
		status                map[int]int
		bytes                 int64
		durations             int
		sum, max              float64
		conn                  map[byte]int
		directives            int
	}{
		{file: "tomcat10-mixedA-common.log", format: FormatTomcat, pattern: "common", opt: tomcat10, requests: 617, status: mixed, bytes: 2156375},
		{file: "tomcat10-mixedA-combined.log", format: FormatTomcat, pattern: "combined", opt: tomcat10, requests: 617, status: mixed, bytes: 2156375},
		{file: "tomcat10-mixedA-localhost_access_log.log", format: FormatTomcat, pattern: longPattern, opt: tomcat10, requests: 617, status: mixed,
			bytes: 2156375, durations: 617, sum: 36.977084, max: 0.859589, conn: map[byte]int{'-': 607, 'X': 10}},
		{file: "tomcat10-mixedA-json.json", format: FormatJSON, pattern: longPattern, opt: tomcat10, requests: 617, status: mixed,
			bytes: 2156375, durations: 617, sum: 36.977084, max: 0.859589, conn: map[byte]int{'-': 607, 'X': 10}},
		{file: "tomcat10-mixedA-json.json", format: FormatJSON, opt: tomcat10, requests: 617, status: mixed,
			bytes: 2156375, durations: 617, sum: 36.977084, max: 0.859589, conn: map[byte]int{'-': 607, 'X': 10}},
		{file: "tomcat10-mixedA-w3c.log", format: FormatW3C, pattern: w3cPattern, opt: tomcat10, requests: 617, status: mixed,
			bytes: 2156375, durations: 617, directives: 3},
		{file: "tomcat10-mixedA-w3c.log", format: FormatW3C, opt: tomcat10, requests: 617, status: mixed,
			bytes: 2156375, durations: 617, directives: 3},
		{file: "tomcat10-weird-common.log", format: FormatTomcat, pattern: "common", opt: tomcat10, requests: 46, status: weird10, bytes: 3951332},
		{file: "tomcat10-weird-combined.log", format: FormatTomcat, pattern: "combined", opt: tomcat10, requests: 46, status: weird10, bytes: 3951332},
		{file: "tomcat10-weird-long.log", format: FormatTomcat, pattern: longPattern, opt: tomcat10, requests: 46, status: weird10, bytes: 3951332,
			durations: 46, sum: 1.793399, max: 0.516526, conn: map[byte]int{'-': 34, '+': 10, 'X': 2}},
		{file: "tomcat10-weird.json", format: FormatJSON, pattern: longPattern, opt: tomcat10, requests: 46, status: weird10, bytes: 3951332,
			durations: 46, sum: 1.793399, max: 0.516526, conn: map[byte]int{'-': 34, '+': 10, 'X': 2}},
		{file: "tomcat10-weird-times.log", format: FormatTomcat, pattern: timesPattern, opt: tomcat10, requests: 46, status: map[int]int{0: 46},
			bytes: 3951332, durations: 46, sum: 1.793422, max: 0.516527},
		{file: "tomcat10-weird-w3c-badfields.log", format: FormatW3C, opt: tomcat10, requests: 46, status: weird10, bytes: 3951332, durations: 46, directives: 3},
		{file: "tomcat9-weird-long.log", format: FormatTomcat, pattern: longPattern, opt: tomcat9, requests: 41,
			status: map[int]int{200: 20, 400: 13, 404: 3, 500: 1, 501: 2, 503: 1, 505: 1}, bytes: 3951014, durations: 41, sum: 0.820, max: 0.508},
		{file: "jetty94-weird-ncsa-latency.log", format: FormatNCSA, pattern: "extended latency", requests: 43,
			status: map[int]int{200: 21, 400: 10, 404: 5, 414: 1, 500: 1, 501: 2, 503: 1, 505: 2}, bytes: 3914443, durations: 43, sum: 0.785, max: 0.513},
		{file: "jetty94-mixed1-ncsa-latency.log", format: FormatNCSA, pattern: "extended latency", requests: 423,
			status: map[int]int{200: 325, 304: 18, 400: 4, 404: 40, 500: 11, 503: 25}, bytes: 983647, durations: 423, sum: 6.976, max: 0.409},
	} {
		t.Run(tt.file, func(t *testing.T) {
			data, err := os.ReadFile(shared(t, "corpus", "accesslog", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			m, err := Compile(tt.format, tt.pattern, tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			got := tallyOf(m, data)
			if got.requests != tt.requests || len(got.refused) > 0 || got.directives != tt.directives {
				t.Errorf("%d requests, %d directives, refused %v; want %d, %d, none", got.requests, got.directives, got.refused, tt.requests, tt.directives)
			}
			for s, n := range tt.status {
				if got.status[s] != n {
					t.Errorf("status %d: %d, want %d", s, got.status[s], n)
				}
			}
			if len(got.status) != len(tt.status) {
				t.Errorf("statuses %v, want %v", got.status, tt.status)
			}
			if got.bytes != tt.bytes {
				t.Errorf("bytes %d, want %d", got.bytes, tt.bytes)
			}
			if got.durations != tt.durations || math.Abs(got.sum-tt.sum) > 1e-6 || math.Abs(got.max-tt.max) > 1e-6 {
				t.Errorf("%d durations, sum %.6f, max %.6f; want %d, %.6f, %.6f", got.durations, got.sum, got.max, tt.durations, tt.sum, tt.max)
			}
			for c, n := range tt.conn {
				if got.conn[c] != n {
					t.Errorf("%%X %c: %d, want %d", c, got.conn[c], n)
				}
			}
		})
	}
}
