package attach

import (
	"os"
	"path/filepath"
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

func TestStreams(t *testing.T) {
	for in, want := range map[string]bool{"2 streaming": true, "2 streaming,more\n": true, "2": false, "1 streaming": false, "": false, "x": false, "3 more,streaming": true} {
		if streams([]byte(in)) != want {
			t.Errorf("%q: %v", in, !want)
		}
	}
}

// Requests and replies of two real JVMs, kept in the shared folder.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "corpus/discovery/attach-jdk*/*.request"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d requests, %v", len(files), err)
	}
	for _, f := range files {
		request, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := os.ReadFile(strings.TrimSuffix(f, ".request") + ".response")
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(request), "\x00")
		if parts[0] == "1" {
			if got := request1(parts[1], parts[2:5]); string(got) != string(request) {
				t.Errorf("%s: %q, want %q", f, got, request)
			}
		} else if got := request2(parts[2], parts[3:len(parts)-1]...); string(got) != string(request) {
			t.Errorf("%s: %q, want %q", f, got, request)
		}
		good := strings.HasPrefix(string(reply), "0\n")
		body, err := parseReply(reply)
		if (err == nil) != good || good && len(body) != len(reply)-2 {
			t.Errorf("%s: %v, %d of %d bytes", f, err, len(body), len(reply))
		}
	}
}
func sharedDir(t testing.TB) string {
	dir, _ := os.Getwd()
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == "/" {
			t.Fatal("no go.mod above")
		}
	}
	shared := filepath.Join(dir, "../shared")
	if _, err := os.Stat(shared); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no shared folder: ", err)
		}
		t.Skip("no shared folder beside the checkout")
	}
	return shared
}
