package web

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/jvm-sidecar/sidecar/internal/target"
)

// history answers the query API the way the engine does: each series of the
// page has a wave over all of the span, and an alert fires in the middle of it.
type history struct {
	now     float64
	alerts  []string    // that fire now, as JSON
	behind  bool        // whether the access log is read late just now
	wrong   atomic.Bool // answer nothing
	hangs   atomic.Bool // take the question, and say nothing
	mu      sync.Mutex
	heights map[string]float64
}

// height is another one for each query, so that no line hides another.
func (h *history) height(query string) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heights == nil {
		h.heights = map[string]float64{}
	}
	if _, ok := h.heights[query]; !ok {
		h.heights[query] = 3 * float64(len(h.heights))
	}
	return h.heights[query]
}

func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.hangs.Load() {
		<-r.Context().Done()
		return
	}
	if h.wrong.Load() {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	type series struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values,omitempty"`
		Value  *[2]any           `json:"value,omitempty"`
	}
	var result []series
	q := r.FormValue("query")
	labels := map[string]string{"code": "2xx", "pool": "catalina-exec", "port": "8080", "dir": "/logs", "event": "<img src=x onerror=alert(1)>", "class": "java.lang.Error", "route": "/slow"}
	if strings.HasPrefix(r.URL.Path, "/api/v1/query_range") {
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		for i, expr := range strings.Split(q, "label_replace(")[1:] {
			height := h.height(expr)
			add := func(value func(at float64) float64, more ...string) {
				of := maps.Clone(labels)
				of["line"] = strconv.Itoa(i)
				for m := 0; m+1 < len(more); m += 2 {
					of[more[m]] = more[m+1]
				}
				var values [][2]any
				for at := from; at <= to; at++ {
					if v := value(at); !math.IsNaN(v) {
						values = append(values, [2]any{at, fmt.Sprint(v)})
					}
				}
				if len(values) > 0 {
					result = append(result, series{Metric: of, Values: values})
				}
			}
			wave := func(at float64) float64 { return 1.5 + math.Sin(at/20) + height }
			when := func(lies bool, v float64) float64 {
				if !lies {
					return math.NaN()
				}
				return v
			}
			ago := h.now - 900
			switch {
			case strings.HasPrefix(expr, "ALERTS"):
				add(func(at float64) float64 { return when(at >= h.now-400 && at <= h.now-300, 1) }, "alertname", "ExecutorRejectionStorm", "severity", "critical")
			case strings.HasPrefix(expr, "target_up"):
				add(func(at float64) float64 { return when(at < ago+100 || at > ago+140, 1) })
			case strings.HasPrefix(expr, "sidecar_source_up"):
				add(func(at float64) float64 { return when(at > ago+200 && at < ago+240, 0) }, "source", "accesslog")
			case strings.HasPrefix(expr, "logfile_lag_seconds"):
				add(func(at float64) float64 { return when(h.behind && at > h.now-30, at-h.now+31) }, "file", "access.log")
			case strings.Contains(expr, "sum by (le)") && !strings.HasPrefix(expr, "histogram"):
				for b, le := range []string{"0.005", "0.01", "0.025", "0.05", "0.1", "+Inf"} {
					add(func(at float64) float64 { return float64(b*b) * (1.5 + math.Sin(at/20)) }, "le", le)
				}
			default:
				add(wave)
			}
		}
	} else if strings.HasSuffix(r.URL.Path, "/alerts") {
		io.WriteString(w, `{"status":"success","data":{"alerts":[`+strings.Join(h.alerts, ",")+`]}}`)
		return
	} else {
		result = append(result, series{Metric: labels, Value: &[2]any{1, "2"}})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
}

func newHistory() *history {
	return &history{now: float64(time.Now().Unix()), alerts: []string{
		`{"state":"firing","labels":{"alertname":"ExecutorRejectionStorm","severity":"critical","target":"tomcat-8080"},"annotations":{"summary":"tomcat-8080 turns requests away: 48 a second","next":"Look at the pool's threads."}}`,
		`{"state":"firing","labels":{"alertname":"SomethingSmall","severity":"info","target":"tomcat-8080"},"annotations":{"summary":"a small thing"}}`,
		`{"state":"firing","labels":{"alertname":"DeadMansSwitch","severity":"none"},"annotations":{"summary":"always there"}}`,
	}}
}

// markup is what an attacker would like to see executed.
const markup = `<img src=x onerror=alert(1)><script>alert(2)</script>`

// closely is a sidecar with some servers, each with a log that can be looked at.
func closely(servers int) fake {
	f := running()
	f.st.Targets = nil
	for i := range servers {
		name := fmt.Sprintf("tomcat-%d", 8080+i)
		f.st.Targets = append(f.st.Targets, status.Server{
			Up: true, Target: &target.Target{Name: name, Kind: target.Tomcat, Connectors: []target.Connector{{Port: 8080 + i, Protocol: "HTTP/1.1", MaxThreads: 10}}},
			Sources: []status.Source{
				{Name: "accesslog", File: "access.log", Path: "/logs/access.log", Ledger: &status.Ledger{Written: 5000, Read: 4000, Lag: 1000, LagSeconds: 3}, Explain: func(bool) status.Explained {
					return status.Explained{
						Entries: []status.Entry{
							{Line: `10.0.0.1 "GET /a HTTP/1.1" 200`, Made: []status.Fact{{Name: "path", Value: "/a"}, {Name: "code", Value: "2xx"}}},
							{Line: markup, Refused: "mismatch"},
						},
						Refused:  []status.Refused{{Reason: "mismatch", Line: markup}},
						Settings: "accesslog:\n  codes: class\n",
					}
				}},
				{Name: "applog", File: "catalina.out", Ledger: &status.Ledger{}, Explain: func(bool) status.Explained {
					return status.Explained{Patterns: []status.Pattern{{Level: "SEVERE", Text: "cannot " + markup, Records: 1200, New: true}}}
				}},
				{Name: "process", Blind: []target.Blind{{Source: "process", Detail: "sockets can't be seen"}}},
			},
		})
	}
	return f
}

// openLive opens the page in a browser and waits for its charts.
func openLive(t *testing.T, m Monitor, api http.Handler, hash string) (b *lab.Browser, page string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	server := httptest.NewServer(Handler(m, Options{API: api, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	b, err := lab.StartBrowser(t.TempDir(), 1280, 1700)
	lab.Need(t, err)
	t.Cleanup(b.Stop)
	if err := b.Go(server.URL + "/" + hash); err != nil {
		t.Fatal(err)
	}
	if !b.Until(20*time.Second, `document.querySelectorAll("#live-charts canvas").length >= 9`) {
		t.Fatalf("not 9 charts; console: %v", b.Console())
	}
	return b, server.URL
}
