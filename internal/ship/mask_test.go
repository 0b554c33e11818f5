package ship

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/golang/snappy"
)

func TestMasks(t *testing.T) {
	m := newMasker([]Mask{{Match: `card=(\d{4})\d+`}, {Match: `4[0-9]{15}`}})
	for _, c := range []struct{ in, want string }{
		{`Authorization: Bearer abcdef.123`, `Authorization: *****`},
		{`authorization=[Basic dXNlcjpwYXNz]`, `authorization=[*****]`},
		{`{"Authorization":"Token t-1","b":1}`, `{"Authorization":"*****","b":1}`},
		{`sent Bearer abcdefgh12345678 to x`, `sent Bearer ***** to x`},
		{`Cookie: JSESSIONID=AB12; theme=dark`, `Cookie: *****`},
		{`Set-Cookie: id=1; Path=/; HttpOnly`, `Set-Cookie: *****`},
		{`{"cookie":"a=b; c=d","x":1}`, `{"cookie":*****,"x":1}`},
		{`cookies=[a=b; c=d], x=1`, `cookies=[*****], x=1`},
		{`Cookie: a="x y"; b=c`, `Cookie: *****`},
		{`Proxy-Authorization: Custom one two`, `Proxy-Authorization: ***** two`},
		{`{\"authorization\":\"Bearer abc\"}`, `{\"authorization\":\"*****"}`},
		{`"GET /login?user=bob&password=hunter2&x=1 HTTP/1.1" 500`, `"GET /login?user=bob&password=*****&x=1 HTTP/1.1" 500`},
		{`"GET /a;jsessionid=0A1B?token=abc HTTP/1.1"`, `"GET /a;jsessionid=***** HTTP/1.1"`},
		{`/cb?access_token=ya29.a0&state=1`, `/cb?access_token=*****&state=1`},
		{`db.password = s3cret`, `db.password = *****`},
		{`{"password":"s3 cret","user":"bob"}`, `{"password":*****,"user":"bob"}`},
		{`Could not connect to jdbc:mysql://bob:s3cret@db:3306/x`, `Could not connect to jdbc:mysql://bob:*****@db:3306/x`},
		{`apiKey: 12345, retry: 3`, `apiKey: *****, retry: 3`},
		{`jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2ln here`, `jwt ***** here`},
		{`client_secret=abc`, `client_secret=*****`},
		{`X-Api-Key: k1`, `X-Api-Key: *****`},
		{`auth=abc&x=1`, `auth=*****&x=1`},
		{`X-Auth: abc`, `X-Auth: *****`},
		{`basicAuth=YTpi, retries=3`, `basicAuth=*****, retries=3`},
		{`"auth_key": "a b"`, `"auth_key": *****`},
		{`GET /x?key=AIza1&q=2`, `GET /x?key=*****&q=2`},
		{`GET /cas?ticket=ST-1`, `GET /cas?ticket=*****`},
		{`password="s3 cret`, `password=*****`},
		{`password="a\"b" x`, `password=***** x`},
		{`{\"password\":\"s3cret\",\"a\":1}`, `{\"password\":*****,\"a\":1}`},
		{`<db:password type="x">s3cret</db:password>`, `<db:password type="x">*****</db:password>`},
		{`ALTER USER bob IDENTIFIED BY 's3 cret';`, `ALTER USER bob IDENTIFIED BY *****;`},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END", "-----BEGIN RSA PRIVATE KEY-----*****-----END"},
		{`;JSESSIONIDSSO=AB12 x`, `;JSESSIONIDSSO=***** x`},
		{`card=1234999988887777 and 4111111111111111`, `card=*****999988887777 and *****`},
		// What is no secret stays.
		{`Executor rejected socket [org.apache.NioChannel@1a2b] for processing`, `Executor rejected socket [org.apache.NioChannel@1a2b] for processing`},
		{`keepAliveTimeout=5 tokenizer.x bypassed: 3 passed=4`, `keepAliveTimeout=5 tokenizer.x bypassed: 3 passed=4`},
		{`at com.acme.PasswordEncoder.encode(PasswordEncoder.java:12)`, `at com.acme.PasswordEncoder.encode(PasswordEncoder.java:12)`},
		{`http://host:8080/path`, `http://host:8080/path`},
		{`author: Ann, authority=8080, duplicate key=5`, `author: Ann, authority=8080, duplicate key=5`},
		{`<passenger>12</passenger>`, `<passenger>12</passenger>`},
	} {
		if have := m.mask(c.in); have != c.want {
			t.Errorf("%s\nhave %s\nwant %s", c.in, have, c.want)
		}
	}
}

// TestMaskBeforeCut: a secret that the cut would tear is masked all the same.
func TestMaskBeforeCut(t *testing.T) {
	line := strings.Repeat("x", 180) + " password=" + strings.Repeat("s", 100)
	text, cut := shape(newMasker(nil), []byte(line), 200)
	if strings.Contains(text, "sss") {
		t.Errorf("%q", text)
	}
	if cut && len(text) > 200 {
		t.Errorf("%d bytes", len(text))
	}
}

