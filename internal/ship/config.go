package ship

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// Config is the settings section loki. Nothing is shipped until URL is set.
type Config struct {
	URL      string            `yaml:"url"`      // Loki's push address, as in http://loki:3100/loki/api/v1/push. Empty: nothing is shipped.
	Tenant   string            `yaml:"tenant"`   // The tenant, sent as X-Scope-OrgID. Empty: no such header.
	Labels   map[string]string `yaml:"labels"`   // Labels of your own on every line, beside target, source, level, event and host. Few and constant.
	Host     string            `yaml:"host"`     // The label host. Empty: the machine's name.
	Encoding string            `yaml:"encoding"` // protobuf (with snappy) or json.
	HTTP     HTTP              `yaml:"http"`     // How the server is spoken to.

	Select Select `yaml:"select"` // Which lines are shipped.
	Masks  []Mask `yaml:"masks"`  // Secrets to be masked, beside the built-in ones.

	LinesPerSecond int           `yaml:"lines_per_second"` // How many lines of one pattern in one file are shipped in a second; of the rest one line a second tells the number.
	MaxLine        int           `yaml:"max_line"`         // Longer lines are cut to this many bytes.
	MaxAge         time.Duration `yaml:"max_age"`          // Older lines are dropped: Loki refuses what is older than a week, some servers drop it without a word.
	QueueBytes     int           `yaml:"queue_bytes"`      // Memory for lines that wait. When it is full, the oldest go to the spool, or are dropped.
	BatchBytes     int           `yaml:"batch_bytes"`      // Most bytes in one push.
	BatchWait      time.Duration `yaml:"batch_wait"`       // How long a line waits for others.
	BytesPerSecond int           `yaml:"bytes_per_second"` // Most bytes sent in a second, before compression; 0 is no limit.
	Timeout        time.Duration `yaml:"timeout"`          // How long one push may take.
	MinBackoff     time.Duration `yaml:"min_backoff"`      // The first pause after a failure; it doubles from there.
	MaxBackoff     time.Duration `yaml:"max_backoff"`      // The longest pause, also where Retry-After asks for more.
	StopTimeout    time.Duration `yaml:"stop_timeout"`     // How long the end of the program waits for what is queued; the rest is spooled.
	SpoolBytes     int64         `yaml:"spool_bytes"`      // Disk for lines that wait, across restarts too; 0 is no spool.
	SpoolDir       string        `yaml:"spool_dir"`        // Where the spool is. Empty: ship in the sidecar's storage path.
}

// HTTP is how the server is spoken to. Secrets stand in files of their own,
// which are read anew at each push, so that they can be changed while the
// sidecar runs and never show in the settings.
type HTTP struct {
	Username     string `yaml:"username"`      // For basic authentication.
	PasswordFile string `yaml:"password_file"` // The password that goes with it.
	BearerFile   string `yaml:"bearer_file"`   // A token, sent as Authorization: Bearer.
	ProxyURL     string `yaml:"proxy_url"`     // A proxy; empty is what the environment says.
	CAFile       string `yaml:"ca_file"`       // Certificates that the server's is held against; empty are the machine's.
	CertFile     string `yaml:"cert_file"`     // Our own certificate, where the server asks for one.
	KeyFile      string `yaml:"key_file"`      // Its key.
	ServerName   string `yaml:"server_name"`   // The name in the server's certificate, where it is not the one in the address.
	Insecure     bool   `yaml:"insecure"`      // Take any certificate: whoever is in between reads the lines.
}

// client is the same in the words of Prometheus' HTTP client.
func (h *HTTP) client() (promconfig.HTTPClientConfig, error) {
	c := promconfig.HTTPClientConfig{
		EnableHTTP2: true,
		TLSConfig: promconfig.TLSConfig{CAFile: h.CAFile, CertFile: h.CertFile, KeyFile: h.KeyFile,
			ServerName: h.ServerName, InsecureSkipVerify: h.Insecure},
	}
	if h.Username != "" {
		c.BasicAuth = &promconfig.BasicAuth{Username: h.Username, PasswordFile: h.PasswordFile}
	} else if h.PasswordFile != "" {
		return c, errors.New("password_file: there is no username")
	}
	if h.BearerFile != "" {
		c.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: h.BearerFile}
	}
	if (h.CertFile == "") != (h.KeyFile == "") {
		return c, errors.New("cert_file and key_file go together")
	}
	if h.ProxyURL != "" {
		u, err := url.Parse(h.ProxyURL)
		if err != nil || u.Host == "" {
			return c, fmt.Errorf("proxy_url: %q is no address", h.ProxyURL)
		}
		c.ProxyURL = promconfig.URL{URL: u}
	} else {
		c.ProxyFromEnvironment = true
	}
	return c, c.Validate()
}

