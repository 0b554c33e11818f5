// Command bench measures what the engine costs: two hours of a thousand series,
// a sample each second, with the load rules evaluated as they come, in as much
// time as that takes. It prints CPU for each second of samples, resident memory
// above what the process had before, and how long a panel's query takes.
//
//	go run ./internal/engine/bench [--hours 2] [--series 1000]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/engine"
	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/rules"
)

var (
	events = &metric.Family{Name: "applog_events_total", Kind: metric.Counter, Labels: []string{"event", "port"}, Help: "h"}
	levels = &metric.Family{Name: "jvm_threadpool_threads", Kind: metric.Gauge, Labels: []string{"pool"}, Help: "h"}
	answer = &metric.Family{Name: "accesslog_request_duration_seconds", Kind: metric.Histogram, Labels: []string{"code", "route"}, Buckets: metric.LatencyBuckets, Help: "h"}
	others = &metric.Family{Name: "logfile_read_bytes_total", Kind: metric.Counter, Labels: []string{"file"}, Help: "h"}
)

func main() {
	hours := flag.Float64("hours", 2, "hours of samples")
	series := flag.Int("series", 1000, "series")
	profile := flag.String("profile", "", "write cpu.prof, query.prof and heap.prof into this folder")
	flag.Parse()
	dir, err := os.MkdirTemp("", "engine-bench")
	if err != nil {
		fail(err)
	}
	defer os.RemoveAll(dir)
	set := metric.ForTarget("tomcat-8080")
	at := time.Now().Add(-time.Duration(*hours * float64(time.Hour)))
	world(set, *series, 0)
	g := metric.NewGathering()
	g.Add(set)
	snap := g.Snapshot(at)
	debug.FreeOSMemory()
	before := resident()
	e, err := engine.Open(engine.DefaultConfig(), engine.Options{
		Dir: dir, Job: "sidecar", Instance: "here:10404", Pack: rules.Files, Start: at, Log: slog.New(slog.DiscardHandler),
		Notify: func([]engine.Alert) {},
	})
	if err != nil {
		fail(err)
	}
	if *profile != "" {
		f, _ := os.Create(*profile + "/cpu.prof")
		pprof.StartCPUProfile(f)
	}
	ticks := int(*hours * 3600)
	var used, making time.Duration
	most := 0
	for i := range ticks {
		m := cpu()
		world(set, *series, i)
		g := metric.NewGathering()
		g.Add(set)
		at = at.Add(time.Second)
		snap = g.Snapshot(at)
		a := cpu()
		making += a - m
		e.Append(snap)
		used += cpu() - a
		if i%60 == 0 {
			most = max(most, resident())
		}
	}
	fmt.Printf("CPU for each second of samples: %.2f ms (the snapshot itself, not counted: %.2f ms)\n", ms(used)/float64(ticks), ms(making)/float64(ticks))
	fmt.Printf("resident: %.1f MB before, %.1f MB above that at most, %.1f MB at the end\n", mb(before), mb(most-before), mb(resident()-before))
	if *profile != "" {
		pprof.StopCPUProfile()
		f, _ := os.Create(*profile + "/heap.prof")
		runtime.GC()
		pprof.WriteHeapProfile(f)
		f, _ = os.Create(*profile + "/query.prof")
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	query(e, at)
}

// world makes the series: a third counters that move, some histograms, and
// gauges, half of which stand still as most do.
func world(set *metric.Set, n, i int) {
	set.Lock()
	defer set.Unlock()
	for h := range n / 100 {
		for k := range 5 {
			set.Histogram(answer, "2xx", "r"+strconv.Itoa(h)).Observe(float64((i*7+k*13+h)%200) / 1000)
		}
	}
	for c := range n * 4 / 10 {
		set.Counter(others, "f"+strconv.Itoa(c)).Add(float64((i*c)%977) + 100)
	}
	for l := range n * 4 / 10 {
		v := float64(l)
		if l%2 == 0 {
			v += float64(i % 50)
		}
		set.Gauge(levels, "p"+strconv.Itoa(l)).Set(v)
	}
	set.Counter(events, "executor_rejected", "8080").Add(0)
}

// query asks for a panel's fifteen minutes again and again.
func query(e *engine.Engine, end time.Time) {
	h := e.Handler()
	for _, expr := range []string{
		`histogram_quantile(0.99, sum by (le) (rate(accesslog_request_duration_seconds_bucket[30s])))`,
		`sum(rate(logfile_read_bytes_total[30s]))`,
		`jvm_threadpool_threads{pool="p2"}`,
	} {
		var took []time.Duration
		for i := range 100 {
			to := end.Add(-time.Duration(i) * time.Second)
			q := url.Values{"query": {expr}, "step": {"5"},
				"start": {strconv.FormatInt(to.Add(-15*time.Minute).Unix(), 10)}, "end": {strconv.FormatInt(to.Unix(), 10)}}
			w := httptest.NewRecorder()
			began := time.Now()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/query_range?"+q.Encode(), nil))
			took = append(took, time.Since(began))
			var a struct{ Status string }
			if json.Unmarshal(w.Body.Bytes(), &a); a.Status != "success" {
				fail(fmt.Errorf("%s: %s", expr, w.Body))
			}
		}
		slices.Sort(took)
		fmt.Printf("query_range of 15 min: p50 %.1f ms, p99 %.1f ms: %s\n", ms(took[50]), ms(took[98]), expr)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
func mb(n int) float64           { return float64(n) / 1e6 }

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is what the kernel says this process has in memory.
func resident() int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(data))[1])
	return pages * os.Getpagesize()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
