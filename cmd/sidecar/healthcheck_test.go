package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthcheck(t *testing.T) {
	answer := func(code int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/-/healthy" {
				code = http.StatusNotFound
			}
			w.WriteHeader(code)
			w.Write([]byte(text))
		})
	}
	for _, c := range []struct {
		name     string
		server   func(http.Handler) *httptest.Server
		code     int
		text     string
		want     int
		contains string
	}{
		{"alive", httptest.NewServer, 200, "sidecar is healthy.\n", 0, "healthy"},
		{"alive behind TLS", httptest.NewTLSServer, 200, "sidecar is healthy.\n", 0, "healthy"},
		{"alive and asks for a user", httptest.NewServer, 401, "Unauthorized", 0, "alive"},
		{"hung", httptest.NewServer, 503, "no snapshot for 3m", 1, "no snapshot for 3m"},
		{"somebody else's port", httptest.NewServer, 302, "", 1, "302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.server(answer(c.code, c.text))
			defer s.Close()
			var out, err bytes.Buffer
			if got := Main([]string{"healthcheck", "--url=" + s.URL + "/-/healthy"}, nil, &out, &err); got != c.want {
				t.Errorf("exit %d, want %d: %s%s", got, c.want, &out, &err)
			}
			if all := out.String() + err.String(); !strings.Contains(all, c.contains) {
				t.Errorf("%q does not say %q", all, c.contains)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	var out bytes.Buffer
	if got := Main([]string{"healthcheck", "--url=" + gone.URL}, nil, &out, &out); got != 1 {
		t.Errorf("nobody there: exit %d: %s", got, &out)
	}
}
