package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whoever waits at the wrong door is told so at once, and not that an engine is off
// or that a character is none of JSON's.
func TestWaitAtNoSidecar(t *testing.T) {
	for name, c := range map[string]struct {
		code       int
		text, want string
	}{
		"a page":              {200, "<html>hello</html>", "no sidecar and no Prometheus answers there: /api/v1/alerts gives 200 OK"},
		"nothing there":       {404, "404 page not found", "no sidecar and no Prometheus answers there: /api/v1/alerts gives 404 Not Found"},
		"another API":         {200, `{"hello": 1}`, "no sidecar and no Prometheus answers there"},
		"a door":              {401, "who are you", "gives 401 Unauthorized"},
		"a sidecar, half off": {404, "the engine is off: there is no history to ask; set engine: on", "its engine is off"},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.WriteHeader(c.code)
			w.Write([]byte(c.text))
		}))
		var stdout, stderr strings.Builder
		code := Main([]string{"wait", "--for=60s", "--url=" + server.URL}, nil, &stdout, &stderr)
		server.Close()
		if asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
		if said := stderr.String(); code != 1 || !strings.Contains(said, c.want) || !strings.Contains(said, server.URL) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %d, %q", name, code, said)
		}
	}
}

// The address may have a password in it, which a pipeline's log must not show.
func TestWaitHidesThePassword(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "s3cret" {
			t.Errorf("the password is %q", password)
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	var stdout, stderr strings.Builder
	code := Main([]string{"wait", "--url=" + strings.Replace(server.URL, "http://", "http://ann:s3cret@", 1)}, nil, &stdout, &stderr)
	if said := stdout.String() + stderr.String(); code != 1 || strings.Contains(said, "s3cret") || !strings.Contains(said, "ann:xxxxx@127.0.0.1") {
		t.Errorf("%d, %q", code, said)
	}
}

// Nobody at the door is no pass, when the time is over before the patience is.
func TestWaitAtAClosedDoor(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	var stdout, stderr strings.Builder
	code := Main([]string{"wait", "--for=0s", "--url=" + server.URL}, nil, &stdout, &stderr)
	if said := stderr.String(); code != 1 || stdout.Len() > 0 || !strings.Contains(said, "refused") {
		t.Errorf("%d, %q, %q", code, stdout.String(), said)
	}
}

// Which alerts end the wait: those that fire, of the severity or above, of the
// target or of none.
func TestWaitChooses(t *testing.T) {
	one := func(name, state, severity, target string) firing {
		return firing{State: state, Labels: map[string]string{"alertname": name, "severity": severity, "target": target}}
	}
	all := []firing{
		one("critical", "firing", "critical", "a"), one("warning", "firing", "warning", "a"), one("pending", "pending", "critical", "a"),
		one("other", "firing", "critical", "b"), one("nobody's", "firing", "critical", ""), one("switch", "firing", "none", ""),
	}
	for _, c := range []struct{ least, target, want string }{
		{"critical", "", "critical other nobody's"},
		{"warning", "", "critical warning other nobody's"},
		{"critical", "a", "critical nobody's"},
		{"info", "b", "other nobody's"},
	} {
		var got []string
		for _, a := range (&wait{least: c.least, target: c.target}).choose(all) {
			got = append(got, a.Labels["alertname"])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
