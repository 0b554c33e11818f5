package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// changes says of each endpoint whether it changes anything. A new one has to be
// put here, and then is asked from away by the test below.
var changes = map[string]bool{
	"/metrics": false, "/-/healthy": false, "/-/ready": false, "/status.json": false, "/explain.json": false, "/{$}": false, "/static/": false,
	"/-/reload": true,
	// The query API reads, by POST too: a long query is a form.
	"/api/v1/": false, "/api/v1/query": false, "/api/v1/query_range": false, "/api/v1/series": false, "/api/v1/labels": false,
	"/api/v1/label/{name}/values": false, "/api/v1/metadata": false, "/api/v1/rules": false, "/api/v1/alerts": false,
	"/api/v1/status/buildinfo": false, "/api/v1/format_query": false,
}

// endpoints are the patterns in the source.
func endpoints(t *testing.T) (list []string) {
	t.Helper()
	for file, find := range map[string]string{
		"../../internal/web/web.go":    `mux\.Handle(?:Func)?\("(?:[A-Z]+ )?(/[^"]*)"`,
		"../../internal/engine/api.go": `\n\t\t"([a-z_/{}]+)": +e\.api`,
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(find).FindAllSubmatch(data, -1)
		if len(found) < 5 {
			t.Fatalf("%s: %d endpoints", file, len(found))
		}
		for _, m := range found {
			p := string(m[1])
			if p[0] != '/' {
				p = "/api/v1/" + p
			}
			list = append(list, p)
		}
	}
	return list
}

func TestEveryEndpointIsKnown(t *testing.T) {
	list := endpoints(t)
	for _, p := range list {
		if _, ok := changes[p]; !ok {
			t.Errorf("%s: say whether it changes anything", p)
		}
	}
	for p := range changes {
		if !slices.Contains(list, p) {
			t.Errorf("%s is gone", p)
		}
	}
}

// ownAddress is one by which this machine is reached from others. Whoever asks by
// it comes from it, too, and so not from loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// Whatever is asked from away, by whichever method, changes nothing: with the
// settings that the sidecar has by default but for the one switch that must be on.
func TestNothingChangesFromAway(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the sidecar")
	}
	away := ownAddress(t)
	dir := t.TempDir()
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := lab.StartProgram("sidecar", filepath.Join(dir, "log"), program, "run", "--path.procfs="+dir, "--web.enable-lifecycle",
		fmt.Sprintf("--web.listen-address=:%d", port), "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer sidecar.Stop()
	loopback := fmt.Sprintf("127.0.0.1:%d", port)
	loaded := func() float64 {
		m, err := lab.ReadMetrics(loopback)
		if err != nil {
			return 0
		}
		v, _ := m.Sum("sidecar_config_reload_timestamp_seconds")
		return v
	}
	if !lab.Until(20*time.Second, func() bool { return loaded() > 0 }) {
		t.Fatal("the sidecar does not answer")
	}
	before := loaded()
	ask := func(host, method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, fmt.Sprintf("http://%s:%d%s", host, port, path), strings.NewReader("query=1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	places := strings.NewReplacer("{$}", "", "{name}", "job")
	list := append(endpoints(t), "/-/quit", "/api/v1/admin/tsdb/delete_series", "/api/v1/write", "/debug/pprof/")
	for _, p := range list {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			code, text := ask(away, method, places.Replace(p))
			reads := method == "POST" && strings.HasPrefix(p, "/api/v1/") && code == http.StatusOK && !changes[p]
			if code < 400 && !reads {
				t.Errorf("%s %s from %s: %d %s", method, p, away, code, text)
			}
			if changes[p] && method != "DELETE" && method != "PATCH" && (code != http.StatusForbidden || !strings.Contains(text, "loopback")) {
				t.Errorf("%s %s from %s: %d %s", method, p, away, code, text)
			}
		}
		if code, _ := ask(away, "GET", places.Replace(p)); changes[p] && code != http.StatusMethodNotAllowed {
			t.Errorf("GET %s from %s: %d", p, away, code)
		}
	}
	time.Sleep(1500 * time.Millisecond) // a tick, so that a reload would be told
	if after := loaded(); after != before {
		t.Errorf("the settings were loaded at %v, and now at %v", before, after)
	}
	// The same from loopback, or all this would prove nothing.
	if code, text := ask("127.0.0.1", "POST", "/-/reload"); code != http.StatusOK {
		t.Errorf("from loopback: %d %s", code, text)
	}
	if !lab.Until(10*time.Second, func() bool { return loaded() > before }) {
		t.Error("a reload is not told")
	}
}
