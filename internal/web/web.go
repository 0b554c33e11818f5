// Package web is the face towards the network: /metrics, the page that says
// what is seen and what is not, and the few switches under /-/.
//
// Everything here reads the last published snapshot. A scrape never waits for
// /proc, a log or a lock of a source.
package web

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
	"github.com/jvm-sidecar/sidecar/internal/status"
	"github.com/prometheus/common/expfmt"
)

// A Monitor is what the pages are drawn from.
type Monitor interface {
	// Snapshot is the last published one, or nil before the first tick.
	Snapshot() *metric.Snapshot
	// Status is what is seen and what is not.
	Status() *status.Status
}

// Options are what the command line decides.
type Options struct {
	// Reload is called by POST /-/reload; nil where the life cycle is not
	// enabled.
	Reload func() error
	// RawLines says whether every visitor is a user who has proved it, and may see
	// raw log lines. Otherwise, and where it is nil, only visitors on loopback may.
	// It is asked each time: the web config is read anew for each request, and
	// its users may be gone since the start.
	RawLines func() bool
	// API serves Prometheus' query API below /api/v1; nil where there is no
	// engine.
	API http.Handler
	Log *slog.Logger
}

// Handler is the whole site.
func Handler(m Monitor, o Options) http.Handler {
	s := &site{monitor: m, options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("/-/reload", s.reload)
	mux.HandleFunc("GET /status.json", s.statusJSON)
	mux.HandleFunc("GET /explain.json", s.explain)
	mux.HandleFunc("GET /{$}", s.page)
	mux.Handle("GET /static/", http.FileServerFS(static))
	if o.API == nil {
		o.API = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the engine is off: there is no history to ask; set engine: on", http.StatusNotFound)
		})
	}
	mux.Handle("/api/v1/", o.API)
	return secure(mux)
}

type site struct {
	monitor Monitor
	options Options
}

// secure sets the headers that make a page with strangers' text in it harmless.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// gzips are writers that are used again: each is over a megabyte, more than all
// else that a scrape needs. The fastest level: the cycles are the server's.
var gzips = sync.Pool{New: func() any {
	gz, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return gz
}}

// metrics serves the last snapshot in the format the scraper asks for.
// ?target=NAME gives one server alone.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) {
	snap := s.monitor.Snapshot()
	if snap == nil {
		http.Error(w, "the first look at the machine is not finished: ask again in a second", http.StatusServiceUnavailable)
		return
	}
	if name := r.URL.Query().Get("target"); name != "" {
		if snap = snap.ForTarget(name); len(snap.Families) == 0 {
			http.Error(w, "no target "+strconv.Quote(name)+": the page at / lists them", http.StatusNotFound)
			return
		}
	}
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	var out io.Writer = w
	// For who is on this machine it would save the network nothing and take twice
	// what the text itself takes, from the server's cores.
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && !isOnLoopback(r) {
		w.Header().Set("Content-Encoding", "gzip")
		gz := gzips.Get().(*gzip.Writer)
		gz.Reset(w)
		defer func() { gz.Close(); gz.Reset(nil); gzips.Put(gz) }()
		out = gz
	}
	enc := expfmt.NewEncoder(out, format)
	for _, f := range snap.Families {
		if err := enc.Encode(f); err != nil {
			s.options.Log.Debug("scrape broken off", "err", err)
			return
		}
	}
	if c, ok := enc.(expfmt.Closer); ok {
		c.Close()
	}
}

// stalledAfter is how old a snapshot may be before the sidecar counts as hung. A
// tick is a second, and a machine in trouble may slow it: only what is surely
// dead should be restarted.
const stalledAfter = time.Minute

// healthy is what a liveness probe asks. Before the first snapshot it is healthy:
// a slow start is what readiness is for.
func (s *site) healthy(w http.ResponseWriter, _ *http.Request) {
	if st := s.monitor.Status(); st != nil {
		if age := time.Since(st.At); !st.At.IsZero() && age > stalledAfter {
			http.Error(w, "sidecar hangs: no snapshot for "+age.Truncate(time.Second).String()+".", http.StatusServiceUnavailable)
			return
		}
	}
	io.WriteString(w, "sidecar is healthy.\n")
}

func (s *site) ready(w http.ResponseWriter, _ *http.Request) {
	st := s.monitor.Status()
	if s.monitor.Snapshot() == nil || st == nil || !st.Ready {
		http.Error(w, "sidecar is reading the backlog of its start.", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "sidecar is ready.\n")
}

func (s *site) reload(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.options.Reload == nil:
		http.Error(w, "reload over HTTP is off: start with --web.enable-lifecycle, or send SIGHUP", http.StatusForbidden)
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		w.Header().Set("Allow", "POST, PUT")
		http.Error(w, "only POST or PUT reload", http.StatusMethodNotAllowed)
	case !s.isTrusted(r):
		http.Error(w, "a reload from another machine needs users in the web config: send SIGHUP, or ask on loopback", http.StatusForbidden)
	case isFromAnotherSite(r):
		// A page of somebody else in a browser on this machine is no user of it.
		http.Error(w, "no reload on behalf of another site's page", http.StatusForbidden)
	default:
		if err := s.options.Reload(); err != nil {
			http.Error(w, "settings not reloaded: "+err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "settings reloaded.\n")
	}
}

// isTrusted says whether a visitor may see raw log lines and change state, were it
// not another site's page that makes him ask. The web config's
// users are checked before a request comes here; where there are none, only
// the machine itself may read what strangers wrote into its logs.
func (s *site) isTrusted(r *http.Request) bool {
	if s.options.RawLines != nil && s.options.RawLines() {
		return true
	}
	return isOnLoopback(r) && isOurName(r.Host)
}

// isOnLoopback says whether a visitor is on this machine, and speaks for himself.
func isOnLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() && !isByProxy(r)
}

// mayReadLines says whether a visitor may see raw log lines. Another site's page
// gets none of them, whoever sits before it; a link there that leads here is
// followed by the user, and the page that it opens cannot be read by the other.
func (s *site) mayReadLines(r *http.Request) bool {
	opened := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Origin") == ""
	return s.isTrusted(r) && (opened || !isFromAnotherSite(r))
}

// isByProxy says whether a proxy handed the request on. One on this machine
// comes from loopback and speaks for somebody else.
func isByProxy(r *http.Request) bool {
	for name := range r.Header {
		switch {
		case name == "Forwarded", name == "Via", name == "X-Real-Ip", strings.HasPrefix(name, "X-Forwarded-"):
			return true
		}
	}
	return false
}

// isFromAnotherSite says whether a browser asks for a page that is not ours. A
// port of its own on the same machine is another site, too: only our own scheme,
// host and port are ours, and none is what a user types. Programs send neither
// of the two headers.
func isFromAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	own := "http://" + r.Host
	if r.TLS != nil {
		own = "https://" + r.Host
	}
	for _, origin := range r.Header.Values("Origin") {
		if !strings.EqualFold(origin, own) {
			return true
		}
	}
	return false
}

// isOurName says whether a visitor asked for this machine by a name that nobody
// else can own. A browser here that shows a stranger's page, whose name in the DNS
// was changed to 127.0.0.1 meanwhile, comes from loopback too, and lets that page
// read the answer; but it still asks for the stranger's name.
func isOurName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return net.ParseIP(host) != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost")
}

// age is how old something is, for the page.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return now.Sub(at).Truncate(time.Second).String()
}