// Select says which lines are shipped.
type Select struct {
	Level   string        `yaml:"level"`    // Application log records at this level and above (DEBUG, INFO, WARN, ERROR), or none.
	Events  bool          `yaml:"events"`   // Records that tell a known event, such as executor_rejected, at any level.
	GCPause time.Duration `yaml:"gc_pause"` // GC pauses of at least this length, and the collector's failures; 0 is none.
	Slow    time.Duration `yaml:"slow"`     // Requests that took at least this long; 0 is none.
	Status  int           `yaml:"status"`   // Requests answered with this status or a higher one; 0 is none.
	Lines   []Selection   `yaml:"lines"`    // Lines of your own choice.
	Tests   []Trial       `yaml:"tests"`    // Lines that the whole choice is tried with, by sidecar check and at each start.
}

// A Selection is a choice of one's own, with a line that shows what is meant.
type Selection struct {
	Name    string `yaml:"name"`     // Becomes the label event.
	Source  string `yaml:"source"`   // accesslog, applog or gclog; empty is each.
	Match   string `yaml:"match"`    // A regular expression for the line, of a record its first one.
	Test    string `yaml:"test"`     // A line that has to match; sidecar check tries it.
	TestNot string `yaml:"test_not"` // A line that must not match; may be left out.

	re *regexp.Regexp
}

// A Mask hides secrets that the built-in masks don't know.
type Mask struct {
	Match string `yaml:"match"` // A regular expression; what its first group matched, or the whole match where it has none, is replaced by *****.
	Test  string `yaml:"test"`  // A line; sidecar check tries it.
	Want  string `yaml:"want"`  // What the test line has to become.
}

