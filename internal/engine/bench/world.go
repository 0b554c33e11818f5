//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// recorded is what /metrics of a sidecar said beside two Tomcats 10.1 in overload,
// their paths and ports made short: some 1,100 series.
//
//go:embed testdata/overload.prom.gz
var recorded []byte

// world is a sidecar's figures, beginning with those recorded. Where one server
// does not make as many series as are wanted, further ones like it are added.
type world struct {
	sets   []*metric.Set
	moves  []func(i int)
	series int
	rand   *rand.Rand
}

func newWorld(series int) (*world, error) {
	z, err := gzip.NewReader(bytes.NewReader(recorded))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	w := &world{rand: rand.New(rand.NewPCG(1, 2))}
	w.add(families, "", "")
	for n := 0; w.series < series; n++ {
		w.add(families, "tomcat-"+strconv.Itoa(8080+n%2), "tomcat-"+strconv.Itoa(8080+n))
	}
	return w, nil
}

// target is the server whose panels are looked at.
const target = "tomcat-8080"

// add makes the series of one recorded server by another name, or without a name
// those of no server.
func (w *world) add(families map[string]*dto.MetricFamily, recorded, target string) {
	set := metric.NewSet()
	if target != "" {
		set = metric.ForTarget(target)
	}
	for name, f := range families {
		// The engine's own are written by the engine that is measured.
		if len(name) > 7 && name[:7] == "engine_" {
			continue
		}
		var family *metric.Family
		for _, m := range f.Metric {
			var names, values []string
			of := ""
			for _, l := range m.Label {
				if l.GetName() == "target" {
					of = l.GetValue()
					continue
				}
				names, values = append(names, l.GetName()), append(values, l.GetValue())
			}
			if of != recorded {
				continue
			}
			if family == nil {
				family = &metric.Family{Name: name, Help: f.GetHelp(), Labels: names}
			}
			if len(names) == len(family.Labels) {
				w.one(set, family, f.GetType(), m, values)
			}
		}
	}
	w.sets = append(w.sets, set)
}

// one is one recorded metric: counters go on at a speed of their own, half of the
// gauges stand still, as most do, and a histogram sees a few more each second.
func (w *world) one(set *metric.Set, f *metric.Family, kind dto.MetricType, m *dto.Metric, values []string) {
	speed := math.Exp(3 * w.rand.NormFloat64())
	switch kind {
	case dto.MetricType_COUNTER:
		f.Kind = metric.Counter
		n := set.Counter(f, values...)
		n.Set(m.GetCounter().GetValue())
		if m.GetCounter().GetValue() > 0 {
			w.moves = append(w.moves, func(int) { n.Add(math.Round(speed * w.rand.ExpFloat64())) })
		}
		w.series++
	case dto.MetricType_GAUGE:
		f.Kind = metric.Gauge
		n := set.Gauge(f, values...)
		v := m.GetGauge().GetValue()
		n.Set(v)
		if w.rand.IntN(2) == 0 && v != 0 && v != 1 {
			w.moves = append(w.moves, func(i int) { n.Set(v * (1 + .3*math.Sin(float64(i)/speed))) })
		}
		w.series++
	case dto.MetricType_SUMMARY:
		f.Kind = metric.Summary
		s := set.Summary(f, values...)
		w.moves = append(w.moves, func(i int) {
			if i%5 == 0 {
				s.Count++
				s.Sum += w.rand.Float64() / 10
			}
		})
		w.series += 2
	case dto.MetricType_HISTOGRAM:
		f.Kind = metric.Histogram
		for _, b := range m.GetHistogram().Bucket {
			if len(f.Buckets) < len(m.GetHistogram().Bucket) && !math.IsInf(b.GetUpperBound(), 1) {
				f.Buckets = append(f.Buckets, b.GetUpperBound())
			}
		}
		h := set.Histogram(f, values...)
		w.moves = append(w.moves, func(int) {
			for range w.rand.IntN(4) {
				h.Observe(math.Exp(w.rand.NormFloat64()) / 50)
			}
		})
		w.series += len(f.Buckets) + 4
	}
}

// snapshot lets second i pass.
func (w *world) snapshot(i int, at time.Time) *metric.Snapshot {
	for _, move := range w.moves {
		move(i)
	}
	g := metric.NewGathering()
	for _, s := range w.sets {
		s.Lock()
		g.Add(s)
		s.Unlock()
	}
	return g.Snapshot(at)
}
