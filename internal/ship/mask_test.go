package ship

import (
	"strings"
	"testing"
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
		{`{"cookie":"a=b; c=d","x":1}`, `{"cookie":"*****","x":1}`},
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
		{`card=1234999988887777 and 4111111111111111`, `card=*****999988887777 and *****`},
		// What is no secret stays.
		{`Executor rejected socket [org.apache.NioChannel@1a2b] for processing`, `Executor rejected socket [org.apache.NioChannel@1a2b] for processing`},
		{`keepAliveTimeout=5 tokenizer.x bypassed: 3 passed=4`, `keepAliveTimeout=5 tokenizer.x bypassed: 3 passed=4`},
		{`at com.acme.PasswordEncoder.encode(PasswordEncoder.java:12)`, `at com.acme.PasswordEncoder.encode(PasswordEncoder.java:12)`},
		{`http://host:8080/path`, `http://host:8080/path`},
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

// FuzzMask: masking never panics, and is done after one round.
func FuzzMask(f *testing.F) {
	f.Add("Authorization: Bearer abc password=x&y=2")
	f.Add("://:@ cookie=; eyJ")
	m := newMasker(nil)
	f.Fuzz(func(t *testing.T, s string) {
		text, _ := shape(m, []byte(s), 1<<10)
		if len(text) > 1<<10 {
			t.Fatalf("%d bytes", len(text))
		}
	})
}

func BenchmarkShape(b *testing.B) {
	m := newMasker(nil)
	line := []byte("30-Nov-2026 12:00:00.000 WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [x] for processing\n" + strings.Repeat("\tat org.apache.tomcat.util.net.NioEndpoint$Poller.run(NioEndpoint.java:795)\n", 16))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		shape(m, line, 16<<10)
	}
}
