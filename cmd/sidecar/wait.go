package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

func addWait(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("wait", "Watch the alerts of a running sidecar for a time: exit 1 with the alert's text as soon as one fires, 0 when none does. A gate for pipelines.")
	w := &wait{}
	cmd.Flag("for", "How long to watch.").Default("60s").DurationVar(&w.span)
	cmd.Flag("fail-on", "The least severity that counts: info, warning or critical.").Default("critical").EnumVar(&w.least, "info", "warning", "critical")
	cmd.Flag("target", "Only alerts of this target, and those of none. A target that is not there by the end is an error.").StringVar(&w.target)
	cmd.Flag("url", "Where the sidecar (or a Prometheus with its rules) answers.").Default("http://localhost" + DefaultPort).StringVar(&w.url)
	return cmd.FullCommand(), w.run
}

// wait is what `sidecar wait` was told.
type wait struct {
	span               time.Duration
	least, target, url string
}

// unreachable is how long the sidecar may not answer. It may just be starting.
const unreachable = 10 * time.Second

var severities = map[string]int{"info": 1, "warning": 2, "critical": 3}

// firing is one alert that fires, as Prometheus' API tells it.
type firing struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
}

func (w *wait) run(s streams) error {
	client := &http.Client{Timeout: 5 * time.Second}
	began := time.Now()
	answered := began
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	seen := w.target == ""
	for {
		alerts, err := w.ask(client)
		switch {
		case err == nil:
			answered = time.Now()
			if bad := w.choose(alerts); len(bad) > 0 {
				for _, a := range bad {
					fmt.Fprintf(s.out, "%s (%s): %s\n", a.Labels["alertname"], a.Labels["severity"], a.Annotations["summary"])
					for _, key := range []string{"description", "next"} {
						if text := a.Annotations[key]; text != "" {
							fmt.Fprintf(s.out, "  %s\n", text)
						}
					}
				}
				return fmt.Errorf("%d alerts fire after %v", len(bad), time.Since(began).Truncate(time.Second))
			}
		case errors.Is(err, errNoEngine) || errors.Is(err, errNoSidecar) || time.Since(answered) > unreachable:
			return err
		}
		// A target may come up only while we wait. One that never did was misspelt,
		// and its silence is no pass.
		var known []string
		if err == nil && !seen {
			known, err = w.targets(client)
			seen = slices.Contains(known, w.target)
		}
		if time.Since(began) >= w.span {
			switch {
			case err != nil:
				return err
			case !seen && len(known) == 0:
				return fmt.Errorf("no target %q in %v: there is none at all", w.target, w.span)
			case !seen:
				return fmt.Errorf("no target %q in %v: there are %s", w.target, w.span, strings.Join(known, ", "))
			}
			fmt.Fprintf(s.out, "no alert of severity %s or above in %v\n", w.least, w.span)
			return nil
		}
		<-ticker.C
	}
}

var (
	errNoEngine  = errors.New("its engine is off")
	errNoSidecar = errors.New("no sidecar and no Prometheus answers there")
)

// ask reads the alerts that are pending or fire.
func (w *wait) ask(client *http.Client) ([]firing, error) {
	var data struct{ Alerts []firing }
	err := w.get(client, "/api/v1/alerts", "alerts", &data)
	return data.Alerts, err
}

// targets are the names of the servers that are watched, up or down.
func (w *wait) targets(client *http.Client) (names []string, err error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	err = w.get(client, "/api/v1/query?query="+url.QueryEscape("group by (target) (target_up)"), "targets", &data)
	for _, r := range data.Result {
		names = append(names, r.Metric["target"])
	}
	slices.Sort(names)
	return names, err
}

// get reads the data of one answer of the API, which is a list of what is named.
func (w *wait) get(client *http.Client, path, what string, data any) error {
	r, err := client.Get(strings.TrimRight(w.url, "/") + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	shown := w.url // without a password
	if u, err := url.Parse(w.url); err == nil {
		shown = u.Redacted()
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", shown, r.Status, err)
	}
	if r.StatusCode == http.StatusNotFound && bytes.Contains(text, []byte("engine is off")) {
		return fmt.Errorf("%s: %w", shown, errNoEngine)
	}
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	switch err := json.Unmarshal(text, &answer); {
	case r.StatusCode >= http.StatusInternalServerError: // what stands before it may be starting, too
		return fmt.Errorf("%s: %s", shown, r.Status)
	case err != nil || answer.Status != "success":
		path, _, _ = strings.Cut(path, "?")
		return fmt.Errorf("%s: %w: %s gives %s, and no list of %s", shown, errNoSidecar, path, r.Status, what)
	}
	return nil
}

func (w *wait) choose(alerts []firing) (out []firing) {
	for _, a := range alerts {
		t := a.Labels["target"]
		if a.State == "firing" && severities[a.Labels["severity"]] >= severities[w.least] && (w.target == "" || t == "" || t == w.target) {
			out = append(out, a)
		}
	}
	return out
}
