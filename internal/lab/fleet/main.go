// Fleet measures what one target costs whoever watches a hundred: its series, the
// bytes of a scrape in each format, and the sidecar's CPU while it is scraped each
// second. docs/fleet.md holds what it printed:
//
//	go run ./internal/lab/fleet
//
// It starts a private Tomcat and a sidecar, overloads the server for some seconds,
// so that every series that a storm makes is there, and stops both again.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func measure() error {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		return err
	}
	server, err := lab.StartTomcatIn(filepath.Join(dir, "tomcat"), lab.Tomcat{
		Executor: &lab.Executor{MaxThreads: 20, MinSpare: 4, MaxQueueSize: 20}, AcceptCount: 100,
		AccessLogPattern: `%h %l %u %t "%r" %s %b %D`,
		JVMArgs:          []string{"-Xloggc:" + filepath.Join(dir, "gc.log")},
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	sidecar, err := lab.StartProgram("sidecar", filepath.Join(dir, "sidecar.log"), program,
		"run", "--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	defer sidecar.Stop()
	target := fmt.Sprintf("tomcat-%d", server.Port)
	if !lab.Until(30*time.Second, func() bool {
		m, err := lab.ReadMetrics(addr)
		_, ok := m.Sum("accesslog_requests_total", "target", target)
		return err == nil && ok
	}) {
		return fmt.Errorf("the sidecar does not find %s", target)
	}

	base := "http://" + addr + "/metrics?target=" + url.QueryEscape(target)
	if err := print("at rest", base); err != nil {
		return err
	}
	for range 3 {
		if _, err := lab.AB(server.URL("/slow?ms=20"), 3000, 100, 20*time.Second); err != nil {
			return err
		}
	}
	lab.Burst(server.Addr, "/missing", 5, 5*time.Second)
	time.Sleep(3 * time.Second)
	if err := print("after an overload", base); err != nil {
		return err
	}
	return cpu(addr, "http://"+addr+"/metrics")
}

const (
	text        = "text/plain;version=0.0.4"
	openmetrics = "application/openmetrics-text;version=1.0.0"
	protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func print(when, url string) error {
	body, _, err := get(url, text)
	if err != nil {
		return err
	}
	rooms, all := map[string]int{}, 0
	for _, line := range strings.Split(string(body), "\n") {
		if line != "" && line[0] != '#' {
			all++
			rooms[line[:strings.IndexAny(line, "_{ ")]]++
		}
	}
	fmt.Printf("%s: %d series of one target %v\n", when, all, rooms)
	for _, f := range []struct{ name, accept string }{{"text", text}, {"openmetrics", openmetrics}, {"protobuf", protobuf}} {
		body, took, err := get(url, f.accept)
		if err != nil {
			return err
		}
		// Over loopback the sidecar does not pack; a scraper from elsewhere gets this.
		var packed bytes.Buffer
		gz, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		if err == nil {
			_, err = gz.Write(body)
		}
		if err == nil {
			err = gz.Close()
		}
		if err != nil {
			return err
		}
		fmt.Printf("  %-12s %8d bytes, packed %8d  %5.1f ms\n", f.name, len(body), packed.Len(), took.Seconds()*1000)
	}
	return nil
}

// get reads an answer as it comes over the wire.
func get(url, accept string) ([]byte, time.Duration, error) {
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, body)
	}
	return body, time.Since(began), err
}

// cpu compares the sidecar's own CPU time over ten seconds without and with a
// scrape each second.
func cpu(addr, url string) error {
	for _, scraped := range []bool{false, true} {
		before, _, err := own(addr)
		if err != nil {
			return err
		}
		began := time.Now()
		for range 10 {
			time.Sleep(time.Second)
			if scraped {
				if _, _, err := get(url, text); err != nil {
					return err
				}
			}
		}
		after, rss, err := own(addr)
		if err != nil {
			return err
		}
		fmt.Printf("scraped each second %v: %.2f %% of a processor, %.0f MiB resident\n", scraped, 100*(after-before)/time.Since(began).Seconds(), rss/(1<<20))
	}
	m, err := lab.ReadMetrics(addr)
	if err != nil {
		return err
	}
	targets := map[string]bool{}
	for _, s := range m {
		targets[s.Labels["target"]] = true
	}
	delete(targets, "")
	fmt.Printf("in all %d series of %d targets on this machine\n", len(m), len(targets))
	return nil
}

func own(addr string) (cpu, rss float64, err error) {
	m, err := lab.ReadMetrics(addr)
	if err != nil {
		return 0, 0, err
	}
	cpu, _ = m.Sum("sidecar_process_cpu_seconds_total")
	rss, _ = m.Sum("sidecar_process_resident_memory_bytes")
	return cpu, rss, nil
}
