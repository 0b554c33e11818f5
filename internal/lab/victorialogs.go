package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// victoriaLogsVersion is the server that speaks Loki's push protocol in our
// tests. Loki itself is under the AGPL and is neither fetched nor built.
const victoriaLogsVersion = "v1.52.2"

// A VictoriaLogs is a real VictoriaLogs with a private data folder.
type VictoriaLogs struct {
	*Child
	Addr string
}

// StartVictoriaLogs builds VictoriaLogs from the module proxy, once, and starts
// it below dir.
func StartVictoriaLogs(dir string) (*VictoriaLogs, error) {
	home, err := once("victoria-logs-"+victoriaLogsVersion, "VictoriaLogs "+victoriaLogsVersion, "a real server for Loki's push protocol; compiling takes a minute or two",
		func(ctx context.Context, dir string) error {
			cmd := exec.CommandContext(ctx, "go", "install", "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@"+victoriaLogsVersion)
			cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
			cmd.Dir = os.TempDir() // outside of our module
			_, err := run(ctx, cmd)
			return err
		})
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	v := &VictoriaLogs{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	output := filepath.Join(dir, "victoria-logs.log")
	v.Child, err = startDaemon("victoria-logs", output, os.Environ(), filepath.Join(home, "victoria-logs"),
		"-httpListenAddr="+v.Addr, "-storageDataPath="+filepath.Join(dir, "data"), "-memory.allowedBytes=64MiB", "-loggerLevel=WARN")
	if err != nil {
		return nil, err
	}
	if err := v.ready("http://"+v.Addr+"/health", output); err != nil {
		return nil, err
	}
	return v, nil
}

// PushURL is where Loki's pushes go.
func (v *VictoriaLogs) PushURL() string { return "http://" + v.Addr + "/insert/loki/api/v1/push" }

// Query asks in LogsQL and returns a JSON object a line.
func (v *VictoriaLogs) Query(query string) ([][]byte, error) {
	client := http.Client{Timeout: 20 * time.Second}
	resp, err := client.PostForm("http://"+v.Addr+"/select/logsql/query", url.Values{"query": {query}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("query %s: %s: %s", query, resp.Status, body.String())
	}
	var out [][]byte
	for line := range bytes.Lines(body.Bytes()) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out, nil
}
