package engine

import (
	"context"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The forms of Prometheus' API that Grafana and promtool ask for.
func TestAPI(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(700)
	w.set.Histogram(testHist).Observe(.5)
	w.ticks(12)
	h := w.e.Handler()
	for _, c := range []struct {
		path   string
		query  url.Values
		status int
		want   string
	}{
		{"query", url.Values{"query": {"test_level_bytes"}}, 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"test_level_bytes","instance":"here:10404","job":"sidecar","target":"tomcat-8080"},"value":[1772366412,"700"]}]}}`},
		{"query", url.Values{"query": {"test_seconds"}}, 200, `"histogram":[1772366412,{"count":"1"`},
		{"query", url.Values{"query": {"1+1"}}, 200, `"resultType":"scalar","result":[1772366412,"2"]`},
		{"query", url.Values{"query": {"sum("}}, 400, `"errorType":"bad_data"`},
		{"query", url.Values{"query": {"test_level_bytes"}, "time": {"never"}}, 400, `"errorType":"bad_data"`},
		{"query_range", url.Values{"query": {"test_level_bytes"}, "start": {"1772366410"}, "end": {"1772366412"}, "step": {"1s"}}, 200, `"values":[[1772366410,"700"],[1772366411,"700"],[1772366412,"700"]]`},
		{"query_range", url.Values{"query": {"up"}, "start": {"0"}, "end": {"1772366412"}, "step": {"1"}}, 400, `11,000 points`},
		{"series", url.Values{"match[]": {"up"}}, 200, `"data":[{"__name__":"up","instance":"here:10404","job":"sidecar"}]`},
		{"series", nil, 400, `no match[]`},
		{"labels", url.Values{"match[]": {"up"}}, 200, `"data":["__name__","instance","job"]`},
		{"label/target/values", nil, 200, `"data":["tomcat-8080"]`},
		{"metadata", url.Values{"metric": {"test_level_bytes"}}, 200, `"test_level_bytes":[{"type":"gauge","help":"h","unit":"bytes"}]`},
		{"alerts", nil, 200, `"state":"firing"`},
		{"rules", url.Values{"type": {"alert"}}, 200, `"name":"High"`},
		{"status/buildinfo", nil, 200, `"version":"3.4.2"`},
	} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest("GET", "/api/v1/"+c.path+"?"+c.query.Encode(), nil))
		if r.Code != c.status || !strings.Contains(r.Body.String(), c.want) {
			t.Errorf("%s?%s: %d\n%s\nwant %d %s", c.path, c.query.Encode(), r.Code, r.Body, c.status, c.want)
		}
	}
	for _, path := range []string{"admin/tsdb/delete_series", "write", "-/reload"} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest("POST", "/api/v1/"+path, nil))
		if r.Code != 404 && r.Code != 405 {
			t.Errorf("POST %s: %d", path, r.Code)
		}
	}
}

// More queries than may be evaluated at once wait, as long as they have patience.
// Rules don't.
func TestQueriesTakeTurns(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.set.Gauge(testGauge).Set(700)
	w.ticks(5)
	ask := func(ctx context.Context, more string) *httptest.ResponseRecorder {
		r := httptest.NewRecorder()
		w.e.Handler().ServeHTTP(r, httptest.NewRequestWithContext(ctx, "GET", "/api/v1/query?query=up"+more, nil))
		return r
	}
	for range maxQueries {
		w.e.turns <- struct{}{}
	}
	w.ticks(7)
	if s := w.state("High"); s != "firing" {
		t.Errorf("behind queries High is %q", s)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if r := ask(gone, ""); r.Code != 499 || !strings.Contains(r.Body.String(), `"errorType":"canceled"`) {
		t.Errorf("a client that went away: %d %s", r.Code, r.Body)
	}
	if r := ask(t.Context(), "&timeout=1ms"); r.Code != 503 || !strings.Contains(r.Body.String(), `"errorType":"timeout"`) {
		t.Errorf("no patience: %d %s", r.Code, r.Body)
	}
	<-w.e.turns
	for range 2 { // the turn is given back
		if r := ask(t.Context(), ""); r.Code != 200 {
			t.Errorf("a free turn: %d %s", r.Code, r.Body)
		}
	}
}
