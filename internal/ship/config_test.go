package ship

import (
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string // a part of the message; empty is good
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.URL = "http://loki:3100/loki/api/v1/push" }, ""},
		{func(c *Config) { c.URL = "loki:3100" }, "url"},
		{func(c *Config) { c.URL = "http://loki:3100" }, "has no path"},
		{func(c *Config) { c.Encoding = "xml" }, "encoding"},
		{func(c *Config) { c.Labels = map[string]string{"a-b": "x"} }, "no label name"},
		{func(c *Config) { c.Labels = map[string]string{"target": "x"} }, "set by the sidecar"},
		{func(c *Config) { c.HTTP.PasswordFile = "f" }, "http.password_file"},
		{func(c *Config) { c.HTTP.CertFile = "f" }, "go together"},
		{func(c *Config) { c.HTTP.Username, c.HTTP.BearerFile = "u", "f" }, "http."},
		{func(c *Config) { c.LinesPerSecond = 0 }, "lines_per_second"},
		{func(c *Config) { c.MaxBackoff = time.Millisecond }, "max_backoff"},
		{func(c *Config) { c.BatchBytes = 2 << 20; c.QueueBytes = 1 << 20 }, "batch_bytes"},
		{func(c *Config) { c.Select.Level = "LOUD" }, "select.level"},
		{func(c *Config) { c.Select.Level = "none" }, ""},
		{func(c *Config) {
			c.Select.Lines = []Selection{{Name: "deploy", Match: "Deploying", Test: "INFO Deploying web application"}}
		}, ""},
		{func(c *Config) {
			c.Select.Lines = []Selection{{Name: "deploy", Match: "Deploying", Test: "INFO deployed"}}
		}, "does not match"},
		{func(c *Config) { c.Select.Lines = []Selection{{Name: "deploy", Match: "Deploying"}} }, "match and test"},
		{func(c *Config) { c.Select.Lines = []Selection{{Name: "De ploy", Match: "x", Test: "x"}} }, "name"},
		{func(c *Config) { c.Select.Lines = []Selection{{Name: "d", Source: "syslog", Match: "x", Test: "x"}} }, "source"},
		{func(c *Config) { c.Masks = []Mask{{Match: `card=(\d+)`, Test: "card=12 x", Want: "card=***** x"}} }, ""},
		{func(c *Config) { c.Masks = []Mask{{Match: `card=(\d+)`, Test: "card=12 x", Want: "card=12 x"}} }, "becomes"},
		{func(c *Config) { c.Masks = []Mask{{Match: `x*`, Test: "x"}} }, "nothing at all"},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		err := cfg.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("have %v, want %q", err, c.want)
		}
	}
}

func TestChoice(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Select.Lines = []Selection{{Name: "deploy", Source: "applog", Match: "Deploying", Test: "Deploying"}}
	app, access := cfg.Choice("applog"), cfg.Choice("accesslog")
	for _, c := range []struct {
		level, event string
		want         bool
	}{{"WARN", "", true}, {"FATAL", "", true}, {"INFO", "", false}, {"", "", false}, {"INFO", "executor_rejected", true}, {"", "thread_died", true}} {
		if have := app.Record(c.level, c.event); have != c.want {
			t.Errorf("%s %s: %v", c.level, c.event, have)
		}
	}
	if app.Match([]byte("INFO Deploying x")) != "deploy" || app.Match([]byte("x")) != "" || access.Match != nil {
		t.Error("own selections")
	}
}
