package accesslog

import (
	"testing"
)

func TestFold(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"/", "/"},
		{"/orders/123", "/orders/{id}"},
		{"/orders/123/lines/7.json", "/orders/{id}/lines/{id}.json"},
		{"/orders/123?id=4", "/orders/{id}"},
		{"/orders?id=4", "/orders"},
		{"/api/v2/users", "/api/v2/users"},
		{"/9b2f8c1e-1234-4bcd-9abc-0123456789ab", "/{id}"},
		{"/commit/deadbeef01", "/commit/{id}"},
		{"/commit/facade", "/commit/facade"},
		{"/2024-06-30/x", "/{id}/x"},
		{"/app;jsessionid=0123ABC.node1/orders/5;v=1?q", "/app/orders/{id}"},
		{"/orders/5;v=1", "/orders/{id}"},
		{"/a;b", "/a"},
		{"/s/eyJhbGciOiJIUzI1NiJ9x0123456789", "/s/{id}"},
		{"/jquery-3.7.1.min.js", "/jquery-3.7.1.min.js"},
		{"/caf%C3%A9/12", "/caf%C3%A9/{id}"},
		{"*", "*"},
		{"/x/", "/x/"},
		{"/12/", "/{id}/"},
		{"//5", "//{id}"},
	} {
		r := newRouter(Routes{Fold: true})
		if got := string(r.folded([]byte(tt.target))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.target, got, tt.want)
		}
		// The short way of a usual request and the long way are one.
		var rec Record
		rec.request([]byte("GET " + tt.target + " HTTP/1.1"))
		if n, _ := r.number(&rec); r.names[n] != tt.want {
			t.Errorf("%s: number of %s", tt.target, r.names[n])
		}
		r.plain = false
		if n, _ := r.number(&rec); r.names[n] != tt.want {
			t.Errorf("%s: the long way: number of %s", tt.target, r.names[n])
		}
	}
}

func TestRoutePatterns(t *testing.T) {
	r := newRouter(Routes{Patterns: []string{"/orders/{id}", "/orders/{id}/lines", "/static/*", "/shop/"}, Prefixes: []string{"/api/", "/api/v2/"}})
	for path, want := range map[string]string{
		"/orders/7": "/orders/{id}", "/orders/": "other", "/orders": "other", "/orders/7/lines": "/orders/{id}/lines", "/orders/7/x": "other",
		"/static/a/b.js": "/static/*", "/static": "other", "/static/": "/static/*", "/shop/": "/shop/", "/shop": "other", "/shop//": "other",
		"/api/x": "/api/", "/api/v2/x": "/api/v2/", "/orders/7;a=b?c": "/orders/{id}",
	} {
		var rec Record
		rec.request([]byte("GET " + path + " HTTP/1.1"))
		if n, _ := r.number(&rec); r.names[n] != want {
			t.Errorf("%s: %s, want %s", path, r.names[n], want)
		}
	}
	for _, bad := range []string{"orders", "/a{b}", "/a//b", "/*/b"} {
		c := Config{Routes: Routes{Patterns: []string{bad}}}
		if c.Check() == nil {
			t.Errorf("%s passed", bad)
		}
	}
}
