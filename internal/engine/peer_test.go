package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// peer is a Prometheus of the pinned version that is given each snapshot as its
// own scraper would read it: the exposition goes through Prometheus' parser, gets
// job and instance, and is written with the snapshot's time.
type peer struct {
	t     *testing.T
	p     *lab.Prometheus
	held  map[string]*prompb.TimeSeries // by labels; what is to be written next
	order []string
	last  map[string]labels.Labels // what the last snapshot had
	n     int
}

// startPeer needs Prometheus, which takes minutes to build the first time.
func startPeer(t *testing.T, config string) *peer {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Prometheus")
	}
	p, err := lab.StartPinnedPrometheus(t.TempDir(), config, "--web.enable-remote-write-receiver", "--enable-feature=native-histograms")
	lab.Need(t, err)
	t.Cleanup(p.Stop)
	return &peer{t: t, p: p, held: map[string]*prompb.TimeSeries{}, last: map[string]labels.Labels{}}
}

func (p *peer) take(at int64, snap *metric.Snapshot) {
	p.t.Helper()
	var body bytes.Buffer
	enc := expfmt.NewEncoder(&body, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range snap.Families {
		if err := enc.Encode(f); err != nil {
			p.t.Fatal(err)
		}
	}
	seen := map[string]labels.Labels{}
	series := func(l labels.Labels) *prompb.TimeSeries {
		key := l.String()
		seen[key] = l
		ts := p.held[key]
		if ts == nil {
			ts = &prompb.TimeSeries{Labels: prompb.FromLabels(l, nil)}
			p.held[key] = ts
			p.order = append(p.order, key)
		}
		return ts
	}
	up := series(labels.FromStrings("__name__", "up", "instance", "here:10404", "job", "sidecar"))
	up.Samples = append(up.Samples, prompb.Sample{Timestamp: at, Value: 1})
	parser := textparse.NewProtobufParser(body.Bytes(), true, labels.NewSymbolTable())
	for {
		entry, err := parser.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			p.t.Fatal(err)
		}
		var l labels.Labels
		switch entry {
		case textparse.EntrySeries:
			_, _, v := parser.Series()
			parser.Labels(&l)
			ts := series(asScraped(l))
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: at, Value: v})
		case textparse.EntryHistogram:
			_, _, h, _ := parser.Histogram()
			parser.Labels(&l)
			ts := series(asScraped(l))
			ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(at, h))
		}
	}
	for key, l := range p.last {
		if seen[key] == nil {
			ts := series(l)
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: at, Value: math.Float64frombits(value.StaleNaN)})
			delete(seen, key)
			p.write() // a histogram's marker must come after its samples
		}
	}
	p.last = seen
	if p.n++; p.n%60 == 0 {
		p.write()
	}
}

// asScraped adds the target's labels; a label of that name becomes exported_.
func asScraped(l labels.Labels) labels.Labels {
	b := labels.NewBuilder(l)
	for name, v := range map[string]string{"job": "sidecar", "instance": "here:10404"} {
		if own := l.Get(name); own != "" {
			b.Set("exported_"+name, own)
		}
		b.Set(name, v)
	}
	return b.Labels()
}

// write hands over what is held, series in the order in which they came.
func (p *peer) write() {
	p.t.Helper()
	if len(p.order) == 0 {
		return
	}
	var req prompb.WriteRequest
	for _, key := range p.order {
		req.Timeseries = append(req.Timeseries, *p.held[key])
	}
	p.held, p.order = map[string]*prompb.TimeSeries{}, nil
	data, err := req.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.Post("http://"+p.p.Addr+"/api/v1/write", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, data)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	if said, _ := io.ReadAll(r.Body); r.StatusCode/100 != 2 {
		p.t.Fatalf("write: %s %s", r.Status, said)
	}
}

// reply is one answer of the API, its JSON taken apart.
type reply struct {
	status int
	body   map[string]any
}

func replyOf(t *testing.T, status int, body []byte) reply {
	t.Helper()
	r := reply{status: status}
	if err := json.Unmarshal(body, &r.body); err != nil {
		t.Fatalf("status %d, no JSON: %v: %s", status, err, body)
	}
	return r
}

