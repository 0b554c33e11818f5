package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Promtool runs Prometheus' own checker of rules and their tests in dir, and
// returns what it printed. An error is promtool's verdict, or Missing.
func Promtool(dir string, args ...string) (string, error) {
	path, env, err := tool("promtool")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = dir, env
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return run(ctx, cmd)
}

// A Prometheus is a real Prometheus with a private data folder.
type Prometheus struct {
	*Child
	Addr string
}

// StartPrometheus starts a Prometheus with the given configuration below dir.
// Its rule files are named by full path in the configuration.
func StartPrometheus(dir, config string) (*Prometheus, error) {
	path, env, err := tool("prometheus")
	if err != nil {
		return nil, err
	}
	return startPrometheus(path, env, dir, config)
}

func startPrometheus(path string, env []string, dir, config string, more ...string) (*Prometheus, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	p := &Prometheus{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	// Debian's build looks for its web pages in /usr/share; they are not needed.
	args := append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + p.Addr, "--log.level=warn"}, more...)
	p.Child, err = startDaemon("prometheus", filepath.Join(dir, "prometheus.log"), env, path, args...)
	if err != nil {
		return nil, err
	}
	if err := p.ready("http://"+p.Addr+"/-/ready", filepath.Join(dir, "prometheus.log")); err != nil {
		return nil, err
	}
	return p, nil
}

func startDaemon(name, output string, env []string, program string, args ...string) (*Child, error) {
	f, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, f, f
	return start(name, cmd)
}

// ready waits until url answers 200 or the child is gone.
func (c *Child) ready(url, output string) error {
	return c.readyBy(&http.Client{Timeout: 2 * time.Second}, url, output)
}

// readyBy is ready with a client that the program lets in.
func (c *Child) readyBy(client *http.Client, url, output string) error {
	ok := Until(time.Minute, func() bool {
		if gone, _ := c.Exited(); gone {
			return true
		}
		r, err := client.Get(url)
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	if gone, _ := c.Exited(); gone || !ok {
		c.Stop()
		said, _ := os.ReadFile(output)
		return fmt.Errorf("%s did not become ready:\n%s", c.Name, tail(string(said)))
	}
	return nil
}

// get reads one answer of Prometheus' API into data.
func (p *Prometheus) get(path string, query url.Values, data any) error {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + p.Addr + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer r.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return fmt.Errorf("prometheus %s: %w", path, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("prometheus %s: %s", path, answer.Error)
	}
	return nil
}

// A Sample is one value of an instant query.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query is an instant query now.
func (p *Prometheus) Query(expr string) ([]Sample, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := p.get("/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	var samples []Sample
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("prometheus: value %q of %s", text, expr)
		}
		samples = append(samples, Sample{r.Metric, v})
	}
	return samples, nil
}

// An Alert is one alert that is pending or firing.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
	ActiveAt            time.Time
}

// Alerts are those of the given name that are pending or firing now.
func (p *Prometheus) Alerts(name string) ([]Alert, error) {
	var data struct{ Alerts []Alert }
	if err := p.get("/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	var found []Alert
	for _, a := range data.Alerts {
		if name == "" || a.Labels["alertname"] == name {
			found = append(found, a)
		}
	}
	return found, nil
}

// Firing says whether an alert of this name fires now.
func (p *Prometheus) Firing(name string) bool {
	alerts, err := p.Alerts(name)
	if err != nil {
		return false
	}
	for _, a := range alerts {
		if a.State == "firing" {
			return true
		}
	}
	return false
}

// A Series is one series of a range query. Points are its values in order;
// those that are no number are left out.
type Series struct {
	Labels map[string]string
	Points []float64
}

// Range is a range query, as Grafana sends it for a graph.
func (p *Prometheus) Range(expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64) }
	query := url.Values{"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)}}
	if err := p.get("/api/v1/query_range", query, &data); err != nil {
		return nil, err
	}
	var all []Series
	for _, r := range data.Result {
		s := Series{Labels: r.Metric}
		for _, v := range r.Values {
			text, _ := v[1].(string)
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("prometheus: value %q of %s", text, expr)
			}
			if f == f {
				s.Points = append(s.Points, f)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
