package lab

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Scrape is one reading of an exposition: what a Prometheus would see. It is
// read by hand and not with a library of the product's, so that it is a second
// opinion.
type Scrape []Sample

// ReadMetrics scrapes addr once.
func ReadMetrics(addr string) (Scrape, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answers %s", r.Status)
	}
	return parseScrape(r.Body)
}

// parseScrape reads the text format. The name of a sample is its label
// __name__.
func parseScrape(r io.Reader) (Scrape, error) {
	var s Scrape
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		sample, err := parseSample(line)
		if err != nil {
			return nil, fmt.Errorf("exposition: %w in %q", err, line)
		}
		s = append(s, sample)
	}
	return s, lines.Err()
}

func parseSample(line string) (Sample, error) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return Sample{}, fmt.Errorf("no value")
	}
	s := Sample{Labels: map[string]string{"__name__": line[:end]}}
	rest := line[end:]
	if rest[0] == '{' {
		rest = rest[1:]
		for !strings.HasPrefix(rest, "}") {
			name, after, ok := strings.Cut(rest, "=")
			if !ok {
				return Sample{}, fmt.Errorf("open labels")
			}
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return Sample{}, fmt.Errorf("label %s: %w", name, err)
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				return Sample{}, fmt.Errorf("label %s: %w", name, err)
			}
			s.Labels[name] = value
			rest = strings.TrimPrefix(after[len(quoted):], ",")
		}
		rest = rest[1:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return Sample{}, fmt.Errorf("no value")
	}
	var err error
	s.Value, err = strconv.ParseFloat(fields[0], 64)
	return s, err
}

// Sum adds all samples of a name whose labels have the given values ("pool",
// "catalina-exec", …). ok is false when there is none: an absent figure is not
// 0.
func (s Scrape) Sum(name string, labels ...string) (sum float64, ok bool) {
	for _, sample := range s {
		if sample.has(name, labels) {
			sum += sample.Value
			ok = true
		}
	}
	return sum, ok
}

// Names are the names in the scrape, sorted.
func (s Scrape) Names() []string {
	names := map[string]bool{}
	for _, sample := range s {
		names[sample.Labels["__name__"]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (s Sample) has(name string, labels []string) bool {
	if s.Labels["__name__"] != name {
		return false
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if s.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
