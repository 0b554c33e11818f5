package attach

import (
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	if got := string(request1("jcmd", []string{"VM.flags"})); got != "1\x00jcmd\x00VM.flags\x00\x00\x00" {
		t.Errorf("%q", got)
	}
	if got := string(request2("threaddump streaming=0", "")); got != "2\x0024\x00threaddump streaming=0\x00\x00" {
		t.Errorf("%q", got)
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct{ in, out, err string }{
		{"0\nhello\nthere", "hello\nthere", ""},
		{"0\n", "", ""},
		{"0", "", ""},
		{"-1\nOperation bogus not recognized!\n", "", "result -1: Operation bogus not recognized!"},
		{"101", "", "result 101"},
		{"", "", "not with a result code"},
		{"hello\n0", "", "not with a result code"},
	} {
		b, err := parseReply([]byte(c.in))
		if string(b) != c.out || (err != nil) != (c.err != "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %q, %v", c.in, b, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("0\nhello"))
	f.Add([]byte("-1\n"))
	f.Fuzz(func(t *testing.T, b []byte) { parseReply(b) })
}