// both asks the two for the same. A form is posted, nil is a GET.
func (p *peer) both(h http.Handler, path string, q url.Values, post bool) (ours, theirs reply) {
	p.t.Helper()
	method, target, body := "GET", "/api/v1/"+path+"?"+q.Encode(), ""
	if post {
		method, target, body = "POST", "/api/v1/"+path, q.Encode()
	}
	ask := func(base string) *http.Request {
		r := httptest.NewRequest(method, base+target, bytes.NewBufferString(body))
		r.RequestURI = ""
		if post {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return r
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, ask("http://sidecar"))
	r, err := http.DefaultClient.Do(ask("http://" + p.p.Addr))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if got, want := w.Header().Get("Content-Type"), r.Header.Get("Content-Type"); got != want {
		p.t.Errorf("%s: Content-Type %q, Prometheus %q", path, got, want)
	}
	return replyOf(p.t, w.Code, w.Body.Bytes()), replyOf(p.t, r.StatusCode, said)
}

// The figures of a made-up run, with names of the catalogue.
var (
	runRequests = &metric.Family{Name: "accesslog_requests_total", Kind: metric.Counter, Labels: []string{"code", "method"}, Help: "h"}
	runDuration = &metric.Family{Name: "accesslog_request_duration_seconds", Kind: metric.Histogram, Labels: []string{"code", "route"}, Buckets: metric.LatencyBuckets, Help: "h"}
	runThreads  = &metric.Family{Name: "jvm_threadpool_threads", Kind: metric.Gauge, Labels: []string{"pool"}, Help: "h"}
	runLimit    = &metric.Family{Name: "jvm_threadpool_max_threads", Kind: metric.Gauge, Labels: []string{"pool"}, Help: "h"}
	runPause    = &metric.Family{Name: "jvm_gc_pause_seconds", Kind: metric.Histogram, Labels: []string{"gc"}, Buckets: []float64{.001, .01, .1, 1}, Help: "h"}
	runCollect  = &metric.Family{Name: "jvm_gc_collection_seconds", Kind: metric.Summary, Labels: []string{"gc"}, Help: "h"}
	runHeap     = &metric.Family{Name: "jvm_memory_pool_used_bytes", Kind: metric.Gauge, Labels: []string{"pool"}, Help: "h"}
	runFile     = &metric.Family{Name: "logfile_read_bytes_total", Kind: metric.Counter, Labels: []string{"file", "job"}, Help: "h"}
	runRatio    = &metric.Family{Name: "process_cpu_usage_ratio", Kind: metric.Gauge, Help: "h"}
)

// runSeconds is the length of the run: past the first block of the engine.
const runSeconds = 20 * 60

// made is that run, for an engine and for a peer: counters that grow, stand and
// begin anew, gauges that come and go, are no number or infinite, histograms in
// both forms, names that a scrape changes, and a pause of the sidecar itself.
func made(t *testing.T, w *world, p *peer) {
	t.Helper()
	r := rand.New(rand.NewPCG(10, 44))
	codes, routes := []string{"2xx", "4xx", "5xx"}, []string{"/", "/app/*", "/naïve \"q\""}
	for i := range runSeconds {
		if i == 700 {
			w.now = w.now.Add(40 * time.Second) // away
		}
		if i == 500 { // the server was started anew
			for _, f := range []*metric.Family{runRequests, runDuration} {
				w.set.Remove(f)
			}
		}
		for c, code := range codes {
			for _, m := range []string{"GET", "POST"} {
				w.set.Counter(runRequests, code, m).Add(float64(r.IntN(20 * (c + 1))))
			}
			for k, route := range routes {
				for range r.IntN(4) {
					w.set.Histogram(runDuration, code, route).Observe(math.Exp(r.NormFloat64()+float64(k)) / 50)
				}
			}
		}
		for k, pool := range []string{"http-nio-8080", "ajp-nio-8009", "GC task"} {
			w.set.Gauge(runThreads, pool).Set(math.Round(50 + 40*math.Sin(float64(i)/(30+20*float64(k)))))
			w.set.Gauge(runLimit, pool).Set(90)
			if i/120%3 != k {
				w.set.Gauge(runHeap, pool).Set(1e9 * r.Float64())
			} else {
				w.set.Remove(runHeap)
			}
		}
		if i%7 == 0 {
			w.set.Histogram(runPause, "G1 Young").Observe(r.ExpFloat64() / 100)
			s := w.set.Summary(runCollect, "G1 Young")
			s.Count++
			s.Sum += r.Float64()
		}
		w.set.Counter(runFile, "a.log", "own").Add(1e6 * r.Float64())
		w.set.Gauge(runRatio).Set(r.Float64())
		switch {
		case i%50 == 3:
			w.set.Gauge(runRatio).Set(math.NaN())
		case i%50 == 9:
			w.set.Gauge(runRatio).Set(math.Inf(1))
		}
		w.ticks(1)
		w.e.store.busy.Wait()
		p.take(w.e.Now().UnixMilli(), w.snapshot())
	}
	p.write()
	if n := len(w.e.store.blocks); n == 0 {
		t.Fatal("the run is to reach over a block")
	}
}

// same says where two JSON values differ, "" when they don't. Numbers in strings,
// which is how the API writes values, may differ in the last bits: sums depend on
// the order of series. Such are counted.
func same(a, b any, loose *int) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf("%v and %v", a, b)
		}
		for k, v := range x {
			if d := same(v, y[k], loose); d != "" {
				return k + ": " + d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf("%v and %v", a, b)
		}
		for i := range x {
			if d := same(x[i], y[i], loose); d != "" {
				return d
			}
		}
		return ""
	case string:
		y, ok := b.(string)
		if !ok {
			return fmt.Sprintf("%v and %v", a, b)
		}
		if x == y {
			return ""
		}
		f, err1 := strconv.ParseFloat(x, 64)
		g, err2 := strconv.ParseFloat(y, 64)
		if err1 == nil && err2 == nil && math.Abs(f-g) <= 1e-11*max(math.Abs(f), math.Abs(g)) {
			*loose++
			return ""
		}
	default:
		if a == b {
			return ""
		}
	}
	return fmt.Sprintf("%v and %v", a, b)
}
