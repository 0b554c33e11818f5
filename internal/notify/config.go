package notify

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/version"
)

// Config is the settings section notify.
type Config struct {
	Log           bool           `yaml:"log"`           // Write alerts that begin and end into the sidecar's own log.
	Alertmanagers []Alertmanager `yaml:"alertmanagers"` // Alertmanagers that are told every alert; each of them, since they agree among themselves who speaks.
	Webhooks      []Webhook      `yaml:"webhooks"`      // Addresses that get a POST when an alert begins or ends.
}

// Alertmanager is one Alertmanager.
type Alertmanager struct {
	URL string `yaml:"url"` // Its address, such as http://alerts:9093; a path prefix may follow.
	// HTTP is how to speak to it: tls_config, basic_auth, authorization, proxy_url and the rest of Prometheus' own HTTP client settings.
	HTTP config.HTTPClientConfig `yaml:"http"`
}

// Webhook is one address.
type Webhook struct {
	Name string `yaml:"name"` // What it is called in notify_* and in the log; its host when not given.
	URL  string `yaml:"url"`  // The address.
	// Match are labels that an alert must have to be told: severity: critical for one that stops the load.
	Match map[string]string `yaml:"match"`
	// HTTP is how to speak to it, as for an Alertmanager.
	HTTP config.HTTPClientConfig `yaml:"http"`
}

// DefaultConfig is Config where the file says nothing.
func DefaultConfig() Config { return Config{Log: true} }

// UnmarshalYAML fills what is not said with the HTTP client's defaults.
func (a *Alertmanager) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Alertmanager
	a.HTTP = config.DefaultHTTPClientConfig
	return unmarshal((*plain)(a))
}

// UnmarshalYAML fills what is not said with the HTTP client's defaults.
func (w *Webhook) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Webhook
	w.HTTP = config.DefaultHTTPClientConfig
	return unmarshal((*plain)(w))
}

// Check finds settings that make no sense.
func (c *Config) Check() error {
	_, err := c.receivers("", slog.New(slog.DiscardHandler))
	return err
}

type named struct {
	name string
	to   receiver
}

func (c *Config) receivers(externalURL string, log *slog.Logger) (receivers, error) {
	var out receivers
	if c.Log {
		out = append(out, named{"log", &logReceiver{log: log}})
	}
	for i, a := range c.Alertmanagers {
		u, client, err := dial(a.URL, a.HTTP)
		if err != nil {
			return nil, fmt.Errorf("alertmanagers[%d]: %w", i, err)
		}
		// Two behind one proxy are told apart by their prefix.
		name := "alertmanager " + u.Host + strings.TrimRight(path.Join("/", u.Path), "/")
		u.Path = path.Join("/", u.Path, "/api/v2/alerts")
		if err := out.add(name, "", &alertmanager{url: u.String(), client: client, external: externalURL}); err != nil {
			return nil, fmt.Errorf("alertmanagers[%d]: %w", i, err)
		}
	}
	for i, w := range c.Webhooks {
		u, client, err := dial(w.URL, w.HTTP)
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		name := w.Name
		if name == "" {
			name = u.Host
		}
		to := &webhook{name: name, url: u.String(), client: client, match: w.Match, external: externalURL}
		if err := out.add("webhook "+name, ": give each a name of its own", to); err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
	}
	return out, nil
}

type receivers []named

// add refuses a second one of a name, by which its figures and what it was told
// are kept.
func (r *receivers) add(name, remedy string, to receiver) error {
	if slices.ContainsFunc(*r, func(n named) bool { return n.name == name }) {
		return fmt.Errorf("%s is there twice%s", name, remedy)
	}
	*r = append(*r, named{name, to})
	return nil
}

func dial(address string, how config.HTTPClientConfig) (*url.URL, *http.Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, fmt.Errorf("url: %q is no address such as http://host:port/", address)
	}
	if err := how.Validate(); err != nil {
		return nil, nil, err
	}
	client, err := config.NewClientFromConfig(how, "notify", config.WithUserAgent("sidecar/"+strings.TrimSpace(version.Version)))
	if err != nil {
		return nil, nil, err
	}
	return u, client, nil
}