// Levels are the values of the label level, from the least.
var levels = []string{"", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// DefaultConfig is what holds where the settings say nothing.
func DefaultConfig() Config {
	return Config{
		Encoding:       "protobuf",
		Select:         Select{Level: "WARN", Events: true, GCPause: 500 * time.Millisecond, Slow: 5 * time.Second, Status: 500},
		LinesPerSecond: 10, MaxLine: 16 << 10, MaxAge: 6 * 24 * time.Hour,
		QueueBytes: 2 << 20, BatchBytes: 256 << 10, BatchWait: time.Second, BytesPerSecond: 2 << 20,
		Timeout: 10 * time.Second, MinBackoff: 500 * time.Millisecond, MaxBackoff: time.Minute,
		StopTimeout: 3 * time.Second, SpoolBytes: 64 << 20,
	}
}

// On says whether anything is shipped at all.
func (c *Config) On() bool { return c.URL != "" }

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Labels are the labels that the shipper sets itself: the dashboards select by them.
var Labels = []string{"target", "source", "level", "event", "host"}

// Check finds the mistakes, and tries the test lines.
func (c *Config) Check() error {
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil {
			return fmt.Errorf("url: %w", err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("url: %q is no http or https address", c.URL)
		}
		if u.Path == "" || u.Path == "/" {
			return fmt.Errorf("url: %q has no path: Loki's is /loki/api/v1/push", c.URL)
		}
	}
	if c.Encoding != "protobuf" && c.Encoding != "json" {
		return fmt.Errorf("encoding: %q is neither protobuf nor json", c.Encoding)
	}
	if _, err := c.HTTP.client(); err != nil {
		return fmt.Errorf("http.%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		switch {
		case !labelName.MatchString(name):
			return fmt.Errorf("labels: %q is no label name", name)
		case slices.Contains(Labels, name):
			return fmt.Errorf("labels: %s is set by the sidecar", name)
		case c.Labels[name] == "" || len(c.Labels[name]) > 1024:
			return fmt.Errorf("labels: the value of %s has to have 1 to 1024 bytes", name)
		}
	}
	if len(c.Labels) > 8 {
		return fmt.Errorf("labels: %d are too many, Loki takes 15 in all", len(c.Labels))
	}
	for _, n := range []struct {
		key      string
		v        float64
		min, max float64
		unit     string
	}{
		{"lines_per_second", float64(c.LinesPerSecond), 1, 1e6, " lines"},
		{"max_line", float64(c.MaxLine), 128, 256 << 10, " bytes"},
		{"max_age", c.MaxAge.Seconds(), 60, 3660 * 86400, " s"},
		{"queue_bytes", float64(c.QueueBytes), 64 << 10, 1 << 30, " bytes"},
		{"batch_bytes", float64(c.BatchBytes), 1 << 10, 4 << 20, " bytes"},
		{"batch_wait", c.BatchWait.Seconds(), 0, 60, " s"},
		{"bytes_per_second", float64(c.BytesPerSecond), 0, 1 << 30, " bytes"},
		{"timeout", c.Timeout.Seconds(), 0.1, 300, " s"},
		{"min_backoff", c.MinBackoff.Seconds(), 0.01, 60, " s"},
		{"max_backoff", c.MaxBackoff.Seconds(), c.MinBackoff.Seconds(), 3600, " s"},
		{"stop_timeout", c.StopTimeout.Seconds(), 0, 10, " s"},
		{"spool_bytes", float64(c.SpoolBytes), 0, 1 << 40, " bytes"},
		{"select.gc_pause", c.Select.GCPause.Seconds(), 0, 3600, " s"},
		{"select.slow", c.Select.Slow.Seconds(), 0, 86400, " s"},
		{"select.status", float64(c.Select.Status), 0, 999, ""},
	} {
		if n.v < n.min || n.v > n.max {
			return fmt.Errorf("%s: not between %s and %s%s", n.key, plain(n.min), plain(n.max), n.unit)
		}
	}
	if c.BatchBytes > c.QueueBytes {
		return fmt.Errorf("batch_bytes: %d is more than queue_bytes, %d", c.BatchBytes, c.QueueBytes)
	}
	if _, err := c.Select.level(); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range c.Select.Lines {
		l := &c.Select.Lines[i]
		if err := l.compile(); err != nil {
			return fmt.Errorf("select.lines[%d]: %w", i, err)
		}
		if names[l.Name] {
			return fmt.Errorf("select.lines[%d]: %s is there twice", i, l.Name)
		}
		names[l.Name] = true
	}
	for i := range c.Select.Tests {
		if err := c.Select.Tests[i].check(); err != nil {
			return fmt.Errorf("select.tests[%d]: %w", i, err)
		}
	}
	for i := range c.Masks {
		if err := c.Masks[i].check(); err != nil {
			return fmt.Errorf("masks[%d]: %w", i, err)
		}
	}
	return nil
}

// plain is a number without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// level is Level as an index in levels; above all of them for none.
func (s *Select) level() (int, error) {
	if s.Level == "" || s.Level == "none" {
		return len(levels), nil
	}
	if i := slices.Index(levels, strings.ToUpper(s.Level)); i > 0 {
		return i, nil
	}
	return 0, fmt.Errorf("select.level: %q is none of DEBUG, INFO, WARN, ERROR, none", s.Level)
}

// sources are the rooms that choose lines.
var sources = []string{"accesslog", "applog", "gclog"}

var eventName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func (l *Selection) compile() error {
	if !eventName.MatchString(l.Name) {
		return fmt.Errorf("name: %q is not made of small letters, digits and _", l.Name)
	}
	if l.Source != "" && !slices.Contains(sources, l.Source) {
		return fmt.Errorf("%s: source: %q is none of accesslog, applog, gclog", l.Name, l.Source)
	}
	re, err := regexp.Compile(l.Match)
	if err != nil {
		return fmt.Errorf("%s: match: %w", l.Name, err)
	}
	if l.Match == "" || l.Test == "" {
		return fmt.Errorf("%s: match and test have to be there", l.Name)
	}
	if !re.MatchString(l.Test) {
		return fmt.Errorf("%s: test: %q does not match %s", l.Name, l.Test, l.Match)
	}
	if l.TestNot != "" && re.MatchString(l.TestNot) {
		return fmt.Errorf("%s: test_not: %q matches %s", l.Name, l.TestNot, l.Match)
	}
	l.re = re
	return nil
}

// check finds the mistakes that can be found without reading the line.
func (t *Trial) check() error {
	switch {
	case !slices.Contains(sources, t.Source):
		return fmt.Errorf("source: %q is none of accesslog, applog, gclog", t.Source)
	case t.Line == "":
		return errors.New("line: a line of the log has to be there")
	case t.Pattern != "" && t.Source != "accesslog":
		return errors.New("pattern: only an access log has one")
	case !eventName.MatchString(t.Want):
		return fmt.Errorf("want: %q is no event, nor chosen, nor none", t.Want)
	}
	return nil
}

func (m *Mask) check() error {
	re, err := regexp.Compile(m.Match)
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if m.Match == "" || re.MatchString("") {
		return errors.New("match: would match nothing at all, and so everywhere")
	}
	if have := replace(re, m.Test); have != m.Want {
		return fmt.Errorf("test: %q becomes %q, not %q", m.Test, have, m.Want)
	}
	if m.Test == "" {
		return errors.New("test: a line that shows what is masked has to be there")
	}
	return nil
}