// FuzzMask: masking never panics, what is cut is within its bound, and looking
// for what a match has to have misses none.
func FuzzMask(f *testing.F) {
	f.Add("Authorization: Bearer abc password=x&y=2")
	f.Add("://:@ cookie=; eyJ")
	for _, form := range hiding {
		f.Add("x\n" + fmt.Sprintf(form, "s3cret") + "\ny")
	}
	m := newMasker(nil)
	f.Fuzz(func(t *testing.T, s string) {
		text, _ := shape(m, []byte(s), 1<<10)
		if len(text) > 1<<10 {
			t.Fatalf("%d bytes", len(text))
		}
		s = strings.Map(func(r rune) rune {
			if r >= utf8.RuneSelf { // (?i) takes ſ for an s, and lower does not
				return '?'
			}
			return r
		}, s)
		for i := range builtIn {
			r := &builtIn[i]
			low, whole := lower(s), replace(r.re, s)
			if whole != s && !r.may(low) {
				t.Errorf("rule %d would have masked %q as %q", i, s, whole)
			}
			if have := r.byLine(s, low); !r.whole && have != whole {
				t.Errorf("rule %d by line: %q, as a whole: %q", i, have, whole)
			}
		}
	})
}

// hiding are the ways in which a secret stands in a log.
var hiding = []string{
	`Authorization: Bearer %s`, `authorization=[Basic %s]`, `{"Authorization":"Token %s"}`, `Proxy-Authorization: Digest username="u", response="%s"`,
	`Cookie: JSESSIONID=%s; theme=dark`, `Set-Cookie: id=%s; Path=/`, `{"cookie":"a=%s"}`, `sent Bearer %s to x`,
	`"GET /login?user=bob&password=%s&x=1 HTTP/1.1" 500 12`, `/a;jsessionid=%s?x=1`, `/cb?access_token=%s&state=1`, `/x?a=b&key=%s`, `/x?auth=%s`,
	`db.password = %s`, `{"password":"%s","user":"bob"}`, `{\"password\":\"%s\"}`, `secret="%s`, `pwd='%s'`, `password%%3D%s`,
	`jdbc:mysql://bob:%s@db:3306/x`, `apiKey: %s, retry: 3`, `client_secret=%s`, `X-Api-Key: %s`, `X-Auth: %s`, `auth=%s`, `"auth_code": "%s"`,
	`<password>%s</password>`, `<ns:clientSecret id="1">%s</ns:clientSecret>`, `IDENTIFIED BY '%s'`, `eyJhbGciOiJI.%s.c2ln`,
	"-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----",
}

// FuzzSecret: whatever stands around it, a secret is in nothing that is sent, in
// either encoding, neither in a line nor in its metadata.
func FuzzSecret(f *testing.F) {
	for i := range hiding {
		f.Add(i, uint32(i), "30-Nov-2026 12:00:00.001 INFO [main] a.B.c ", "before\nit", " and after\n\tat a.B")
	}
	f.Add(3, uint32(0), `token="`, "", `"`)
	f.Add(14, uint32(0), `x='`, "password=", "")
	f.Add(17, uint32(0), "cookie=[a", "Bearer", "://")
	f.Add(19, uint32(0), strings.Repeat("x", 400), "", "")
	f.Fuzz(func(t *testing.T, form int, seed uint32, prefix, before, after string) {
		secret := fmt.Sprintf("S3cr3t%010dZq", seed)
		if strings.Contains(prefix+before+after, "S3cr3t") {
			return
		}
		// A name right before the quotes of another name takes these for its value:
		// password="password":"…" is nothing that is logged.
		if end := strings.ToLower(strings.TrimRight(prefix, " \t\\\"'[]")); strings.HasSuffix(end, "=") || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "%3d") {
			return
		}
		hidden := fmt.Sprintf(hiding[(form%len(hiding)+len(hiding))%len(hiding)], secret)
		cfg := DefaultConfig()
		cfg.MaxLine = 256
		s := unstarted(cfg, nil, nil)
		defer s.cancel()
		tap := s.Tap("t", "applog", hidden)
		tap.Offer(nil, &Entry{Line: []byte(before + "\n" + prefix + hidden + after), Thread: hidden, Logger: hidden, Pattern: hidden, Trace: hidden})
		g := tap.Gate("WARN", hidden)
		g.waiting.Store(5)
		tap.Close() // tells of those that were suppressed, by their pattern
		lines := s.queue.take(1 << 20)
		if len(lines) != 2 {
			t.Fatalf("%d lines", len(lines))
		}
		plain, _, err := encode(lines, true)
		if err != nil {
			t.Fatal(err)
		}
		packed, _, err := encode(lines, false)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := snappy.Decode(nil, packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range [][]byte{plain, raw} {
			if bytes.Contains(body, []byte(secret)) {
				t.Fatalf("%q is sent as %q", lines[0].text, body)
			}
		}
	})
}

func BenchmarkShape(b *testing.B) {
	m := newMasker(nil)
	line := []byte("30-Nov-2026 12:00:00.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [x] for processing\n" + strings.Repeat("\tat org.apache.tomcat.util.net.NioEndpoint$Poller.processKey(NioEndpoint.java:795)\n", 16))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		shape(m, line, 16<<10)
	}
}
